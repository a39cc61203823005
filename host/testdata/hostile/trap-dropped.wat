;; A segment that was dropped is gone.
;; want: error: the guest trapped: out of bounds memory access in .$1(i32,i32) i64
(module
  (memory (export "memory") 1)
  (data "x")
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (data.drop 0)
      (memory.init 0 (i32.const 0) (i32.const 0) (i32.const 1))
      (i64.const 0)))
