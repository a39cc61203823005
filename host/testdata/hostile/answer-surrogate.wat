;; Half of a surrogate pair, in the bytes of UTF-8.
;; want: error: the answer is not UTF-8
(module
  (memory (export "memory") 1)
  (data (i32.const 16) "\ed\a0\80")
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.or (i64.shl (i64.const 16) (i64.const 32)) (i64.const 3))))
