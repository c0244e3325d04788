//! Components of add-ons other than those that are compiled in, and an operator that brings them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sandbox::{Bed, operator};

/// Starts the operator anew with other components.
///
/// # Errors
/// It does not end or start.
pub async fn restart(bed: &Bed, program: &Program, plugins: &Path) -> Result<()> {
    bed.stop_operator().await?;
    program.bring(plugins)?;
    bed.start_operator().await
}

/// The operator, with plugins that can be others the next time it is started.
pub struct Program {
    /// What is run in its place.
    pub path: PathBuf,
    plugins: PathBuf,
}

impl Program {
    /// One with the components of a folder; what it needs is put into another.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn new(folder: &Path, plugins: &Path) -> Result<Program> {
        let program = Program { path: folder.join("operator"), plugins: folder.join("plugins") };
        let script = format!(
            "#!/bin/sh\ncommand=$1\nshift\nexec {} \"$command\" --built-in-plugins {} \"$@\"\n",
            operator::default_program().display(),
            program.plugins.display()
        );
        std::fs::write(&program.path, script)?;
        let mut permissions = std::fs::metadata(&program.path)?.permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        std::fs::set_permissions(&program.path, permissions)?;
        program.bring(plugins)?;
        Ok(program)
    }

    fn bring(&self, plugins: &Path) -> Result<()> {
        let _ = std::fs::remove_file(&self.plugins);
        std::os::unix::fs::symlink(plugins, &self.plugins).context("linking the plugins")
    }
}

/// Writes the components that are compiled in, and returns their digests by name.
///
/// # Errors
/// The operator does not run.
pub fn components(folder: &Path) -> Result<BTreeMap<String, String>> {
    let output = Command::new(operator::default_program())
        .args(["built-in-plugins", "--output"])
        .arg(folder)
        .output()
        .context("running the operator")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let list = String::from_utf8(output.stdout)?;
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some(((*words.first()?).to_owned(), (*words.get(2)?).to_owned()))
    };
    Ok(list.lines().filter_map(line).collect())
}

/// Puts other text of the same length into a component.
///
/// # Errors
/// The text is not in it.
pub fn replace(file: &Path, (from, to): (&str, &str)) -> Result<()> {
    let mut bytes = std::fs::read(file)?;
    let places: Vec<usize> = bytes
        .windows(from.len())
        .enumerate()
        .filter(|(_, it)| *it == from.as_bytes())
        .map(|(at, _)| at)
        .collect();
    ensure!(!places.is_empty() && from.len() == to.len(), "{} has no {from}", file.display());
    for place in places {
        bytes[place..place + to.len()].copy_from_slice(to.as_bytes());
    }
    std::fs::write(file, bytes).with_context(|| format!("writing {}", file.display()))
}

/// A folder of one test.
///
/// # Errors
/// It cannot be made.
pub fn folder(test: &str) -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("cluster-operator-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
