//! The CustomResourceDefinitions that the controller cannot do without, with the fields that it documents.
//! Values are checked by its webhooks; fields that another release adds are kept. Left out are those of the
//! Gateway API, of Global Accelerator and of target control, whose parts of the controller stay off.
//!
//! They are text (`crds.json`) and not code, of which they would be a tenth of the whole plugin.

use plugin_sdk::steps::Object;
use serde_json::Value;

const TEXT: &str = include_str!("../crds.json");

const fn crd(name: &'static str) -> Object<'static> {
    Object { api_version: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", namespace: None, name }
}

pub const TARGET_GROUP_BINDING: Object<'static> = crd("targetgroupbindings.elbv2.k8s.aws");
pub const INGRESS_CLASS_PARAMS: Object<'static> = crd("ingressclassparams.elbv2.k8s.aws");

/// Which targets a target group has, and what all load balancers of the Ingresses of a class have in common.
/// The controller makes a TargetGroupBinding for each target group that an Ingress or Service needs.
pub fn objects() -> Vec<Value> {
    serde_json::from_str(TEXT).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_of_the_definitions_that_are_waited_for() {
        let names: Vec<String> =
            objects().iter().filter_map(|it| it["metadata"]["name"].as_str().map(str::to_owned)).collect();
        assert_eq!(names, [TARGET_GROUP_BINDING.name, INGRESS_CLASS_PARAMS.name]);
    }
}
