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
    Storage,
    Ingress,
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
    /// The version that the user wants, if they name one.
    pub version: Option<String>,
    pub config: Value,
}

/// The add-ons of a ClusterPlugin, in the order in which they are installed; the opposite order is that of
/// their removal. Slots that the API server refuses for now do not appear.
pub fn wanted(spec: &ClusterPluginSpec) -> Vec<Wanted> {
    let spec::ClusterPluginSpec {
        cluster_name: _,
        cloud_provider,
        networking,
        storage,
        ingress,
        plugins: _,
        image_registry,
        image_pull_secrets,
        conflicts: _,
        drift: _,
        upgrade_policy: _,
        deletion: _,
    } = spec;
    let mut res = Vec::new();
    if cloud_provider.none.is_none() {
        let aws = cloud_provider.aws.clone().unwrap_or_default();
        res.push(initialized(
            Slot::CloudProvider,
            "aws-cloud-controller-manager",
            "spec.cloudProvider.aws",
            config(&aws),
        ));
    }
    if let Some(spec::Networking { calico, amazon_vpc, module: _ }) = networking {
        let calico = calico.as_ref().map(|it| ("calico", "spec.networking.calico", config(it)));
        let amazon_vpc =
            amazon_vpc.as_ref().map(|it| ("aws-vpc-cni", "spec.networking.amazonVPC", config(it)));
        let chosen = calico.into_iter().chain(amazon_vpc);
        res.extend(chosen.map(|(module, path, config)| initialized(Slot::Networking, module, path, config)));
    }
    if let Some(spec::Storage { ebs, efs }) = storage {
        let ebs = ebs.as_ref().map(|it| ("aws-ebs-csi", "spec.storage.ebs", config(it)));
        let efs = efs.as_ref().map(|it| ("aws-efs-csi", "spec.storage.efs", config(it)));
        res.extend(
            ebs.into_iter()
                .chain(efs)
                .map(|(module, path, config)| ready(Slot::Storage, module, path, config)),
        );
    }
    // Last: its webhooks stand in the way of whatever comes after them.
    if let Some(controller) = ingress.as_ref().and_then(|it| it.aws_load_balancer_controller.as_ref()) {
        let path = "spec.ingress.awsLoadBalancerController";
        res.push(ready(Slot::Ingress, "aws-load-balancer-controller", path, config(controller)));
    }
    for it in &mut res {
        it.version = take_version(&mut it.config);
        share(it, image_registry.as_deref(), image_pull_secrets);
    }
    res
}

/// The version is the host's to look at: plugins do not know it.
fn take_version(config: &mut Value) -> Option<String> {
    config.as_object_mut()?.remove("version")?.as_str().map(str::to_owned)
}

/// Gives an add-on what is set for all of them. Its own registry counts before the one for all, below which
/// the paths are those of the public registries, so that one registry can hold the images of all.
fn share(wanted: &mut Wanted, registry: Option<&str>, secrets: &[spec::ImagePullSecret]) {
    let Value::Object(config) = &mut wanted.config else { return };
    if let Some(registry) = registry {
        let path = match wanted.module {
            "aws-cloud-controller-manager" => "/provider-aws",
            "aws-load-balancer-controller" => "/eks",
            _ => "",
        };
        config.entry("imageRegistry").or_insert_with(|| format!("{registry}{path}").into());
    }
    if !secrets.is_empty() {
        config.insert(
            "imagePullSecrets".to_owned(),
            secrets.iter().map(|it| serde_json::json!({"name": it.name})).collect(),
        );
    }
}

fn initialized(slot: Slot, module: &'static str, path: &'static str, config: Value) -> Wanted {
    Wanted { slot, module, path, stage: Stage::Initialized, version: None, config }
}

fn ready(slot: Slot, module: &'static str, path: &'static str, config: Value) -> Wanted {
    Wanted { slot, module, path, stage: Stage::Ready, version: None, config }
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
        let asked = json!({"clusterName": "prod", "cloudProvider": {"none": {}}, "networking": {"calico": {"encapsulation": "IPIP", "mtu": 1400}}});
        let config = json!({"encapsulation": "IPIP", "mtu": 1400, "natOutgoing": true, "resources": {}, "typhaResources": {}});
        assert_eq!(modules(asked), [("calico", config)]);
    }

    #[test]
    fn one_registry_and_its_secrets_are_for_all_and_an_add_ons_own_registry_counts_before() {
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
        let text: Vec<String> = wanted(&spec)
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
}
