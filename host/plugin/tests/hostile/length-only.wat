;; Answers err(internal(text that begins in its memory and is a gigabyte long)).
(func (export "kurator:cluster-plugin/planner@0.1.0#plan") (param i32) (result i32)
  (i32.store8 (i32.const 0) (i32.const 1))
  (i32.store8 (i32.const 4) (i32.const 2))
  (i32.store (i32.const 8) (i32.const 1024))
  (i32.store (i32.const 12) (i32.const 0x40000000))
  (i32.const 0))
