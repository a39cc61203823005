;; A log text of 2 GiB.
;; want: error: log: 2147483648 bytes at 0x0 are outside the guest's memory
(module
  (import "wharf_v1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (call $log (i32.const 1) (i32.const 0) (i32.const 0x80000000))
      (i64.const 0)))
