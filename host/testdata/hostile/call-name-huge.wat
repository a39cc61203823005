;; The name of an operation as large as the memory.
;; want: {"code":"UNKNOWN_OPERATION","message":"unknown operation \"\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\": this host has config.get, env.get, event.emit, exec.run, fs.list, fs.read, fs.stat, fs.write, http.fetch, kv.delete, kv.get, kv.list, kv.set, llm.complete, session.info, session.messages, tool.call"}
(module
  (import "wharf_v1" "call" (func $call (param i32 i32 i32 i32) (result i64)))
  (import "wharf_v1" "read" (func $read (param i32)))
  (memory (export "memory") 1)
  (func (export "wharf_v1_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "before_execute_tool") (param $at i32) (param $length i32) (result i64)
      (local $r i64)
      (local.set $r (call $call (i32.const 0) (i32.const 65536) (i32.const 0) (i32.const 0)))
      (if (i64.eqz (i64.shr_u (local.get $r) (i64.const 32))) (then (unreachable)))
      (call $read (i32.const 4096))
      (i64.or (i64.shl (i64.const 4096) (i64.const 32)) (i64.and (local.get $r) (i64.const 0xffffffff)))))
