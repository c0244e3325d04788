//! AWSClusterControllerIdentity: the operator's own AWS identity as an object, which manifests of CAPA bring
//! along. Nothing of it is read, and it never holds credentials.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who may use the identity.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "AWSClusterControllerIdentity",
    plural = "awsclustercontrolleridentities",
    derive = "PartialEq",
    doc = "The operator's own AWS identity, which spec.identityRef of an AWSCluster names. It is accepted so that manifests of CAPA apply, and has no effect: an AWSCluster needs none, and may use the identity in every namespace that the operator looks after (its option --namespace). One that restricts namespaces is refused, since nothing would restrict them.",
    shortname = "awsci",
    category = "cluster-api",
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AWSClusterControllerIdentitySpec {
    /// Namespaces whose AWSClusters may use the identity: `{}`, every namespace. Anything else is refused;
    /// run the operator with `--namespace` to restrict it to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_namespaces: Option<AllowedNamespaces>,
}

/// Namespaces, by name or by label. Both are read only to be refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedNamespaces {
    /// Names of namespaces. Not supported by cluster-operator: run the operator with `--namespace` to
    /// restrict it to one namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<String>,
    /// Labels of namespaces. Not supported by cluster-operator: run the operator with `--namespace` to
    /// restrict it to one namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}
