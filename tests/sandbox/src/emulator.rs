//! The AWS emulator's control interface, as a typed client, and how its process is started.
//!
//! Control calls are never counted, delayed or refused by the emulator; AWS calls are not made here.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Address the emulator listens on inside the world.
pub const ADDRESS: &str = "10.255.255.254:5000";

/// What machines, the management plane and a user's `aws` are told as `AWS_ENDPOINT_URL`.
pub const ENDPOINT: &str = "http://10.255.255.254:5000";

/// Client of the control interface; cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    endpoint: String,
}

/// Everything that exists in the emulated account and that the bed has to act out.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    pub instances: Vec<Instance>,
    pub load_balancers: Vec<LoadBalancer>,
    pub security_groups: Vec<SecurityGroup>,
    pub vpcs: Vec<Vpc>,
}

/// An EC2 instance, with the state that DescribeInstances would show.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Instance {
    pub id: String,
    pub region: String,
    /// `pending`, `running`, `shutting-down`, `terminated`, `stopping` or `stopped`.
    pub state: String,
    pub private_ip: Option<String>,
    pub public_ip: Option<String>,
    pub private_dns_name: Option<String>,
    pub public_dns_name: Option<String>,
    pub vpc_id: Option<String>,
    pub subnet_id: Option<String>,
    pub availability_zone: String,
    pub instance_type: String,
    pub image_id: String,
    pub key_name: Option<String>,
    /// ARN of the instance profile.
    pub iam_instance_profile: Option<String>,
    /// As RunInstances got it: base64 of whatever the caller encoded.
    pub user_data: Option<String>,
    pub security_groups: Vec<String>,
    pub tags: BTreeMap<String, String>,
    /// RFC 3339 or Unix seconds, as the emulator prints it.
    pub launch_time: Value,
    pub http_put_response_hop_limit: Option<u32>,
    pub network_interfaces: Vec<NetworkInterface>,
}

/// A network interface that is attached to an instance.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkInterface {
    pub id: String,
    pub private_ip: Option<String>,
    pub mac_address: Option<String>,
    pub device_index: u32,
    pub subnet_id: Option<String>,
    pub security_groups: Vec<String>,
}

/// A load balancer of either API.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancer {
    /// `classic`, `network` or `application`.
    pub kind: String,
    pub name: String,
    /// Absent for a classic load balancer.
    pub arn: Option<String>,
    pub dns_name: String,
    /// `internet-facing` or `internal`.
    pub scheme: Option<String>,
    /// `provisioning` or `active`.
    pub state: String,
    pub vpc_id: Option<String>,
    pub subnets: Vec<String>,
    pub security_groups: Vec<String>,
    pub listeners: Vec<Listener>,
    pub targets: Vec<Target>,
    pub health_check: Option<HealthCheck>,
    pub tags: BTreeMap<String, String>,
}

/// A listener and the port of the targets it forwards to.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Listener {
    pub port: u16,
    pub protocol: String,
    pub target_port: u16,
}

/// A registered target: an instance or an address.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Target {
    pub instance_id: Option<String>,
    pub ip: Option<String>,
    pub port: u16,
}

/// How a load balancer checks its targets.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct HealthCheck {
    pub protocol: String,
    pub port: Option<u16>,
    pub path: Option<String>,
    pub interval_seconds: u64,
    pub healthy_threshold: u32,
    pub unhealthy_threshold: u32,
}

/// A security group with its rules.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct SecurityGroup {
    pub id: String,
    pub name: String,
    pub vpc_id: Option<String>,
    pub ingress: Vec<Rule>,
    pub egress: Vec<Rule>,
}

/// One permission of a security group.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// `tcp`, `udp`, `icmp`, a protocol number, or `-1` for all.
    pub protocol: String,
    pub from_port: Option<i32>,
    pub to_port: Option<i32>,
    pub cidrs: Vec<String>,
    pub groups: Vec<String>,
}

/// A VPC and the address ranges associated with it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Vpc {
    pub id: String,
    pub cidrs: Vec<String>,
}

/// A page of the call log.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Calls {
    /// Sequence number to ask from next.
    pub next: u64,
    pub calls: Vec<Call>,
}

/// One AWS call that the emulator answered.
#[derive(Clone, Debug, Deserialize)]
pub struct Call {
    pub sequence: u64,
    /// Unix seconds.
    pub time: f64,
    pub service: String,
    pub action: String,
    /// HTTP status; 0 when the reply was lost on purpose.
    pub status: Option<u16>,
    /// AWS error code.
    pub code: Option<String>,
    pub write: bool,
    /// Access key id or role session of the caller.
    pub caller: Option<String>,
    pub region: Option<String>,
    /// Ids, names and ARNs that the request names.
    pub resources: Vec<String>,
    /// Kind of the fault that answered it, if one did.
    #[serde(default)]
    pub fault: Option<String>,
}

impl Call {
    /// Whether this did `action` to one of `resources`: beds have several clusters, and each has calls of its
    /// own.
    pub fn did(&self, action: &str, resources: &[String]) -> bool {
        self.action == action
            && self.status == Some(200)
            && self.resources.iter().any(|it| resources.contains(it))
    }
}

/// A fault the emulator shall make; `None` matches everything.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Fault {
    /// `throttle`, `error`, `lost-reply`, `hang`, `access-denied`, `quota` or `read-lag`.
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Name of an action; a trailing `*` matches any rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// From 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// How often it may happen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// AWS error code to answer with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// Ids of everything that exists in the account, by kind; every list is empty in an empty account.
pub type Account = BTreeMap<String, Vec<String>>;

impl Client {
    /// A client for the process that is inside the world.
    pub fn inside() -> Result<Self> {
        let http = builder().build().context("building the HTTP client")?;
        Ok(Self { http, endpoint: ENDPOINT.to_owned() })
    }

    /// A client for a process outside the world, through the relay socket that the world keeps at `socket`.
    pub fn through(socket: &Path) -> Result<Self> {
        let http = builder().unix_socket(socket.to_owned()).build().context("building the HTTP client")?;
        Ok(Self { http, endpoint: "http://emulator".to_owned() })
    }

    /// Whether the emulator answers.
    pub async fn ready(&self) -> bool {
        self.get("ready").await.is_ok()
    }

    /// Everything that exists.
    pub async fn world(&self) -> Result<State> {
        decode(self.get("world").await?, "world")
    }

    /// Ids of everything that exists, by kind.
    pub async fn account(&self) -> Result<Account> {
        decode(self.get("account").await?, "account")
    }

    /// The calls after the one with the sequence number `since`, which is 0 to get all.
    pub async fn calls(&self, since: u64) -> Result<Calls> {
        decode(self.get(&format!("calls?since={since}")).await?, "calls")
    }

    /// Replaces all faults; an empty list ends them.
    pub async fn set_faults(&self, faults: &[Fault]) -> Result<()> {
        let body = serde_json::to_value(faults).context("encoding faults")?;
        self.send(self.http.put(self.url("faults")).json(&body), "faults").await.map(drop)
    }

    /// Tells what a health check of the bed found.
    pub async fn target_health(
        &self,
        load_balancer: &str,
        instance: &str,
        port: u16,
        healthy: bool,
    ) -> Result<()> {
        let body = serde_json::json!({
            "loadBalancer": load_balancer, "instanceId": instance, "port": port, "healthy": healthy,
        });
        self.send(self.http.post(self.url("target-health")).json(&body), "target-health").await.map(drop)
    }

    /// Terminates an instance behind everybody's back.
    pub async fn terminate(&self, instance: &str) -> Result<()> {
        let body = serde_json::json!({ "instanceId": instance });
        self.send(self.http.post(self.url("terminate")).json(&body), "terminate").await.map(drop)
    }

    async fn get(&self, path: &str) -> Result<Value> {
        self.send(self.http.get(self.url(path)), path).await
    }

    async fn send(&self, request: reqwest::RequestBuilder, what: &str) -> Result<Value> {
        let response = request.send().await.with_context(|| format!("asking the emulator for {what}"))?;
        let status = response.status();
        let text = response.text().await.with_context(|| format!("reading the emulator's {what}"))?;
        if !status.is_success() {
            bail!("the emulator answered {status} to {what}: {text}");
        }
        if text.trim().is_empty() {
            return Ok(Value::Null);
        }
        // `ready` and the posts may answer in words.
        Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    fn url(&self, path: &str) -> String {
        format!("{}/_emulator/{path}", self.endpoint)
    }
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder().timeout(std::time::Duration::from_secs(30))
}

fn decode<T: serde::de::DeserializeOwned>(value: Value, what: &str) -> Result<T> {
    serde_json::from_value(value).with_context(|| format!("reading the emulator's {what}"))
}
