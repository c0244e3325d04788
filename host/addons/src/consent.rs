//! Annotations by which users consent to something of an add-on: entries `<module>@<digest>`, separated by
//! commas. An entry is removed when it was used.

/// The entries of an annotation: modules and digests.
pub fn entries(annotation: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
    annotation.unwrap_or_default().split(',').filter_map(|entry| entry.trim().split_once('@'))
}

/// The annotation without what was used; empty where nothing remains.
pub fn without(annotation: &str, module: &str, digest: &str) -> String {
    let used = format!("{module}@{digest}");
    let entries: Vec<&str> =
        annotation.split(',').map(str::trim).filter(|entry| !entry.is_empty() && *entry != used).collect();
    entries.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consent_is_used_up_by_what_it_named() {
        let annotation = "calico@sha256:2, aws-ebs-csi@sha256:5,";
        assert_eq!(
            entries(Some(annotation)).collect::<Vec<_>>(),
            [("calico", "sha256:2"), ("aws-ebs-csi", "sha256:5")]
        );
        assert_eq!(without(annotation, "calico", "sha256:2"), "aws-ebs-csi@sha256:5");
        assert_eq!(without(annotation, "calico", "sha256:1"), "calico@sha256:2,aws-ebs-csi@sha256:5");
        assert_eq!(without("calico@sha256:2", "calico", "sha256:2"), "");
        assert_eq!(entries(None).count(), 0);
    }
}
