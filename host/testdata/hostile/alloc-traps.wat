;; A guest that traps when it is asked for memory.
;; want: error: the guest trapped: unreachable in .$0(i32) i32
(module
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (unreachable))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.const 0)))
