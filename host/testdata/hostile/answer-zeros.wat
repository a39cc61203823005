;; An answer of zero bytes, which is UTF-8 and no JSON: the chain refuses it.
;; want: "\x00\x00\x00\x00"
(module
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.or (i64.shl (i64.const 512) (i64.const 32)) (i64.const 4))))
