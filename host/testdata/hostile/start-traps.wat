;; A start function that traps.
;; want: load extension "least": start the guest: the guest trapped: unreachable in .$0()
(module
  (memory (export "memory") 1)
  (func $s (unreachable))
  (start $s)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.const 0)))
