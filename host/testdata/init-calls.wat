;; An initialization that has the agent do something, and logs what comes of it.
(module
  (import "wharf_v1" "call" (func $call (param i32 i32 i32 i32) (result i64)))
  (import "wharf_v1" "read" (func $read (param i32)))
  (import "wharf_v1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "tool.call")
  (data (i32.const 32) "{\"name\":\"grep\"}")
  (data (i32.const 64) "{\"content\":\"done\"}")

  (func (export "_initialize")
    (local $length i32)
    (local.set $length (i32.wrap_i64 (call $call (i32.const 16) (i32.const 9) (i32.const 32) (i32.const 15))))
    (call $read (i32.const 1024))
    (call $log (i32.const 1) (i32.const 1024) (local.get $length)))

  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 4096))
  (func (export "call_tool") (param i32 i32) (result i64)
    (i64.or (i64.shl (i64.const 64) (i64.const 32)) (i64.const 18))))
