;; An export with the name of one that the host adds.
;; want: load extension "least": it exports "wharf: yield", which is a name of the host's: build it with another
(module
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.const 0))
  (func (export "wharf: yield")))
