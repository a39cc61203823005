;; Data that lies outside the memory.
(module
  (memory (export "memory") 1)
  (data (i32.const 65536) "x")
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 16))
  (func (export "before_execute_tool") (param i32 i32) (result i64) (i64.const 0))
)
