;; A table segment that does not fit: wazero leaves it out, and nothing lies outside.
;; want: no opinion
(module
  (memory (export "memory") 1)
  (table 1 funcref)
  (func $f)
  (elem (i32.const 1) $f)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.const 0)))
