;; A function of WASI with a type that is not its own.
(module
  (import "wasi_snapshot_preview1" "sched_yield" (func (param i32)))
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 16))
  (func (export "before_execute_tool") (param i32 i32) (result i64) (i64.const 0))
)
