//! What wasmtime is told, by the host and by the child process that compiles for it: code that one made with
//! other settings the other would not load. As strict as plugins allow: no threads, no 64-bit memories, no
//! garbage collection, no exceptions, no concurrency, nothing whose result may differ between machines.

use wasmtime::Config;

/// Bytes of stack that a plugin has.
const STACK: usize = 512 << 10;

pub fn strict() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(STACK)
        .cranelift_nan_canonicalization(true)
        .concurrency_support(false)
        .gc_support(false)
        .wasm_component_model(true)
        .wasm_memory64(false)
        .wasm_relaxed_simd(false)
        .wasm_backtrace_max_frames(None);
    // Threads, garbage collection and exceptions are not even compiled in.
    config
}
