;; _start must never run: here it would trap. A start function may, and does.
(module
  (global $started (mut i32) (i32.const 0)) (func $s (global.set $started (i32.const 1))) (start $s) (func (export "_start") (unreachable)) (func (export "start") (unreachable))
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param i32 i32) (result i64) (i64.const 0))
)
