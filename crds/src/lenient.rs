//! Reading of status fields that an earlier controller may have stored in another shape: what does not parse
//! is dropped. Only status is read this way. Spec never is: a spec that cannot be read is an error.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a value, or its default when the stored shape is another one.
pub fn value<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + DeserializeOwned,
{
    let stored = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(stored).unwrap_or_default())
}

/// Reads the elements of a list that parse; a value that is no list reads as the empty list.
pub fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let Value::Array(stored) = Value::deserialize(deserializer)? else {
        return Ok(Vec::new());
    };
    Ok(stored.into_iter().filter_map(|element| serde_json::from_value(element).ok()).collect())
}

#[cfg(test)]
mod tests {
    use crate::{AWSCluster, AWSMachine};
    use serde_json::json;

    #[test]
    fn a_cluster_status_of_capa_is_read_without_other_shapes() {
        let cluster: AWSCluster = serde_json::from_value(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "AWSCluster",
            "metadata": {"name": "prod"},
            "spec": {"region": "us-east-1"},
            "status": {
                "ready": true,
                "failureDomains": {"us-east-1a": {"controlPlane": true}},
                "networkStatus": {
                    "securityGroups": {"node": {"id": "sg-1", "name": "prod-node", "ingressRule": []}},
                    "apiServerElb": {"name": "prod-apiserver", "dnsName": "prod.example", "attributes": {}},
                    "natGatewaysIPs": ["203.0.113.7"],
                },
                "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"},
                    {"type": "Odd", "status": true},
                ],
            },
        }))
        .expect("a status of CAPA reads");
        let status = cluster.status.expect("a status");
        assert!(status.ready);
        assert!(status.failure_domains.is_empty());
        assert_eq!(status.network_status.security_groups["node"].id, "sg-1");
        assert_eq!(status.network_status.api_server_elb.dns_name, "prod.example");
        assert_eq!(status.conditions.len(), 1);
        assert_eq!(status.conditions[0].type_, "Ready");
    }

    #[test]
    fn a_machine_status_with_a_map_for_a_list_is_read_as_empty() {
        let machine: AWSMachine = serde_json::from_value(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "AWSMachine",
            "metadata": {"name": "worker"},
            "spec": {"instanceType": "t3.large"},
            "status": {"ready": "yes", "addresses": {"InternalIP": "10.0.0.1"}, "instanceState": "running"},
        }))
        .expect("an odd status reads");
        let status = machine.status.expect("a status");
        assert!(!status.ready);
        assert!(status.addresses.is_empty());
        assert_eq!(status.instance_state.as_deref(), Some("running"));
    }
}
