;; Loops within loops, and each of them ends.
;; want: error: no answer in time: it ran for 200ms: make it faster, or raise its timeout in the manifest
(module
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (local $i i32) (local $j i32)
      (loop $outer
        (local.set $j (i32.const 0))
        (loop $inner
          (local.set $j (i32.add (local.get $j) (i32.const 1)))
          (br_if $inner (i32.lt_u (local.get $j) (i32.const 100))))
        (br $outer))
      (unreachable)))
