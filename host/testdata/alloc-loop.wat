;; An allocation that never ends.
(module
  
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (loop (result i32) (br 0)))
  (func (export "before_execute_tool") (param i32 i32) (result i64) (i64.const 0))
)
