//! The add-ons whose plugins come with the host: all that is known of each, in one table. An add-on of
//! another name has no slot, and no grants at all.

mod builder;
mod calico;
mod cloud_controller_manager;
mod ebs_csi;
mod efs_csi;
mod load_balancer_controller;
mod vpc_cni;

use crds::ClusterPluginSpec;
use serde::Serialize;
use serde_json::Value;

use crate::Slot;
use crate::grant::Grants;

/// An add-on whose plugin comes with the host.
pub struct BuiltIn {
    /// Name of the plugin and of its crate.
    pub name: &'static str,
    pub slot: Slot,
    /// Where in a ClusterPlugin its configuration stands.
    pub path: &'static str,
    /// Its configuration, when it is asked for.
    pub settings: fn(&ClusterPluginSpec) -> Option<Value>,
    /// Where its images are below a registry that serves all add-ons; empty when their names say it already.
    pub image_path: &'static str,
    /// What its plugin may do with this configuration: no more than its plans need, by name wherever a name
    /// is known.
    pub grants: fn(&Value) -> Grants,
    /// The CSI driver that it installs: volumes of that driver need the add-on, and may stay when it goes.
    pub driver: Option<CsiDriver<'static>>,
}

/// A CSI driver, and what else it serves.
#[derive(Clone, Copy, Debug)]
pub struct CsiDriver<'a> {
    pub name: &'a str,
    /// The driver that was once built into Kubernetes and whose volumes this one serves.
    pub in_tree: Option<&'a str>,
}

/// All of them, in the order in which they are installed; the opposite order is that of their removal. The
/// load balancer controller is last: its webhooks stand in the way of whatever comes after them.
pub const BUILT_IN: &[BuiltIn] = &[
    cloud_controller_manager::ADD_ON,
    calico::ADD_ON,
    vpc_cni::ADD_ON,
    ebs_csi::ADD_ON,
    efs_csi::ADD_ON,
    load_balancer_controller::ADD_ON,
];

/// The built-in add-on of this name.
pub fn find(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|add_on| add_on.name == name)
}

/// What the plugin of this name may do; nothing at all when it does not come with the host. `config` is its
/// configuration: a registry that the user names there is granted, and so are Secrets to pull images with,
/// and objects whose names the user chooses there.
pub fn grants(name: &str, config: &Value) -> Grants {
    let Some(add_on) = find(name) else { return Grants::default() };
    let mut grants = (add_on.grants)(config);
    let registry = config.get("imageRegistry").and_then(Value::as_str);
    grants.registries.extend(registry.map(|it| it.trim_end_matches('/').to_owned()));
    let secrets = config.get("imagePullSecrets").and_then(Value::as_array).into_iter().flatten();
    grants.pull_secrets = secrets.filter_map(|it| it["name"].as_str().map(str::to_owned)).collect();
    grants
}

fn to_value(settings: &impl Serialize) -> Value {
    serde_json::to_value(settings).unwrap_or_else(|_| Value::Object(serde_json::Map::new()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_plugin_gets_nothing() {
        assert_eq!(grants("unknown", &json!({"imageRegistry": "quay.io"})), Grants::default());
    }

    #[test]
    fn the_registry_that_the_user_names_is_granted() {
        let registries =
            grants("aws-load-balancer-controller", &json!({"imageRegistry": "registry.example.com/aws"}))
                .registries;
        assert_eq!(registries, ["public.ecr.aws/eks", "registry.example.com/aws"]);
    }

    #[test]
    fn names_that_the_user_chooses_take_the_place_of_the_usual_ones() {
        let classes = |config: Value| {
            let objects = grants("aws-ebs-csi", &config).objects;
            objects.into_iter().find(|it| it.kinds == ["StorageClass"]).map(|it| it.names)
        };
        assert_eq!(classes(json!({})), Some(vec!["ebs".to_owned()]));
        assert_eq!(classes(json!({"storageClass": {"name": "fast"}})), Some(vec!["fast".to_owned()]));
        assert_eq!(
            classes(json!({"storageClasses": [{"name": "cold"}]})),
            Some(vec!["ebs".to_owned(), "cold".to_owned()])
        );
    }
}
