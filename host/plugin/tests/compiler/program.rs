//! The program that tests of this crate compile with.

use std::process::ExitCode;

fn main() -> ExitCode {
    plugin::compile_in_child()
}
