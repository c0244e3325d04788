//! ClusterPlugin: which add-ons a cluster gets.

use kube::CustomResource;
use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod amazon_vpc;
mod approval;
mod calico;
mod controller;
mod ebs;
mod efs;
mod ingress;
mod slots;
mod status;
mod storage;
mod storage_class;
mod version;

pub use amazon_vpc::{AmazonVPCNetworking, PodSubnet};
pub use approval::{Approval, PluginApproval};
pub use calico::{CalicoEncapsulation, CalicoNetworking, CalicoSourceDestinationCheck};
pub use controller::{
    Arguments, ContainerResources, ControllerSettings, ImagePullSecret, LogLevel, NodeLabels, TaintEffect,
    Toleration, TolerationOperator,
};
pub use ebs::{
    EBSFileSystemType, EBSMoreStorageClass, EBSStorage, EBSStorageClass, EBSVolumeType, EBSVolumes,
};
pub use efs::{EFSStorage, EFSStorageClass};
pub use ingress::{AWSLoadBalancerController, ControllerIngressClass, Ingress, IngressScheme, TargetType};
pub use slots::{AWSCloudProvider, CloudProvider, Module, Networking, NoCloudProvider, Plugin, Stage};
pub use status::{AvailablePlugin, ClusterPluginStatus, FailedUpgrade, PluginPhase, PluginStatus};
pub use storage::Storage;
pub use storage_class::{DefaultClass, ReclaimPolicy};
pub use version::VersionPin;

/// Which add-ons a cluster gets.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.kurator.dev",
    version = "v1alpha1",
    kind = "ClusterPlugin",
    plural = "clusterplugins",
    namespaced,
    status = "ClusterPluginStatus",
    derive = "PartialEq",
    doc = "The add-ons of one cluster: cloud provider, networking, storage and ingress. There is at most one for a cluster.",
    shortname = "cplug",
    category = "cluster-api",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".spec.clusterName",
        description = "Cluster that gets the add-ons"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r".status.conditions[?(@.type=='Ready')].status",
        description = "Whether everything is as it should be"
    ),
    printcolumn(
        name = "Cloud Provider",
        type_ = "string",
        json_path = r".status.conditions[?(@.type=='CloudProviderReady')].status",
        description = "Whether the cloud provider works"
    ),
    printcolumn(
        name = "Networking",
        type_ = "string",
        json_path = r".status.conditions[?(@.type=='NetworkingReady')].status",
        description = "Whether networking works"
    ),
    printcolumn(
        name = "Storage",
        type_ = "string",
        json_path = r".status.conditions[?(@.type=='StorageReady')].status",
        description = "Whether volumes can be made"
    ),
    printcolumn(
        name = "Ingress",
        type_ = "string",
        json_path = r".status.conditions[?(@.type=='IngressReady')].status",
        description = "Whether Ingresses are served"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r".status.conditions[?(@.type=='Ready')].reason",
        description = "Why it is ready or not"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Last Repair",
        type_ = "date",
        json_path = ".status.lastRepairTime",
        description = "How long ago something that somebody changed in the cluster was last set back",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r".status.conditions[?(@.type=='Ready')].message",
        description = "What is awaited",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPluginSpec {
    /// Name of the Cluster of the same namespace that gets the add-ons. It need not exist yet. It cannot be
    /// changed.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// What tells Kubernetes about AWS: which instance a Node is, and load balancers of Services. Without one
    /// no Node is ever complete; `none: {}` is for those who install one themselves. One of `aws`, `module`,
    /// `none`; `aws: {}` when absent.
    #[serde(default)]
    pub cloud_provider: CloudProvider,
    /// What connects Pods: exactly one of `calico`, `amazonVPC`, `module`. When absent, it is left to the
    /// user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networking: Option<Networking>,
    /// What makes volumes: any of `ebs`, `efs`, `module`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// What serves Ingresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Ingress>,
    /// Plugins of third parties, which an administrator registered as PluginModules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub plugins: Vec<Plugin>,
    /// Registry that has the images of all add-ons, with a path if need be and the paths of their public
    /// registries below it: `<registry>/eks/aws-load-balancer-controller`,
    /// `<registry>/ebs-csi-driver/aws-ebs-csi-driver` and so on. An add-on that has an `imageRegistry` of its
    /// own takes that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 240), regex(pattern = r"^[A-Za-z0-9._:-]+(/[A-Za-z0-9._-]+)*$"))]
    pub image_registry: Option<String>,
    /// Secrets with which the nodes pull the images of all add-ons. They are the user's to make, in the
    /// namespace of the Pods: `kube-system`, and `tigera-operator` for Calico.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub image_pull_secrets: Vec<ImagePullSecret>,
    /// What to do with fields of objects in the cluster that another manager owns when they are first
    /// applied: leave them and say so, or take them. Fields that somebody takes later are subject to `drift`.
    #[serde(default)]
    pub conflicts: Conflicts,
    /// What to do when somebody changes or deletes what an add-on applied in the cluster. Correct sets it
    /// back, within ten minutes, whoever changed it; what an autoscaler sets through the `scale` subresource
    /// stays, and who changes the same again and again is left alone after three repairs within an hour,
    /// which a condition says. Warn only says what was changed. "Off", in quotes because YAML takes it for
    /// false without, does not look.
    #[serde(default)]
    pub drift: Drift,
    /// What to do when the operator brings another version, or another build, of an add-on than the one that
    /// is installed. Manual leaves it until you consent, by its `version` or by the annotation
    /// `cluster.kurator.dev/upgrade`; until then it is served by what installed it. Automatic upgrades it.
    #[serde(default)]
    pub upgrade_policy: UpgradePolicy,
    /// How long an upgrade of an add-on may take until all of it is there, such as `30m` or `1h30m`. One that
    /// takes longer is undone: what was installed before is put back, and it is not tried again until you ask
    /// for it by the annotation `cluster.kurator.dev/upgrade`. CustomResourceDefinitions stay as the upgrade
    /// made them. While the cluster does not answer, the time does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 32), extend("default" = "30m"))]
    pub upgrade_timeout: Option<Duration>,
    /// Whether somebody has to approve of a plan before it is carried out. Manual makes a new or changed plan
    /// of an add-on wait, whatever changed it; `status.plugins[].approval` has what it would change and the
    /// digest that the annotation `cluster.kurator.dev/approve` has to name. Meanwhile what was approved before
    /// is kept as it is, and repaired. Who may approve, or set Automatic again, is who has the verb `approve`
    /// on clusterplugins. Uninstalling needs no approval.
    #[serde(default)]
    pub approval: Approval,
    /// What happens when the cluster or this object is deleted.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub deletion: Deletion,
}

/// What to do with fields that another manager owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Conflicts {
    #[default]
    Refuse,
    Force,
}

/// What to do when somebody changes what an add-on applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Drift {
    #[default]
    Correct,
    Warn,
    Off,
}

/// What to do when the operator brings another version of an add-on than the one that is installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum UpgradePolicy {
    #[default]
    Manual,
    Automatic,
}

/// What happens when the cluster, or its ClusterPlugin, is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// How long a deleted cluster's API is given to remove load balancers and add-ons before its machines are
    /// deleted nevertheless, such as `15m` or `1h30m`.
    #[serde(default = "fifteen_minutes")]
    #[schemars(with = "String", length(max = 32), extend("default" = "15m"))]
    pub timeout: Duration,
    /// What becomes of volumes that the cluster made: Retain keeps and reports them, Delete deletes them and
    /// their data.
    #[serde(default)]
    pub volumes: Volumes,
    /// What becomes of the add-ons when this object is deleted and the cluster lives on.
    #[serde(default)]
    pub on_plugin_delete: OnPluginDelete,
}

impl Default for Deletion {
    fn default() -> Self {
        Self {
            timeout: fifteen_minutes(),
            volumes: Volumes::default(),
            on_plugin_delete: OnPluginDelete::default(),
        }
    }
}

impl ClusterPluginSpec {
    /// How long an upgrade of an add-on may take.
    pub fn upgrade_timeout(&self) -> std::time::Duration {
        self.upgrade_timeout.map_or(std::time::Duration::from_secs(30 * 60), Into::into)
    }
}

fn fifteen_minutes() -> Duration {
    std::time::Duration::from_secs(15 * 60).into()
}

/// What becomes of the volumes of a deleted cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Volumes {
    #[default]
    Retain,
    Delete,
}

/// What becomes of add-ons whose ClusterPlugin is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum OnPluginDelete {
    #[default]
    Uninstall,
    Keep,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_read_as_kubernetes_durations_are() {
        let seconds = |text: &str| {
            let deletion: Deletion =
                serde_json::from_value(serde_json::json!({"timeout": text})).expect("a duration reads");
            std::time::Duration::from(deletion.timeout).as_secs()
        };
        assert_eq!(seconds("15m"), 900);
        assert_eq!(seconds("1h30m"), 5400);
        assert_eq!(Deletion::default().timeout, std::time::Duration::from_secs(900));
    }

    #[test]
    fn the_cloud_provider_of_aws_is_the_default_and_none_can_be_chosen() {
        let spec: ClusterPluginSpec = serde_json::from_str(r#"{"clusterName": "prod"}"#).unwrap();
        assert!(spec.cloud_provider.aws.is_some());
        let spec: ClusterPluginSpec =
            serde_json::from_str(r#"{"clusterName": "prod", "cloudProvider": {"none": {}}}"#).unwrap();
        assert!(spec.cloud_provider.aws.is_none());
    }
}
