;; One operation more than a call may run.
;; timeout: 10s
;; want: {"code":"OVER_LIMIT","message":"over the limit operations: 10000 in one call"}
(module
  (import "wharf_v1" "call" (func $call (param i32 i32 i32 i32) (result i64)))
  (import "wharf_v1" "read" (func $read (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "config.get")
  (data (i32.const 32) "{\"key\":\"a\"}")
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (local $i i32) (local $r i64)
      (loop $l
        (local.set $r (call $call (i32.const 16) (i32.const 10) (i32.const 32) (i32.const 11)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $l (i32.le_u (local.get $i) (i32.const 10000))))
      (if (i64.eqz (i64.shr_u (local.get $r) (i64.const 32))) (then (unreachable)))
      (call $read (i32.const 4096))
      (i64.or (i64.shl (i64.const 4096) (i64.const 32)) (i64.and (local.get $r) (i64.const 0xffffffff)))))
