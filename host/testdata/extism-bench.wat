;; The hook of bench-c as a plugin with Extism's ABI: it looks at the first 16
;; bytes of its input, and denies where the last of them is a d.
(module
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u64" (func $store (param i64 i64)))
  (import "extism:host/env" "input_length" (func $length (result i64)))
  (import "extism:host/env" "input_load_u64" (func $word (param i64) (result i64)))
  (import "extism:host/env" "output_set" (func $output (param i64 i64)))

  (memory (export "memory") 1)
  (data (i32.const 0) "{\"decision\":\"deny\",\"reason\":\"this command is not allowed here\"}")

  ;; Gives the verdict, of 63 bytes, as the output.
  (func $deny
    (local $block i64) (local $i i64)
    (local.set $block (call $alloc (i64.const 64)))
    (loop $next
      (call $store (i64.add (local.get $block) (local.get $i)) (i64.load (i32.wrap_i64 (local.get $i))))
      (local.set $i (i64.add (local.get $i) (i64.const 8)))
      (br_if $next (i64.lt_u (local.get $i) (i64.const 64))))
    (call $output (local.get $block) (i64.const 63)))

  (func (export "before_execute_tool") (result i32)
    (if (i64.lt_u (call $length) (i64.const 16)) (then (return (i32.const 0))))
    (if (i64.eqz (call $word (i64.const 0))) (then (return (i32.const 0))))
    (if (i64.eq (i64.shr_u (call $word (i64.const 8)) (i64.const 56)) (i64.const 100)) (then (call $deny)))
    (i32.const 0))
)
