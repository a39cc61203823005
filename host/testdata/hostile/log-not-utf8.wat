;; What is no UTF-8 in a log is replaced.
;; want: no opinion; logged "least info: a�b"
(module
  (import "wharf_v1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "a\ffb")
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (call $log (i32.const 1) (i32.const 16) (i32.const 3))
      (i64.const 0)))
