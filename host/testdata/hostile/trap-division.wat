;; A division by zero.
;; want: error: the guest trapped: integer divide by zero in .$1(i32,i32) i64
(module
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.extend_i32_u (i32.div_u (i32.const 1) (i32.sub (local.get $at) (local.get $at))))))
