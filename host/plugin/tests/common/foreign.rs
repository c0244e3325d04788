//! Compilers for tests, and components that are hard to compile.

use plugin::{Compiler, CompilerLimits, Engine};
use wasm_encoder::{CodeSection, Component, FunctionSection, ModuleSection, TypeSection, ValType};

/// The compiler of the tests of this crate.
pub fn compiler(limits: CompilerLimits) -> Compiler {
    Compiler::new(env!("CARGO_BIN_EXE_plugin-compiler"), [""; 0], limits)
}

/// A compiler that does what this shell script says.
pub fn script(text: &str, limits: CompilerLimits) -> Compiler {
    Compiler::new("/bin/sh", ["-c", text], limits)
}

/// The engine of tests, with a compiler.
pub fn foreign_engine(limits: CompilerLimits) -> Engine {
    super::engine().with_compiler(compiler(limits))
}

/// A core module of so many functions, each of so many bytes, that compute with what they computed before.
pub fn functions(count: u32, bytes: usize) -> wasm_encoder::Module {
    // local.get 0, local.get 1, i32.mul, i32.const 7, i32.add, local.tee 1, local.set 0
    const STEP: [u8; 12] = [0x20, 0, 0x20, 1, 0x6c, 0x41, 7, 0x6a, 0x22, 1, 0x21, 0];
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32, ValType::I32], [ValType::I32]);
    let (mut declared, mut code) = (FunctionSection::new(), CodeSection::new());
    let mut body = vec![0];
    while body.len() + STEP.len() + 3 <= bytes {
        body.extend(STEP);
    }
    body.extend([0x20, 0, 0x0b]);
    for _ in 0..count {
        declared.function(0);
        code.raw(&body);
    }
    let mut module = wasm_encoder::Module::new();
    module.section(&types).section(&declared).section(&code);
    module
}

/// A component that has this core module in it, and nothing else.
pub fn component_of(module: &wasm_encoder::Module) -> Vec<u8> {
    let mut component = Component::new();
    component.section(&ModuleSection(module));
    component.finish()
}
