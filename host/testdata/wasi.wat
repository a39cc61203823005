;; A guest that uses WASI: the first byte of the payload chooses what it does.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_accept" (func $sock_accept (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 2)
  (data (i32.const 16) "passwd")
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))

  ;; The answer is "n" where n is a digit, at 4096.
  (func $digit (param i32) (result i64)
    (i32.store8 (i32.const 4096) (i32.add (i32.const 48) (local.get 0)))
    (i64.const 0x0000100000000001))

  (func (export "before_execute_tool") (param $ptr i32) (param $len i32) (result i64)
    (local $c i32)
    (local.set $c (i32.load8_u (local.get $ptr)))
    (if (i32.or (i32.eq (local.get $c) (i32.const 0x31)) (i32.eq (local.get $c) (i32.const 0x32))) ;; 1, 2: write the payload to stdout, stderr
      (then
        (i32.store (i32.const 0) (i32.add (local.get $ptr) (i32.const 1)))
        (i32.store (i32.const 4) (i32.sub (local.get $len) (i32.const 1)))
        (drop (call $fd_write (i32.sub (local.get $c) (i32.const 48)) (i32.const 0) (i32.const 1) (i32.const 8)))))
    (if (i32.eq (local.get $c) (i32.const 0x69)) ;; i: how much can be read from stdin
      (then (i32.store (i32.const 0) (i32.const 2048)) (i32.store (i32.const 4) (i32.const 16))
        (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (return (call $digit (i32.load (i32.const 8))))))
    (if (i32.eq (local.get $c) (i32.const 0x6f)) ;; o: open a file below each descriptor from 3 to 9: how many could be opened
      (then (return (call $digit (call $opened)))))
    (if (i32.eq (local.get $c) (i32.const 0x61)) ;; a: arguments and variables
      (then (drop (call $args_sizes_get (i32.const 0) (i32.const 8))) (drop (call $environ_sizes_get (i32.const 4) (i32.const 8)))
        (return (call $digit (i32.add (i32.load (i32.const 0)) (i32.load (i32.const 4)))))))
    (if (i32.eq (local.get $c) (i32.const 0x63)) ;; c: is it later than 2024
      (then (drop (call $clock_time_get (i32.const 0) (i64.const 1) (i32.const 0)))
        (return (call $digit (i64.gt_u (i64.load (i32.const 0)) (i64.const 1704067200000000000))))))
    (if (i32.eq (local.get $c) (i32.const 0x72)) ;; r: 64 random bytes, as they come, each cut down to 7 bits
      (then (drop (call $random_get (i32.const 4096) (i32.const 8)))
        (i64.store (i32.const 4096) (i64.and (i64.load (i32.const 4096)) (i64.const 0x7f7f7f7f7f7f7f7f)))
        (return (i64.const 0x0000100000000008))))
    (if (i32.eq (local.get $c) (i32.const 0x73)) ;; s: sleep for an hour
      (then (i32.store (i32.const 16) (i32.const 1))
        (i64.store (i32.const 24) (i64.const 3600000000000))
        (i32.store8 (i32.const 8) (i32.const 0))
        (drop (call $poll_oneoff (i32.const 0) (i32.const 512) (i32.const 1) (i32.const 1000)))))
    (if (i32.eq (local.get $c) (i32.const 0x6e)) ;; n: accept a connection from descriptor 3: 0 would be that it worked
      (then (return (call $digit (i32.ne (i32.const 0) (call $sock_accept (i32.const 3) (i32.const 0) (i32.const 8)))))))
    (if (i32.eq (local.get $c) (i32.const 0x78)) ;; x: exit
      (then (call $proc_exit (i32.const 3))))
    (i64.const 0))

  (func $opened (result i32)
    (local $fd i32) (local $n i32)
    (local.set $fd (i32.const 3))
    (loop $next
      (local.set $n (i32.add (local.get $n) (i32.eqz
        (call $path_open (local.get $fd) (i32.const 0) (i32.const 16) (i32.const 6) (i32.const 0) (i64.const -1) (i64.const -1) (i32.const 0) (i32.const 8)))))
      (local.set $fd (i32.add (local.get $fd) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $fd) (i32.const 10))))
    (local.get $n))
)
