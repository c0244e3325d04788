//! What the Tigera operator does with IPPools: it makes the first ones itself, and leaves every later change
//! to Calico's API server, which takes some changes and refuses others.
//!
//! Pure.

use serde_json::{Value, json};

const LABEL: &str = "app.kubernetes.io/managed-by";
const OPERATOR: &str = "tigera-operator";

/// One write.
#[derive(Debug, PartialEq)]
pub enum Change {
    Create(Value),
    /// Name and merge patch.
    Patch(String, Value),
}

/// What is to be written, and what is wrong.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    pub changes: Vec<Change>,
    pub degraded: Option<String>,
}

/// Compares the pools of an Installation with those that are there.
pub fn compare(wanted: &[Value], there: &[Value], api_server_is_ready: bool) -> Outcome {
    let mut res = Outcome::default();
    for pool in wanted {
        let spec = spec(pool);
        let found = there.iter().find(|it| it["spec"]["cidr"] == pool["cidr"]);
        match found {
            Some(found) if found["spec"] == spec => (),
            None if there.is_empty() => res.changes.push(Change::Create(object(pool, spec))),
            _ if !api_server_is_ready => {
                return degraded("Unable to modify IP pools while Calico API server is unavailable");
            }
            None => res.changes.push(Change::Create(object(pool, spec))),
            Some(found) if found["spec"]["blockSize"] != spec["blockSize"] => {
                return degraded("error updating IP pool: IPPool BlockSize cannot be modified");
            }
            Some(found) if found["metadata"]["name"] != pool["name"] => {
                return degraded("error creating IP pool: IPPool CIDR overlaps with that of another IPPool");
            }
            Some(found) => {
                let name = found["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                res.changes.push(Change::Patch(name, json!({"spec": spec})));
            }
        }
    }
    for pool in there
        .iter()
        .filter(|it| it["metadata"]["labels"][LABEL] == OPERATOR && it["spec"]["disabled"] != true)
    {
        if wanted.iter().any(|it| it["cidr"] == pool["spec"]["cidr"]) {
            continue;
        }
        if !api_server_is_ready {
            return degraded("Unable to delete IP pools while Calico API server is unavailable");
        }
        // What is deleted is disabled first, and goes when its addresses are free.
        let name = pool["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        res.changes.push(Change::Patch(name, json!({"spec": {"disabled": true}})));
    }
    res
}

fn degraded(message: &str) -> Outcome {
    Outcome { changes: Vec::new(), degraded: Some(message.to_owned()) }
}

fn object(pool: &Value, spec: Value) -> Value {
    json!({
        "apiVersion": "crd.projectcalico.org/v1", "kind": "IPPool",
        "metadata": {"name": pool["name"], "labels": {LABEL: OPERATOR}},
        "spec": spec,
    })
}

/// A pool of an Installation in the words of an IPPool.
fn spec(pool: &Value) -> Value {
    let (ipip, vxlan) = match pool["encapsulation"].as_str() {
        Some("IPIP") => ("Always", "Never"),
        Some("IPIPCrossSubnet") => ("CrossSubnet", "Never"),
        Some("VXLAN") => ("Never", "Always"),
        Some("VXLANCrossSubnet") => ("Never", "CrossSubnet"),
        _ => ("Never", "Never"),
    };
    json!({
        "cidr": pool["cidr"], "ipipMode": ipip, "vxlanMode": vxlan, "natOutgoing": pool["natOutgoing"] == "Enabled",
        "nodeSelector": pool["nodeSelector"], "blockSize": pool["blockSize"], "allowedUses": pool["allowedUses"],
        "disabled": pool["disableNewAllocations"], "assignmentMode": pool["assignmentMode"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(cidr: &str, encapsulation: &str) -> Value {
        json!({"name": "default-ipv4-ippool", "cidr": cidr, "encapsulation": encapsulation, "natOutgoing": "Enabled", "nodeSelector": "all()",
            "blockSize": 26, "allowedUses": ["Workload", "Tunnel"], "disableNewAllocations": false, "assignmentMode": "Automatic"})
    }

    fn made(pool: &Value) -> Vec<Value> {
        match compare(std::slice::from_ref(pool), &[], false).changes.pop() {
            Some(Change::Create(object)) => vec![object],
            other => panic!("it is not made: {other:?}"),
        }
    }

    #[test]
    fn without_an_api_server_only_the_first_pools_are_made() {
        let first = pool("192.168.0.0/16", "VXLAN");
        let there = made(&first);
        assert_eq!(compare(std::slice::from_ref(&first), &there, false), Outcome::default());
        let changed = [pool("192.168.0.0/16", "IPIP")];
        let refused = compare(&changed, &there, false).degraded;
        assert_eq!(
            refused.as_deref(),
            Some("Unable to modify IP pools while Calico API server is unavailable")
        );
        let Outcome { changes, degraded: None } = compare(&changed, &there, true) else {
            panic!("it is degraded")
        };
        let [Change::Patch(name, patch)] = changes.as_slice() else {
            panic!("it is not one patch: {changes:?}")
        };
        assert_eq!(name, "default-ipv4-ippool");
        assert_eq!([&patch["spec"]["ipipMode"], &patch["spec"]["vxlanMode"]], ["Always", "Never"]);
    }

    #[test]
    fn pools_keep_their_blocks_and_go_when_they_are_left_out() {
        let there = made(&pool("192.168.0.0/16", "VXLAN"));
        let mut smaller = pool("192.168.0.0/16", "VXLAN");
        smaller["blockSize"] = json!(28);
        assert_eq!(
            compare(&[smaller], &there, true).degraded.as_deref(),
            Some("error updating IP pool: IPPool BlockSize cannot be modified")
        );
        let mut other = pool("10.0.0.0/16", "VXLAN");
        other["name"] = json!("10.0.0.0-16");
        let changes = compare(&[other], &there, true).changes;
        assert_eq!(
            changes.last(),
            Some(&Change::Patch("default-ipv4-ippool".into(), json!({"spec": {"disabled": true}})))
        );
    }
}
