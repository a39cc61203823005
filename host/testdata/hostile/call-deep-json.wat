;; A request that is nested very deeply.
;; timeout: 10s
;; want: {"code":"BAD_REQUEST","message":"config.get: bad request: invalid character '[' exceeded max depth"}
(module
  (import "wharf_v1" "call" (func $call (param i32 i32 i32 i32) (result i64)))
  (import "wharf_v1" "read" (func $read (param i32)))
  (memory (export "memory") 20)
  (data (i32.const 16) "config.get")
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (local $r i64)
      (memory.fill (i32.const 1024) (i32.const 0x5b) (i32.const 60000))
      (local.set $r (call $call (i32.const 16) (i32.const 10) (i32.const 1024) (i32.const 60000)))
      (call $read (i32.const 100))
      (i64.or (i64.shl (i64.const 100) (i64.const 32)) (i64.and (local.get $r) (i64.const 0xffffffff)))))
