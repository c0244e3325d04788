//! Which release goes with which Kubernetes minor version. The manager is only guaranteed to work with its
//! own minor version of Kubernetes, so there is no "close enough".

use plugin_sdk::Stop;

/// The newest release of each minor version, as of 2026-08.
const RELEASES: [(&str, &str); 5] =
    [("1.32", "v1.32.8"), ("1.33", "v1.33.4"), ("1.34", "v1.34.3"), ("1.35", "v1.35.2"), ("1.36", "v1.36.1")];

/// Version of the plugin: the newest release it knows.
pub const NEWEST: &str = "1.36.1";

/// The tag of the release for `kubernetes`, such as `v1.36.1` for `v1.36.3`.
pub fn tag(kubernetes: &str) -> Result<&'static str, Stop> {
    let mut parts = kubernetes.trim_start_matches('v').split('.');
    let minor = [parts.next().unwrap_or_default(), ".", parts.next().unwrap_or_default()].concat();
    RELEASES.iter().find(|(known, _)| *known == minor).map(|(_, tag)| *tag).ok_or_else(|| {
        let message = [
            "no release of the AWS cloud controller manager is known for Kubernetes ",
            kubernetes,
            "; known are 1.32 to 1.36. Set imageTag to choose one yourself",
        ];
        Stop::unsupported("UnsupportedKubernetesVersion", message.concat())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_that_of_the_same_minor_version() {
        assert_eq!(tag("v1.34.0").ok(), Some("v1.34.3"));
        assert_eq!(tag("1.36.3-eks-1").ok(), Some("v1.36.1"));
    }

    #[test]
    fn an_unknown_minor_version_is_unsupported() {
        for version in ["v1.31.9", "v1.37.0", "v2.36.0", "v1.3", "", "nonsense"] {
            assert!(matches!(tag(version), Err(Stop::Unsupported(_))), "{version}");
        }
    }

    #[test]
    fn the_plugin_is_as_new_as_the_newest_release() {
        assert_eq!(RELEASES.last().map(|(_, tag)| tag.trim_start_matches('v')), Some(NEWEST));
    }
}
