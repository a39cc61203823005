;; The handler is no function.
(module (memory (export "memory") 1) (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024)) (global (export "before_execute_tool") i32 (i32.const 0)))
