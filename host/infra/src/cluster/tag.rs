//! Tags: exactly those of Cluster API Provider AWS, which the cloud provider, storage drivers and users'
//! scripts read, and our id.

use crds::AWSCluster;
use crds::names::{
    CLUSTER_TAG_PREFIX, ID_TAG, INTERNAL_LOAD_BALANCER_TAG, NAME_TAG, OWNED, OWNER_TAG,
    PUBLIC_LOAD_BALANCER_TAG, ROLE_TAG, cloud_provider_tag,
};

use model::Tags;

/// Keys that begin so are AWS's: it refuses them of anybody else.
const RESERVED: &str = "aws:";

/// What everything of a cluster carries: the user's tags, whose it is, and what it is for.
pub(crate) fn common(cluster: &str, id: &str, aws_cluster: &AWSCluster, role: &str, name: &str) -> Tags {
    let mut res = aws_cluster.spec.additional_tags.clone();
    res.insert(format!("{CLUSTER_TAG_PREFIX}{cluster}"), OWNED.into());
    res.insert(ROLE_TAG.into(), role.into());
    res.insert(NAME_TAG.into(), name.into());
    // A cluster that somebody else looks after has none.
    if !id.is_empty() {
        res.insert(ID_TAG.into(), id.into());
        res.insert(OWNER_TAG.into(), model::owner(aws_cluster));
    }
    res
}

/// What a subnet carries besides: controllers in the cluster find subnets for load balancers by it.
pub(super) fn subnet(cluster: &str, public: bool) -> Tags {
    let for_load_balancers = if public { PUBLIC_LOAD_BALANCER_TAG } else { INTERNAL_LOAD_BALANCER_TAG };
    Tags::from([(cloud_provider_tag(cluster), OWNED.into()), (for_load_balancers.into(), "1".into())])
}

/// What a security group carries. The cloud provider's tag is on `lb` alone, also when the user wants it on
/// everything: the cloud provider opens ports in the one group of a machine that has it, and fails where
/// there are two.
pub(super) fn group(cluster: &str, role: &str, mut tags: Tags) -> Tags {
    let tag = cloud_provider_tag(cluster);
    match role {
        "lb" => drop(tags.insert(tag, OWNED.into())),
        _ => drop(tags.remove(&tag)),
    }
    tags
}

/// What users, and Cluster API Provider AWS for them, wrote down for one resource, without what only AWS
/// sets.
pub(super) fn given(tags: &Tags) -> Tags {
    let reserved = |key: &str| key.get(..RESERVED.len()).is_some_and(|it| it.eq_ignore_ascii_case(RESERVED));
    tags.iter().filter(|(key, _)| !reserved(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}
