;; A text of 64 KiB, again and again: what is over the limit is dropped, and the call goes on.
;; timeout: 10s
;; want:  {}; logged 65647 bytes, which end in "all logs is dropped: it is over the limit log, 64 KiB a call"
(module
  (import "wharf_v1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) " {}")
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (local $i i32)
      (loop $l
        (call $log (i32.const 1) (i32.const 0) (i32.const 65536))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $l (i32.lt_u (local.get $i) (i32.const 1000))))
      (i64.or (i64.shl (i64.const 16) (i64.const 32)) (i64.const 3))))
