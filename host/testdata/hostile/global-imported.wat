;; A global that the guest wants from the host.
;; want: load extension "least": it imports "env.g (global)", which this host does not have: a guest may import wharf_v1.call, wharf_v1.read, wharf_v1.log and the functions of wasi_snapshot_preview1
(module
  (import "env" "g" (global i32))
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.const 0)))
