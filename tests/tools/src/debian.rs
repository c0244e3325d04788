//! Packages of Debian and Ubuntu, downloaded and unpacked without being installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::create_directory;
use crate::parts::Meter;

/// Downloads packages into a directory and unpacks them there; answers with the root of what they hold.
///
/// # Errors
/// When apt has no such packages, with the line that helps.
pub fn unpacked(names: &[String], directory: &Path, log: &Path, meter: &Meter) -> Result<PathBuf> {
    let (packages, root) = (directory.join("packages"), directory.join("root"));
    create_directory(&packages)?;
    create_directory(&root)?;
    let mut command = Command::new("apt-get");
    command.current_dir(&packages).arg("download").args(names);
    // Root would hand over to a user that may not write here; the packages are checked all the same.
    command.args(["-o", "APT::Sandbox::User=root"]);
    meter
        .run(&mut command, log, |_, _| true)
        .context("downloading packages (if one is not found: sudo apt-get update)")?;
    for file in std::fs::read_dir(&packages).with_context(|| format!("reading {}", packages.display()))? {
        let file = file.with_context(|| format!("reading {}", packages.display()))?.path();
        let status =
            Command::new("dpkg-deb").arg("-x").arg(&file).arg(&root).status().context("starting dpkg-deb")?;
        if !status.success() {
            bail!("dpkg-deb -x {} ended with {status}", file.display());
        }
    }
    Ok(root)
}
