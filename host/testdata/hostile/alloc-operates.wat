;; A guest that runs an operation when it is asked for memory.
;; want: no opinion
(module
  (import "wharf_v1" "call" (func $call (param i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 16) "no.such")
  (func (export "wharf_v1_alloc") (param i32) (result i32) (drop (call $call (i32.const 16) (i32.const 7) (i32.const 0) (i32.const 0))) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.const 0)))
