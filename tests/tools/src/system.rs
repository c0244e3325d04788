//! What the bed needs of the machine it runs on. The list of it, and what installs it, is `setup.sh` beside
//! this crate: that has to work before anything can be compiled.
//!
//! It only looks; it changes nothing.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::paths;

/// Least version of Python that the emulator works with.
const PYTHON: (u32, u32) = (3, 11);

/// Looks for everything that is needed.
///
/// # Errors
/// Names all that is missing, each with why, and what installs it.
pub fn check() -> Result<()> {
    let output = doctor().output().context("starting tests/tools/setup.sh")?;
    if !output.status.success() {
        bail!("this machine lacks something:\n{}", String::from_utf8_lossy(&output.stdout).trim_end());
    }
    Ok(())
}

/// The command that prints what this machine has and lacks, and why that matters.
pub fn doctor() -> Command {
    let mut command = Command::new(paths::source().join("tests/tools/setup.sh"));
    command.arg("doctor");
    command
}

/// How the world may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// In a user namespace of its own: needs no right at all.
    User,
    /// As root, where user namespaces are forbidden.
    Root,
}

/// Tries to make the namespaces.
///
/// # Errors
/// When it is forbidden.
pub fn isolation() -> Result<Isolation> {
    let common = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "true"];
    let mut user = vec!["--user", "--map-root-user"];
    user.extend(common);
    if runs("unshare", &user) {
        return Ok(Isolation::User);
    }
    if rustix::process::geteuid().is_root() && runs("unshare", &common) {
        return Ok(Isolation::Root);
    }
    bail!("this kernel lets us make no namespaces; `sandbox doctor` says which setting forbids it")
}

/// A Python that is new enough: the system's own where possible, since machines of the bed see only `/usr`.
pub fn python() -> Result<String> {
    let candidates = ["/usr/bin/python3", "python3"];
    match candidates.iter().find(|program| version(program, &["--version"]) >= Some(PYTHON)) {
        Some(program) => Ok((*program).to_owned()),
        None => bail!("Python {}.{} or newer is missing; `make setup` installs it", PYTHON.0, PYTHON.1),
    }
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

/// Major and minor version in the first word of a program's output that looks like one.
fn version(program: &str, arguments: &[&str]) -> Option<(u32, u32)> {
    let output = Command::new(program).args(arguments).output().ok()?;
    parse_version(&String::from_utf8_lossy(&output.stdout))
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    text.split_whitespace().find_map(|word| {
        let mut numbers = word.split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_python_prints_them() {
        assert_eq!(parse_version("Python 3.11.2"), Some((3, 11)));
        assert_eq!(parse_version("no numbers here"), None);
    }

    #[test]
    fn newer_minor_versions_compare_as_numbers() {
        assert!(parse_version("Python 3.9.1") < Some(PYTHON));
        assert!(parse_version("Python 3.100.0") > Some(PYTHON));
    }
}
