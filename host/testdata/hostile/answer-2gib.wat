;; An answer of 2 GiB.
;; want: error: the answer has 2147483648 bytes: that is over the limit output, 1048576
(module
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.or (i64.shl (i64.const 0) (i64.const 32)) (i64.const 0x80000000))))
