//! Every kind of the pinned OpenAPI of Kubernetes has a verdict, and each verdict is kept.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::tables::{self, KindVerdict};
use super::*;

/// Where the crate is that has the kinds of the pinned OpenAPI.
fn openapi() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["metadata", "--locked", "--offline", "--format-version", "1", "--manifest-path"])
        .arg(manifest);
    let output = cargo.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let found = packages.iter().find(|it| it["name"] == "k8s-openapi").expect("it is used");
    let manifest = PathBuf::from(found["manifest_path"].as_str().expect("a path"));
    manifest.parent().expect("a directory").join("src/v1_33")
}

fn rust_files(directory: &Path, res: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, res);
        } else if path.extension().is_some_and(|it| it == "rs") {
            res.push(path);
        }
    }
}

/// Groups and kinds of everything that an API server serves.
fn kinds() -> BTreeSet<(String, String)> {
    let mut files = Vec::new();
    rust_files(&openapi(), &mut files);
    let mut res = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).expect("a source file");
        for resource in text.split("impl crate::Resource for ").skip(1) {
            let of = |name: &str| {
                let value = resource.split_once(&format!("const {name}: &'static str = \""))?.1;
                Some(value.split_once('"')?.0.to_owned())
            };
            res.extend(of("GROUP").zip(of("KIND")));
        }
    }
    res
}

#[test]
fn every_kind_of_kubernetes_has_a_verdict() {
    let known = kinds();
    assert!(known.len() > 70 && known.contains(&(String::new(), "Pod".to_owned())), "{}", known.len());
    let without: Vec<_> = known.iter().filter(|(group, kind)| tables::kind(group, kind).is_none()).collect();
    assert!(without.is_empty(), "kinds without a verdict: {without:?}");
    let named = tables::lines(tables::KINDS_TEXT).map(|(name, _)| tables::group_and_kind(name));
    let of_others = [("operator.tigera.io", "Installation")];
    let unknown: Vec<_> = named
        .filter(|(group, kind)| !known.contains(&((*group).to_owned(), (*kind).to_owned())))
        .filter(|it| !of_others.contains(it))
        .collect();
    assert!(unknown.is_empty(), "verdicts on no kind: {unknown:?}");
}

#[test]
fn what_nobody_reads_is_applied_only_where_that_is_granted() {
    let custom = [("example.com", "Widget"), ("snapshot.storage.k8s.io", "VolumeSnapshotClass")];
    let unread = tables::lines(tables::KINDS_TEXT)
        .filter(|(_, text)| tables::kind_verdict(text) == Some(KindVerdict::Unread))
        .map(|(name, _)| tables::group_and_kind(name));
    for (group, kind) in unread.chain(custom) {
        let api_version = format!("{group}/v1").trim_start_matches('/').to_owned();
        let object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": {"b": 1}});
        let grant = |unread: bool| json!({"objects": [{"group": group, "kinds": [kind], "names": ["a"], "unread": unread}]});
        let named = if group.is_empty() { "group: \"\"".to_owned() } else { format!("group: {group}") };
        assert_eq!(
            denied_of(object.clone(), grant(false)),
            [format!(
                "{kind} is granted, but nobody reads what it says <- grants.objects: [{{{named}, kinds: [{kind}], names: [a], unread: true}}]"
            )]
        );
        assert_eq!(denied_of(object, grant(true)), [""; 0], "{group}/{kind}");
    }
}

#[test]
fn what_is_nobodys_is_neither_applied_nor_deleted() {
    let never = tables::lines(tables::KINDS_TEXT)
        .filter(|(_, text)| tables::kind_verdict(text) == Some(KindVerdict::Never))
        .map(|(name, _)| tables::group_and_kind(name));
    for (group, kind) in never {
        let api_version = format!("{group}/v1").trim_start_matches('/').to_owned();
        let grants =
            granted(json!({"objects": [{"group": group, "kinds": [kind], "names": ["a"], "unread": true}]}));
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
        let why = format!(
            "{kind} a of {api_version} is not granted: plugins have nothing to do with this kind <- nothing"
        );
        assert_eq!(denied(&applying(vec![object]), &grants), std::slice::from_ref(&why));
        let spec = json!({"apiVersion": api_version, "kind": kind, "name": "a", "wait": true});
        let delete = Step { id: "it".into(), kind: "k8s.delete/v1".into(), spec, after: vec![] };
        assert_eq!(denied(&delete, &grants), [why]);
    }
}
