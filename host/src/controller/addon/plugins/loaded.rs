//! A plugin that was compiled and has described itself, and what it is asked with.

use std::borrow::Cow;
use std::sync::Arc;

use addons::order::Requirements;
use addons::upgrade::Component;
use addons::{DesiredAddOn, Inventory};
use contract::{Descriptor, FEATURES, HostInfo, Operation, Request};
use crds::plugin_module::LimitGrants;
use plugin::{ConfigSchema, Limits};
use serde_json::{Value, json};

use crate::controller::addon::facts::{ALWAYS, ClusterFacts, facts};

/// A plugin that was compiled and has described itself.
#[derive(Clone)]
pub struct LoadedPlugin {
    pub(super) plugin: plugin::Plugin,
    /// As it was loaded: what installed an add-on is stored again when its plan changes.
    pub(super) bytes: Cow<'static, [u8]>,
    pub component: Component,
    /// Keys of the facts that it asks for.
    pub facts: Vec<String>,
    /// What it needs of other add-ons.
    pub requires: Requirements,
    /// Of its configuration.
    pub(super) schema: Arc<ConfigSchema>,
    pub descriptor: Descriptor,
}

impl LoadedPlugin {
    /// One that introduced itself.
    pub(super) fn new(
        plugin: plugin::Plugin,
        bytes: Cow<'static, [u8]>,
        (descriptor, schema): (Descriptor, ConfigSchema),
    ) -> Self {
        let keys = descriptor.requires["facts"].as_array().into_iter().flatten();
        let facts = keys.filter_map(|it| it.as_str().map(str::to_owned)).collect();
        let version = descriptor.version.clone();
        let component = Component { version, digest: plugin.digest().to_owned() };
        let requires = Requirements::of(&descriptor.requires);
        let schema = Arc::new(schema);
        LoadedPlugin { plugin, bytes, component, facts, requires, schema, descriptor }
    }

    /// The same plugin within the limits that it is granted.
    pub fn within(&self, granted: &LimitGrants) -> LoadedPlugin {
        let bytes =
            |granted: Option<u64>| granted.map_or(usize::MAX, |it| it.try_into().unwrap_or(usize::MAX));
        let limits = Limits {
            fuel: granted.fuel.unwrap_or(u64::MAX),
            memory: bytes(granted.memory),
            answer: bytes(granted.plan_size),
            ..Limits::default()
        };
        LoadedPlugin { plugin: self.plugin.within(limits), ..self.clone() }
    }

    /// What it is asked with: the facts that it named and no others.
    pub(super) fn request(
        &self,
        desired: &DesiredAddOn,
        cluster: &ClusterFacts<'_>,
        installed: Result<Option<&Inventory>, &str>,
    ) -> Request {
        let mut request = request(desired, cluster, &self.component.digest, installed);
        request.facts.retain(|it| self.facts.contains(&it.key) || ALWAYS.contains(&it.key.as_str()));
        request
    }
}

pub(super) fn request(
    desired: &DesiredAddOn,
    cluster: &ClusterFacts<'_>,
    digest: &str,
    installed: Result<Option<&Inventory>, &str>,
) -> Request {
    let before = installed.ok().flatten();
    let is_upgrade = before.is_some_and(|it| is_upgrade(it, digest, &desired.config));
    // What is being replaced is what was carried out last.
    let replaced = before.filter(|it| it.digest == digest).and_then(Inventory::replaced);
    Request {
        operation: if is_upgrade { Operation::Upgrade } else { Operation::Install },
        host: HostInfo {
            version: env!("CARGO_PKG_VERSION").into(),
            features: FEATURES.iter().map(|it| (*it).to_owned()).collect(),
        },
        installed_version: before.map(|it| replaced.map_or(&it.version, |it| &it.version).clone()),
        previous_config: before.map(|it| replaced.map_or(&it.config, |it| &it.config).clone()),
        config: desired.config.clone(),
        facts: facts(cluster, installed),
        extra: json!({}),
    }
}

/// Whether this component and configuration take the place of others, until they have: the plan must not be
/// another one as soon as it has begun to be carried out.
fn is_upgrade(installed: &Inventory, digest: &str, config: &Value) -> bool {
    let is_under_way = !installed.complete && !installed.plan_hash.is_empty() && installed.was_whole();
    installed.digest != digest || installed.config != *config || is_under_way
}
