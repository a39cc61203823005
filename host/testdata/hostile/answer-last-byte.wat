;; An answer that ends one byte behind the memory.
;; want: error: the answer of 2 bytes at 0xffff is outside the guest's memory
(module
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.or (i64.shl (i64.const 65535) (i64.const 32)) (i64.const 2))))
