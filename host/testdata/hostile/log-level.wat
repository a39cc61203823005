;; A level that there is not counts as error.
;; want: no opinion; logged "least error: hi"
(module
  (import "wharf_v1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "hi")
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (call $log (i32.const 77) (i32.const 16) (i32.const 2))
      (i64.const 0)))
