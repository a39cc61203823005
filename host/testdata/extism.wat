;; A plugin with Extism's ABI: a hook, and one export for each thing that a tool can do.
(module
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
  (import "extism:host/env" "load_u8" (func $load (param i64) (result i32)))
  (import "extism:host/env" "length" (func $length (param i64) (result i64)))
  (import "extism:host/env" "input_offset" (func $input_offset (result i64)))
  (import "extism:host/env" "input_length" (func $input_length (result i64)))
  (import "extism:host/env" "input_load_u8" (func $input (param i64) (result i32)))
  (import "extism:host/env" "output_set" (func $output (param i64 i64)))
  (import "extism:host/env" "error_set" (func $error (param i64)))
  (import "extism:host/env" "var_get" (func $var_get (param i64) (result i64)))
  (import "extism:host/env" "var_set" (func $var_set (param i64 i64)))
  (import "extism:host/env" "config_get" (func $config (param i64) (result i64)))
  (import "extism:host/env" "log_warn" (func $warn (param i64)))
  (import "extism:host/env" "http_request" (func $http (param i64 i64) (result i64)))
  (import "extism:host/user" "wharf_call" (func $call (param i64 i64) (result i64)))
  (import "extism:host/user" "create_message" (func $create_message (param i64) (result i64)))
  (import "extism:host/user" "notify_progress" (func $notify (param i64)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))

  (memory (export "memory") 1)
  (data (i32.const 0) "{\"decision\":\"deny\",\"reason\":\"by a plugin\"}")
  (data (i32.const 64) "it broke")
  (data (i32.const 80) "kv.get")
  (data (i32.const 96) "{\"key\":\"k\"}")
  (data (i32.const 112) "greeting")
  (global $initialized (mut i32) (i32.const 0))

  ;; Makes a block of bytes in this memory.
  (func $put (param $at i32) (param $n i32) (result i64)
    (local $block i64) (local $i i32)
    (local.set $block (call $alloc (i64.extend_i32_u (local.get $n))))
    (loop $next
      (call $store (i64.add (local.get $block) (i64.extend_i32_u (local.get $i)))
        (i32.load8_u (i32.add (local.get $at) (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (local.get $n))))
    (local.get $block))
  (func $give (param $block i64)
    (call $output (local.get $block) (call $length (local.get $block))))

  (func (export "_initialize") (global.set $initialized (i32.const 1)))

  (func (export "before_execute_tool") (result i32)
    (call $give (call $put (i32.const 0) (i32.const 42)))
    (i32.const 0))

  ;; Gives its input back; without _initialize, it fails.
  (func (export "echo") (result i32)
    (call $output (call $input_offset) (call $input_length))
    (i32.sub (i32.const 1) (global.get $initialized)))

  ;; Counts the letters a in its input: up to nine.
  (func (export "count") (result i32)
    (local $i i64) (local $n i32) (local $block i64)
    (block $done
      (loop $next
        (br_if $done (i64.ge_u (local.get $i) (call $input_length)))
        (local.set $n (i32.add (local.get $n) (i32.eq (call $input (local.get $i)) (i32.const 97))))
        (local.set $i (i64.add (local.get $i) (i64.const 1)))
        (br $next)))
    (local.set $block (call $alloc (i64.const 1)))
    (call $store (local.get $block) (i32.add (i32.const 48) (local.get $n)))
    (call $give (local.get $block))
    (i32.const 0))

  (func (export "fail") (result i32)
    (call $error (call $put (i32.const 64) (i32.const 8)))
    (i32.const 1))
  (func (export "code") (result i32) (i32.const 7))
  (func (export "nothing"))
  (func (export "trap") (result i32) (unreachable))
  (func (export "spin") (result i32) (loop $l (br $l)) (unreachable))
  (func (export "many") (result i32)
    (loop $l (drop (call $alloc (i64.const 1))) (br $l))
    (unreachable))

  (func (export "operate") (result i32)
    (call $give (call $call (call $put (i32.const 80) (i32.const 6)) (call $put (i32.const 96) (i32.const 11))))
    (i32.const 0))
  (func (export "web") (result i32)
    (drop (call $http (i64.const 0) (i64.const 0)))
    (i32.const 0))
  (func (export "greet") (result i32)
    (call $warn (call $put (i32.const 112) (i32.const 8)))
    (call $give (call $config (call $put (i32.const 112) (i32.const 8))))
    (i32.const 0))
  (func (export "message") (result i32)
    (call $notify (i64.const 0))
    (call $give (call $create_message (i64.const 0)))
    (i32.const 0))

  ;; Takes all the memory that there is, then some more.
  (func (export "hog") (result i32)
    (local $block i64)
    (drop (memory.grow (i32.const 100)))
    (loop $l
      (local.set $block (call $alloc (i64.const 65536)))
      (br_if $l (i64.ne (local.get $block) (i64.const 0))))
    (if (i32.ne (memory.grow (i32.const 1)) (i32.const -1)) (then (unreachable)))
    (call $store (i64.const -1) (i32.const 1))
    (i32.const 0))

  ;; Counts its calls in a variable: a letter more each time.
  (func (export "again") (result i32)
    (local $old i64) (local $new i64) (local $n i64) (local $i i64)
    (local.set $old (call $var_get (call $put (i32.const 80) (i32.const 1))))
    (local.set $n (call $length (local.get $old)))
    (local.set $new (call $alloc (i64.add (local.get $n) (i64.const 1))))
    (loop $next
      (call $store (i64.add (local.get $new) (local.get $i)) (i32.const 120))
      (local.set $i (i64.add (local.get $i) (i64.const 1)))
      (br_if $next (i64.le_u (local.get $i) (local.get $n))))
    (call $var_set (call $put (i32.const 80) (i32.const 1)) (local.get $new))
    (call $give (local.get $new))
    (i32.const 0))

  ;; Breaks a byte of every block header that a careless kernel may have.
  (func (export "scribble") (result i32)
    (local $block i64) (local $i i64)
    (local.set $block (call $alloc (i64.const 40000)))
    (local.set $i (i64.const 1))
    (loop $next
      (call $store (i64.sub (local.get $block) (local.get $i)) (i32.const 255))
      (local.set $i (i64.add (local.get $i) (i64.const 1)))
      (br_if $next (i64.le_u (local.get $i) (i64.const 12))))
    (drop (call $alloc (i64.const 30000)))
    (call $give (call $put (i32.const 64) (i32.const 8)))
    (i32.const 0))

  (func (export "with_parameters") (param i32) (result i32) (i32.const 0))
)
