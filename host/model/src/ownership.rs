//! Whose something in AWS is, by its tags.

use crds::AWSCluster;
use crds::names::{ID_TAG, OWNER_TAG};

use crate::Tags;

/// Whether something carries this random id of an AWSCluster, and no other owner's name. What was made before
/// owners were written says only the id.
pub fn is_marked(tags: &Tags, id: &str, owner: &str) -> bool {
    !id.is_empty()
        && tags.get(ID_TAG).is_some_and(|it| it == id)
        && tags.get(OWNER_TAG).is_none_or(|it| it == owner)
}

/// Whose things are, as their tag says it.
pub fn owner(aws_cluster: &AWSCluster) -> String {
    let part = |it: &Option<String>| it.clone().unwrap_or_default();
    format!("{}/{}", part(&aws_cluster.metadata.namespace), part(&aws_cluster.metadata.name))
}
