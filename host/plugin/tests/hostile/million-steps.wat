;; Answers ok(complete(a plan of a million steps)), all of them empty.
(func (export "kurator:cluster-plugin/planner@0.1.0#plan") (param i32) (result i32)
  (local $steps i32)
  (local.set $steps (i32.shl (memory.grow (i32.const 500)) (i32.const 16)))
  (i32.store (i32.const 8) (local.get $steps))
  (i32.store (i32.const 12) (i32.const 1000000))
  (i32.const 0))
