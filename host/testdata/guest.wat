;; One guest for many cases: the first byte of the payload chooses what it does.
(module
  (import "wharf_v1" "call" (func $call (param i32 i32 i32 i32) (result i64)))
  (import "wharf_v1" "read" (func $read (param i32)))
  (import "wharf_v1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 20)
  (global $count (mut i32) (i32.const 48))
  (table 1 funcref)
  (data (i32.const 16) "{\"decision\":\"deny\",\"reason\":\"no\"}")
  (data (i32.const 64) "\ff\fe")

  ;; Payloads go to 1024. One of more than 64 KiB makes the memory grow, and goes to what is new.
  (func (export "wharf_v1_alloc") (param $len i32) (result i32)
    (if (result i32) (i32.gt_u (local.get $len) (i32.const 65536))
      (then (i32.mul (i32.const 65536) (memory.grow (i32.add (i32.const 1) (i32.div_u (local.get $len) (i32.const 65536))))))
      (else (i32.const 1024))))

  (func $answer (param $ptr i32) (param $len i32) (result i64)
    (i64.or (i64.shl (i64.extend_i32_u (local.get $ptr)) (i64.const 32)) (i64.extend_i32_u (local.get $len))))

  (func $one (param i32) (result i64) (i32.store8 (i32.const 131072) (local.get 0)) (call $answer (i32.const 131072) (i32.const 1)))
  (func $refused (param i32) (result i64)
    (call $one (select (i32.const 78) (i32.const 89) (i32.eq (local.get 0) (i32.const -1)))))

  (func $recurse (result i64) (i64.add (i64.const 1) (call $recurse)))

  ;; The payload behind the first byte is OP, a newline, and the request; the answer is the status as a digit and the response.
  (func $operate (param $ptr i32) (param $end i32) (result i64)
    (local $op i32) (local $nl i32) (local $r i64)
    (local.set $op (i32.add (local.get $ptr) (i32.const 1)))
    (local.set $nl (local.get $op))
    (block $found (loop $next
      (br_if $found (i32.eq (i32.load8_u (local.get $nl)) (i32.const 10)))
      (local.set $nl (i32.add (local.get $nl) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $nl) (local.get $end)))))
    (local.set $r (call $call
      (local.get $op) (i32.sub (local.get $nl) (local.get $op))
      (i32.add (local.get $nl) (i32.const 1)) (i32.sub (i32.sub (local.get $end) (local.get $nl)) (i32.const 1))))
    (i32.store8 (i32.const 131072) (i32.add (i32.const 48) (i32.wrap_i64 (i64.shr_u (local.get $r) (i64.const 32)))))
    (call $read (i32.const 131073))
    (call $answer (i32.const 131072) (i32.add (i32.const 1) (i32.wrap_i64 (local.get $r)))))

  (func $handle (param $ptr i32) (param $len i32) (result i64)
    (local $c i32) (local $i i32) (local $r i64)
    (if (i32.eqz (local.get $len)) (then (return (i64.const 0))))
    (local.set $c (i32.load8_u (local.get $ptr)))
    (if (i32.eq (local.get $c) (i32.const 0x65)) ;; e: echo, an answer that overlaps the payload
      (then (return (call $answer (local.get $ptr) (local.get $len)))))
    (if (i32.eq (local.get $c) (i32.const 0x64)) ;; d: deny
      (then (return (call $answer (i32.const 16) (i32.const 33)))))
    (if (i32.eq (local.get $c) (i32.const 0x7a)) ;; z: an address, and no length
      (then (return (call $answer (i32.const 16) (i32.const 0)))))
    (if (i32.eq (local.get $c) (i32.const 0x74)) ;; t: trap
      (then (unreachable)))
    (if (i32.eq (local.get $c) (i32.const 0x6c)) ;; l: loop
      (then (loop $forever (br $forever))))
    (if (i32.eq (local.get $c) (i32.const 0x72)) ;; r: recursion without end
      (then (return (call $recurse))))
    (if (i32.eq (local.get $c) (i32.const 0x6f)) ;; o: an answer outside the memory
      (then (return (call $answer (i32.const 0xffffff00) (i32.const 100)))))
    (if (i32.eq (local.get $c) (i32.const 0x62)) ;; b: an answer that is one byte too large
      (then (return (call $answer (i32.const 0) (i32.const 1048577)))))
    (if (i32.eq (local.get $c) (i32.const 0x42)) ;; B: the largest that there may be
      (then (memory.fill (i32.const 131072) (i32.const 0x20) (i32.const 1048576))
        (return (call $answer (i32.const 131072) (i32.const 1048576)))))
    (if (i32.eq (local.get $c) (i32.const 0x75)) ;; u: no UTF-8
      (then (return (call $answer (i32.const 64) (i32.const 2)))))
    (if (i32.eq (local.get $c) (i32.const 0x67)) ;; g: log what follows
      (then (call $log (i32.const 1) (i32.add (local.get $ptr) (i32.const 1)) (i32.sub (local.get $len) (i32.const 1)))))
    (if (i32.eq (local.get $c) (i32.const 0x66)) ;; f: log 100 KiB
      (then (loop $more
        (call $log (i32.const 7) (i32.const 65536) (i32.const 1024))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $more (i32.lt_u (local.get $i) (i32.const 100))))))
    (if (i32.eq (local.get $c) (i32.const 0x71)) ;; q: log from outside the memory
      (then (call $log (i32.const 1) (i32.const -16) (i32.const 32))))
    (if (i32.eq (local.get $c) (i32.const 0x70)) ;; p: read to outside the memory
      (then (drop (call $call (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 0))) (call $read (i32.const -1))))
    (if (i32.eq (local.get $c) (i32.const 0x6b)) ;; k: an operation whose name is outside the memory
      (then (local.set $r (call $call (i32.const -8) (i32.const 16) (i32.const 0) (i32.const 0)))
        (call $read (i32.const 131072))
        (return (call $answer (i32.const 131072) (i32.wrap_i64 (local.get $r))))))
    (if (i32.eq (local.get $c) (i32.const 0x63)) ;; c: an operation
      (then (return (call $operate (local.get $ptr) (i32.add (local.get $ptr) (local.get $len))))))
    (if (i32.eq (local.get $c) (i32.const 0x73)) ;; s: the same operation 10,000 times before it
      (then
        (loop $more
          (drop (call $call (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 0)))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $more (i32.lt_u (local.get $i) (i32.const 10000))))
        (return (call $operate (local.get $ptr) (i32.add (local.get $ptr) (local.get $len))))))
    (if (i32.eq (local.get $c) (i32.const 0x6d)) ;; m: count the calls, one digit
      (then (global.set $count (i32.add (global.get $count) (i32.const 1)))
        (return (call $one (global.get $count)))))
    (if (i32.eq (local.get $c) (i32.const 0x78)) ;; x: grow the table to 200,000 elements: Y or N
      (then (return (call $refused (table.grow 0 (ref.null func) (i32.const 199999))))))
    (if (i32.eq (local.get $c) (i32.const 0x4d)) ;; M: grow the memory to more than 64 MiB: Y or N
      (then (return (call $refused (memory.grow (i32.const 1010))))))
    (i64.const 0))

  (export "before_execute_tool" (func $handle))
  (export "on_stream" (func $handle))

  ;; A tool's behaviour is chosen by the argument "do": the payload is {"name":"do","arguments":"…","call_id":…}.
  (func (export "call_tool") (param $ptr i32) (param $len i32) (result i64)
    ;; {"name":"do","arguments":{"do":"  is 32 bytes long.
    (call $tool (i32.add (local.get $ptr) (i32.const 32)) (i32.sub (local.get $len) (i32.const 32))))
  (func $tool (param $ptr i32) (param $len i32) (result i64)
    (if (i32.eq (i32.load8_u (local.get $ptr)) (i32.const 0x6d))
      (then (global.set $count (i32.add (global.get $count) (i32.const 1)))
        (i64.store (i32.const 131072) (i64.const 0x6e65746e6f63227b)) ;; {"content":"0"}
        (i64.store (i32.const 131080) (i64.const 0x7d2230223a2274))
        (i32.store8 (i32.const 131084) (global.get $count))
        (return (call $answer (i32.const 131072) (i32.const 15)))))
    (call $handle (local.get $ptr) (local.get $len)))
)
