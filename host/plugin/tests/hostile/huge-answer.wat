;; Answers err(internal(text of 16 MiB)).
(func (export "kurator:cluster-plugin/planner@0.1.0#plan") (param i32) (result i32)
  (drop (memory.grow (i32.const 300)))
  (i32.store8 (i32.const 0) (i32.const 1))
  (i32.store8 (i32.const 4) (i32.const 2))
  (i32.store (i32.const 8) (i32.const 1024))
  (i32.store (i32.const 12) (i32.const 0x1000000))
  (i32.const 0))
