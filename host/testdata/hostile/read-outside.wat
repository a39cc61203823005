;; A response that does not fit where it is to go.
;; want: error: read: 14 bytes at 0xfffa are outside the guest's memory
(module
  (import "wharf_v1" "call" (func $call (param i32 i32 i32 i32) (result i64)))
  (import "wharf_v1" "read" (func $read (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "config.get")
  (data (i32.const 32) "{\"key\":\"a\"}")
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (local $r i64)
      (local.set $r (call $call (i32.const 16) (i32.const 10) (i32.const 32) (i32.const 11)))
      (call $read (i32.const 65530))
      (i64.const 0)))
