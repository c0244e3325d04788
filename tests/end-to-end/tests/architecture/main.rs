//! Holds the invariants of ARCHITECTURE.md that are about what is absent: reads manifests and sources, runs
//! nothing of the project.

mod modules;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use sandbox::paths::source;

use modules::Modules;

/// Names of everything that a package of the workspace depends on, build and test dependencies aside.
fn dependencies(package: &str) -> BTreeSet<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let arguments = [
        "tree",
        "--locked",
        "--offline",
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "none",
        "--package",
        package,
    ];
    let output = Command::new(cargo).args(arguments).current_dir(source()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|it| it.split_whitespace().next()).map(str::to_owned).collect()
}

fn starts_with_any(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|it| name.starts_with(it))
}

#[test]
fn decisions_and_api_types_depend_on_nothing_that_does_io() {
    for package in ["contract", "model", "iam", "addons", "infra", "crds"] {
        let all = dependencies(package);
        assert!(all.contains("serde"), "the list of dependencies is not what it seems: {all:?}");
        let forbidden: Vec<&String> = all
            .iter()
            .filter(|name| {
                starts_with_any(
                    name,
                    &["tokio", "hyper", "aws-", "kube-client", "wasmtime", "reqwest", "rand", "uuid"],
                )
            })
            .collect();
        assert!(forbidden.is_empty(), "{package} depends on {forbidden:?}");
    }
}

#[test]
fn the_aws_sdk_and_wasmtime_are_each_behind_one_crate() {
    let owns = |package: &str, prefix: &str| dependencies(package).iter().any(|it| it.starts_with(prefix));
    assert!(owns("aws", "aws-sdk-ec2") && owns("plugin", "wasmtime"));
    assert!(!owns("plugin", "aws-sdk"), "the plugin host knows AWS");
    assert!(!owns("aws", "wasmtime"), "the AWS leaf knows wasm");
    assert!(!owns("aws", "kube-client"), "the AWS leaf can talk to Kubernetes");
    assert!(!owns("plugin", "kube-client"), "the plugin host can talk to Kubernetes");
    for other in ["aws-sdk", "wasmtime", "kube-client"] {
        assert!(!owns("registry", other), "what pulls from registries knows {other}");
    }
    let manifest = std::fs::read_to_string(source().join("host/Cargo.toml")).expect("host/Cargo.toml");
    assert!(!manifest.contains("aws-sdk") && !manifest.contains("wasmtime"), "the controllers bypass a leaf");
}

/// Packages of the workspace, each with those that it may know of the others; what is not named here it may
/// not.
#[test]
fn each_room_knows_only_the_rooms_that_it_stands_on() {
    for (package, known) in [
        ("contract", &[][..]),
        ("model", &["crds"]),
        ("iam", &["crds", "model"]),
        ("addons", &["contract", "crds", "iam", "model"]),
        ("infra", &["crds", "model"]),
        ("plugin", &["contract"]),
        ("registry", &[]),
        ("aws", &["crds", "iam", "infra", "model"]),
    ] {
        let all = dependencies(package);
        let rooms = [
            "addons",
            "aws",
            "cluster-operator",
            "contract",
            "crds",
            "iam",
            "infra",
            "model",
            "plugin",
            "registry",
        ];
        let found: Vec<&str> =
            rooms.into_iter().filter(|room| *room != package && all.contains(*room)).collect();
        assert_eq!(found, known, "what {package} knows");
    }
}

#[test]
fn leaves_do_not_import_one_another() {
    let host = source().join("host/src");
    for (leaf, others) in [
        ("workload", ["crate::management", "crate::controller", "aws::", "plugin::"]),
        ("management", ["crate::workload", "crate::controller", "aws::", "plugin::"]),
    ] {
        for file in rust_files(&host).into_iter().filter(|file| {
            let path = file.strip_prefix(&host).unwrap_or(file).to_string_lossy().into_owned();
            path == format!("{leaf}.rs") || path.starts_with(&format!("{leaf}/"))
        }) {
            let text = std::fs::read_to_string(&file).expect("a source file");
            let code = text.lines().filter(|it| !it.trim_start().starts_with("//"));
            for line in code {
                let used = others
                    .iter()
                    .find(|it| line.contains(&format!("use {it}")) || line.contains(&format!(" {it}")));
                assert!(used.is_none(), "{}: {line}", file.display());
            }
        }
    }
}

#[test]
fn every_source_file_says_what_it_is_for() {
    let silent: Vec<PathBuf> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//!")).map(|(file, _)| file).collect();
    assert!(silent.is_empty(), "without a //! line at the top: {silent:#?}");
}

#[test]
fn modules_of_a_crate_do_not_use_one_another_in_circles() {
    let mut circles = Vec::new();
    for member in &members() {
        let root = source().join(member).join("src");
        for circle in Modules::read(&root, rust_files(&root)).circles() {
            let files = circle.iter().map(|file| file.strip_prefix(source()).unwrap_or(file).display());
            circles.push(files.map(|file| file.to_string()).collect::<Vec<_>>().join(" -> "));
        }
    }
    assert!(circles.is_empty(), "cut one edge of each circle:\n{}", circles.join("\n"));
}

/// Lines that a file has at most.
const LINES: usize = 400;

#[test]
fn no_source_file_is_too_long_to_be_read_at_once() {
    let long: Vec<String> = sources()
        .into_iter()
        .map(|(file, text)| (file, text.lines().count()))
        .filter(|(_, lines)| *lines > LINES)
        .map(|(file, lines)| format!("{}: {lines} lines", file.display()))
        .collect();
    assert!(long.is_empty(), "split them by subject, none has more than {LINES} lines:\n{}", long.join("\n"));
}

/// Characters that the name of a function has at most.
const CHARACTERS: usize = 64;

#[test]
fn no_function_has_a_name_that_is_a_paragraph() {
    let mut wordy = Vec::new();
    for (file, text) in sources() {
        let names = modules::functions(&text).into_iter().filter(|name| name.len() > CHARACTERS);
        wordy.extend(names.map(|name| format!("{}: {name}", file.display())));
    }
    assert!(wordy.is_empty(), "at most {CHARACTERS} characters:\n{}", wordy.join("\n"));
}

/// The directories of the workspace's crates.
fn members() -> Vec<String> {
    let manifest = std::fs::read_to_string(source().join("Cargo.toml")).expect("Cargo.toml");
    let (_, list) = manifest.split_once("members = [").expect("a workspace");
    let (list, _) = list.split_once(']').expect("the end of the list");
    list.split('"').skip(1).step_by(2).flat_map(member).collect()
}

/// The directories that an entry of that list stands for: itself, or with `/*` at its end all crates below it.
fn member(entry: &str) -> Vec<String> {
    let Some(parent) = entry.strip_suffix("/*") else { return vec![entry.to_owned()] };
    let crates = std::fs::read_dir(source().join(parent)).expect("a directory").flatten();
    let crates = crates.filter(|it| it.path().join("Cargo.toml").is_file());
    crates.map(|it| format!("{parent}/{}", it.file_name().to_string_lossy())).collect()
}

/// All files of Rust with their text, by their paths in the repository.
fn sources() -> Vec<(PathBuf, String)> {
    let files = ["crds", "host", "plugins", "tests"].iter().flat_map(|part| rust_files(&source().join(part)));
    files
        .map(|file| {
            let text = std::fs::read_to_string(&file).expect("a source file");
            (file.strip_prefix(source()).expect("a file of the repository").to_owned(), text)
        })
        .collect()
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
    files
}
