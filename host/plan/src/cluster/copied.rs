//! Recognizes an AWSCluster that was made by copying the manifest of another one, annotations included. Its record is that of the other:
//! nothing may be concluded from it, and nothing done with what it names.

use crds::AWSCluster;
use crds::names::ID_ANNOTATION;

use super::tag::owner;
use crate::Invalid;

/// Namespace and name of the AWSCluster that has the id of this one: of those that share an id, the one that was created first; of several
/// of the same second, the first by name. `None`: the id is its own.
pub fn copied_from<'a>(it: &AWSCluster, all: impl IntoIterator<Item = &'a AWSCluster>) -> Option<String> {
    let id = id(it)?;
    let created = |it: &AWSCluster| (it.metadata.creation_timestamp.as_ref().map(|it| it.0), owner(it));
    let own = created(it);
    let older = all.into_iter().filter(|other| self::id(other) == Some(id)).map(created).filter(|other| *other < own);
    older.min().map(|(_, name)| name)
}

/// Why nothing is done for a copy.
pub fn copied(original: &str) -> Invalid {
    let message = format!(
        "is that of AWSCluster {original}, from which this one was copied: nothing is done for it. Remove all annotations from it that begin \
         with cluster.kurator.dev/, and from the manifest that it comes from"
    );
    Invalid::new(format!("metadata.annotations[{ID_ANNOTATION}]"), message)
}

fn id(it: &AWSCluster) -> Option<&str> {
    it.metadata.annotations.as_ref()?.get(ID_ANNOTATION).map(String::as_str).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aws_cluster(namespace: &str, name: &str, id: Option<&str>, created: &str) -> AWSCluster {
        let annotations: std::collections::BTreeMap<&str, &str> = id.map(|id| (ID_ANNOTATION, id)).into_iter().collect();
        let metadata = serde_json::json!({"namespace": namespace, "name": name, "annotations": annotations, "creationTimestamp": created});
        let object = serde_json::json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
            "metadata": metadata, "spec": {"region": "us-east-1"},
        });
        serde_json::from_value(object).expect("an AWSCluster")
    }

    #[test]
    fn the_oldest_of_those_with_one_id_has_it() {
        let all = [
            aws_cluster("b", "prod", Some("1"), "2027-01-15T08:00:00Z"),
            aws_cluster("a", "copy", Some("1"), "2027-01-15T09:00:00Z"),
            aws_cluster("a", "twin", Some("1"), "2027-01-15T08:00:00Z"),
            aws_cluster("a", "other", Some("2"), "2027-01-15T07:00:00Z"),
            aws_cluster("a", "new", None, "2027-01-15T07:00:00Z"),
            aws_cluster("a", "newer", Some(""), "2027-01-15T08:00:00Z"),
        ];
        let from: Vec<Option<String>> = all.iter().map(|it| copied_from(it, &all)).collect();
        let twin = Some("a/twin".to_owned());
        assert_eq!(from, [twin.clone(), twin, None, None, None, None]);
    }
}
