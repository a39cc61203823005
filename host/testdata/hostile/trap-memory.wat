;; A load far outside of the memory.
;; want: error: the guest trapped: out of bounds memory access in .$1(i32,i32) i64
(module
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.load offset=4294967295 (i32.const -1))))
