//! `setup.sh doctor` on a machine that has nearly nothing: all that is missing is named at once, with why,
//! and nothing is installed.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// What a shell script cannot do without, and every system has.
const BASICS: [&str; 14] = [
    "awk", "bash", "cat", "cut", "df", "dirname", "env", "grep", "head", "readlink", "sed", "sort", "tr",
    "uname",
];

fn doctor(path: &str) -> Output {
    let script = tools::paths::source().join("tests/tools/setup.sh");
    let mut command = Command::new(script);
    command.arg("doctor").env_clear().env("PATH", path).env("HOME", "/nonexistent");
    command.output().expect("the script starts")
}

fn find(name: &str) -> PathBuf {
    let directories = ["/usr/bin", "/bin"].map(Path::new);
    directories.iter().map(|it| it.join(name)).find(|it| it.exists()).expect("every system has it")
}

#[test]
fn all_that_is_missing_is_named_at_once_with_why_and_what_to_do() {
    let directory = std::env::temp_dir().join(format!("cluster-operator-doctor-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    for name in BASICS {
        symlink(find(name), directory.join(name)).expect("a link");
    }
    let started = Instant::now();
    let output = doctor(&directory.display().to_string());
    assert!(started.elapsed() < Duration::from_secs(5), "nobody waits for the list");
    std::fs::remove_dir_all(&directory).expect("it can be removed");
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert_eq!(output.status.code(), Some(1), "{text}");
    let (_, list) = text.split_once("This machine lacks").expect("there is a list");
    for (item, why) in [
        ("cc", "compiles the C inside some crates, and links"),
        ("rust", "compiles the operator and the bed"),
        ("wasm", "compiles the built-in plugins to WebAssembly"),
        ("go", "builds etcd, Kubernetes and Cluster API from source"),
        ("unshare", "makes the namespaces that the bed and its machines are"),
        ("dpkg-deb", "unpacks both"),
    ] {
        let line = list.lines().find(|line| line.split_whitespace().next() == Some(item));
        assert!(line.is_some_and(|line| line.ends_with(why)), "{item}: {line:?}\n{text}");
    }
    assert!(list.contains("https://rustup.rs"), "{text}");
}

#[test]
fn a_machine_that_runs_the_tests_lacks_nothing() {
    let output = Command::new(tools::paths::source().join("tests/tools/setup.sh"))
        .arg("doctor")
        .output()
        .expect("the script starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
