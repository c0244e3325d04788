//! AWSCluster and AWSClusterTemplate: the infrastructure of one cluster.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lenient;
use crate::load_balancer::AWSLoadBalancerSpec;
use crate::metadata::{Tags, TemplateMetadata};
use crate::network::NetworkSpec;
use crate::status::{FailureDomain, Initialization};

/// What the cluster's infrastructure should be.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "AWSCluster",
    plural = "awsclusters",
    namespaced,
    status = "AWSClusterStatus",
    derive = "PartialEq",
    doc = "Infrastructure on AWS of one self-managed Kubernetes cluster: VPC, subnets, gateways, security groups and the load balancer of its API.",
    shortname = "awsc",
    category = "cluster-api",
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = r".metadata.labels.cluster\.x-k8s\.io/cluster-name",
        description = "Cluster that this infrastructure belongs to"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r".status.conditions[?(@.type=='Ready')].status",
        description = "Whether everything is as it should be"
    ),
    printcolumn(
        name = "Provisioned",
        type_ = "boolean",
        json_path = ".status.initialization.provisioned",
        description = "Whether machines can be made",
        priority = 1
    ),
    printcolumn(
        name = "VPC",
        type_ = "string",
        json_path = ".status.networkStatus.vpc.id",
        description = "VPC of the cluster"
    ),
    printcolumn(
        name = "Endpoint",
        type_ = "string",
        json_path = ".spec.controlPlaneEndpoint.host",
        description = "Host of the cluster's API"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r".status.conditions[?(@.type=='Ready')].reason",
        description = "Why it is ready or not"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r".status.conditions[?(@.type=='Ready')].message",
        description = "What is awaited",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct AWSClusterSpec {
    /// AWS region of the cluster, such as `us-east-1`. It cannot be changed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub region: String,
    /// AWS partition of the region, such as `aws-us-gov`. It follows from the region, and need not be said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub partition: String,
    /// The network of the cluster.
    #[serde(default)]
    pub network: NetworkSpec,
    /// Name of the EC2 key pair of machines that name none: a name, or empty for no key. `default` when
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub ssh_key_name: Option<String>,
    /// Where the cluster's API is reached. Set by this operator; it cannot be changed once set.
    #[serde(default, skip_serializing_if = "APIEndpoint::is_unset")]
    pub control_plane_endpoint: APIEndpoint,
    /// Tags of every AWS resource of the cluster, besides those that this operator sets.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub additional_tags: Tags,
    /// The load balancer in front of the API servers.
    #[serde(default)]
    pub control_plane_load_balancer: AWSLoadBalancerSpec,
    /// Name pattern of images for machines that name none; `{{.BaseOS}}` and `{{.K8sVersion}}` stand for the
    /// operating system and the Kubernetes version. `capa-ami-{{.BaseOS}}-?{{.K8sVersion}}-*` when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 255))]
    pub image_lookup_format: String,
    /// AWS account that owns the images to look up. The account that publishes CAPA's images when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub image_lookup_org: String,
    /// Operating system of the images to look up. `ubuntu-24.04` when empty.
    #[serde(rename = "imageLookupBaseOS", default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub image_lookup_base_os: String,
    /// Whose AWS credentials are used. Only the operator's own (`AWSClusterControllerIdentity`, `default`)
    /// can be.
    #[serde(default)]
    pub identity_ref: AWSIdentityReference,
    /// Who issues the tokens of the cluster's service accounts, so that IAM roles can trust them (IAM roles
    /// for service accounts). The same issuer must be the argument `service-account-issuer` of the cluster's
    /// API servers. When absent, add-ons with a `roleARN` use the issuer that the KubeadmControlPlane names,
    /// and nothing is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_issuer: Option<ServiceAccountIssuer>,
}

/// Who issues the tokens of service accounts. Exactly one of `url`, `publish` is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccountIssuer {
    /// An issuer that you publish yourself, such as `https://issuer.example.com/prod`: its discovery document
    /// and key set, and the IAM OIDC provider. They are looked at, and never changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 9, max = 255))]
    pub url: Option<String>,
    /// Have this operator publish the issuer: two public documents in an S3 bucket of yours, and the IAM OIDC
    /// provider. The issuer is then `https://<bucket>.s3.<region>.amazonaws.com/<prefix>`. Only the public
    /// half of the cluster's signing key is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish: Option<IssuerBucket>,
}

/// Where an issuer is published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuerBucket {
    /// Name of an S3 bucket in the region of the cluster. It must exist, and its policy must let everybody
    /// read the documents.
    #[schemars(length(min = 3, max = 63), regex(pattern = r"^[a-z0-9][a-z0-9-]*[a-z0-9]$"))]
    pub bucket: String,
    /// Begin of the documents' keys, without a slash at its ends, so that one bucket serves many clusters.
    /// Namespace and name of the Cluster, `<namespace>/<name>`, when absent; anything else has to end in
    /// `/<namespace>/<name>`, unless the issuer of this cluster is there already. After a change, the issuer
    /// there stays for a year, as tokens may last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$"))]
    pub prefix: Option<String>,
}

/// Host and port of an API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct APIEndpoint {
    /// Host name or address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub host: String,
    /// Port.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 65535))]
    pub port: i32,
}

impl APIEndpoint {
    /// True while there is no endpoint. An unset endpoint is never written: the contract knows only a whole
    /// one.
    pub fn is_unset(&self) -> bool {
        self.host.is_empty() && self.port == 0
    }
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// Whose AWS credentials are used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AWSIdentityReference {
    /// Kind of the identity.
    pub kind: AWSIdentityKind,
    /// Name of the identity.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

impl Default for AWSIdentityReference {
    fn default() -> Self {
        Self { kind: AWSIdentityKind::AWSClusterControllerIdentity, name: "default".into() }
    }
}

/// Kinds of identities that CAPA knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum AWSIdentityKind {
    AWSClusterControllerIdentity,
    AWSClusterRoleIdentity,
    AWSClusterStaticIdentity,
}

/// What was found and made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AWSClusterStatus {
    /// True when the infrastructure is there; the same as `initialization.provisioned`, kept for readers of
    /// the older contract.
    #[serde(default, deserialize_with = "lenient::value")]
    pub ready: bool,
    /// What Cluster API asks about initial provisioning.
    #[serde(default, deserialize_with = "lenient::value", skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// The network as it is in AWS.
    #[serde(default, deserialize_with = "lenient::value")]
    pub network_status: NetworkStatus,
    /// Availability zones that machines can be placed in.
    #[serde(default, deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub failure_domains: Vec<FailureDomain>,
    /// What is true of the cluster's infrastructure, and why.
    #[serde(default, deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub conditions: Vec<Condition>,
}

/// The network as it is in AWS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkStatus {
    /// The VPC.
    #[serde(deserialize_with = "lenient::value", skip_serializing_if = "Option::is_none")]
    pub vpc: Option<VPCStatus>,
    /// The subnets.
    #[serde(deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub subnets: Vec<SubnetStatus>,
    /// Security groups by role.
    #[serde(deserialize_with = "lenient::value", skip_serializing_if = "BTreeMap::is_empty")]
    pub security_groups: BTreeMap<String, SecurityGroupStatus>,
    /// The load balancer in front of the API servers.
    #[serde(deserialize_with = "lenient::value", skip_serializing_if = "LoadBalancerStatus::is_absent")]
    pub api_server_elb: LoadBalancerStatus,
    /// Public addresses of the NAT gateways.
    #[serde(
        rename = "natGatewaysIPs",
        deserialize_with = "lenient::list",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = 100))]
    pub nat_gateways_ips: Vec<String>,
}

/// The VPC of a cluster as it is in AWS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VPCStatus {
    /// Id in AWS.
    pub id: String,
    /// IPv4 addresses.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cidr_block: String,
}

/// A subnet of a cluster as it is in AWS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SubnetStatus {
    /// Id in AWS.
    pub id: String,
    /// Availability zone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub availability_zone: String,
    /// IPv4 addresses.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cidr_block: String,
    /// True for a subnet with a route to the internet gateway.
    pub is_public: bool,
}

/// A security group of a cluster as it is in AWS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SecurityGroupStatus {
    /// Id in AWS.
    pub id: String,
    /// Name in AWS.
    pub name: String,
}

/// The load balancer of the API as it is in AWS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerStatus {
    /// Name in AWS.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// ARN; classic load balancers have none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arn: String,
    /// Host name that clients use.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub dns_name: String,
}

impl LoadBalancerStatus {
    /// True while there is no load balancer.
    pub fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}

/// A template of AWSClusters, for ClusterClass.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "AWSClusterTemplate",
    plural = "awsclustertemplates",
    namespaced,
    derive = "PartialEq",
    doc = "Template that a ClusterClass makes AWSClusters from. Its spec cannot be changed.",
    shortname = "awsct",
    category = "cluster-api",
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AWSClusterTemplateSpec {
    /// The template itself.
    pub template: AWSClusterTemplateResource,
}

/// What AWSClusters are made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AWSClusterTemplateResource {
    /// Labels and annotations of the AWSClusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// Spec of the AWSClusters.
    pub spec: AWSClusterSpec,
}
