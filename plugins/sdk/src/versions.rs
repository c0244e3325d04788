//! Which release of an add-on goes with which Kubernetes minor version.

use crate::{Request, Stop, facts};

/// A release, and the Kubernetes versions with which it is known to work.
#[derive(Clone, Copy, Debug)]
pub struct Release<T> {
    /// First and last minor version of Kubernetes 1.
    pub kubernetes: (u32, u32),
    /// Version of the add-on, such as `v1.23.0`.
    pub version: &'static str,
    /// What else the plugin pins together with it, such as images of sidecars.
    pub with: T,
}

/// The version of Kubernetes that every API server has at least. While a control plane is upgraded it stays what
/// it was, and changes once, when the last API server was upgraded. Where no machine is there yet, and where the
/// host does not tell, it is the version that the control plane is to have.
///
/// The plugin has to name [`facts::API_SERVER_VERSION`] in its descriptor.
///
/// # Errors
/// As of [`Request::fact`].
pub fn running<C>(request: &Request<C>) -> Result<String, Stop> {
    match request.optional_fact(facts::API_SERVER_VERSION)? {
        Some(version) => Ok(version),
        None => request.fact(facts::KUBERNETES_VERSION),
    }
}

/// The minor version in `v1.36.3`; `None` when it is not of that form or not of Kubernetes 1.
pub fn minor(kubernetes: &str) -> Option<u32> {
    let mut parts = kubernetes.trim_start_matches('v').split('.');
    let major = parts.next()?;
    let minor = parts.next()?;
    parts.next()?;
    (major == "1").then(|| minor.parse().ok()).flatten()
}

/// The release of `table` for the Kubernetes version, the first that fits. `table` is sorted, newest first: of
/// those that fit what [runs](running) the first is also the one that knows the newest version to upgrade to.
///
/// # Errors
/// Unsupported when no release is known to work with it and the user chose no tag (`chosen`). With one, the
/// newest release is what everything but the tag is taken from.
pub fn release<'a, T>(
    table: &'a [Release<T>],
    add_on: &str,
    kubernetes: &str,
    chosen: bool,
) -> Result<&'a Release<T>, Stop> {
    let found = minor(kubernetes).and_then(|minor| {
        table.iter().find(|release| (release.kubernetes.0..=release.kubernetes.1).contains(&minor))
    });
    if let Some(release) = found.or_else(|| table.first().filter(|_| chosen)) {
        return Ok(release);
    }
    let first = table.iter().map(|release| release.kubernetes.0).min().unwrap_or_default();
    let last = table.iter().map(|release| release.kubernetes.1).max().unwrap_or_default();
    let message = [
        "no release of ",
        add_on,
        " is known for Kubernetes ",
        kubernetes,
        "; known are 1.",
        &first.to_string(),
        " to 1.",
        &last.to_string(),
        ". Set imageTag to choose one yourself",
    ];
    Err(Stop::unsupported("UnsupportedKubernetesVersion", message.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [Release<()>; 2] = [
        Release { kubernetes: (34, 36), version: "v2", with: () },
        Release { kubernetes: (32, 35), version: "v1", with: () },
    ];

    fn chosen(kubernetes: &str) -> Option<&'static str> {
        release(&TABLE, "it", kubernetes, false).ok().map(|release| release.version)
    }

    #[test]
    fn the_newest_release_that_knows_the_version_is_taken() {
        assert_eq!(chosen("v1.32.0"), Some("v1"));
        assert_eq!(chosen("v1.35.9"), Some("v2"));
        assert_eq!(chosen("1.36.3-eks-1"), Some("v2"));
    }

    #[test]
    fn an_unknown_version_is_unsupported_unless_a_tag_is_chosen() {
        for version in ["v1.31.9", "v1.37.0", "v2.36.0", "v1.3", "", "nonsense"] {
            assert!(matches!(release(&TABLE, "it", version, false), Err(Stop::Unsupported(_))), "{version}");
            assert_eq!(release(&TABLE, "it", version, true).ok().map(|release| release.version), Some("v2"));
        }
    }
}
