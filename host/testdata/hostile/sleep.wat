;; A sleep of an hour ends at the deadline.
;; want: error: no answer in time: it ran for 200ms: make it faster, or raise its timeout in the manifest
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i32.store (i32.const 16) (i32.const 0))
      (i32.store8 (i32.const 40) (i32.const 0))
      (i64.store (i32.const 64) (i64.const 0))
      (i64.store offset=8 (i32.const 64) (i64.const 0))
      (i64.store offset=24 (i32.const 64) (i64.const 3600000000000))
      (drop (call $poll (i32.const 64) (i32.const 128) (i32.const 1) (i32.const 16)))
      (i64.const 0)))
