//! PluginModule: a plugin that an administrator registers, where it comes from and what it may do.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lenient;

mod grants;

pub use grants::{
    CertificateGrant, Grants, HostPathGrant, LimitGrants, MachineRole, ObjectGrant, PodGrants, QueryGrant,
    Right, RuleProtocol, SecurityGroupRuleGrant, TakeOver,
};

/// A plugin of a third party: where its component comes from, and what it may do in clusters.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.kurator.dev",
    version = "v1alpha1",
    kind = "PluginModule",
    plural = "pluginmodules",
    status = "PluginModuleStatus",
    derive = "PartialEq",
    doc = "A plugin that an administrator registers: where its component comes from, and what it may do in the clusters that use it. ClusterPlugins of allowed namespaces select it by name. What it installed stays when this object is deleted, and can be uninstalled.",
    shortname = "pmod",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r".status.operators[0].conditions[?(@.type=='Ready')].status",
        description = "Whether its component can be used"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".status.operators[0].version",
        description = "Version of the plugin"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r".status.operators[0].conditions[?(@.type=='Ready')].reason",
        description = "Why it is ready or not"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r".status.operators[0].conditions[?(@.type=='Ready')].message",
        description = "What is awaited, or what to do",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct PluginModuleSpec {
    /// Where the component comes from. Exactly one of `oci`, `configMap`; neither for an object that has the name
    /// of a built-in plugin.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub source: ModuleSource,
    /// How it is verified who made the component, beside its digest. Without it, the digest alone counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verification>,
    /// Whose ClusterPlugins may select the module: those of namespaces with certain labels; `{}` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_namespaces: Option<ModuleNamespaces>,
    /// What the plugin may do. What is not granted is denied: `cluster-operator` refuses a plan with anything
    /// else as a whole and names every grant that it would need. An object that has the name of a built-in
    /// plugin can only narrow what that one may do.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub grants: Grants,
}

/// Where a component comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleSource {
    /// A registry of OCI artifacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<OCISource>,
    /// A ConfigMap of the management cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSource>,
}

/// An artifact in a registry, in the layout of CNCF's Wasm working group (a layer `application/wasm`) or in
/// the older one (`application/vnd.wasm.content.layer.v1+wasm`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OCISource {
    /// Registry and path, without tag or digest, such as `registry.example.com/plugins/metrics`.
    #[schemars(
        length(min = 1, max = 255),
        regex(pattern = r"^[a-z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$")
    )]
    pub repository: String,
    /// Digest of the artifact's manifest, `sha256:` and 64 hexadecimal digits, as it is printed when the artifact
    /// is pushed.
    #[schemars(length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// Secret of type kubernetes.io/dockerconfigjson with which the registry is asked. Anonymously when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret: Option<PullSecret>,
    /// Certificates (PEM) of the authorities that vouch for the registry, in place of the public ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 65536))]
    pub ca_bundle: Option<String>,
    /// Whether the registry is asked without TLS. The digest says what is taken nevertheless; credentials
    /// can be read on the way.
    #[serde(rename = "plainHTTP", default, skip_serializing_if = "is_false")]
    pub plain_http: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A Secret, by its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullSecret {
    /// Its namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A component in the `binaryData` of a ConfigMap, which holds up to about 1 MiB.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSource {
    /// Its namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in its `binaryData`. `plugin.wasm` when absent.
    #[serde(default = "plugin_wasm")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
    /// Hash of the component, `sha256:` and 64 hexadecimal digits.
    #[schemars(length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
}

fn plugin_wasm() -> String {
    "plugin.wasm".to_owned()
}

/// How it is verified who made a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// A signature by cosign, beside the artifact in its registry: a signature tag, or a bundle found as a
    /// referrer. Without a valid one the component is not used. Only for `source.oci`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cosign: Option<Cosign>,
}

/// A signature by cosign.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cosign {
    /// Public key (PEM) of whoever signed it, as in `cosign.pub`. No transparency log is asked.
    #[schemars(length(min = 1, max = 8192))]
    pub public_key: String,
}

/// Whose ClusterPlugins may select a module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleNamespaces {
    /// Labels of the namespaces. All of them when absent or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// What operators say of the module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginModuleStatus {
    /// What each operator says that shares the module. Each writes its own entry alone.
    #[serde(default, deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub operators: Vec<ModuleOperatorStatus>,
}

/// What one operator says of a module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleOperatorStatus {
    /// Which operator: the namespace that it runs in.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The generation of the spec that this is about.
    #[serde(default)]
    pub observed_generation: i64,
    /// The digest of the source that serves: that of the spec once it could be used, the one before until
    /// then.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub source_digest: String,
    /// Hash of the component that serves, `sha256:...`, as it is in ClusterPlugins.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub digest: String,
    /// What the plugin calls itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub plugin: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub version: String,
    /// The slot that it is for: `cloud-provider`, `networking`, `storage`, `ingress` or `other`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub category: String,
    /// The contract that it speaks, such as `kurator:cluster-plugin@0.1.0`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub contract: String,
    /// JSON Schema of its configuration, as text; absent where it is longer than 32 KiB.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32768))]
    pub config_schema: String,
    /// What it asks for: step kinds and facts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 253)))]
    pub requires: Vec<String>,
    /// What it asks for and is not granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 1024)))]
    pub not_granted: Vec<String>,
    /// Whether it can be used, and why not.
    #[serde(default, deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub conditions: Vec<Condition>,
}
