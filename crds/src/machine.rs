//! AWSMachine and AWSMachineTemplate: the EC2 instance of one machine.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::instance::{AMIReference, AWSResourceReference, CloudInit, InstanceMetadataOptions, Volume};
use crate::lenient;
use crate::metadata::{Tags, TemplateMetadata};
use crate::status::{Initialization, MachineAddress};

/// What the instance should be. Only `providerID`, `instanceID`, `additionalTags`,
/// `additionalSecurityGroups`, `cloudInit.secretPrefix` and `cloudInit.secretCount` can be changed; anything
/// else is changed by a new machine.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "AWSMachine",
    plural = "awsmachines",
    namespaced,
    status = "AWSMachineStatus",
    derive = "PartialEq",
    doc = "EC2 instance of one machine of a cluster.",
    shortname = "awsm",
    category = "cluster-api",
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = r".metadata.labels.cluster\.x-k8s\.io/cluster-name",
        description = "Cluster that the machine belongs to"
    ),
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".status.instanceState",
        description = "State of the EC2 instance"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r".status.conditions[?(@.type=='Ready')].status",
        description = "Whether everything is as it should be"
    ),
    printcolumn(
        name = "Instance ID",
        type_ = "string",
        json_path = ".spec.instanceID",
        description = "Id of the EC2 instance"
    ),
    printcolumn(
        name = "Machine",
        type_ = "string",
        json_path = r".metadata.ownerReferences[?(@.kind=='Machine')].name",
        description = "Machine that owns this object"
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
pub struct AWSMachineSpec {
    /// Name of the machine for Kubernetes, `aws:///ZONE/INSTANCE`. Set by this operator.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub provider_id: Option<String>,
    /// Id of the EC2 instance. Set by this operator.
    #[serde(rename = "instanceID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub instance_id: Option<String>,
    /// Type of the instance, such as `t3.large`.
    #[schemars(length(min = 2, max = 64))]
    pub instance_type: String,
    /// Image of the instance.
    #[serde(default, skip_serializing_if = "AMIReference::is_unset")]
    pub ami: AMIReference,
    /// Name pattern of the image when none is given; the cluster's when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 255))]
    pub image_lookup_format: String,
    /// AWS account that owns the image when none is given; the cluster's when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub image_lookup_org: String,
    /// Operating system of the image when none is given; the cluster's when empty.
    #[serde(rename = "imageLookupBaseOS", default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub image_lookup_base_os: String,
    /// Name of the IAM instance profile.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub iam_instance_profile: String,
    /// Whether the instance gets a public address and lies in a public subnet.
    #[serde(rename = "publicIP", default, skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<bool>,
    /// Subnet of the instance. When absent, a private one of the machine's failure domain (a public one with
    /// `publicIP`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<AWSResourceReference>,
    /// Security groups besides those of the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub additional_security_groups: Vec<AWSResourceReference>,
    /// Name of the EC2 key pair: a name, or empty for no key. The cluster's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub ssh_key_name: Option<String>,
    /// The root volume. The image's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<Volume>,
    /// Further volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 30))]
    pub non_root_volumes: Vec<Volume>,
    /// Tags of the instance, its volumes and network interfaces, besides those that this operator sets. They
    /// win over the cluster's.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub additional_tags: Tags,
    /// How bootstrap data reaches the instance.
    #[serde(default)]
    pub cloud_init: CloudInit,
    /// Whether user data that holds bootstrap data is left uncompressed. Compressed with gzip when absent.
    /// What is in Secrets Manager is always compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncompressed_user_data: Option<bool>,
    /// Options of the instance metadata service.
    #[serde(default)]
    pub instance_metadata_options: InstanceMetadataOptions,
}

/// What was found and made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AWSMachineStatus {
    /// True while the instance runs; kept for readers of the older contract.
    #[serde(default, deserialize_with = "lenient::value")]
    pub ready: bool,
    /// What Cluster API asks about initial provisioning.
    #[serde(default, deserialize_with = "lenient::value", skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// Addresses of the instance.
    #[serde(default, deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub addresses: Vec<MachineAddress>,
    /// State of the instance in EC2's words, such as `running`.
    #[serde(default, deserialize_with = "lenient::value", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub instance_state: Option<String>,
    /// Availability zone that the instance is in.
    #[serde(default, deserialize_with = "lenient::value", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// What is true of the instance, and why.
    #[serde(default, deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub conditions: Vec<Condition>,
}

/// A template of AWSMachines.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "AWSMachineTemplate",
    plural = "awsmachinetemplates",
    namespaced,
    status = "AWSMachineTemplateStatus",
    derive = "PartialEq",
    doc = "Template that control planes and machine deployments make AWSMachines from. Its spec cannot be changed: make a new template and refer to it.",
    shortname = "awsmt",
    category = "cluster-api",
    label("cluster.x-k8s.io/v1beta2", "v1beta2"),
    printcolumn(
        name = "Instance Type",
        type_ = "string",
        json_path = ".spec.template.spec.instanceType",
        description = "Type of the instances"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AWSMachineTemplateSpec {
    /// The template itself.
    pub template: AWSMachineTemplateResource,
}

/// What a node of a machine made from a template has. The cluster autoscaler reads it where there is no
/// machine yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AWSMachineTemplateStatus {
    /// Resources of the instance type: `cpu` and `memory`.
    #[serde(default, deserialize_with = "lenient::value", skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, String>,
    /// What the node runs on.
    #[serde(default, deserialize_with = "lenient::value", skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeInfo>,
}

/// What a node runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeInfo {
    /// Architecture of its processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<Architecture>,
    /// Its operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operating_system: Option<OperatingSystem>,
}

/// Architecture of a processor, in Kubernetes' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Architecture {
    Amd64,
    Arm64,
}

/// Operating system of a node, in Kubernetes' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum OperatingSystem {
    Linux,
    Windows,
}

/// What AWSMachines are made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AWSMachineTemplateResource {
    /// Labels and annotations of the AWSMachines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// Spec of the AWSMachines.
    pub spec: AWSMachineSpec,
}
