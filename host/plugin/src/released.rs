//! Components that this host runs although it does not bring them, because an earlier release did. A digest
//! alone proves only that a component is what it was; that it may run is said here.

use crate::built_in;

const RELEASED: &str = include_str!("../released.txt");

/// Whether a component of this digest (`sha256:...`) came with this release, or an earlier one, as the plugin
/// of this name.
pub fn is_released(name: &str, digest: &str) -> bool {
    built_in().iter().any(|it| it.name == name && it.digest == digest)
        || earlier().any(|it| it.name == name && it.digest == digest)
}

struct Release<'a> {
    name: &'a str,
    digest: &'a str,
}

fn earlier() -> impl Iterator<Item = Release<'static>> {
    lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, _version) = (words.next()?, words.next()?);
        Some(Release { name, digest: words.next()? })
    })
}

fn lines() -> impl Iterator<Item = &'static str> {
    RELEASED.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_line_of_the_list_names_a_plugin_and_a_digest_once() {
        let digests: BTreeSet<&str> = earlier().map(|it| it.digest).collect();
        assert_eq!(digests.len(), lines().count(), "a line without three words, or a digest twice");
        let is_digest = |text: &str| {
            text.strip_prefix("sha256:")
                .is_some_and(|hash| hash.len() == 64 && hash.chars().all(|it| it.is_ascii_hexdigit()))
        };
        assert!(digests.iter().all(|digest| is_digest(digest)), "{digests:?}");
    }

    #[test]
    fn what_comes_with_the_host_may_run_under_its_own_name_only() {
        let [first, second, ..] = built_in() else { panic!("no built-in plugins") };
        assert!(is_released(first.name, &first.digest));
        assert!(!is_released(second.name, &first.digest));
        assert!(!is_released(first.name, "sha256:0"));
    }
}
