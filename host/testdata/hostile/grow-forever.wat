;; A memory that is grown and filled as far as it goes, again and again.
;; want: error: no answer in time: it ran for 200ms: make it faster, or raise its timeout in the manifest
(module
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (loop $l
        (drop (memory.grow (i32.const 1)))
        (memory.fill (i32.const 0) (i32.const 1) (i32.shl (memory.size) (i32.const 16)))
        (br $l))
      (unreachable)))
