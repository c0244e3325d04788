//! The add-ons that a ClusterPlugin asks for: which plugin fills which slot, and with what configuration.

use crds::ClusterPluginSpec;
use crds::cluster_plugin::{self as api, Module};
use serde_json::{Value, json};

use crate::built_in::{self, BUILT_IN};
use crate::{Inventory, Registered, Slot, Stage};

/// Where the plugin of an add-on comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// It comes with the host.
    BuiltIn,
    /// It was registered: the name of the PluginModule.
    Registered(String),
}

/// One add-on as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredAddOn {
    pub slot: Slot,
    /// What it is called in the cluster and in the status: by its plugin, by its PluginModule in a slot, or by its
    /// entry among `spec.plugins`. No two have one name.
    pub module: String,
    pub source: Source,
    /// Where in the ClusterPlugin it is asked for.
    pub path: String,
    pub stage: Stage,
    /// Slots and names of add-ons that must be running before.
    pub after: Vec<String>,
    /// The version that the user wants, if they name one.
    pub version: Option<String>,
    pub config: Value,
}

/// The add-ons of a ClusterPlugin, in the order in which they are installed; the opposite order is that of
/// their removal. Slots that the API server refuses for now do not appear.
pub fn desired(spec: &ClusterPluginSpec) -> Vec<DesiredAddOn> {
    let built_in = BUILT_IN.iter().filter_map(|add_on| {
        let mut config = (add_on.settings)(spec)?;
        let version = take_version(&mut config);
        share(&mut config, add_on.image_path, spec);
        let (slot, module, path) = (add_on.slot, add_on.name.to_owned(), add_on.path.to_owned());
        let (source, after) = (Source::BuiltIn, Vec::new());
        Some(DesiredAddOn { slot, module, source, path, stage: slot.stage(), after, version, config })
    });
    let mut desired: Vec<DesiredAddOn> = built_in.chain(in_slots(spec)).collect();
    desired.sort_by_key(|it| it.slot);
    desired.extend(spec.plugins.iter().enumerate().map(beside_slots));
    desired
}

/// Modules in slots.
fn in_slots(spec: &ClusterPluginSpec) -> impl Iterator<Item = DesiredAddOn> {
    let modules = [
        (Slot::CloudProvider, spec.cloud_provider.module.as_ref()),
        (Slot::Networking, spec.networking.as_ref().and_then(|it| it.module.as_ref())),
        (Slot::Storage, spec.storage.as_ref().and_then(|it| it.module.as_ref())),
        (Slot::Ingress, spec.ingress.as_ref().and_then(|it| it.module.as_ref())),
    ];
    let add_on = |(slot, module): (Slot, &Module)| DesiredAddOn {
        slot,
        module: module.name.clone(),
        source: Source::Registered(module.name.clone()),
        path: slot.path_of_modules().to_owned(),
        stage: slot.stage(),
        after: Vec::new(),
        version: module.pin.version.clone(),
        config: Value::Object(module.config.clone()),
    };
    modules.into_iter().filter_map(|(slot, module)| Some((slot, module?))).map(add_on)
}

/// An entry among the plugins beside the slots.
fn beside_slots((place, plugin): (usize, &api::Plugin)) -> DesiredAddOn {
    DesiredAddOn {
        slot: Slot::Other,
        module: plugin.name.clone(),
        source: Source::Registered(plugin.module.clone()),
        path: format!("{}[{place}]", Slot::Other.path_of_modules()),
        stage: match plugin.stage {
            api::Stage::Initialized => Stage::Initialized,
            api::Stage::Ready => Stage::Ready,
        },
        after: plugin.after.clone(),
        version: plugin.pin.version.clone(),
        config: Value::Object(plugin.config.clone()),
    }
}

impl DesiredAddOn {
    /// An add-on as it was asked for when this was recorded. `None`: its plugin neither comes with the host nor was
    /// registered.
    pub fn recorded(record: &Inventory) -> Option<DesiredAddOn> {
        let slot = record.slot()?;
        let source = match (&record.registered, built_in::find(&record.module)) {
            (Some(registered), None) => Source::Registered(registered.module.clone()),
            _ => Source::BuiltIn,
        };
        Some(DesiredAddOn {
            slot,
            module: record.module.clone(),
            source,
            path: record.path().to_owned(),
            stage: slot.stage(),
            after: Vec::new(),
            version: None,
            config: record.config.clone(),
        })
    }

    /// Where in the ClusterPlugin its configuration stands.
    pub fn path_of_config(&self) -> String {
        match self.source {
            Source::BuiltIn => self.path.clone(),
            Source::Registered(_) => format!("{}.config", self.path),
        }
    }

    /// Whether its plugin is this PluginModule's.
    pub fn is_of_module(&self, module: &str) -> bool {
        matches!(&self.source, Source::Registered(name) if name == module)
    }

    /// What its record says of a plugin that does not come with the host.
    pub fn registered(&self) -> Option<Registered> {
        match &self.source {
            Source::BuiltIn => None,
            Source::Registered(module) => Some(Registered { module: module.clone(), slot: self.slot }),
        }
    }
}

impl Inventory {
    /// What it is for. `None`: its plugin neither comes with the host nor was registered.
    pub fn slot(&self) -> Option<Slot> {
        match built_in::find(&self.module) {
            Some(add_on) => Some(add_on.slot),
            None => self.registered.as_ref().map(|it| it.slot),
        }
    }

    /// Where in a ClusterPlugin it is asked for.
    pub fn path(&self) -> &'static str {
        let of_slot = || self.slot().unwrap_or(Slot::Other).path_of_modules();
        built_in::find(&self.module).map_or_else(of_slot, |add_on| add_on.path)
    }
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

    fn modules(value: Value) -> Vec<(String, Value)> {
        let spec: ClusterPluginSpec = serde_json::from_value(value).unwrap();
        desired(&spec).into_iter().map(|it| (it.module, it.config)).collect()
    }

    #[test]
    fn the_cloud_provider_is_installed_unless_the_user_brings_one() {
        assert_eq!(
            modules(json!({"clusterName": "prod"})),
            [("aws-cloud-controller-manager".into(), json!({}))]
        );
        assert_eq!(modules(json!({"clusterName": "prod", "cloudProvider": {"none": {}}})), []);
    }

    #[test]
    fn settings_of_a_slot_are_the_configuration_of_its_plugin() {
        let asked = json!({"clusterName": "prod", "cloudProvider": {"none": {}}, "networking": {"calico": {"encapsulation": "IPIP", "mtu": 1400}}});
        let config = json!({"encapsulation": "IPIP", "mtu": 1400, "natOutgoing": true, "resources": {}, "typhaResources": {}});
        assert_eq!(modules(asked), [("calico".into(), config)]);
    }

    #[test]
    fn modules_are_in_slots_and_beside_them() {
        let asked = json!({"clusterName": "prod", "cloudProvider": {"none": {}}, "storage": {"ebs": {}},
            "networking": {"module": {"name": "cilium", "version": "1.2", "config": {"mtu": 1400}}},
            "plugins": [{"name": "metrics", "module": "acme-metrics", "stage": "Initialized", "after": ["networking"]},
                {"name": "dns", "module": "acme-dns", "config": {"a": 1}}]});
        let desired = desired(&serde_json::from_value(asked).expect("a spec"));
        let text = |it: &DesiredAddOn| {
            let version = it.version.as_deref().unwrap_or("-");
            format!(
                "{:?} {} {:?} {:?} {version} {:?} {}",
                it.slot,
                it.module,
                it.source,
                it.stage,
                it.after,
                it.path_of_config()
            )
        };
        expect_test::expect![[r#"
            Networking cilium Registered("cilium") Initialized 1.2 [] spec.networking.module.config
            Storage aws-ebs-csi BuiltIn Ready - [] spec.storage.ebs
            Other metrics Registered("acme-metrics") Initialized - ["networking"] spec.plugins[0].config
            Other dns Registered("acme-dns") Ready - [] spec.plugins[1].config"#]]
        .assert_eq(&desired.iter().map(text).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn an_add_ons_own_registry_counts_before_the_one_for_all() {
        let asked = json!({"clusterName": "prod", "imageRegistry": "registry.example.com/mirror", "imagePullSecrets": [{"name": "mirror"}],
            "networking": {"amazonVPC": {}}, "storage": {"ebs": {"imageRegistry": "other.example.com"}, "efs": {}},
            "ingress": {"awsLoadBalancerController": {}}});
        let of = |(module, config): &(String, Value)| {
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
