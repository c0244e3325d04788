//! Guests that mean harm, one file each in `hostile/`: each gets its own error, and the host goes on as if
//! nothing had been.

mod common;

use common::{WIT, component, component_importing, engine, request};
use contract::Outcome;
use expect_test::{Expect, expect};
use plugin::{Engine, Limits, built_in};
use serde_json::json;
use std::time::Duration;

/// The one import that a guest may have.
const LOG: &str = r#"(import "kurator:cluster-plugin/log@0.1.0" "write" (func $log (param i32 i32 i32)))"#;

/// Loads the guest, asks it for a plan, and then asks a good plugin of the same engine.
fn check(plan: &str, expected: Expect) {
    check_component(&component(WIT, plan), expected);
}

fn check_component(bytes: &[u8], expected: Expect) {
    let engine = engine();
    let plugin = engine.load("hostile", bytes).expect("it loads");
    for _ in 0..2 {
        let error = plugin.plan(&request(json!({}))).expect_err("it must not get away with it");
        expected.assert_eq(&format!("{}: {error}", error.reason()));
        assert!(error.is_permanent());
    }
    goes_on(&engine);
}

fn goes_on(engine: &Engine) {
    // One is enough to tell, and compiling takes its time.
    for good in built_in().iter().filter(|good| good.name == "calico") {
        let plugin = engine.load(good.name, good.bytes).expect("it loads");
        let answer = plugin.plan(&request(json!({}))).expect("it answers");
        assert!(matches!(answer.value, Ok(Outcome::Complete(_))), "{}", good.name);
    }
}

fn refused(bytes: &[u8], expected: Expect) {
    let engine = engine();
    let error = engine.load("hostile", bytes).expect_err("it must not load");
    expected.assert_eq(&format!("{}: {error}", error.reason()));
    goes_on(&engine);
}

#[test]
fn an_infinite_loop_ends_with_its_fuel() {
    check(
        include_str!("hostile/infinite-loop.wat"),
        expect!["PluginOutOfFuel: plan used up its 500000000 units of fuel"],
    );
}

#[test]
fn what_fuel_does_not_end_the_clock_does() {
    let limits = Limits { fuel: 1 << 60, time: Duration::from_secs(1), ..Limits::default() };
    let engine = Engine::new(limits, None).expect("this machine can run Wasm");
    let plugin =
        engine.load("hostile", &component(WIT, include_str!("hostile/infinite-loop.wat"))).expect("it loads");
    let error = plugin.plan(&request(json!({}))).expect_err("it must not get away with it");
    expect!["PluginRanTooLong: plan ran too long: there was no answer within 1s"]
        .assert_eq(&format!("{}: {error}", error.reason()));
    assert!(!error.is_permanent());
    goes_on(&engine);
}

#[test]
fn a_flood_of_messages_ends_the_call() {
    let large = include_str!("hostile/log-flood.wat");
    check_component(
        &component_importing(WIT, LOG, large),
        expect![
            "PluginLogFlood: plan wrote more to the log than the 10000 messages or 16777216 bytes allowed"
        ],
    );
    let empty = large.replace("0x700000", "0");
    assert_ne!(empty, large);
    check_component(
        &component_importing(WIT, LOG, &empty),
        expect![
            "PluginLogFlood: plan wrote more to the log than the 10000 messages or 16777216 bytes allowed"
        ],
    );
}

#[test]
fn memory_ends_at_the_limit() {
    check(
        include_str!("hostile/memory-growth.wat"),
        expect!["PluginOutOfMemory: plan wanted more than the 134217728 bytes of memory allowed"],
    );
    check(
        include_str!("hostile/two-memories.wat"),
        expect!["PluginOutOfMemory: plan wanted more than the 134217728 bytes of memory allowed"],
    );
}

#[test]
fn a_huge_answer_is_not_read() {
    check(
        include_str!("hostile/huge-answer.wat"),
        expect!["PlanTooLarge: the answer of plan is larger than the 8388608 bytes allowed"],
    );
    check(
        include_str!("hostile/many-values.wat"),
        expect!["PlanTooManyValues: the answer of plan holds more than the 100000 JSON values allowed"],
    );
}

#[test]
fn deep_recursion_ends_with_its_stack() {
    check(
        include_str!("hostile/deep-recursion.wat"),
        expect!["PluginStackOverflow: plan exhausted its stack"],
    );
}

#[test]
fn a_trap_is_named() {
    check(
        include_str!("hostile/trap.wat"),
        expect!["PluginTrapped: plan trapped: wasm trap: wasm `unreachable` instruction executed"],
    );
    check(
        include_str!("hostile/division-by-zero.wat"),
        expect!["PluginTrapped: plan trapped: wasm trap: integer divide by zero"],
    );
}

#[test]
fn an_answer_that_is_none_is_not_read() {
    check(
        include_str!("hostile/outside-memory.wat"),
        expect![
            "PluginMalformedAnswer: the answer of plan cannot be read: string pointer/length out of bounds of memory"
        ],
    );
    check(
        include_str!("hostile/unknown-case.wat"),
        expect!["PluginMalformedAnswer: the answer of plan cannot be read: unexpected discriminant: 7"],
    );
    check(
        include_str!("hostile/nonsense-json.wat"),
        expect!["PluginInvalidJSON: extra in the answer of plan is not JSON"],
    );
    check(include_str!("hostile/many-steps.wat"), expect!["InvalidPlan: steps: 1000, more than 512"]);
}

#[test]
fn an_import_beyond_the_log_is_refused_by_name() {
    let greedy = WIT.replace(
        "  import log;",
        "  import log;\n  import secrets: interface { read: func(name: string) -> string; }",
    );
    let imports = r#"(import "secrets" "read" (func (param i32 i32 i32)))"#;
    let guest = component_importing(&greedy, imports, include_str!("hostile/trap.wat"));
    refused(&guest, expect!["ImportsRefused: imports that no plugin gets: secrets"]);
}

#[test]
fn another_version_of_the_contract_is_refused() {
    let newer = WIT.replace("@0.1.0", "@0.2.0").replace("version = 0.1.0", "version = 0.2.0");
    let plan = include_str!("hostile/trap.wat").replace("0.1.0", "0.2.0");
    refused(
        &component(&newer, &plan),
        expect![
            "ContractUnsupported: does not speak kurator:cluster-plugin@0.1.0: it has kurator:cluster-plugin/types@0.2.0"
        ],
    );
}

#[test]
fn another_type_in_the_same_version_is_refused() {
    let changed = WIT.replace("record need { key: string, query: json }", "record need { key: string }");
    assert_ne!(changed, WIT);
    check_component(
        &component(&changed, include_str!("hostile/trap.wat")),
        expect![
            "ContractUnsupported: does not speak kurator:cluster-plugin@0.1.0: failed to convert function to given type: type mismatch with results: type mismatch for case needs: expected record of 2 fields, found 1 fields"
        ],
    );
}

#[test]
fn what_is_no_component_is_refused() {
    let error = engine().load("nothing", b"not Wasm at all").expect_err("it is none");
    assert_eq!(error.reason(), "InvalidComponent");
    refused(
        &wat::parse_str("(module)").expect("it is valid"),
        expect![
            "InvalidComponent: not a valid WebAssembly component: failed to parse WebAssembly module: attempted to parse a wasm module with a component parser"
        ],
    );
    refused(
        &wat::parse_str("(component)").expect("it is valid"),
        expect![
            "ContractUnsupported: does not speak kurator:cluster-plugin@0.1.0: no exported instance named `kurator:cluster-plugin/planner@0.1.0`"
        ],
    );
    let good = built_in()[0].bytes;
    let engine = engine();
    let error = engine.load("truncated", &good[..good.len() / 2]).expect_err("half a component is none");
    assert_eq!(error.reason(), "InvalidComponent");
}

#[test]
fn a_component_that_is_too_large_is_not_compiled() {
    let engine = Engine::new(Limits { component: 1000, ..Limits::default() }, None)
        .expect("this machine can run Wasm");
    let error = engine.load("large", built_in()[0].bytes).expect_err("it is too large");
    assert_eq!(error.reason(), "ComponentTooLarge");
}
