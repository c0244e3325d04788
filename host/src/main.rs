//! Runs the operator.
fn main() {}
