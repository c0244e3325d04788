;; Answers err(internal(text that lies outside of its memory)).
(func (export "kurator:cluster-plugin/planner@0.1.0#plan") (param i32) (result i32)
  (i32.store8 (i32.const 0) (i32.const 1))
  (i32.store8 (i32.const 4) (i32.const 2))
  (i32.store (i32.const 8) (i32.const 0x7fffff00))
  (i32.store (i32.const 12) (i32.const 64))
  (i32.const 0))
