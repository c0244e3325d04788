//! What the bed needs of the machine it runs on, and the exact line that provides what is missing.
//!
//! It only looks; it changes nothing.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

/// Programs that must be on the `PATH`, and the Debian package of each.
const PROGRAMS: [(&str, &str); 10] = [
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("setsid", "util-linux"),
    ("mount", "mount"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("sysctl", "procps"),
    ("apt-get", "apt"),
    ("dpkg-deb", "dpkg"),
    ("python3", "python3"),
];

/// Least version of Python that the emulator works with.
const PYTHON: (u32, u32) = (3, 11);
/// Least version of Go that builds the programs.
const GO: (u32, u32) = (1, 26);

/// Checks for programs and for the right to make namespaces.
///
/// # Errors
/// Names what is missing and the line that installs or allows it.
pub fn check() -> Result<()> {
    let mut packages: Vec<&str> = PROGRAMS.iter().filter(|(program, _)| !on_path(program)).map(|(_, package)| *package).collect();
    if packages.is_empty() && python().is_ok_and(|python| !runs(&python, &["-c", "import ensurepip, venv"])) {
        packages.push("python3-venv");
    }
    if !packages.is_empty() {
        packages.dedup();
        bail!("programs are missing; install them with: sudo apt-get install -y {}", packages.join(" "));
    }
    python()?;
    isolation().map(drop)
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
/// Names the sysctl that forbids it.
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
    let reasons: Vec<&str> = FORBIDDING
        .iter()
        .filter(|(file, forbids, _)| std::fs::read_to_string(file).is_ok_and(|value| value.trim() == *forbids))
        .map(|(_, _, line)| *line)
        .collect();
    if reasons.is_empty() {
        bail!("this kernel lets us make no user namespace and no setting says why; run as root instead");
    }
    bail!("user namespaces are forbidden here; allow them with: {} (or run as root)", reasons.join(" && "));
}

/// Settings that forbid user namespaces: file, forbidding value, and the line that allows them.
const FORBIDDING: [(&str, &str, &str); 3] = [
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"),
    ("/proc/sys/user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"),
];

/// A Python that is new enough: the system's own where possible, since machines of the bed see only `/usr`.
pub fn python() -> Result<String> {
    let candidates = ["/usr/bin/python3", "python3"];
    match candidates.iter().find(|program| version(program, &["--version"]) >= Some(PYTHON)) {
        Some(program) => Ok((*program).to_owned()),
        None => bail!("Python {}.{} or newer is missing: sudo apt-get install -y python3 python3-venv", PYTHON.0, PYTHON.1),
    }
}

/// Checks for Go, which only those need whose cache lacks a program.
pub fn check_go() -> Result<()> {
    match version("go", &["version"]) {
        Some(found) if found >= GO => Ok(()),
        Some((major, minor)) => bail!("Go {}.{} or newer is needed and {major}.{minor} is installed: https://go.dev/dl/", GO.0, GO.1),
        None => bail!("Go {}.{} or newer is needed to build the tools: https://go.dev/dl/", GO.0, GO.1),
    }
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
        // Debian keeps these out of an ordinary user's PATH.
        || ["/usr/sbin", "/sbin"].iter().any(|directory| Path::new(directory).join(program).is_file())
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
        let mut numbers = word.trim_start_matches("go").split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_go_and_python_print_them() {
        assert_eq!(parse_version("go version go1.26.8 linux/amd64"), Some((1, 26)));
        assert_eq!(parse_version("Python 3.11.2"), Some((3, 11)));
        assert_eq!(parse_version("no numbers here"), None);
    }

    #[test]
    fn newer_minor_versions_compare_as_numbers() {
        assert!(parse_version("Python 3.9.1") < Some(PYTHON));
        assert!(parse_version("go version go1.100 linux/amd64") > Some(GO));
    }
}
