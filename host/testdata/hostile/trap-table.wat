;; A call outside of a table.
;; want: error: the guest trapped: invalid table access in .$1(i32,i32) i64
(module
  (memory (export "memory") 1)
  (type $f (func (result i64)))
  (table 1 funcref)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (call_indirect (type $f) (i32.const 9))))
