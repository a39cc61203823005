;; A loop that carries values.
;; want: error: no answer in time: it ran for 200ms: make it faster, or raise its timeout in the manifest
(module
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (i64.const 1)
      (loop $l (param i64) (result i64) (i64.const 1) (i64.add) (br $l))))
