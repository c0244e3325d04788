//! The add-ons that a ClusterPlugin asks for: which plugin fills which slot, and with what configuration.

use crds::{ClusterPluginSpec, cluster_plugin as spec};
use serde::Serialize;
use serde_json::Value;

use super::Stage;

/// What an add-on is for. In the order in which users think of them; removal is in the opposite order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    CloudProvider,
    Networking,
}

/// One add-on as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub slot: Slot,
    /// Name of the plugin.
    pub module: &'static str,
    /// Where in the ClusterPlugin its configuration stands.
    pub path: &'static str,
    pub stage: Stage,
    pub config: Value,
}

/// The add-ons of a ClusterPlugin. Slots that the API server refuses for now do not appear.
pub fn wanted(spec: &ClusterPluginSpec) -> Vec<Wanted> {
    let spec::ClusterPluginSpec {
        cluster_name: _,
        cloud_provider,
        networking,
        storage: _,
        ingress: _,
        plugins: _,
        conflicts: _,
        deletion: _,
    } = spec;
    let mut res = Vec::new();
    if cloud_provider.none.is_none() {
        res.push(Wanted {
            slot: Slot::CloudProvider,
            module: "aws-cloud-controller-manager",
            path: "spec.cloudProvider.aws",
            stage: Stage::Initialized,
            config: config(&cloud_provider.aws.clone().unwrap_or_default()),
        });
    }
    if let Some(calico) = networking.as_ref().and_then(|it| it.calico.as_ref()) {
        res.push(Wanted {
            slot: Slot::Networking,
            module: "calico",
            path: "spec.networking.calico",
            stage: Stage::Initialized,
            config: config(calico),
        });
    }
    res
}

fn config(settings: &impl Serialize) -> Value {
    serde_json::to_value(settings).unwrap_or_else(|_| Value::Object(serde_json::Map::new()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn modules(value: Value) -> Vec<(&'static str, Value)> {
        let spec: ClusterPluginSpec = serde_json::from_value(value).unwrap();
        wanted(&spec).into_iter().map(|it| (it.module, it.config)).collect()
    }

    #[test]
    fn the_cloud_provider_is_installed_unless_the_user_brings_one() {
        assert_eq!(modules(json!({"clusterName": "prod"})), [("aws-cloud-controller-manager", json!({}))]);
        assert_eq!(modules(json!({"clusterName": "prod", "cloudProvider": {"none": {}}})), []);
    }

    #[test]
    fn settings_of_a_slot_are_the_configuration_of_its_plugin() {
        let asked =
            json!({"clusterName": "prod", "cloudProvider": {"none": {}}, "networking": {"calico": {"encapsulation": "IPIP", "mtu": 1400}}});
        assert_eq!(modules(asked), [("calico", json!({"encapsulation": "IPIP", "mtu": 1400}))]);
    }
}
