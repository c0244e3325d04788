//! The kinds of objects that are watched and cached.

use std::fmt;

use crds::cluster_api::{Cluster, KubeadmControlPlane, Machine};
use crds::names::CLUSTER_NAME_LABEL;
use crds::{AWSCluster, AWSMachine, AWSMachineTemplate, ClusterPlugin, PluginModule};
use kube::api::ObjectMeta;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::cache::Cache;
use super::{Amend, Error, Management, name_of, read, watch};
use crate::object_name::ObjectName;

/// A kind that is watched.
pub trait Watched:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static
{
    const KIND: Kind;

    /// Whether its objects are in no namespace. An operator that looks after one namespace may not read them:
    /// then there are none for it.
    const IS_CLUSTER_SCOPED: bool = false;

    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn cache(caches: &Caches) -> &Cache<Self>;

    /// Whether two versions of an object that others manage differ in nothing that is read of them. Cluster
    /// API writes many of them in a row while a cluster comes up, and a version without a change triggers
    /// nothing. `None`: the kind is ours, every version counts.
    const SAME_FOR_US: Option<fn(&Self, &Self) -> bool>;

    /// The Cluster that it belongs to, as far as the object says.
    fn cluster(&self) -> Option<ObjectName>;
}

macro_rules! watched {
    ($($Kind:ident, $field:ident, $cluster:expr, $same:expr $(, $scope:expr)?;)*) => {
        /// The kinds that are watched.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind { $($Kind,)* }

        impl Kind {
            pub fn as_str(self) -> &'static str {
                match self { $(Kind::$Kind => stringify!($Kind),)* }
            }
        }

        #[derive(Default)]
        pub(super) struct Caches { $($field: Cache<$Kind>,)* }

        impl Caches {
            pub(super) fn are_ready(&self) -> bool {
                $(self.$field.is_ready())&&*
            }
        }

        $(impl Watched for $Kind {
            const KIND: Kind = Kind::$Kind;
            $(const IS_CLUSTER_SCOPED: bool = $scope;)?
            const SAME_FOR_US: Option<fn(&Self, &Self) -> bool> = $same;

            #[allow(private_interfaces)]
            fn cache(caches: &Caches) -> &Cache<Self> {
                &caches.$field
            }

            fn cluster(&self) -> Option<ObjectName> {
                let name: Option<String> = $cluster(self);
                name.map(|it| name_of(self).sibling(it))
            }
        })*

        pub(super) fn watch_all(management: &Management) {
            $(tokio::spawn(watch::watch::<$Kind>(management.clone()));)*
        }

        /// Reads all kinds once in place of watching them.
        pub(super) async fn read_all(
            management: &Management,
            namespace: &str,
            amend: Amend<'_>,
        ) -> Result<(), Error> {
            $(read::read::<$Kind>(management, namespace, amend).await?;)*
            Ok(())
        }
    };
}

watched! {
    AWSCluster, aws_clusters, owner_cluster, None;
    AWSMachine, aws_machines, labelled_cluster, None;
    AWSMachineTemplate, aws_machine_templates, owner_cluster, None;
    Cluster, clusters, |it: &Cluster| Some(it.name_any()), Some(same_cluster);
    Machine, machines, |it: &Machine| Some(it.spec.cluster_name.clone()), Some(same_machine);
    KubeadmControlPlane, control_planes, labelled_cluster, Some(same_control_plane);
    ClusterPlugin, cluster_plugins, |it: &ClusterPlugin| Some(it.spec.cluster_name.clone()), None;
    PluginModule, plugin_modules, |_: &PluginModule| None, None, true;
}

fn same_cluster(one: &Cluster, other: &Cluster) -> bool {
    one.spec == other.spec && one.status == other.status && same_metadata(&one.metadata, &other.metadata)
}

/// Only the Node, its kubelet's version and its health are read of the status.
fn same_machine(one: &Machine, other: &Machine) -> bool {
    let node = |machine: &Machine| {
        machine.status.as_ref().map(|it| (it.node_ref.clone(), it.node_info.clone())).unwrap_or_default()
    };
    let health = |machine: &Machine| {
        let conditions = machine.status.as_ref().map(|it| it.conditions.iter()).into_iter().flatten();
        conditions.filter(|it| it.type_ == "NodeHealthy").cloned().collect::<Vec<_>>()
    };
    one.spec == other.spec
        && node(one) == node(other)
        && health(one) == health(other)
        && same_metadata(&one.metadata, &other.metadata)
}

fn same_control_plane(one: &KubeadmControlPlane, other: &KubeadmControlPlane) -> bool {
    one.spec == other.spec && one.status == other.status && same_metadata(&one.metadata, &other.metadata)
}

fn same_metadata(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    let read = |it: &ObjectMeta| ObjectMeta { resource_version: None, generation: None, ..it.clone() };
    read(one) == read(other)
}

/// By group and kind, never by version or by who is the controller: Cluster API sets the latter for some
/// clusters only.
fn owner_cluster(object: &impl ResourceExt) -> Option<String> {
    object
        .owner_references()
        .iter()
        .find(|it| it.kind == "Cluster" && it.api_version.split('/').next() == Some("cluster.x-k8s.io"))
        .map(|it| it.name.clone())
}

fn labelled_cluster(object: &impl ResourceExt) -> Option<String> {
    object.labels().get(CLUSTER_NAME_LABEL).cloned().or_else(|| owner_cluster(object))
}
