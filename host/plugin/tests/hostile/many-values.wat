;; Answers ok(complete(a plan without steps whose extra is {"":[{"":0} ,{"":0} ,... {}]})): a million values in 4 MB.
(func (export "kurator:cluster-plugin/planner@0.1.0#plan") (param i32) (result i32)
  (local $at i32)
  (drop (memory.grow (i32.const 64)))
  (i64.store (i32.const 262144) (i64.const 0x2020205b3a22227b))
  (local.set $at (i32.const 262152))
  (loop $next
    (i64.store (local.get $at) (i64.const 0x2c207d303a22227b))
    (local.set $at (i32.add (local.get $at) (i32.const 8)))
    (br_if $next (i32.lt_u (local.get $at) (i32.const 4262152))))
  (i64.store (local.get $at) (i64.const 0x202020207d5d7d7b))
  (i32.store (i32.const 32) (i32.const 262144))
  (i32.store (i32.const 36) (i32.const 4000016))
  (i32.const 0))
