;; Answers ok(complete(a plan of 1000 steps)), all of them empty.
(func (export "kurator:cluster-plugin/planner@0.1.0#plan") (param i32) (result i32)
  (i32.store (i32.const 8) (i32.const 4096))
  (i32.store (i32.const 12) (i32.const 1000))
  (i32.const 0))
