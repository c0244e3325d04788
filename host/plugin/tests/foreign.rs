//! Components from outside: compiled by a child process within limits, kept with their code, and none that
//! goes wrong is felt by anybody else.

mod common;

use common::foreign::{component_of, foreign_engine, functions, script};
use common::request;
use contract::Outcome;
use expect_test::{Expect, expect};
use plugin::{Compiler, CompilerLimits, Engine, Limits, Plugin, PluginError, built_in};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn folder(name: &str) -> PathBuf {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("foreign-{name}-{}", std::process::id()));
    drop(fs::remove_dir_all(&folder));
    folder
}

fn calico() -> Arc<[u8]> {
    built_in().iter().find(|one| one.name == "calico").expect("it is built in").bytes.into()
}

fn answers(plugin: &Plugin) {
    let answer = plugin.plan(&request(json!({}))).expect("it answers");
    assert!(matches!(answer.value, Ok(Outcome::Complete(_))));
}

/// Loads a component with this compiler while a good plugin is served, and tells why it was not loaded.
async fn refused(compiler: Compiler, bytes: &[u8]) -> PluginError {
    let engine = common::engine().with_compiler(compiler);
    let good = common::load("calico");
    let load = engine.load_foreign("hostile", bytes.into());
    let ask = async {
        let asked = good.plan_async(request(json!({}))).await.expect("it answers meanwhile");
        assert!(matches!(asked.value, Ok(Outcome::Complete(_))));
    };
    let (loaded, ()) = tokio::join!(load, ask);
    answers(good);
    loaded.expect_err("it must not load")
}

fn said(error: &PluginError) -> String {
    format!("{}: {error}", error.reason())
}

#[tokio::test]
async fn a_component_from_outside_is_like_one_that_came_along() {
    let engine = foreign_engine(CompilerLimits::default());
    let (foreign, own) =
        (engine.load_foreign("calico", calico()).await, engine.load("calico", &calico()).expect("it loads"));
    let foreign = foreign.expect("it loads");
    assert_eq!(foreign.digest(), own.digest());
    let ask = |plugin: &Plugin| {
        let answer = plugin.plan(&request(json!({}))).expect("it answers");
        (format!("{:?}", answer.value), answer.fuel)
    };
    assert_eq!(ask(&foreign), ask(&own));
    let (descriptor, schema) = foreign.introduce_async().await.expect("it introduces itself");
    assert_eq!(descriptor.name, "calico");
    assert_eq!(schema.check(&json!({ "encapsulation": "GRE" })).len(), 1);
}

#[tokio::test]
async fn what_was_loaded_is_there_after_a_restart_without_anybody() {
    let folder = folder("restart");
    let start = |compiler: Compiler| {
        Engine::new(Limits::default(), Some(&folder))
            .expect("this machine can run Wasm")
            .with_compiler(compiler)
    };
    let nobody = || start(script("exit 1", CompilerLimits::default()));
    let bytes = calico();
    let first = start(common::foreign::compiler(CompilerLimits::default()));
    let plugin = first.load_foreign("calico", bytes.clone()).await.expect("it loads");
    let digest = plugin.digest().to_owned();
    assert_eq!(first.compiled(), 1);

    let second = nobody();
    let stored = second.stored(&digest).expect("it is stored");
    assert_eq!(stored, &bytes[..]);
    answers(&second.load_foreign("calico", stored.into()).await.expect("its code is there"));
    assert_eq!(second.compiled(), 0);

    for entry in fs::read_dir(&folder).expect("it is there").flatten() {
        let mut file = fs::read(entry.path()).expect("it is there");
        let middle = file.len() / 2;
        file[middle] ^= 1;
        fs::write(entry.path(), file).expect("it can be damaged");
    }
    let third = nobody();
    assert_eq!(third.stored(&digest), None);
    assert_eq!(third.load_foreign("calico", bytes.clone()).await.expect_err("no code").reason(), {
        "PluginCompilerCrashed"
    });
    let fourth = start(common::foreign::compiler(CompilerLimits::default()));
    answers(&fourth.load_foreign("calico", bytes.clone()).await.expect("it is made anew"));
    assert_eq!((fourth.compiled(), fourth.stored(&digest)), (1, Some(bytes.to_vec())));
    for other in ["sha256:00", "../calico", &digest.replace("sha256:", "sha256:../")] {
        assert_eq!(fourth.stored(other), None, "{other}");
    }
    fs::remove_dir_all(folder).expect("it goes away");
}

#[tokio::test]
async fn what_is_refused_is_not_stored() {
    let folder = folder("refused");
    let engine = Engine::new(Limits::default(), Some(&folder)).expect("this machine can run Wasm");
    let engine = engine.with_compiler(common::foreign::compiler(CompilerLimits::default()));
    let none = wat::parse_str("(component)").expect("it is valid");
    let error = engine.load_foreign("none", none.into()).await.expect_err("it is no plugin");
    assert_eq!(error.reason(), "ContractUnsupported");
    let stored = fs::read_dir(&folder).expect("it is there").flatten().map(|entry| entry.path());
    assert!(stored.into_iter().all(|path| path.extension().is_some_and(|it| it != "wasm")));
    fs::remove_dir_all(folder).expect("it goes away");
}

#[tokio::test]
async fn each_way_in_which_a_compiler_ends_is_told() {
    let limits = CompilerLimits { time: Duration::from_secs(5), code: 1 << 20, ..CompilerLimits::default() };
    for (program, expected) in [
        ("kill -SEGV $$", expect!["PluginCompilerCrashed: the compiler crashed (signal: 11 (SIGSEGV))"]),
        ("kill -KILL $$", expect!["PluginCompilerCrashed: the compiler crashed (signal: 9 (SIGKILL))"]),
        (
            "printf 'panicked at\\nhere\\033[2J' >&2; exit 101",
            expect![
                "PluginCompilerCrashed: the compiler crashed (exit status: 101) (panicked at here\\u{1b}[2J)"
            ],
        ),
        (
            "echo memory allocation of 8 bytes failed >&2; kill -ABRT $$",
            expect![
                "PluginCompilerOutOfMemory: compiling it needs more than the 469762048 bytes of memory allowed"
            ],
        ),
        ("kill -XCPU $$", expect!["PluginCompilerRanTooLong: compiling it took longer than the 60s allowed"]),
        (
            "/bin/cat > /dev/null; echo this is no code",
            expect![
                "PluginCompilerAnswerUnreadable: what the compiler made of it cannot be read: failed to parse precompiled artifact as an ELF: Invalid ELF header size or alignment"
            ],
        ),
        (
            "exec /bin/cat /dev/zero",
            expect!["PluginCodeTooLarge: it is larger than the 1048576 bytes allowed once it is compiled"],
        ),
        (
            "exec /bin/cat /dev/zero >&2",
            expect!["PluginCompilerRanTooLong: compiling it took longer than the 5s allowed"],
        ),
        (
            "exit 0",
            expect![
                "PluginCompilerAnswerUnreadable: what the compiler made of it cannot be read: failed to parse precompiled artifact as an ELF: Invalid ELF header size or alignment"
            ],
        ),
        ("exit 12", expect!["PluginHostFailed: the plugin host failed: compiling: "]),
    ] {
        let error = refused(script(program, limits), &calico()).await;
        expected.assert_eq(&said(&error).replace(" (core dumped)", ""));
    }
    let missing = Compiler::new("/nonexistent", ["compile-plugin"], limits);
    assert_eq!(refused(missing, &calico()).await.reason(), "PluginHostFailed");
}

#[tokio::test]
async fn a_compiler_that_stalls_is_killed() {
    let limits = CompilerLimits { time: Duration::from_millis(300), ..CompilerLimits::default() };
    let begun = Instant::now();
    let note = folder("stall");
    let program = format!("echo $$ > {}; exec sleep 1000", note.display());
    let error = refused(script(&program, limits), &calico()).await;
    assert_eq!(error.reason(), "PluginCompilerRanTooLong");
    assert!(!error.is_permanent());
    assert!(begun.elapsed() < Duration::from_secs(60));
    let process = fs::read_to_string(&note).expect("it began");
    assert!(!Path::new("/proc").join(process.trim()).exists(), "it is still there");
    fs::remove_file(note).expect("it goes away");
}

#[tokio::test]
async fn one_component_is_compiled_at_a_time() {
    let lock = folder("turn");
    let lock = lock.display();
    let program = format!("/bin/mkdir {lock} || exit 7; /bin/sleep 0.1; /bin/rmdir {lock}");
    let engine = common::engine().with_compiler(script(&program, CompilerLimits::default()));
    let load = || async { engine.load_foreign("calico", calico()).await.expect_err("no code").reason() };
    let reasons = tokio::join!(load(), load(), load());
    assert_eq!(<[_; 3]>::from(reasons), ["PluginCompilerAnswerUnreadable"; 3]);
}

#[tokio::test]
async fn the_compiler_gets_nothing_of_the_environment() {
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO")), "cargo runs this test");
    let error = refused(script("/usr/bin/env >&2; exit 12", CompilerLimits::default()), &calico()).await;
    let text = error.to_string();
    assert!(text.contains("MIMALLOC") && !text.contains("CARGO"), "{text}");
}

async fn limited(limits: CompilerLimits, bytes: &[u8], expected: Expect) {
    let error = refused(common::foreign::compiler(limits), bytes).await;
    expected.assert_eq(&said(&error));
}

#[tokio::test]
async fn memory_and_time_of_the_compiler_end() {
    let largest = component_of(&functions(1, 7_600_000));
    let memory = CompilerLimits { memory: 64 << 20, ..CompilerLimits::default() };
    limited(
        memory,
        &largest,
        expect![
            "PluginCompilerOutOfMemory: compiling it needs more than the 67108864 bytes of memory allowed"
        ],
    )
    .await;
    let computing = CompilerLimits { computing: Duration::from_secs(1), ..CompilerLimits::default() };
    limited(
        computing,
        &component_of(&functions(3000, 1000)),
        expect!["PluginCompilerRanTooLong: compiling it took longer than the 1s allowed"],
    )
    .await;
    let code = CompilerLimits { code: 10_000, ..CompilerLimits::default() };
    limited(
        code,
        &calico(),
        expect!["PluginCodeTooLarge: it is larger than the 10000 bytes allowed once it is compiled"],
    )
    .await;
}

#[tokio::test]
async fn one_function_of_fifteen_megabytes_is_refused() {
    limited(CompilerLimits::default(), &component_of(&functions(1, 15_000_000)), expect!["InvalidComponent: not a valid WebAssembly component: failed to parse WebAssembly module: function body size count exceeds limit of 7654321 (at offset 0x2c)"]).await;
}

#[tokio::test]
async fn a_component_that_was_cut_off_anywhere_is_refused() {
    let whole = calico();
    let engine = foreign_engine(CompilerLimits::default());
    for end in (4096..whole.len()).step_by(4096) {
        let error = engine.load_foreign("cut", whole[..end].into()).await.expect_err("it is not whole");
        assert_eq!(error.reason(), "InvalidComponent", "after {end} bytes: {error}");
    }
    answers(&engine.load_foreign("whole", whole).await.expect("it loads"));
}

#[tokio::test]
async fn what_is_no_component_is_not_compiled() {
    let nobody = || script("exit 1", CompilerLimits::default());
    let text = |text: &str| wat::parse_str(text).expect("it is valid");
    for (bytes, expected) in [
        (
            text("(module)"),
            expect![
                "InvalidComponent: not a valid WebAssembly component: it is a core module; `wasm-tools component new` makes a component of one that was built for the contract"
            ],
        ),
        (
            b"not Wasm at all".to_vec(),
            expect![
                "InvalidComponent: not a valid WebAssembly component: it does not begin like WebAssembly"
            ],
        ),
        (
            b"\0asm\x0e\0\x01\0".to_vec(),
            expect![
                "InvalidComponent: not a valid WebAssembly component: it is WebAssembly of a version that is not known here"
            ],
        ),
        (
            Vec::new(),
            expect![
                "InvalidComponent: not a valid WebAssembly component: it does not begin like WebAssembly"
            ],
        ),
        (
            vec![0; (32 << 20) + 1],
            expect!["ComponentTooLarge: the component has 33554433 bytes, more than the 33554432 allowed"],
        ),
    ] {
        expected.assert_eq(&said(&refused(nobody(), &bytes).await));
    }
    let error = common::engine().load_foreign("calico", calico()).await.expect_err("who would compile it?");
    expect!["PluginHostFailed: the plugin host failed: there is no compiler for plugins"]
        .assert_eq(&said(&error));
}

#[tokio::test]
async fn imports_of_wasi_are_named_one_by_one() {
    let text = r#"(component
        (import "wasi:cli/environment@0.2.6" (instance))
        (import "wasi:filesystem/types@0.2.6" (instance))
        (import "wasi:sockets/tcp@0.2.6" (instance))
        (import "kurator:cluster-plugin/log@0.1.0" (instance)))"#;
    limited(CompilerLimits::default(), &wat::parse_str(text).expect("it is valid"), expect!["ImportsRefused: imports that no plugin gets: wasi:cli/environment@0.2.6, wasi:filesystem/types@0.2.6, wasi:sockets/tcp@0.2.6"]).await;
    let many: String = (0..1000).map(|it| format!("(import \"a{it}\" (instance))")).collect();
    let many = wat::parse_str(format!("(component {many})")).expect("it is valid");
    let error = refused(common::foreign::compiler(CompilerLimits::default()), &many).await;
    assert!(error.to_string().len() < 1000 && error.to_string().ends_with("and 960 more"), "{error}");
}
