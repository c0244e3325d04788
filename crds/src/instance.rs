//! Parts of an EC2 instance as its AWSMachine asks for them: image, volumes, metadata service, references to
//! subnets and security groups, and how bootstrap data reaches it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The image of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AMIReference {
    /// Id of the image. When absent, the newest image that matches the image lookup is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub id: Option<String>,
}

impl AMIReference {
    /// True when the image is to be looked up.
    pub fn is_unset(&self) -> bool {
        self.id.is_none()
    }
}

/// An AWS resource, by id or by filters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AWSResourceReference {
    /// Id of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub id: Option<String>,
    /// EC2 filters that the resource matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub filters: Vec<Filter>,
}

/// An EC2 filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Filter {
    /// Name of the filter, such as `tag:Name`. Case matters.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Values, any of which matches. Case matters.
    #[schemars(length(max = 200), inner(length(max = 256)))]
    pub values: Vec<String>,
}

/// An EBS volume of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Device name, such as `/dev/sdb`. The image says which one the root volume is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub device_name: String,
    /// Size in GiB; at least the size of the image's snapshot.
    #[schemars(range(min = 8, max = 65536))]
    pub size: i64,
    /// Type of the volume, such as gp3.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub kind: String,
    /// Provisioned I/O operations per second; needed by io1 and io2.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub iops: i64,
    /// Provisioned throughput in MiB/s, for gp3: 125 to 2000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i64>,
    /// Whether the volume is encrypted. The account's default when absent. A volume with an `encryptionKey`
    /// always is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Id or ARN of the KMS key that the volume is encrypted with. The account's default key when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 2048))]
    pub encryption_key: String,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Options of the instance metadata service (IMDS).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceMetadataOptions {
    /// Whether the service answers at all.
    #[serde(default = "enabled")]
    pub http_endpoint: MetadataState,
    /// Whether the service answers over IPv6.
    #[serde(default = "disabled")]
    pub http_protocol_ipv6: MetadataState,
    /// How many hops an answer may travel: 1 for the node alone, 2 for its pods.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 64))]
    pub http_put_response_hop_limit: i64,
    /// Whether a session token is needed (IMDSv2).
    #[serde(default)]
    pub http_tokens: HttpTokens,
    /// Whether the instance can read its own tags.
    #[serde(default = "disabled")]
    pub instance_metadata_tags: MetadataState,
}

impl Default for InstanceMetadataOptions {
    fn default() -> Self {
        Self {
            http_endpoint: enabled(),
            http_protocol_ipv6: disabled(),
            http_put_response_hop_limit: one(),
            http_tokens: HttpTokens::default(),
            instance_metadata_tags: disabled(),
        }
    }
}

fn enabled() -> MetadataState {
    MetadataState::Enabled
}

fn disabled() -> MetadataState {
    MetadataState::Disabled
}

fn one() -> i64 {
    1
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum MetadataState {
    Enabled,
    Disabled,
}

/// Whether the metadata service wants a session token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum HttpTokens {
    #[default]
    Optional,
    Required,
}

/// How bootstrap data reaches an instance that runs cloud-init.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudInit {
    /// True: bootstrap data is in the instance's user data, readable for whoever may describe instances.
    /// False: it is in AWS Secrets Manager, and user data only fetches and deletes it there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure_skip_secrets_manager: bool,
    /// Number of secrets that hold the bootstrap data. Set by this operator.
    #[serde(default, skip_serializing_if = "is_zero_32")]
    #[schemars(range(min = 0))]
    pub secret_count: i32,
    /// Common prefix of the names of these secrets. Set by this operator.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub secret_prefix: String,
    /// Which AWS service holds the bootstrap data.
    #[serde(default)]
    pub secure_secrets_backend: SecretsBackend,
}

fn is_zero_32(number: &i32) -> bool {
    *number == 0
}

/// AWS services that can hold bootstrap data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum SecretsBackend {
    #[default]
    SecretsManager,
    SsmParameterStore,
}
