;; Two functions that call each other.
;; timeout: 10s
;; want: error: its functions call each other too deeply: that is over the limit depth
(module
  (memory (export "memory") 1)
  (func $a (call $b) (call $b))
  (func $b (call $a) (call $a))
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (call $a) (i64.const 0)))
