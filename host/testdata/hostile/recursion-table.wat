;; Recursion through a table.
;; timeout: 10s
;; want: error: its functions call each other too deeply: that is over the limit depth
(module
  (memory (export "memory") 1)
  (type $h (func (param i32 i32) (result i64)))
  (table 1 funcref)
  (elem (i32.const 0) $self)
  (func $self (type $h) (call_indirect (type $h) (local.get 0) (local.get 1) (i32.const 0)))
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (call_indirect (type $h) (local.get $at) (local.get $length) (i32.const 0))))
