(module
  (import "wharf_v1" "log" (func $log (param i32 i32 i32)))

  (memory (export "memory") 2)
  (data (i32.const 0) "\"command\":\"sudo ")
  (data (i32.const 32) "{\"decision\":\"deny\",\"reason\":\"commands run without sudo here\"}")
  (data (i32.const 96) "denied a call of sudo")

  ;; Payloads go to one place: the next replaces the last. One that does not fit
  ;; gets no memory, which fails the call, and so denies: this is a guard.
  (func (export "wharf_v1_alloc") (param $length i32) (result i32)
    (select (i32.const 1024) (i32.const 0)
      (i32.le_u (local.get $length) (i32.const 130048))))

  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
    (local $end i32)
    (local.set $end (i32.add (local.get $at) (local.get $length)))
    (loop $next
      (if (call $begins (local.get $at) (local.get $end))
        (then
          (call $log (i32.const 1) (i32.const 96) (i32.const 21))
          ;; the address in the upper half, the length in the lower one
          (return (i64.or (i64.shl (i64.const 32) (i64.const 32)) (i64.const 61)))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $at) (local.get $end))))
    (i64.const 0)) ;; no opinion

  ;; Does the text at $at begin with "command":"sudo ?
  (func $begins (param $at i32) (param $end i32) (result i32)
    (local $i i32)
    (if (i32.lt_u (i32.sub (local.get $end) (local.get $at)) (i32.const 16))
      (then (return (i32.const 0))))
    (loop $next
      (if (i32.ne (i32.load8_u (i32.add (local.get $at) (local.get $i))) (i32.load8_u (local.get $i)))
        (then (return (i32.const 0))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 16))))
    (i32.const 1)))
