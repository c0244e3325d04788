//! What was released of the contract stays as it was.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;

use super::wit;

/// Files below a folder of `wit/`, by their paths in it.
fn files(folder: &str) -> BTreeMap<String, Vec<u8>> {
    let of = |inside: &str| {
        let path = wit(folder).join(inside);
        let entries = fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let names =
            entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned());
        names.map(|name| format!("{inside}{name}")).collect::<Vec<_>>()
    };
    let paths = ["", "facts/", "steps/"]
        .into_iter()
        .flat_map(of)
        .filter(|it| it.ends_with(".json") || it.ends_with(".wit"));
    paths.map(|path| (path.clone(), fs::read(wit(folder).join(&path)).expect("it can be read"))).collect()
}

#[test]
fn a_released_version_never_changes() {
    let mut hasher = Sha256::new();
    for (path, content) in files("released/0.1.0") {
        hasher.update(format!("{path} {}\n", content.len()));
        hasher.update(content);
    }
    assert_eq!(
        base16(&hasher.finalize()),
        "c8ac11c1ac42216fc3ccad82e3e847f7aa87bcced9585689aeb0c8653dd2b1da"
    );
}

/// What binds of a file of the contract: its text without comments, or its schema without words for people.
fn binding(path: &str, content: &[u8]) -> String {
    fn bare(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, value| name != "description" || !value.is_string());
                fields.values_mut().for_each(bare);
            }
            Value::Array(all) => all.iter_mut().for_each(bare),
            _ => (),
        }
    }
    if path.ends_with(".json") {
        let mut schema: Value = serde_json::from_slice(content).expect("it is JSON");
        bare(&mut schema);
        return schema.to_string();
    }
    let text = String::from_utf8_lossy(content);
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("//") && !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_was_released_is_still_so() {
    let current = files("");
    let moved_on = !String::from_utf8_lossy(&current["cluster-plugin.wit"])
        .contains("package kurator:cluster-plugin@0.1.0;");
    for (path, content) in files("released/0.1.0") {
        // Steps and facts only ever get company; the package changes with its version.
        if path != "cluster-plugin.wit" || !moved_on {
            let current = current.get(&path).map(|current| binding(&path, current));
            assert!(
                current == Some(binding(&path, &content)),
                "{path} was released and is frozen but for its comments: give what changes a new name or version"
            );
        }
    }
}

fn base16(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}
