//! Starts a world from outside, finds one that runs, and ends it.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use tools::progress::{Step, last_lines};
use tools::system::{self, Isolation};
use tools::{Tools, paths};

use super::options::Options;
use super::state::{State, write_atomically};

const POLL: Duration = Duration::from_millis(100);
/// A slow machine with other things to do needs two minutes.
const UP_TIMEOUT: Duration = Duration::from_secs(300);
const DOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// A world that runs, as seen from outside.
#[derive(Clone, Debug)]
pub struct Running {
    pub directory: PathBuf,
    pub options: Options,
    pub tools: Tools,
    pub processes: Processes,
}

/// The two processes a world hangs on.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Processes {
    /// `unshare`, outside: its end is the world's end.
    pub launcher: Identity,
    /// The first process inside, with its id outside.
    pub first: Identity,
    /// Whether the world has a user namespace of its own.
    pub user_namespace: bool,
}

/// A process, told apart from a later one with the same id.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Identity {
    pub pid: i32,
    /// Clock ticks since boot.
    pub started: u64,
}

impl Identity {
    fn of(pid: i32) -> Option<Self> {
        Some(Self { pid, started: started(pid)? })
    }

    /// Whether this very process still exists.
    pub fn alive(&self) -> bool {
        started(self.pid) == Some(self.started)
    }
}

/// Start time of a process that has not ended; field 22 of `/proc/PID/stat`, counted behind the name in
/// parentheses.
fn started(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The directory of the world called `name`.
pub fn directory(name: &str) -> Result<PathBuf> {
    let plain = |character: char| character.is_ascii_alphanumeric() || character == '-' || character == '_';
    if name.is_empty() || !name.chars().all(plain) {
        bail!("a sandbox's name consists of letters, digits, - and _, and {name:?} does not");
    }
    Ok(paths::worlds()?.join(name))
}

/// The world called `name`, if it runs.
pub fn find(name: &str) -> Result<Option<Running>> {
    let directory = directory(name)?;
    let Some(processes) = read::<Processes>(&directory.join("processes.json"))? else { return Ok(None) };
    if !processes.first.alive() {
        return Ok(None);
    }
    let options = read(&directory.join("options.json"))?.context("the sandbox's options.json is gone")?;
    let tools = read(&directory.join("tools.json"))?.context("the sandbox's tools.json is gone")?;
    Ok(Some(Running { directory, options, tools, processes }))
}

/// Starts a world and waits until it is ready, showing progress on stderr. `sandbox` is the bed's own
/// program.
///
/// The child that is returned is the world's outer end: killing it ends everything.
///
/// # Errors
/// With the world's own reason and the path of its log; nothing is left running then.
pub fn up(options: &Options, sandbox: &Path) -> Result<(Running, Child)> {
    let tools = Tools::ensure()?;
    let directory = directory(&options.name)?;
    let _lock = lock(&directory)?;
    if find(&options.name)?.is_some() {
        bail!("sandbox {:?} is up already; `sandbox down --name {}` ends it", options.name, options.name);
    }
    prepare(&directory, options, &tools)?;
    let isolation = system::isolation()?;
    let mut child = spawn(&directory, &tools, sandbox, options.tied, isolation)?;
    let up = adopt(&mut child, &directory, isolation).and_then(|processes| {
        let running = Running { directory: directory.clone(), options: options.clone(), tools, processes };
        wait_until_ready(&running, &mut child).map(|()| running).inspect_err(|_| {
            // Why it did not come up is what has to be told.
            if let Err(error) = end_in(&directory) {
                tracing::error!("{error:#}");
            }
        })
    });
    if up.is_err() {
        // It may have ended by itself, which is why we are here.
        let _ = child.kill();
        let _ = child.wait();
    }
    let logs = directory.join("logs");
    let running = up.with_context(|| {
        format!("sandbox {:?} did not come up; its logs are in {}", options.name, logs.display())
    })?;
    Ok((running, child))
}

/// Ends the processes of a world, one that is still coming up too, and leaves its directory. Whoever waits
/// for it to be ready is told that it ended.
pub fn end(name: &str) -> Result<()> {
    end_in(&directory(name)?)
}

fn end_in(directory: &Path) -> Result<()> {
    read::<Processes>(&directory.join("processes.json"))?.as_ref().map_or(Ok(()), kill)
}

/// Ends a world and removes its directory but for the logs. Returns whether it ran.
pub fn down(name: &str) -> Result<bool> {
    let directory = directory(name)?;
    let _lock = lock(&directory)?;
    let running = find(name)?;
    if let Some(running) = &running {
        kill(&running.processes)?;
    }
    clean(&directory, true)?;
    Ok(running.is_some())
}

/// Kills a world and waits until its last process is gone.
pub fn kill(processes: &Processes) -> Result<()> {
    for process in [&processes.launcher, &processes.first] {
        if let Some(pid) = Pid::from_raw(process.pid).filter(|_| process.alive()) {
            match rustix::process::kill_process(pid, Signal::KILL) {
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(error).with_context(|| format!("killing process {}", process.pid)),
            }
        }
    }
    let deadline = Instant::now() + DOWN_TIMEOUT;
    // The kernel ends every process of the namespace before the first one is gone.
    while processes.first.alive() {
        if Instant::now() > deadline {
            bail!("process {} does not end", processes.first.pid);
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

fn lock(directory: &Path) -> Result<File> {
    let file = directory.with_extension("lock");
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
    }
    let lock = File::create(&file).with_context(|| format!("creating {}", file.display()))?;
    lock.lock().context("waiting for another sandbox command")?;
    Ok(lock)
}

fn prepare(directory: &Path, options: &Options, tools: &Tools) -> Result<()> {
    clean(directory, false)?;
    for name in ["logs", "machines", "management"] {
        let path = directory.join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
    }
    write(&directory.join("options.json"), options)?;
    write(&directory.join("tools.json"), tools)
}

/// Removes what a world left in its directory.
fn clean(directory: &Path, keep_logs: bool) -> Result<()> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("reading {}", directory.display())),
    };
    for entry in entries {
        let entry = entry.with_context(|| format!("reading {}", directory.display()))?;
        if keep_logs && entry.file_name() == "logs" {
            continue;
        }
        remove(&entry.path())?;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    if !path.is_dir() || path.is_symlink() {
        return std::fs::remove_file(path).with_context(|| format!("removing {}", path.display()));
    }
    if std::fs::remove_dir_all(path).is_ok() {
        return Ok(());
    }
    // An overlay's work directory has no permissions, which stops its owner unless he is root.
    let _ = Command::new("chmod").args(["-R", "u+rwx"]).arg(path).output();
    std::fs::remove_dir_all(path).with_context(|| format!("removing {}", path.display()))
}

fn spawn(directory: &Path, tools: &Tools, sandbox: &Path, tied: bool, isolation: Isolation) -> Result<Child> {
    let log = directory.join("logs/world.log");
    let output = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
    let errors = output.try_clone().context("sharing the log between stdout and stderr")?;
    // A session of its own, so that what ends the terminal's processes does not end the world half.
    let mut command = Command::new("setsid");
    command.arg("unshare");
    if isolation == Isolation::User {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
    command.arg(sandbox).arg("world").arg(directory);
    if tied {
        command.arg("--tied");
    }
    // The user's proxies, AWS profile and kubeconfig have no meaning inside.
    command.env_clear().env("PATH", tools.search_path());
    for name in ["HOME", "USER", "LANG", "RUST_LOG", "RUST_BACKTRACE", "CARGO_TARGET_DIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.stdin(if tied { Stdio::piped() } else { Stdio::null() }).stdout(output).stderr(errors);
    command.spawn().context("starting setsid unshare")
}

/// Waits for `unshare` to have its child, and writes down who they are.
fn adopt(child: &mut Child, directory: &Path, isolation: Isolation) -> Result<Processes> {
    let launcher = i32::try_from(child.id()).context("a process id that is no process id")?;
    let children = format!("/proc/{launcher}/task/{launcher}/children");
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let first = std::fs::read_to_string(&children)
            .ok()
            .and_then(|text| text.split_whitespace().next()?.parse().ok())
            .and_then(Identity::of);
        if let (Some(first), Some(launcher)) = (first, Identity::of(launcher)) {
            let processes = Processes { launcher, first, user_namespace: isolation == Isolation::User };
            write(&directory.join("processes.json"), &processes)?;
            return Ok(processes);
        }
        if Instant::now() > deadline || child.try_wait().context("waiting for unshare")?.is_some() {
            bail!("the namespaces could not be made: {}", last_lines(&directory.join("logs/world.log"), 5));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn wait_until_ready(running: &Running, child: &mut Child) -> Result<()> {
    let deadline = Instant::now() + UP_TIMEOUT;
    let mut shown = Step::start("making namespaces");
    let mut current = String::new();
    loop {
        let state = State::read(&running.directory).unwrap_or_default();
        if let Some(reason) = state.failed {
            shown.failed();
            bail!("{reason}");
        }
        if state.ready {
            shown.done();
            return Ok(());
        }
        if state.step != current {
            shown.done();
            current.clone_from(&state.step);
            shown = Step::start(current.clone());
        }
        if let Some(status) = child.try_wait().context("waiting for the world")? {
            shown.failed();
            bail!("it ended with {status}:\n{}", last_lines(&running.directory.join("logs/world.log"), 15));
        }
        if Instant::now() > deadline {
            shown.failed();
            bail!("it is still {current:?} after {} s", UP_TIMEOUT.as_secs());
        }
        std::thread::sleep(POLL);
        shown.tick();
    }
}

fn write<T: Serialize>(file: &Path, value: &T) -> Result<()> {
    let text = serde_json::to_vec_pretty(value).with_context(|| format!("encoding {}", file.display()))?;
    write_atomically(file, &text)
}

fn read<T: serde::de::DeserializeOwned>(file: &Path) -> Result<Option<T>> {
    match std::fs::read(file) {
        Ok(text) => {
            serde_json::from_slice(&text).map(Some).with_context(|| format!("reading {}", file.display()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", file.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_id_used_again_is_another_process() {
        let own = i32::try_from(std::process::id()).expect("a process id");
        let identity = Identity::of(own).expect("this process");
        assert!(identity.alive());
        let earlier = Identity { started: identity.started - 1, ..identity };
        assert!(!earlier.alive());
    }

    #[test]
    fn a_name_cannot_lead_out_of_the_directory_of_worlds() {
        for name in ["", "..", "a/b", "a b"] {
            assert!(directory(name).is_err(), "{name:?} was accepted");
        }
    }
}
