;; An answer whose end is behind the last address.
;; want: error: the answer of 32 bytes at 0xfffffff0 is outside the guest's memory
(module
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.or (i64.shl (i64.const 0xfffffff0) (i64.const 32)) (i64.const 32))))
