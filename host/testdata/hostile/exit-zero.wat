;; An exit is a failure, also with status 0.
;; want: error: the guest exited with status 0
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (call $exit (i32.const 0))
      (i64.const 0)))
