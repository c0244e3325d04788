//! What the Tigera operator writes into an Installation that leaves something open, as v1.42.3 was seen to do
//! it: by a merge patch, in which a list is there as a whole or not at all.
//!
//! Pure.

use serde_json::{Map, Value, json};

/// The spec with what the controller of the Installation fills in.
pub fn defaulted(spec: &Value) -> Value {
    let defaults = json!({
        "calicoNetwork": {
            "hostPorts": "Enabled",
            "linuxPolicySetupTimeoutSeconds": 0,
            "multiInterfaceMode": "None",
            "nodeAddressAutodetectionV4": {"firstFound": true},
            "windowsDataplane": "Disabled",
        },
        "cni": {"binDir": "/opt/cni/bin", "confDir": "/etc/cni/net.d"},
        "controlPlaneReplicas": 2,
        "flexVolumePath": "None",
        "logging": {"cni": {"logFileMaxAgeDays": 30, "logFileMaxCount": 10, "logFileMaxSize": "100Mi", "logSeverity": "Info"}},
        "nodeUpdateStrategy": {"rollingUpdate": {"maxUnavailable": 1}, "type": "RollingUpdate"},
    });
    filled(spec, &defaults)
}

/// The spec with what the controller of the pools fills in; `there` are the IPPools of the cluster.
pub fn with_pools(spec: &Value, there: &[Value]) -> Value {
    let mut res = spec.clone();
    let Some(pools) = res.pointer_mut("/calicoNetwork/ipPools").and_then(Value::as_array_mut) else {
        return res;
    };
    let is_only = pools.len() == 1;
    for pool in pools {
        let known = there
            .iter()
            .find(|it| it["spec"]["cidr"] == pool["cidr"])
            .and_then(|it| it["metadata"]["name"].as_str());
        let name = match known {
            Some(name) => name.to_owned(),
            None if is_only => "default-ipv4-ippool".to_owned(),
            None => pool["cidr"].as_str().unwrap_or_default().replace('/', "-"),
        };
        let defaults = json!({
            "name": name, "allowedUses": ["Workload", "Tunnel"], "assignmentMode": "Automatic", "blockSize": 26,
            "disableNewAllocations": false, "encapsulation": "IPIP", "natOutgoing": "Enabled", "nodeSelector": "all()",
        });
        *pool = filled(pool, &defaults);
    }
    res
}

/// The merge patch from one object to another that has more; none when there is nothing to patch.
pub fn merge_patch(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return (from != to).then(|| to.clone());
    };
    let changed = to.iter().filter_map(|(name, value)| {
        Some((name.clone(), merge_patch(from.get(name).unwrap_or(&Value::Null), value)?))
    });
    let changed: Map<String, Value> = changed.collect();
    (!changed.is_empty()).then_some(changed.into())
}

/// Only what is not set is filled in.
fn filled(value: &Value, defaults: &Value) -> Value {
    let (Value::Object(fields), Value::Object(defaults)) = (value, defaults) else {
        return if value.is_null() { defaults.clone() } else { value.clone() };
    };
    let mut res = fields.clone();
    for (name, default) in defaults {
        let value = filled(fields.get(name).unwrap_or(&Value::Null), default);
        res.insert(name.clone(), value);
    }
    res.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_written_back_whole_if_something_in_it_is_open() {
        let spec = |pool: Value| json!({"calicoNetwork": {"bgp": "Disabled", "ipPools": [pool]}});
        let open = spec(json!({"cidr": "192.168.0.0/16", "encapsulation": "VXLAN"}));
        let filled = with_pools(&open, &[]);
        let patch = merge_patch(&open, &filled).expect("there is something to fill in");
        let pool = &filled["calicoNetwork"]["ipPools"][0];
        assert_eq!(patch, json!({"calicoNetwork": {"ipPools": [pool]}}));
        assert_eq!([&pool["name"], &pool["encapsulation"]], ["default-ipv4-ippool", "VXLAN"]);
        assert_eq!(merge_patch(&filled, &with_pools(&filled, &[])), None);
        assert_eq!(merge_patch(&defaulted(&open), &defaulted(&defaulted(&open))), None);
    }
}
