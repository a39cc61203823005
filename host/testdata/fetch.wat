;; A tool that fetches what it was built to fetch: the test writes the port into
;; the request below. The response is its structured result, and is logged too.
(module
  (import "wharf_v1" "call" (func $call (param i32 i32 i32 i32) (result i64)))
  (import "wharf_v1" "read" (func $read (param i32)))
  (import "wharf_v1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 20)
  (data (i32.const 16) "http.fetch")
  (data (i32.const 32) "{\"method\":\"GET\",\"url\":\"http://127.0.0.1:00000/echo\",\"secrets\":[\"TOKEN\"]}")
  (data (i32.const 131072) "{\"structured\":")

  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))

  (func (export "call_tool") (param i32 i32) (result i64)
    (local $length i32)
    (local.set $length (i32.wrap_i64 (call $call (i32.const 16) (i32.const 10) (i32.const 32) (i32.const 72))))
    (call $read (i32.const 131086))
    (call $log (i32.const 1) (i32.const 131086) (local.get $length))
    (i32.store8 (i32.add (i32.const 131086) (local.get $length)) (i32.const 125)) ;; }
    (i64.or (i64.shl (i64.const 131072) (i64.const 32)) (i64.extend_i32_u (i32.add (local.get $length) (i32.const 15)))))
)
