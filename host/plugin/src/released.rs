//! Components that this host runs although it does not bring them, because an earlier release did. A digest
//! alone proves only that a component is what it was; that it may run is said here.

use std::collections::BTreeSet;

use crate::built_in;
use crate::digest::is_digest;

/// Those of earlier releases.
const RELEASED: &str = include_str!("../released.txt");

/// Components by the names of their plugins and their digests (`sha256:...`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released(BTreeSet<(String, String)>);

impl Released {
    /// Those of this release and of earlier ones.
    pub fn known() -> Released {
        let built_in = built_in().iter().map(|it| (it.name.to_owned(), it.digest.clone()));
        // A test reads the list.
        let mut all = Released::read(RELEASED).unwrap_or_default();
        all.0.extend(built_in);
        all
    }

    /// Those of a list: a line each, of name, version and digest. Empty lines and those that begin with `#`
    /// are left out.
    ///
    /// # Errors
    /// The first line that is none of these.
    pub fn read(list: &str) -> Result<Released, String> {
        let component = |line: &str| match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            [name, _version, digest] if is_digest(digest) => Ok(((*name).to_owned(), (*digest).to_owned())),
            _ => Err(format!("{line:?} is not name, version and digest (sha256:...) of a plugin")),
        };
        let lines = list.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        lines.map(component).collect::<Result<_, _>>().map(Released)
    }

    /// These and others.
    #[must_use]
    pub fn with(mut self, others: Released) -> Released {
        self.0.extend(others.0);
        self
    }

    /// Whether a component was released as the plugin of this name.
    pub fn contains(&self, name: &str, digest: &str) -> bool {
        self.0.contains(&(name.to_owned(), digest.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_list_names_a_plugin_and_a_digest_once() {
        let lines = RELEASED.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        assert_eq!(
            Released::read(RELEASED).map(|read| read.0.len()),
            Ok(lines.count()),
            "one is there twice"
        );
    }

    #[test]
    fn a_component_may_run_as_the_plugin_that_it_was_released_as() {
        let [first, second, ..] = built_in() else { panic!("no built-in plugins") };
        let known = Released::known();
        assert!(known.contains(first.name, &first.digest));
        assert!(!known.contains(second.name, &first.digest));
        let digest = format!("sha256:{}", "0".repeat(64));
        let list = Released::read(&format!("# earlier\n\ncalico 1 {digest}\n")).expect("a list");
        assert!(known.with(list).contains("calico", &digest));
        for wrong in ["calico 1", "calico 1 sha256:0", "calico 1 2 sha256:0"] {
            let error = Released::read(wrong).expect_err("it is no such line");
            assert!(error.contains(wrong), "{error}");
        }
    }
}
