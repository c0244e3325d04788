//! Guests that answer, but with what they should not: each answer is laid out in memory as the contract says,
//! and refused for what is in it. A good plugin goes on being served.

mod common;

use common::guest::{Descriptor, HARMLESS, Step, guest, refusing, step};
use common::{WIT, component, component_exporting, engine, load, request};
use contract::{Failure, Outcome};
use expect_test::{Expect, expect};
use plugin::{Plugin, PluginError};
use serde_json::json;

fn loaded(bytes: &[u8]) -> Plugin {
    engine().load("hostile", bytes).expect("it loads")
}

fn said<T: std::fmt::Debug>(answer: Result<T, PluginError>, expected: Expect) {
    let error = answer.expect_err("it must not get away with it");
    assert!(error.is_permanent());
    expected.assert_eq(&format!("{}: {error}", error.reason()));
    let good = load("calico").plan(&request(json!({}))).expect("it answers");
    assert!(matches!(good.value, Ok(Outcome::Complete(_))));
}

fn planned(steps: &[Step<'_>], expected: Expect) {
    said(loaded(&guest(&HARMLESS, steps)).plan(&request(json!({}))), expected);
}

fn described(descriptor: &Descriptor<'_>, expected: Expect) {
    said(loaded(&guest(descriptor, &[])).introduce(), expected);
}

#[test]
fn the_guests_of_these_tests_are_good_but_for_what_is_tested() {
    let good = loaded(&guest(&HARMLESS, &[step("a", &[]), step("b", &["a"])]));
    let (descriptor, _) = good.introduce().expect("it introduces itself");
    assert_eq!((descriptor.name.as_str(), descriptor.version.as_str()), ("hostile", "1"));
    assert_eq!(good.validate(&request(json!({}))).expect("it answers").value, []);
    let Ok(Outcome::Complete(plan)) = good.plan(&request(json!({}))).expect("it answers").value else {
        panic!("it has no plan");
    };
    assert_eq!(plan.steps.iter().map(|step| step.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_trap_in_any_function_is_told_by_its_name() {
    let traps = loaded(&component(WIT, include_str!("hostile/trap.wat")));
    said(
        traps.describe(),
        expect!["PluginTrapped: describe trapped: wasm trap: wasm `unreachable` instruction executed"],
    );
    said(
        traps.introduce(),
        expect!["PluginTrapped: describe trapped: wasm trap: wasm `unreachable` instruction executed"],
    );
    said(
        traps.validate(&request(json!({}))),
        expect!["PluginTrapped: validate trapped: wasm trap: wasm `unreachable` instruction executed"],
    );
    said(
        traps.plan(&request(json!({}))),
        expect!["PluginTrapped: plan trapped: wasm trap: wasm `unreachable` instruction executed"],
    );
}

#[test]
fn who_counts_its_calls_never_gets_beyond_the_first() {
    let counts = loaded(&component(WIT, include_str!("hostile/second-call.wat")));
    let ask = || {
        let answer = counts.plan(&request(json!({}))).expect("it is its first call, every time");
        (format!("{:?}", answer.value), answer.fuel)
    };
    let first = ask();
    assert!((0..100).all(|_| ask() == first));
    let describe = r#"(global $calls (mut i32) (i32.const 0))
        (data (i32.const 512) "a012")
        (func (export "PACKAGE/planner@VERSION#describe") (result i32)
          (local $at i32)
          (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
          (local.set $at (i32.const 1024))
          (loop $field
            (i32.store (local.get $at) (i32.const 512))
            (i32.store offset=4 (local.get $at) (i32.add (global.get $calls) (i32.const 1)))
            (br_if $field (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8)))
              (i32.const 1048))))
          (loop $object
            (i32.store (local.get $at) (i32.const 520))
            (i32.store offset=4 (local.get $at) (i32.const 2))
            (br_if $object (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8)))
              (i32.const 1072))))
          (i32.const 1024))
        (data (i32.const 520) "{}")
        (func (export "PACKAGE/planner@VERSION#validate") (param i32) (result i32) (unreachable))
        (func (export "PACKAGE/planner@VERSION#plan") (param i32) (result i32) (unreachable))"#;
    let changes = loaded(&component_exporting(WIT, "", describe));
    let (descriptor, _) = changes.introduce().expect("it says the same twice");
    assert_eq!(descriptor.name, "a0");
}

#[test]
fn sizes_that_are_only_claimed_are_not_believed() {
    let claims = |text| loaded(&component(WIT, text)).plan(&request(json!({})));
    said(
        claims(include_str!("hostile/million-steps.wat")),
        expect!["PlanTooLarge: the answer of plan is larger than the 8388608 bytes allowed"],
    );
    said(
        claims(include_str!("hostile/length-only.wat")),
        expect![
            "PluginMalformedAnswer: the answer of plan cannot be read: string pointer/length out of bounds of memory"
        ],
    );
}

#[test]
fn steps_that_contradict_one_another_are_refused() {
    planned(&[step("a", &[]), step("a", &[])], expect![[r#"InvalidPlan: steps: the id "a" is used twice"#]]);
    planned(
        &[step("a", &["b"]), step("b", &["c"]), step("c", &["a"])],
        expect![[r#"InvalidPlan: steps: step "a" comes after itself"#]],
    );
    planned(&[step("a", &["a"])], expect![[r#"InvalidPlan: steps: step "a" comes after itself"#]]);
    planned(
        &[step("a", &["b"])],
        expect![[r#"InvalidPlan: steps: step "a" comes after "b", which is not there"#]],
    );
    planned(
        &[Step { kind: "k8s.exec/v1", ..step("a", &[]) }],
        expect![[r#"InvalidPlan: steps: step "a" is a "k8s.exec/v1", which this host does not carry out"#]],
    );
    planned(
        &[Step { spec: r#"{"objects":[],"as":"root"}"#, ..step("a", &[]) }],
        expect![[
            r#"InvalidPlan: steps: step "a": spec is not a k8s.apply/v1: unknown field `as`, expected one of `objects`, `prune`, `caBundleFrom`"#
        ]],
    );
    planned(
        &[Step { spec: "[[[[", ..step("a", &[]) }],
        expect![[r#"PluginInvalidJSON: the spec of step "a" in the answer of plan is not JSON"#]],
    );
    let deep = "[".repeat(10_000);
    planned(
        &[Step { spec: &deep, ..step("a", &[]) }],
        expect![[r#"PluginInvalidJSON: the spec of step "a" in the answer of plan is not JSON"#]],
    );
}

#[test]
fn names_that_look_like_others_are_refused() {
    planned(
        &[step("../a", &[])],
        expect![[
            r#"InvalidPlan: the id of a step is "../a"; it begins and ends with a letter or digit of ASCII, and has -, _, ., : and + besides"#
        ]],
    );
    planned(
        &[step("a\0b", &[])],
        expect![[
            r#"InvalidPlan: the id of a step is "a\u{0}b"; it begins and ends with a letter or digit of ASCII, and has -, _, ., : and + besides"#
        ]],
    );
    planned(
        &[step("a\nsteps: all done", &[])],
        expect![[
            r#"InvalidPlan: the id of a step is "a\nsteps: all done"; it begins and ends with a letter or digit of ASCII, and has -, _, ., : and + besides"#
        ]],
    );
    planned(
        &[step("crd\u{202e}sdrc", &[])],
        expect![[
            r#"InvalidPlan: the id of a step is "crd\u{202e}sdrc"; it begins and ends with a letter or digit of ASCII, and has -, _, ., : and + besides"#
        ]],
    );
    planned(
        &[step("kube\u{200b}-system", &[])],
        expect![[
            r#"InvalidPlan: the id of a step is "kube\u{200b}-system"; it begins and ends with a letter or digit of ASCII, and has -, _, ., : and + besides"#
        ]],
    );
    planned(
        &[step("c\u{430}lico", &[])],
        expect![[
            r#"InvalidPlan: the id of a step is "c\u{430}lico"; it begins and ends with a letter or digit of ASCII, and has -, _, ., : and + besides"#
        ]],
    );
    let long = "a".repeat(254);
    planned(&[step(&long, &[])], expect!["InvalidPlan: the id of a step has 254 bytes, not 1 to 253"]);
    described(
        &Descriptor { name: "a/b", ..HARMLESS },
        expect![[
            r#"InvalidPlan: name is "a/b"; it begins and ends with a letter or digit of ASCII, and has -, _, ., : and + besides"#
        ]],
    );
    described(
        &Descriptor { version: "1\u{2066}", ..HARMLESS },
        expect![[
            r#"InvalidPlan: version is "1\u{2066}"; it begins and ends with a letter or digit of ASCII, and has -, _, ., : and + besides"#
        ]],
    );
    described(&Descriptor { name: "", ..HARMLESS }, expect!["InvalidPlan: name has 0 bytes, not 1 to 253"]);
}

#[test]
fn what_is_said_to_people_is_made_fit_to_be_seen() {
    let plugin = loaded(&refusing("Wrong", "/a\u{202e}", "\u{1b}[31mAll is well\u{200b}\nReady: True"));
    let Err(Failure::Invalid(found)) = plugin.plan(&request(json!({}))).expect("it answers").value else {
        panic!("it refuses");
    };
    assert_eq!(found[0].path, r"/a\u{202e}");
    assert_eq!(found[0].message, r"\u{1b}[31mAll is well\u{200b} Ready: True");
    said(
        loaded(&refusing("Wro\u{202e}ng", "", "")).plan(&request(json!({}))),
        expect![[
            r#"InvalidPlan: the code of a diagnostic is "Wro\u{202e}ng"; it begins and ends with a letter or digit of ASCII, and has -, _, ., : and + besides"#
        ]],
    );
}

#[test]
fn a_schema_without_bounds_is_refused_at_the_introduction() {
    for (schema, expected) in [
        (
            r##"{"$ref":"#"}"##.to_owned(),
            expect!["ConfigSchemaRefused: the schema of the configuration is refused: # refers to itself"],
        ),
        (
            r#"{"$ref":"https://example.com/schema"}"#.to_owned(),
            expect![[
                r#"ConfigSchemaRefused: the schema of the configuration is refused: $ref: "https://example.com/schema" is not allowed; refer to #/$defs/ and a plain name"#
            ]],
        ),
        (
            r#"{"type":"nonsense"}"#.to_owned(),
            expect![[
                r#"InvalidConfigSchema: the schema of the configuration is not a JSON Schema: "nonsense" is not valid under any of the schemas listed in the 'anyOf' keyword"#
            ]],
        ),
        (
            r#"{"pattern":"((a{99}){99}){99}"}"#.to_owned(),
            expect![[
                r#"InvalidConfigSchema: the schema of the configuration is not a JSON Schema: "((a{99}){99}){99}" is not a "regex""#
            ]],
        ),
        (
            r#"{"pattern":"(a+)+\\1"}"#.to_owned(),
            expect![[
                r#"InvalidConfigSchema: the schema of the configuration is not a JSON Schema: "(a+)+\\1" is not a "regex""#
            ]],
        ),
    ] {
        described(&Descriptor { schema: &schema, ..HARMLESS }, expected);
    }
}
