//! Recognizes an AWSCluster that was made by copying the manifest of another one, annotations included. Its
//! record is that of the other: nothing may be concluded from it, and nothing done with what it names.

use std::collections::BTreeSet;

use crds::AWSCluster;
use crds::names::{
    ANNOTATION_PREFIX, COPIED_FROM_ANNOTATION, FORCE_DELETE_ANNOTATION, ID_ANNOTATION, ID_TAG, OWNER_TAG,
};
use serde_json::{Map, Value, json};

use model::{Invalid, Snapshot, Tags, owner};

/// Namespace and name of the AWSCluster that has the id of this one. Whom things in AWS with that id were
/// made for has it, where they say so and it is there; else, of those that share the id, the one that was
/// created first, and of several of the same second, the first by name. `None`: the id is its own.
pub fn copied_from<'a>(
    aws_cluster: &AWSCluster,
    all: impl IntoIterator<Item = &'a AWSCluster>,
    snapshot: Option<&Snapshot>,
) -> Option<String> {
    let id = id(aws_cluster)?;
    let created = |it: &AWSCluster| (it.metadata.creation_timestamp.as_ref().map(|it| it.0), owner(it));
    let own = created(aws_cluster);
    let others: Vec<_> = all
        .into_iter()
        .filter(|other| self::id(other) == Some(id))
        .map(created)
        .filter(|other| other.1 != own.1)
        .collect();
    match made_for(id, snapshot).filter(|_| !others.is_empty()) {
        Some(whose) if whose == own.1 => None,
        Some(whose) if others.iter().any(|it| it.1 == whose) => Some(whose),
        _ => others.into_iter().filter(|other| *other < own).min().map(|(_, name)| name),
    }
}

/// Whom things in AWS with this id were made for, if all say the same.
fn made_for(id: &str, snapshot: Option<&Snapshot>) -> Option<String> {
    let snapshot = snapshot?;
    let of =
        |tags: &Tags| tags.get(OWNER_TAG).filter(|_| tags.get(ID_TAG).is_some_and(|it| it == id)).cloned();
    let vpcs = snapshot.vpcs.iter().filter_map(|it| of(&it.tags));
    let mut owners: BTreeSet<String> =
        vpcs.chain(snapshot.security_groups.iter().filter_map(|it| of(&it.tags))).collect();
    owners.pop_first().filter(|_| owners.is_empty())
}

/// What takes off a copy what it has of the original, so that it becomes a cluster of its own; `None` where
/// it cannot: its endpoint is the original's too and cannot be taken off, or somebody put the id back after
/// it was taken off once.
pub fn dropped(aws_cluster: &AWSCluster, original: &str) -> Option<Value> {
    let annotations = aws_cluster.metadata.annotations.as_ref()?;
    if annotations.contains_key(COPIED_FROM_ANNOTATION) || !aws_cluster.spec.control_plane_endpoint.is_unset()
    {
        return None;
    }
    let ours = annotations
        .keys()
        .filter(|key| key.starts_with(ANNOTATION_PREFIX) && *key != FORCE_DELETE_ANNOTATION);
    let mut patch: Map<String, Value> = ours.map(|key| (key.clone(), Value::Null)).collect();
    patch.insert(COPIED_FROM_ANNOTATION.to_owned(), json!(original));
    Some(json!({"metadata": {"annotations": patch}}))
}

/// What is said of a copy that was made a cluster of its own.
pub fn dropped_message(original: &str) -> String {
    format!(
        "annotations that begin with {ANNOTATION_PREFIX} were those of AWSCluster {original}, from which this one was copied, and were taken off: it \
         gets a network of its own; remove them from the manifest that it comes from"
    )
}

/// Why nothing is done for a copy.
pub fn copied(original: &str) -> Invalid {
    let message = format!(
        "is that of AWSCluster {original}, from which this one was copied: nothing is done for it. Delete it, and create it without the annotations \
         that begin with {ANNOTATION_PREFIX} and without spec.controlPlaneEndpoint"
    );
    Invalid::new(format!("metadata.annotations[{ID_ANNOTATION}]"), message)
}

fn id(aws_cluster: &AWSCluster) -> Option<&str> {
    aws_cluster
        .metadata
        .annotations
        .as_ref()?
        .get(ID_ANNOTATION)
        .map(String::as_str)
        .filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{FoundVpc, State};

    fn aws_cluster(namespace: &str, name: &str, id: Option<&str>, created: &str) -> AWSCluster {
        let annotations: std::collections::BTreeMap<&str, &str> =
            id.map(|id| (ID_ANNOTATION, id)).into_iter().collect();
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
        let from: Vec<Option<String>> = all.iter().map(|it| copied_from(it, &all, None)).collect();
        let twin = Some("a/twin".to_owned());
        assert_eq!(from, [twin.clone(), twin, None, None, None, None]);
    }

    #[test]
    fn whom_things_were_made_for_has_the_id_however_young_it_is() {
        let restored = aws_cluster("a", "prod", Some("1"), "2027-01-15T09:00:00Z");
        let copy = aws_cluster("b", "prod", Some("1"), "2027-01-15T08:00:00Z");
        let all = [restored.clone(), copy.clone()];
        let vpc = |owner: &str| FoundVpc {
            id: format!("vpc-{owner}"),
            cidr: String::new(),
            state: State::Ready,
            dns_hostnames: None,
            tags: [(ID_TAG.to_owned(), "1".to_owned()), (OWNER_TAG.to_owned(), owner.to_owned())].into(),
        };
        let of = |it: &AWSCluster, owners: &[&str]| {
            let vpcs = owners.iter().map(|it| vpc(it)).collect::<Vec<_>>().into();
            copied_from(it, &all, Some(&Snapshot { vpcs, ..Snapshot::default() }))
        };
        assert_eq!((of(&restored, &["a/prod"]), of(&copy, &["a/prod"])), (None, Some("a/prod".to_owned())));
        for unclear in [&[][..], &["c/prod"], &["a/prod", "b/prod"]] {
            assert_eq!(
                (of(&restored, unclear), of(&copy, unclear)),
                (Some("b/prod".to_owned()), None),
                "{unclear:?}"
            );
        }
        assert_eq!(
            copied_from(
                &restored,
                [&restored],
                Some(&Snapshot { vpcs: vec![vpc("b/prod")].into(), ..Snapshot::default() })
            ),
            None
        );
    }

    #[test]
    fn a_copy_becomes_a_cluster_of_its_own_once_and_only_where_it_can() {
        let mut copy = aws_cluster("a", "copy", Some("1"), "2027-01-15T09:00:00Z");
        let annotations = copy.metadata.annotations.get_or_insert_default();
        annotations.insert("cluster.kurator.dev/recorded".into(), "{}".into());
        annotations.insert("team".into(), "a".into());
        annotations.insert("cluster.kurator.dev/adopt-from".into(), "c/prod".into());
        annotations.insert(FORCE_DELETE_ANNOTATION.into(), String::new());
        let expected = json!({"metadata": {"annotations": {
            "cluster.kurator.dev/adopt-from": null, "cluster.kurator.dev/id": null, "cluster.kurator.dev/recorded": null, "cluster.kurator.dev/copied-from": "b/prod"}}});
        assert_eq!(dropped(&copy, "b/prod"), Some(expected));
        let mut with_endpoint = copy.clone();
        with_endpoint.spec.control_plane_endpoint =
            serde_json::from_value(json!({"host": "api.example.com", "port": 6443})).expect("an endpoint");
        assert_eq!(dropped(&with_endpoint, "b/prod"), None);
        copy.metadata
            .annotations
            .get_or_insert_default()
            .insert(COPIED_FROM_ANNOTATION.into(), "b/prod".into());
        assert_eq!(dropped(&copy, "b/prod"), None, "it was put back");
    }
}
