//! A demo that ends early leaves nothing: no process, no directory but the logs. It runs the real demo, at
//! different moments.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A demo of a sandbox of its own, in a directory of its own.
struct Demo {
    child: Child,
    directory: PathBuf,
}

impl Demo {
    fn start(name: &str) -> Self {
        let worlds =
            std::env::temp_dir().join(format!("cluster-operator-interrupt-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&worlds).expect("a directory");
        let child = Command::new(env!("CARGO_BIN_EXE_sandbox"))
            .args(["demo", "--name", name])
            .env("CLUSTER_OPERATOR_SANDBOX", &worlds)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the demo starts");
        Self { child, directory: worlds.join(name) }
    }

    /// Sends a signal, and returns the exit code when the demo has ended.
    fn end(mut self, signal: Signal) -> (Option<i32>, PathBuf) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id")).expect("a process id");
        kill_process(pid, signal).expect("it runs");
        (self.child.wait().expect("it ends").code(), self.directory)
    }

    fn wait_for(&mut self, what: &str, seen: impl Fn(&Path) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(600);
        while !seen(&self.directory) {
            assert!(
                self.child.try_wait().expect("it can be asked").is_none(),
                "the demo ended before {what}"
            );
            assert!(Instant::now() < deadline, "waited too long for {what}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Command lines of processes that name a directory.
fn processes(directory: &Path) -> Vec<String> {
    let wanted = directory.display().to_string();
    let entries = std::fs::read_dir("/proc").expect("there is /proc").flatten();
    let commands = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    commands
        .map(|it| String::from_utf8_lossy(&it).replace('\0', " "))
        .filter(|it| it.contains(&wanted))
        .collect()
}

fn wait_until_no_process_is_left(directory: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !processes(directory).is_empty() {
        assert!(Instant::now() < deadline, "left: {:?}", processes(directory));
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("the logs stay")
        .flatten()
        .map(|it| it.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn interrupted(name: &str, what: &str, seen: fn(&Path) -> bool, signal: Signal) {
    let mut demo = Demo::start(name);
    demo.wait_for(what, seen);
    let (code, directory) = demo.end(signal);
    assert_eq!(code, Some(1), "{name}");
    assert_eq!(processes(&directory), Vec::<String>::new(), "{name}");
    assert_eq!(names(&directory), ["logs"], "{name}");
    std::fs::remove_dir_all(directory.parent().expect("the worlds")).expect("it can be removed");
}

fn comes_up(directory: &Path) -> bool {
    directory.join("processes.json").exists()
}

#[test]
fn on_a_bed_a_demo_interrupted_early_leaves_only_logs() {
    interrupted("up", "the world", comes_up, Signal::INT);
}

#[test]
fn on_a_bed_a_demo_interrupted_as_machines_boot_leaves_only_logs() {
    let boots =
        |directory: &Path| directory.join("machines").read_dir().is_ok_and(|mut it| it.next().is_some());
    interrupted("boot", "a machine", boots, Signal::TERM);
}

#[test]
fn on_a_bed_a_demo_that_is_killed_leaves_no_process() {
    let mut demo = Demo::start("killed");
    demo.wait_for("the world", comes_up);
    let (_, directory) = demo.end(Signal::KILL);
    wait_until_no_process_is_left(&directory);
    std::fs::remove_dir_all(directory.parent().expect("the worlds")).expect("it can be removed");
}
