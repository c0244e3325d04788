//! The settings of each slot of a ClusterPlugin, and of plugins of third parties. No setting holds the
//! version of an add-on: that comes with the plugin.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::amazon_vpc::AmazonVPCNetworking;
use super::calico::CalicoNetworking;
use super::controller::{Arguments, ContainerResources, LogLevel, NodeLabels};
use super::version::VersionPin;

/// What tells Kubernetes about AWS. Exactly one is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudProvider {
    /// The AWS cloud controller manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aws: Option<AWSCloudProvider>,
    /// A registered module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<Module>,
    /// None is installed; the user brings one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub none: Option<NoCloudProvider>,
}

impl Default for CloudProvider {
    fn default() -> Self {
        Self { aws: Some(AWSCloudProvider::default()), module: None, none: None }
    }
}

/// Settings of the AWS cloud controller manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AWSCloudProvider {
    /// Which version is wanted.
    #[serde(flatten)]
    pub pin: VersionPin,
    /// What its container asks for: 100m of processor time and 64Mi of memory when absent.
    #[serde(default, skip_serializing_if = "ContainerResources::is_unset")]
    pub resources: ContainerResources,
    /// Labels of the machines of the control plane that it runs on, all of them when absent; it acts with
    /// their role. It tolerates every taint. Where none has these labels, no new Node of the cluster gets
    /// ready.
    #[serde(default, skip_serializing_if = "NodeLabels::is_empty")]
    pub node_selector: NodeLabels,
    /// How much it says in its log. Info when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LogLevel>,
    /// Further arguments, by their names without hyphens in front, of these: concurrent-node-syncs,
    /// concurrent-service-syncs, kube-api-burst, kube-api-qps, min-resync-period, node-monitor-period,
    /// node-status-update-frequency, profiling.
    #[serde(default, skip_serializing_if = "Arguments::is_empty")]
    pub extra_args: Arguments,
    /// Registry and path in front of the image name `cloud-controller-manager`.
    /// `registry.k8s.io/provider-aws` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub image_registry: Option<String>,
    /// Tag of the image. When absent, the newest release known for the cluster's Kubernetes version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"))]
    pub image_tag: Option<String>,
}

/// No cloud provider is installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoCloudProvider {}

/// What connects Pods. Exactly one is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Networking {
    /// Calico, run by the Tigera operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calico: Option<CalicoNetworking>,
    /// The Amazon VPC CNI.
    #[serde(rename = "amazonVPC", default, skip_serializing_if = "Option::is_none")]
    pub amazon_vpc: Option<AmazonVPCNetworking>,
    /// A registered module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<Module>,
}

/// A registered module in place of a built-in plugin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Module {
    /// Name of the PluginModule. An administrator registers it; its `allowedNamespaces` has to allow this
    /// namespace.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Which version is wanted.
    #[serde(flatten)]
    pub pin: VersionPin,
    /// Configuration of the plugin, which checks it itself.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "configuration")]
    pub config: Map<String, Value>,
}

/// A plugin of a third party.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plugin {
    /// Name of the add-on in this ClusterPlugin. It cannot be that of a built-in plugin, nor that of a
    /// module in a slot.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Name of the PluginModule. An administrator registers it; its `allowedNamespaces` has to allow this
    /// namespace.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub module: String,
    /// Which version is wanted.
    #[serde(flatten)]
    pub pin: VersionPin,
    /// Initialized: as soon as the API answers. Ready: when a control plane machine is ready.
    #[serde(default)]
    pub stage: Stage,
    /// What must be running before: slots (`cloudProvider`, `networking`, `storage`, `ingress`) and names of
    /// plugins of this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 63)))]
    pub after: Vec<String>,
    /// Configuration of the plugin, which checks it itself.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "configuration")]
    pub config: Map<String, Value>,
}

/// When a plugin may be installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Stage {
    Initialized,
    #[default]
    Ready,
}

/// Any object. It is kept as it is; the plugin checks it.
fn configuration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
