;; A name that is exported twice.
;; want: load extension "least": it is no valid module: section export: export[3] duplicates name "before_execute_tool"
(module
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func $h (param i32 i32) (result i64) (i64.const 0))
  (export "before_execute_tool" (func $h))
  (export "before_execute_tool" (func $h)))
