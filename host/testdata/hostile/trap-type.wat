;; A call through a table with another type.
;; want: error: the guest trapped: indirect call type mismatch in .$2(i32,i32) i64
(module
  (memory (export "memory") 1)
  (type $f (func (result i64)))
  (table 1 funcref)
  (elem (i32.const 0) $g)
  (func $g)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (call_indirect (type $f) (i32.const 0))))
