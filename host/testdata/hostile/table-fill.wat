;; A table that is filled again and again.
;; want: error: no answer in time: it ran for 200ms: make it faster, or raise its timeout in the manifest
(module
  (memory (export "memory") 1)
  (table $t 1000 funcref)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (loop $l (table.fill $t (i32.const 0) (ref.null func) (i32.const 1000)) (br $l))
      (unreachable)))
