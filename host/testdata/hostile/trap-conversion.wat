;; A number that is none, as a whole one.
;; want: error: the guest trapped: invalid conversion to integer in .$1(i32,i32) i64
(module
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.trunc_f64_s (f64.const nan))))
