//! The instance metadata service, versions 1 and 2: one server per VPC, which knows an instance by its
//! address.
//!
//! It answers from what the emulator says exists, and hands out the same kind of static credentials to every
//! instance that has a profile. It cannot count hops: it takes the caller's word for them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{ConnectInfo, State as Shared};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::emulator::{Instance, State};

const ACCOUNT: &str = "123456789012";
/// The one session token; sessions do not end.
const TOKEN: &str = "AQAAAsandbox-instance-metadata-token==";
/// Header in which a caller says how many hops away it is; one without it is on the machine's own network.
pub const HOPS: &str = "x-sandbox-hops";
/// How long an answer that is lost on its way keeps its caller waiting.
const LOST: Duration = Duration::from_secs(60);
/// API versions offered, the newest that cloud-init asks for included.
const VERSIONS: [&str; 4] = ["2009-04-04", "2018-09-24", "2021-03-23", "latest"];

#[derive(Clone)]
struct Vpc {
    id: String,
    state: watch::Receiver<Arc<State>>,
}

/// Serves the instances of VPC `id` on `listener` until it is cancelled.
pub async fn serve(listener: TcpListener, id: String, state: watch::Receiver<Arc<State>>) {
    let router = axum::Router::new().fallback(answer).with_state(Vpc { id, state });
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    if let Err(error) = axum::serve(listener, service).await {
        tracing::error!(%error, "the metadata service ended");
    }
}

async fn answer(
    Shared(vpc): Shared<Vpc>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let path = uri.path().trim_matches('/');
    if method == Method::PUT {
        if !reaches(&vpc, &client, &headers) {
            tokio::time::sleep(LOST).await;
        }
        return match (path, headers.get("x-aws-ec2-metadata-token-ttl-seconds")) {
            ("latest/api/token", Some(seconds)) => {
                ([("x-aws-ec2-metadata-token-ttl-seconds", seconds.clone())], TOKEN).into_response()
            }
            _ => StatusCode::BAD_REQUEST.into_response(),
        };
    }
    if headers.get("x-aws-ec2-metadata-token").is_some_and(|token| token != TOKEN) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let state = vpc.state.borrow().clone();
    let Some(instance) = find(&state, &vpc.id, &client.ip().to_string()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match get(&state, instance, path) {
        Some(content) => Bytes::from(content).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Whether the answer to a request for a token lives as many hops as its caller is away.
fn reaches(vpc: &Vpc, client: &SocketAddr, headers: &HeaderMap) -> bool {
    let hops = headers.get(HOPS).and_then(|hops| hops.to_str().ok()?.parse().ok()).unwrap_or(1);
    let state = vpc.state.borrow();
    let limit = find(&state, &vpc.id, &client.ip().to_string())
        .and_then(|instance| instance.http_put_response_hop_limit);
    hops <= limit.unwrap_or(1)
}

fn find<'a>(state: &'a State, vpc: &str, address: &str) -> Option<&'a Instance> {
    state.instances.iter().find(|instance| {
        instance.state == "running"
            && instance.vpc_id.as_deref() == Some(vpc)
            && instance.private_ip.as_deref() == Some(address)
    })
}

/// Content at `path`, which has no slash at either end.
fn get(state: &State, instance: &Instance, path: &str) -> Option<Vec<u8>> {
    if path.is_empty() {
        return Some(VERSIONS.join("\n").into_bytes());
    }
    let (_version, rest) = path.split_once('/').unwrap_or((path, ""));
    match rest {
        "" => Some(b"dynamic\nmeta-data\nuser-data".to_vec()),
        "user-data" => STANDARD.decode(instance.user_data.as_deref()?.trim()).ok(),
        "dynamic" => Some(b"instance-identity/".to_vec()),
        "dynamic/instance-identity" => Some(b"document".to_vec()),
        "dynamic/instance-identity/document" => Some(identity(instance).to_string().into_bytes()),
        _ => {
            let key = rest.strip_prefix("meta-data")?.trim_start_matches('/');
            read(&tree(state, instance), key).map(String::into_bytes)
        }
    }
}

/// A leaf's value, or the names below a directory, those of directories with a slash.
fn read(tree: &BTreeMap<String, String>, key: &str) -> Option<String> {
    if let Some(value) = tree.get(key) {
        return Some(value.clone());
    }
    let prefix = if key.is_empty() { String::new() } else { format!("{key}/") };
    let names: BTreeSet<String> = tree
        .keys()
        .filter_map(|name| name.strip_prefix(&prefix))
        .map(|rest| match rest.split_once('/') {
            Some((directory, _)) => format!("{directory}/"),
            None => rest.to_owned(),
        })
        .collect();
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join("\n"))
}

/// The signed document's content:
/// <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-identity-documents.html>.
fn identity(instance: &Instance) -> serde_json::Value {
    json!({
        "accountId": ACCOUNT, "architecture": "x86_64", "availabilityZone": instance.availability_zone,
        "imageId": instance.image_id, "instanceId": instance.id, "instanceType": instance.instance_type,
        "privateIp": instance.private_ip, "region": instance.region, "version": "2017-09-30",
        "pendingTime": "2026-01-01T00:00:00Z",
    })
}

/// All leaves below `meta-data/`, by path.
fn tree(state: &State, instance: &Instance) -> BTreeMap<String, String> {
    let mut tree = BTreeMap::new();
    let mut put = |key: &str, value: &str| {
        if !value.is_empty() {
            tree.insert(key.to_owned(), value.to_owned());
        }
    };
    let name = instance.private_dns_name.as_deref().unwrap_or_default();
    put("ami-id", &instance.image_id);
    put("ami-launch-index", "0");
    put("hostname", name);
    put("instance-action", "none");
    put("instance-id", &instance.id);
    put("instance-life-cycle", "on-demand");
    put("instance-type", &instance.instance_type);
    put("local-hostname", name);
    put("local-ipv4", instance.private_ip.as_deref().unwrap_or_default());
    put("placement/availability-zone", &instance.availability_zone);
    put("placement/region", &instance.region);
    put("profile", "default-hvm");
    put("public-hostname", instance.public_dns_name.as_deref().unwrap_or_default());
    put("public-ipv4", instance.public_ip.as_deref().unwrap_or_default());
    put("services/domain", "amazonaws.com");
    put("services/partition", "aws");
    put("security-groups", &group_names(state, &instance.security_groups));
    if let Some(profile) = &instance.iam_instance_profile {
        let info = json!({ "Code": "Success", "LastUpdated": "2026-01-01T00:00:00Z", "InstanceProfileArn": profile });
        put("iam/info", &info.to_string());
        let role = profile.rsplit('/').next().unwrap_or(profile);
        put(&format!("iam/security-credentials/{role}"), &credentials(instance));
    }
    interfaces(state, instance, &mut put);
    tree
}

fn interfaces(state: &State, instance: &Instance, put: &mut impl FnMut(&str, &str)) {
    for interface in &instance.network_interfaces {
        let Some(mac) = &interface.mac_address else { continue };
        if interface.device_index == 0 {
            put("mac", mac);
        }
        let mut put = |key: &str, value: &str| put(&format!("network/interfaces/macs/{mac}/{key}"), value);
        let vpc = instance.vpc_id.as_deref().unwrap_or_default();
        let cidrs = state.vpcs.iter().find(|found| found.id == vpc).map(|found| found.cidrs.as_slice());
        put("device-number", &interface.device_index.to_string());
        put("interface-id", &interface.id);
        put("local-ipv4s", interface.private_ip.as_deref().unwrap_or_default());
        put("local-hostname", instance.private_dns_name.as_deref().unwrap_or_default());
        put("mac", mac);
        put("owner-id", ACCOUNT);
        put("security-group-ids", &interface.security_groups.join("\n"));
        put("security-groups", &group_names(state, &interface.security_groups));
        put("subnet-id", interface.subnet_id.as_deref().unwrap_or_default());
        put("vpc-id", vpc);
        put("vpc-ipv4-cidr-block", cidrs.and_then(<[String]>::first).map_or("", String::as_str));
        put("vpc-ipv4-cidr-blocks", &cidrs.unwrap_or_default().join("\n"));
    }
}

fn group_names(state: &State, ids: &[String]) -> String {
    let name = |id: &String| {
        state.security_groups.iter().find(|group| group.id == *id).map(|group| group.name.clone())
    };
    ids.iter().filter_map(name).collect::<Vec<_>>().join("\n")
}

/// Credentials that the emulator takes as anybody's; the key id names the instance in its call log.
fn credentials(instance: &Instance) -> String {
    let id = instance.id.trim_start_matches("i-").to_uppercase();
    json!({
        "Code": "Success", "LastUpdated": "2026-01-01T00:00:00Z", "Type": "AWS-HMAC",
        "AccessKeyId": format!("ASIA{id}"), "SecretAccessKey": "sandbox", "Token": "sandbox",
        "Expiration": "2099-01-01T00:00:00Z",
    })
    .to_string()
}
