//! Schemas that take as much as one may: checking by them ends soon, and what would take more is not begun.

use std::time::{Duration, Instant};

use plugin::ConfigSchema;
use serde_json::{Map, Value, json};

/// Far more than a check may take, on a busy machine and not optimized.
const SOON: Duration = Duration::from_secs(30);

fn read(schema: &Value) -> ConfigSchema {
    ConfigSchema::read(schema).expect("it is within the bounds")
}

/// The codes of what is wrong.
fn codes(schema: &ConfigSchema, config: &Value) -> Vec<String> {
    let begun = Instant::now();
    let found = schema.check(config);
    println!("{:?}", begun.elapsed());
    assert!(begun.elapsed() < SOON, "it took {:?}", begun.elapsed());
    found.into_iter().map(|it| it.code).collect()
}

/// A schema that is looked at some 20,000 times with each item of a list.
fn thick() -> Value {
    let definitions: Map<String, Value> = (0..12)
        .map(|level| {
            let next = json!({ "$ref": format!("#/$defs/a{}", level + 1) });
            (format!("a{level}"), json!({ "anyOf": [next, next] }))
        })
        .chain([("a12".to_owned(), json!({ "type": "string" }))])
        .collect();
    json!({ "items": { "$ref": "#/$defs/a0" }, "$defs": definitions })
}

#[test]
fn what_is_checked_again_and_again_ends() {
    let schema = read(&thick());
    assert_eq!(codes(&schema, &json!(["a"])), [""; 0]);
    assert_eq!(codes(&schema, &json!([1])), ["InvalidConfig"]);
    assert_eq!(codes(&schema, &json!(vec![1; 400])), ["InvalidConfig"]);
    assert_eq!(codes(&schema, &json!(vec![1; 40_000])), ["ConfigTooLarge"]);
}

#[test]
fn many_errors_are_neither_collected_nor_told() {
    let schema = read(&json!({ "items": { "allOf": vec![false; 400] } }));
    assert_eq!(codes(&schema, &json!(vec![1; 1000])).len(), 16);
    assert_eq!(codes(&schema, &json!(vec![1; 30_000])), ["InvalidConfig"]);
}

#[test]
fn the_slowest_pattern_ends_with_its_text() {
    let schema = read(&json!({ "pattern": "(a|aa|b){0,80}[ab]*a[ab]{100}[0-9]" }));
    // No two stretches of it look the same, so that no state of the pattern is met twice.
    let text = |length: usize| -> String {
        let mut random = 1_u32;
        let mut next = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if random >> 31 == 0 { 'a' } else { 'b' }
        };
        (0..length).map(|_| next()).collect()
    };
    assert_eq!(codes(&schema, &json!(text(1 << 14))), ["InvalidConfig"]);
    assert_eq!(codes(&schema, &json!(text((1 << 18) + 1))), ["ConfigTooLarge"]);
}

#[test]
fn patterns_that_people_write_are_small_enough() {
    for pattern in [
        r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$",
        r"^arn:[a-z0-9-]+:iam::[0-9]{12}:role/[\x21-\x7e]+$",
        r"^(\d{1,3}\.){3}\d{1,3}/\d{1,2}$",
        r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$",
        r"^v\d+\.\d+\.\d+(-[\w.]+)?$",
    ] {
        assert!(ConfigSchema::read(&json!({ "pattern": pattern })).is_ok(), "{pattern}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_path_and_cut() {
    let schema = read(&json!({ "properties": { "a": { "items": { "maxLength": 3 } } } }));
    let found = schema.check(&json!({ "a": ["b", "\u{202e}".repeat(5000)] }));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].code.as_str(), found[0].path.as_str()), ("InvalidConfig", "/a/1"));
    assert!(found[0].message.len() <= 1024 && !found[0].message.contains('\u{202e}'));
}
