//! The add-ons that a ClusterPlugin asks for: which plugin fills which slot, and with what configuration.

use crds::ClusterPluginSpec;
use serde_json::{Value, json};

use crate::built_in::BUILT_IN;
use crate::{Slot, Stage};

/// One add-on as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredAddOn {
    pub slot: Slot,
    /// Name of the plugin.
    pub module: &'static str,
    /// Where in the ClusterPlugin its configuration stands.
    pub path: &'static str,
    pub stage: Stage,
    /// The version that the user wants, if they name one.
    pub version: Option<String>,
    pub config: Value,
}

/// The add-ons of a ClusterPlugin, in the order in which they are installed; the opposite order is that of
/// their removal. Slots that the API server refuses for now do not appear.
pub fn desired(spec: &ClusterPluginSpec) -> Vec<DesiredAddOn> {
    let desired = BUILT_IN.iter().filter_map(|add_on| {
        let mut config = (add_on.settings)(spec)?;
        let version = take_version(&mut config);
        share(&mut config, add_on.image_path, spec);
        let (slot, module, path) = (add_on.slot, add_on.name, add_on.path);
        Some(DesiredAddOn { slot, module, path, stage: slot.stage(), version, config })
    });
    desired.collect()
}

/// The version is the host's to look at: plugins do not know it.
fn take_version(config: &mut Value) -> Option<String> {
    config.as_object_mut()?.remove("version")?.as_str().map(str::to_owned)
}

/// Gives an add-on what is set for all of them. Its own registry counts before the one for all, below which
/// the paths are those of the public registries, so that one registry can hold the images of all.
fn share(config: &mut Value, image_path: &str, spec: &ClusterPluginSpec) {
    let Value::Object(config) = config else { return };
    if let Some(registry) = &spec.image_registry {
        config.entry("imageRegistry").or_insert_with(|| format!("{registry}{image_path}").into());
    }
    if !spec.image_pull_secrets.is_empty() {
        let secrets = spec.image_pull_secrets.iter().map(|it| json!({"name": it.name})).collect();
        config.insert("imagePullSecrets".to_owned(), secrets);
    }
}

#[cfg(test)]
mod tests {
    use crds::cluster_plugin as spec;

    use super::*;

    fn modules(value: Value) -> Vec<(&'static str, Value)> {
        let spec: ClusterPluginSpec = serde_json::from_value(value).unwrap();
        desired(&spec).into_iter().map(|it| (it.module, it.config)).collect()
    }

    #[test]
    fn the_cloud_provider_is_installed_unless_the_user_brings_one() {
        assert_eq!(modules(json!({"clusterName": "prod"})), [("aws-cloud-controller-manager", json!({}))]);
        assert_eq!(modules(json!({"clusterName": "prod", "cloudProvider": {"none": {}}})), []);
    }

    #[test]
    fn settings_of_a_slot_are_the_configuration_of_its_plugin() {
        let asked = json!({"clusterName": "prod", "cloudProvider": {"none": {}}, "networking": {"calico": {"encapsulation": "IPIP", "mtu": 1400}}});
        let config = json!({"encapsulation": "IPIP", "mtu": 1400, "natOutgoing": true, "resources": {}, "typhaResources": {}});
        assert_eq!(modules(asked), [("calico", config)]);
    }

    #[test]
    fn an_add_ons_own_registry_counts_before_the_one_for_all() {
        let asked = json!({"clusterName": "prod", "imageRegistry": "registry.example.com/mirror", "imagePullSecrets": [{"name": "mirror"}],
            "networking": {"amazonVPC": {}}, "storage": {"ebs": {"imageRegistry": "other.example.com"}, "efs": {}},
            "ingress": {"awsLoadBalancerController": {}}});
        let of = |(module, config): &(&str, Value)| {
            format!("{module} {} {}", config["imageRegistry"], config["imagePullSecrets"])
        };
        expect_test::expect![[r#"
            aws-cloud-controller-manager "registry.example.com/mirror/provider-aws" [{"name":"mirror"}]
            aws-vpc-cni "registry.example.com/mirror" [{"name":"mirror"}]
            aws-ebs-csi "other.example.com" [{"name":"mirror"}]
            aws-efs-csi "registry.example.com/mirror" [{"name":"mirror"}]
            aws-load-balancer-controller "registry.example.com/mirror/eks" [{"name":"mirror"}]"#]]
        .assert_eq(&modules(asked).iter().map(of).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn storage_and_ingress_wait_for_a_ready_machine_and_ingress_is_last() {
        let spec = json!({"clusterName": "prod", "networking": {"amazonVPC": {}}, "storage": {"efs": {}, "ebs": {}},
            "ingress": {"awsLoadBalancerController": {}}});
        let spec: ClusterPluginSpec = serde_json::from_value(spec).unwrap();
        let text: Vec<String> = desired(&spec)
            .into_iter()
            .map(|it| format!("{:?} {:?} {} {}", it.stage, it.slot, it.module, it.path))
            .collect();
        expect_test::expect![[r#"
            Initialized CloudProvider aws-cloud-controller-manager spec.cloudProvider.aws
            Initialized Networking aws-vpc-cni spec.networking.amazonVPC
            Ready Storage aws-ebs-csi spec.storage.ebs
            Ready Storage aws-efs-csi spec.storage.efs
            Ready Ingress aws-load-balancer-controller spec.ingress.awsLoadBalancerController"#]]
        .assert_eq(&text.join("\n"));
    }

    #[test]
    fn the_version_that_a_user_wants_is_no_setting_of_the_plugin() {
        let spec = json!({"clusterName": "prod", "networking": {"calico": {"version": "v3.32.1"}}});
        let spec: ClusterPluginSpec = serde_json::from_value(spec).unwrap();
        let calico = desired(&spec).into_iter().find(|it| it.module == "calico").unwrap();
        assert_eq!((calico.version.as_deref(), calico.config.get("version")), (Some("v3.32.1"), None));
    }

    /// Which add-ons the API has. It does not compile when there is one more, which belongs into the table and
    /// into this test.
    fn asked_for(spec: &ClusterPluginSpec) -> Vec<bool> {
        let spec::ClusterPluginSpec {
            cluster_name: _,
            cloud_provider: spec::CloudProvider { aws, module: _, none: _ },
            networking: Some(spec::Networking { calico, amazon_vpc, module: _ }),
            storage: Some(spec::Storage { ebs, efs, module: _ }),
            ingress: Some(spec::Ingress { aws_load_balancer_controller, module: _ }),
            plugins: _,
            image_registry: _,
            image_pull_secrets: _,
            conflicts: _,
            drift: _,
            upgrade_policy: _,
            upgrade_timeout: _,
            approval: _,
            deletion: _,
        } = spec
        else {
            return Vec::new();
        };
        vec![
            aws.is_some(),
            calico.is_some(),
            amazon_vpc.is_some(),
            ebs.is_some(),
            efs.is_some(),
            aws_load_balancer_controller.is_some(),
        ]
    }

    #[test]
    fn every_add_on_of_the_api_is_in_the_table_in_its_order() {
        let spec = json!({"clusterName": "prod", "cloudProvider": {"aws": {}},
            "networking": {"calico": {}, "amazonVPC": {}}, "storage": {"ebs": {}, "efs": {}},
            "ingress": {"awsLoadBalancerController": {}}});
        let spec: ClusterPluginSpec = serde_json::from_value(spec).unwrap();
        assert_eq!(asked_for(&spec), BUILT_IN.iter().map(|_| true).collect::<Vec<_>>());
        let modules: Vec<_> = desired(&spec).into_iter().map(|it| it.module).collect();
        assert_eq!(modules, BUILT_IN.iter().map(|it| it.name).collect::<Vec<_>>());
    }
}
