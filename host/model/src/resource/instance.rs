//! An EC2 instance of one AWSMachine, and the secret that holds its bootstrap data until it has booted.

use std::collections::BTreeSet;
use std::fmt;

use super::{InternetGateway, SecurityGroup, Subnet};
use crate::Key;

/// An instance, named like its AWSMachine.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Its role: the name of the AWSMachine.
    pub name: String,
    /// The subnet of its first network interface, by role; by id where a user named one that is none of the
    /// cluster's.
    pub subnet: String,
    /// Groups of that interface, by role.
    pub groups: BTreeSet<String>,
    /// Ids of groups that the user added by id or filter.
    pub additional_groups: BTreeSet<String>,
    /// Ids of groups that the user added once, and that are to be taken away. Empty as seen.
    pub removed_groups: BTreeSet<String>,
    /// A public instance comes after this attached gateway.
    pub internet_gateway: Option<String>,
    /// The secret its user data fetches, if any.
    pub secret: Option<String>,
    /// What RunInstances is given. `None` as seen: AWS does not give all of it back, and none of it can
    /// change.
    pub launch: Option<Launch>,
    /// As seen; `None` when wanted.
    pub status: Option<InstanceStatus>,
}

/// The parameters of RunInstances. They never change for one client token.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    /// AMI id.
    pub image: String,
    /// Such as `t3.large`.
    pub instance_type: String,
    /// Name or ARN; `None`: the instance has no role.
    pub iam_instance_profile: Option<String>,
    /// Name of an EC2 key pair for SSH; `None`: none.
    pub key_name: Option<String>,
    /// `AssociatePublicIpAddress`; `None`: as the subnet has it.
    pub public_ip: Option<bool>,
    /// `default`, `dedicated` or `host`; `None`: as the VPC has it.
    pub tenancy: Option<String>,
    /// The root volume first, if the image's is not left as it is.
    pub volumes: Vec<Volume>,
    /// How the instance metadata service answers.
    pub metadata_options: MetadataOptions,
    /// Never serialized: it may hold bootstrap data.
    #[serde(skip)]
    pub user_data: Sensitive,
}

/// A block device of an instance.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Such as `/dev/sda1`.
    pub device_name: String,
    /// GiB.
    pub size: i32,
    /// Such as `gp3`; `None`: the image's, or EC2's default.
    pub volume_type: Option<String>,
    /// I/O operations per second; `None`: what EC2 gives a volume of that type.
    pub iops: Option<i32>,
    /// MiB per second, of gp3 alone; `None`: what EC2 gives.
    pub throughput: Option<i32>,
    /// `None`: as the snapshot is, or as the account has it.
    pub encrypted: Option<bool>,
    /// Id, alias or ARN of a KMS key; `None`: the one that EC2 chooses, if it is encrypted.
    pub kms_key: Option<String>,
}

/// Options of the instance metadata service, in AWS's words.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// `enabled` or `disabled`.
    pub http_endpoint: String,
    /// Absent in what was written down before it was passed on: not said to AWS, which takes `disabled`.
    #[serde(default)]
    pub http_protocol_ipv6: Option<String>,
    /// `required` (IMDSv2 alone) or `optional`.
    pub http_tokens: String,
    /// Hops that an answer to a request for a token may take, 1 to 64. Pods reach the service with 2 or more.
    pub http_put_response_hop_limit: i32,
    /// Whether the service shows the instance's tags: `enabled` or `disabled`.
    pub instance_metadata_tags: String,
}

/// What AWS says about an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceStatus {
    /// `pending`, `running`, `shutting-down`, `terminated`, `stopping`, `stopped`.
    pub state: String,
    /// Availability zone, such as `us-east-1a`.
    pub zone: String,
    /// Primary IPv4 address in the VPC; `None` once terminated.
    pub private_ip: Option<String>,
    /// Such as `ip-10-0-0-1.ec2.internal`; `None` once terminated.
    pub private_dns_name: Option<String>,
    /// IPv4 address on the internet; `None` when it has none.
    pub public_ip: Option<String>,
    /// `None` without a public address, and in a VPC without DNS host names.
    pub public_dns_name: Option<String>,
    /// Why it came into a state in which it does not run, in AWS's words.
    pub reason: Option<StateReason>,
    /// Ids of its first network interface and of the volumes that go with it: they carry its tags.
    pub parts: BTreeSet<String>,
}

/// Why an instance stopped or ended. AWS documents the codes with EC2's StateReason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateReason {
    /// Such as `Server.SpotInstanceTermination`.
    pub code: String,
    /// A sentence; may begin with the code, or be empty.
    pub message: String,
}

impl fmt::Display for StateReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.as_str() {
            "" => f.write_str(&self.code)?,
            it if it.starts_with(&self.code) => f.write_str(it)?,
            it => write!(f, "{}: {it}", self.code)?,
        }
        match self.code.as_str() {
            // AWS says no more; what it documents is this.
            "Client.InternalError" => f.write_str(
                "; look at the key of its encrypted volumes: whether it is enabled and EC2 may use it",
            ),
            _ => Ok(()),
        }
    }
}

/// Bootstrap data in Secrets Manager, split into parts. Recorded on the AWSMachine before it is made; AWS is
/// not asked for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Secret {
    /// Its role: the name of the AWSMachine.
    pub name: String,
    /// `aws.cluster.x-k8s.io/<uuid>`; the parts are `<prefix>-0`, `<prefix>-1`, ...
    pub prefix: String,
    /// What each part holds; empty as seen.
    pub parts: Vec<Sensitive>,
    /// How many parts there are.
    pub count: usize,
}

/// Bytes that reach no log: they may hold certificates, keys and join tokens.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Sensitive(pub Vec<u8>);

impl std::fmt::Debug for Sensitive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{} bytes>", self.0.len())
    }
}

impl Instance {
    pub(super) fn after(&self) -> Vec<Key> {
        let mut res = vec![Subnet::key(&self.subnet)];
        res.extend(self.groups.iter().map(SecurityGroup::key));
        res.extend(self.internet_gateway.iter().map(InternetGateway::key));
        res.extend(self.secret.iter().map(Secret::key));
        res
    }
    /// A machine is never changed in place, but for the groups that its user adds and takes away: Cluster API
    /// replaces it.
    pub(super) fn satisfied_by(&self, seen: &Self) -> bool {
        // What is to be taken away may be there though no read shows it yet.
        self.removed_groups.is_empty() && self.additional_groups.is_subset(&seen.additional_groups)
    }
    pub(super) fn immutable(&self, _: &Self) -> Option<&'static str> {
        None
    }
}

impl Secret {
    pub(super) fn after(&self) -> Vec<Key> {
        Vec::new()
    }
    pub(super) fn satisfied_by(&self, seen: &Self) -> bool {
        self.prefix == seen.prefix
    }
    pub(super) fn immutable(&self, _: &Self) -> Option<&'static str> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_an_instance_ended_is_said_in_the_words_of_aws_and_of_a_key_what_aws_leaves_out() {
        let said = |code: &str, message: &str| {
            StateReason { code: code.into(), message: message.into() }.to_string()
        };
        let quota = "Client.VolumeLimitExceeded: Volume limit exceeded";
        assert_eq!(said("Client.VolumeLimitExceeded", quota), quota);
        assert_eq!(
            said("Server.InternalError", "An internal error"),
            "Server.InternalError: An internal error"
        );
        assert_eq!(said("Server.InternalError", ""), "Server.InternalError");
        assert!(
            said("Client.InternalError", "Client.InternalError: Client error on launch")
                .contains("key of its encrypted volumes")
        );
    }
}
