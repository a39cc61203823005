;; A request of more than 1 MiB.
;; want: {"code":"OVER_LIMIT","message":"the request has 1048577 bytes: that is over the limit output, 1048576"}
(module
  (import "wharf_v1" "call" (func $call (param i32 i32 i32 i32) (result i64)))
  (import "wharf_v1" "read" (func $read (param i32)))
  (memory (export "memory") 20)
  (data (i32.const 16) "config.get")
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (local $r i64)
      (local.set $r (call $call (i32.const 16) (i32.const 10) (i32.const 64) (i32.const 1048577)))
      (if (i64.eqz (i64.shr_u (local.get $r) (i64.const 32))) (then (unreachable)))
      (call $read (i32.const 4096))
      (i64.or (i64.shl (i64.const 4096) (i64.const 32)) (i64.and (local.get $r) (i64.const 0xffffffff)))))
