//! EC2 instances, each of one AWSMachine.

use std::collections::BTreeSet;
use std::fmt;

use crate::text::join;
use crate::{
    Guard, Ids, InternetGateway, Key, Read, ResourceKind, Secret, SecurityGroup, Sensitive, Subnet, Tags,
};

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

/// An EC2 instance.
/// A snapshot holds those with a cluster's tag.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundInstance {
    /// `i-...`
    pub id: String,
    /// `None` once terminated.
    pub vpc_id: Option<String>,
    /// Of its first network interface; `None` once terminated.
    pub subnet_id: Option<String>,
    /// Token of the RunInstances call that made it; `None` when it had none.
    pub client_token: Option<String>,
    /// Such as `t3.large`.
    pub instance_type: String,
    /// AMI id.
    pub image: String,
    /// ARN of its instance profile.
    pub profile: Option<String>,
    /// Groups of its first network interface, by id.
    pub groups: BTreeSet<String>,
    /// Its state and addresses.
    pub status: InstanceStatus,
    /// All of its tags.
    pub tags: Tags,
}

impl FoundInstance {
    /// For people: that it is in its state, and why.
    pub fn stands(&self) -> String {
        let why = self.status.reason.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
        format!("{} is {}{why}", self.id, self.status.state)
    }
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

impl ResourceKind for Instance {
    const GUARD: Guard = Guard::Token;
    const READS: &'static [Read] = &[Read::Instances];

    fn after(&self) -> Vec<Key> {
        let mut res = vec![Subnet::key(&self.subnet)];
        res.extend(self.groups.iter().map(SecurityGroup::key));
        res.extend(self.internet_gateway.iter().map(InternetGateway::key));
        res.extend(self.secret.iter().map(Secret::key));
        res
    }

    /// A machine is never changed in place, but for the groups that its user adds and takes away: Cluster API
    /// replaces it.
    fn satisfied_by(&self, observed: &Self) -> bool {
        // What is to be taken away may be there though no read shows it yet.
        self.removed_groups.is_empty() && self.additional_groups.is_subset(&observed.additional_groups)
    }

    fn parts(&self) -> BTreeSet<String> {
        self.status.as_ref().map(|it| it.parts.clone()).unwrap_or_default()
    }

    fn inputs(&self, _: &Ids) -> Option<serde_json::Value> {
        let launch = self.launch.as_ref().and_then(|launch| serde_json::to_value(launch).ok())?;
        Some(serde_json::json!({"subnet": self.subnet, "launch": launch}))
    }

    fn details(&self) -> String {
        let launch = |launch: &Launch| format!(" {} {}", launch.instance_type, launch.image);
        let removed: String = self.removed_groups.iter().map(|it| format!(" - {it}")).collect();
        format!(
            "{} in {}, groups {}{removed}",
            self.launch.as_ref().map(launch).unwrap_or_default(),
            self.subnet,
            join(self.groups.iter().chain(&self.additional_groups))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_an_instance_ended_is_said_in_the_words_of_aws() {
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
