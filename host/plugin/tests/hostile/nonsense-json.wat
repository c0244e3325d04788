;; Answers ok(complete(a plan without steps whose extra is "nonsense")).
(data (i32.const 512) "nonsense")
(func (export "kurator:cluster-plugin/planner@0.1.0#plan") (param i32) (result i32)
  (i32.store (i32.const 32) (i32.const 512))
  (i32.store (i32.const 36) (i32.const 8))
  (i32.const 0))
