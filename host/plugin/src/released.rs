//! Components that this host runs although it does not bring them, because an earlier release did. A digest
//! alone proves only that a component is what it was; that it may run is said here.

use std::collections::BTreeSet;

use crate::built_in;

/// Those of earlier releases.
const RELEASED: &str = include_str!("../released.txt");

/// Components by the names of their plugins and their digests (`sha256:...`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released(BTreeSet<(String, String)>);

impl Released {
    /// Those of this release and of earlier ones.
    pub fn known() -> Released {
        let built_in = built_in().iter().map(|it| (it.name.to_owned(), it.digest.clone()));
        let mut all = Released::read(RELEASED);
        all.0.extend(built_in);
        all
    }

    /// Those of a list: a line each, of name, version and digest. Empty lines and those that begin with `#`
    /// say nothing, and neither do lines that are no such list's.
    pub fn read(list: &str) -> Released {
        let component = |line: &str| match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            [name, _version, digest] if digest.starts_with("sha256:") && !name.starts_with('#') => {
                Some(((*name).to_owned(), (*digest).to_owned()))
            }
            _ => None,
        };
        Released(list.lines().filter_map(component).collect())
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
        let read = Released::read(RELEASED);
        assert_eq!(read.0.len(), lines.count(), "a line is not name, version and digest, or is there twice");
        let is_hash =
            |digest: &str| digest.len() == 71 && digest[7..].chars().all(|it| it.is_ascii_hexdigit());
        assert!(read.0.iter().all(|(_, digest)| is_hash(digest)), "{read:?}");
    }

    #[test]
    fn a_component_may_run_as_the_plugin_that_it_was_released_as() {
        let [first, second, ..] = built_in() else { panic!("no built-in plugins") };
        let known = Released::known();
        assert!(known.contains(first.name, &first.digest));
        assert!(!known.contains(second.name, &first.digest));
        let more = known.with(Released::read("# earlier\ncalico 1 sha256:0\ncalico sha256:1\n"));
        assert!(more.contains("calico", "sha256:0") && !more.contains("calico", "sha256:1"));
    }
}
