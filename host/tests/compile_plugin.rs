//! `cluster-operator compile-plugin`, as the operator starts it: it compiles, and its limits hold with the allocator that
//! the program has.

use plugin::{Compiler, CompilerLimits, Engine, Limits, PluginError};

async fn load(limits: CompilerLimits) -> Result<plugin::Plugin, PluginError> {
    let compiler = Compiler::new(env!("CARGO_BIN_EXE_cluster-operator"), ["compile-plugin"], limits);
    let engine =
        Engine::new(Limits::default(), None).expect("this machine can run Wasm").with_compiler(compiler);
    let component = plugin::built_in().iter().find(|one| one.name == "calico").expect("it is built in");
    engine.load_foreign(component.name, component.bytes.into()).await
}

#[tokio::test]
async fn the_operator_compiles_for_itself_within_limits() {
    let plugin = load(CompilerLimits::default()).await.expect("it loads");
    assert_eq!(plugin.describe().expect("it answers").value.name, "calico");
    let little = CompilerLimits { memory: 26 << 20, ..CompilerLimits::default() };
    let error = load(little).await.expect_err("it needs more");
    assert_eq!(error.reason(), "PluginCompilerOutOfMemory", "{error}");
}
