;; A response may be read again, and one that there is not is empty.
;; want: no opinion
(module
  (import "wharf_v1" "read" (func $read (param i32)))
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (call $read (i32.const 65536))
      (i64.const 0)))
