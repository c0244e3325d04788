//! ClusterIdentity an object is: its owner, as Cluster API writes it down.

use crds::cluster_api::Cluster;
use kube::ResourceExt;

use crate::management::{Cached, Watched};
use crate::object_name::ObjectName;

/// The owner of an object with this group and kind: by them alone, since Cluster API marks the controller for
/// some clusters only.
pub fn owner<K: Watched>(object: &Cached<K>, kind: &str) -> Option<ObjectName> {
    let group = |version: &str| version.split('/').next() == Some("cluster.x-k8s.io");
    let owner = object.owner_references().iter().find(|it| it.kind == kind && group(&it.api_version))?;
    Some(object.object_name().sibling(&owner.name))
}

/// A Cluster of which nothing but the name is left.
pub fn cluster_of_name(name: &ObjectName) -> Cluster {
    let mut cluster = Cluster::new(&name.name, Default::default());
    cluster.metadata.namespace = Some(name.namespace.clone());
    cluster
}
