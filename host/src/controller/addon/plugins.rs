//! Asks plugins for their plans in the sandbox. A bad plugin is an answer, never an error of this program.

mod faults;
mod registered;
mod verdict;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addons::grant::Grants;
use addons::upgrade::Component;
use addons::{DesiredAddOn, Inventory, Source, built_in};
use anyhow::Context;
use contract::{
    API_SERVER_VERSION, Descriptor, Diagnostic, FEATURES, Fact, FactValue, HostInfo, KUBERNETES_VERSION,
    Operation, Outcome, Request, Severity,
};
use crds::conditions::reason;
use plugin::{PluginError, Released};
use serde_json::json;
use tokio::sync::OnceCell;

use super::facts::{ALWAYS, ClusterFacts, facts};
use super::fair_queue::FairQueue;
use crate::metrics::PluginCalls;

use verdict::{failed, refused, text};

pub use registered::{ModuleProblem, Registration, Registrations};
pub use verdict::{Verdict, authorized, hints};

/// How many plugins of earlier releases are kept compiled.
const MOST_EARLIER: usize = 16;

/// The plugins that add-ons are asked for with. Each is compiled when it is first asked: most clusters use few
/// of them, and compiled code is most of what this process would otherwise hold in memory.
pub struct Plugins {
    engine: plugin::Engine,
    queue: FairQueue,
    brought: BTreeMap<&'static str, Brought>,
    /// Those that administrators registered.
    pub registered: Registrations,
    /// Components that may run.
    pub released: Released,
    /// Those of earlier releases that installed add-ons, by digest.
    earlier: Mutex<BTreeMap<String, Arc<LoadedPlugin>>>,
}

/// A plugin that this program brings.
struct Brought {
    bytes: Cow<'static, [u8]>,
    loaded: OnceCell<Arc<LoadedPlugin>>,
}

/// A plugin that was compiled and has described itself.
pub struct LoadedPlugin {
    plugin: plugin::Plugin,
    /// As it was loaded: what installed an add-on is stored again when its plan changes.
    bytes: Cow<'static, [u8]>,
    pub component: Component,
    /// Keys of the facts that it asks for.
    pub facts: Vec<String>,
    pub descriptor: Descriptor,
}

/// What a plugin answered.
pub struct Answer {
    /// Which component answered, or is installed.
    pub component: Component,
    pub verdict: Verdict,
}

impl Plugins {
    /// The plugins of an operator with this context.
    ///
    /// # Errors
    /// Those of [`Plugins::load`].
    pub fn of(context: &crate::context::Context) -> anyhow::Result<Arc<Self>> {
        let (built_in, cache) = (context.built_in_plugins.as_deref(), context.plugin_cache.as_deref());
        Self::load(context.metrics.plugin_calls(), built_in, cache).map(Arc::new)
    }

    /// The built-in plugins; where there is a `directory`, its components `<name>.wasm` in place of those
    /// compiled in, and further ones that may run in its `released.txt`. Compiled
    /// plugins are stored in the folder `cache`, when given.
    ///
    /// # Errors
    /// This machine cannot run compiled code, or a component cannot be read.
    pub fn load(
        metrics: PluginCalls,
        directory: Option<&Path>,
        cache: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let limits = plugin::Limits::default();
        let (engine, queue) = (plugin::Engine::new(limits, cache)?, FairQueue::new(limits.calls, metrics));
        let (mut brought, mut released) = (BTreeMap::new(), Released::known());
        for built_in in plugin::built_in() {
            let bytes = match directory {
                None => Cow::Borrowed(built_in.bytes),
                Some(directory) => {
                    let file = directory.join(built_in.name).with_extension("wasm");
                    Cow::Owned(std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?)
                }
            };
            brought.insert(built_in.name, Brought { bytes, loaded: OnceCell::new() });
        }
        if let Some(list) = directory.map(|directory| directory.join("released.txt")) {
            match std::fs::read_to_string(&list) {
                Ok(text) => {
                    let more = Released::read(&text).map_err(anyhow::Error::msg);
                    released = released.with(more.with_context(|| list.display().to_string())?);
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => (),
                Err(error) => return Err(error).with_context(|| format!("reading {}", list.display())),
            }
        }
        let (registered, earlier) = (Registrations::default(), Mutex::default());
        Ok(Self { engine, queue, brought, registered, released, earlier })
    }

    /// The plugin of an add-on that this program brings, or that was registered.
    ///
    /// # Errors
    /// There is none, or it cannot be used: what follows.
    pub async fn brought(&self, desired: &DesiredAddOn) -> Result<Arc<LoadedPlugin>, Verdict> {
        if let Source::Registered(module) = &desired.source {
            return self.registered(desired, module);
        }
        let Some(brought) = self.brought.get(desired.module.as_str()) else {
            let message =
                format!("{}: no plugin named {} comes with this program", desired.path, desired.module);
            return Err(Verdict::Refused(reason::PLUGIN_MISSING.into(), message));
        };
        let load = async || self.compile(&desired.module, brought.bytes.clone()).await;
        brought.loaded.get_or_try_init(load).await.cloned().map_err(|error| failed(desired, &error))
    }

    fn registered(&self, desired: &DesiredAddOn, module: &str) -> Result<Arc<LoadedPlugin>, Verdict> {
        let Some(registration) = self.registered.get(module) else {
            return Err(Verdict::Pending(format!("for PluginModule {module} to be resolved")));
        };
        registration.serving.map_err(|problem| {
            let message = format!("PluginModule {module}: {}", problem.message);
            if problem.is_temporary {
                Verdict::Pending(message)
            } else {
                Verdict::Refused(problem.reason.into(), format!("{}: {message}", desired.path))
            }
        })
    }

    /// What the plugin of an add-on may do. A module that is not there may do nothing.
    pub fn grants(&self, desired: &DesiredAddOn) -> Grants {
        match &desired.source {
            Source::BuiltIn => built_in::grants(&desired.module, &desired.config),
            Source::Registered(module) => {
                self.registered.get(module).map(|it| (*it.grants).clone()).unwrap_or_default()
            }
        }
    }

    /// Loads the component of a plugin that was registered.
    ///
    /// # Errors
    /// It is no plugin of this contract, or goes beyond a limit.
    pub async fn load_registered(
        &self,
        module: &str,
        bytes: Vec<u8>,
    ) -> Result<Arc<LoadedPlugin>, PluginError> {
        self.compile(module, Cow::Owned(bytes)).await
    }

    /// The component of this digest, if it is loaded.
    pub fn bytes(&self, module: &str, digest: &str) -> Option<Cow<'static, [u8]>> {
        let brought = self.brought.get(module).and_then(|brought| brought.loaded.get());
        let brought = brought.filter(|it| it.component.digest == digest).cloned();
        let brought = brought.or_else(|| self.registered.of_digest(digest));
        brought.or_else(|| self.lock().get(digest).cloned()).map(|loaded| loaded.bytes.clone())
    }

    /// The plugin that installed an add-on, if it is loaded or was compiled in.
    pub async fn earlier(&self, module: &str, digest: &str) -> Option<Arc<LoadedPlugin>> {
        if let Some(loaded) = self.lock().get(digest) {
            return Some(loaded.clone());
        }
        let built_in = plugin::built_in().iter().find(|it| it.name == module && it.digest == digest)?;
        let loaded = self.compile(module, Cow::Borrowed(built_in.bytes)).await.ok()?;
        Some(self.remember_earlier(loaded))
    }

    /// Loads the plugin that installed an add-on. Whether it may run was decided before.
    ///
    /// # Errors
    /// It is no plugin of this contract.
    pub async fn load_earlier(
        &self,
        desired: &DesiredAddOn,
        bytes: Cow<'static, [u8]>,
    ) -> Result<Arc<LoadedPlugin>, PluginError> {
        let loaded = match &desired.source {
            Source::BuiltIn => self.compile(&desired.module, bytes).await?,
            Source::Registered(module) => self.load_registered(module, bytes.into_owned()).await?,
        };
        Ok(self.remember_earlier(loaded))
    }

    fn remember_earlier(&self, loaded: Arc<LoadedPlugin>) -> Arc<LoadedPlugin> {
        let mut earlier = self.lock();
        if earlier.len() >= MOST_EARLIER {
            earlier.pop_first();
        }
        earlier.insert(loaded.component.digest.clone(), loaded.clone());
        loaded
    }

    async fn compile(
        &self,
        module: &str,
        bytes: Cow<'static, [u8]>,
    ) -> Result<Arc<LoadedPlugin>, PluginError> {
        let (engine, name) = (self.engine.clone(), module.to_owned());
        let compile = move || {
            let plugin = engine.load(&name, &bytes)?;
            let descriptor = plugin.describe()?.value;
            let keys = descriptor.requires["facts"].as_array().into_iter().flatten();
            let facts = keys.filter_map(|it| it.as_str().map(str::to_owned)).collect();
            let version = descriptor.version.clone();
            let component = Component { version, digest: plugin.digest().to_owned() };
            Ok(Arc::new(LoadedPlugin { plugin, bytes, component, facts, descriptor }))
        };
        let broken = |error: tokio::task::JoinError| PluginError::Host { detail: error.to_string() };
        tokio::task::spawn_blocking(compile).await.map_err(broken)?
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<LoadedPlugin>>> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a loaded plugin whether it takes the configuration of an add-on; what is wrong with it if not.
    pub async fn validate(
        &self,
        answer: &Answer,
        desired: &DesiredAddOn,
        cluster: &ClusterFacts<'_>,
        installed: Option<&Inventory>,
    ) -> Result<(), String> {
        let brought = self.brought(desired).await.ok();
        let Some(loaded) = brought.filter(|it| it.component.digest == answer.component.digest) else {
            return Ok(());
        };
        let permit = self.queue.acquire(&cluster.cluster_name()).await;
        let outcome = loaded.plugin.validate_async(loaded.request(desired, cluster, Ok(installed))).await;
        drop(permit);
        let found = outcome.map_err(|error| format!("plugin {}: {error}", desired.module))?.value;
        let errors: Vec<Diagnostic> = found.into_iter().filter(|it| it.severity == Severity::Error).collect();
        if errors.is_empty() { Ok(()) } else { Err(text(desired, &errors)) }
    }

    /// Asks a plugin for the plan of one add-on. `installed` is `Err` when it could not be read.
    pub async fn ask(
        &self,
        loaded: &LoadedPlugin,
        desired: &DesiredAddOn,
        cluster: &ClusterFacts<'_>,
        installed: Result<Option<&Inventory>, &str>,
    ) -> Answer {
        let verdict = self.ask_for(loaded, desired, cluster, installed, None).await;
        Answer { component: loaded.component.clone(), verdict }
    }

    /// What a plugin answers for another version of Kubernetes than the cluster's, if one is given.
    pub async fn ask_for(
        &self,
        loaded: &LoadedPlugin,
        desired: &DesiredAddOn,
        cluster: &ClusterFacts<'_>,
        installed: Result<Option<&Inventory>, &str>,
        version: Option<&str>,
    ) -> Verdict {
        let mut request = loaded.request(desired, cluster, installed);
        if let Some(version) = version {
            let is_version =
                |it: &&mut Fact| [KUBERNETES_VERSION, API_SERVER_VERSION].contains(&it.key.as_str());
            let value = FactValue::Present(json!(version));
            request.facts.iter_mut().filter(is_version).for_each(|it| it.value = value.clone());
        }
        let permit = self.queue.acquire(&cluster.cluster_name()).await;
        let outcome = loaded.plugin.plan_async(request).await;
        drop(permit);
        match outcome.map(|it| it.value) {
            Err(error) => failed(desired, &error),
            Ok(Err(failure)) => refused(desired, failure),
            Ok(Ok(Outcome::Complete(plan))) => authorized(desired, plan, &self.grants(desired)),
            Ok(Ok(Outcome::Pending(diagnostics))) => Verdict::Pending(text(desired, &diagnostics)),
            Ok(Ok(Outcome::Needs(needs))) => {
                let keys: Vec<&str> = needs.iter().map(|it| it.key.as_str()).collect();
                let message = format!(
                    "plugin {} asks for {}, which this host does not answer",
                    desired.module,
                    keys.join(", ")
                );
                Verdict::Refused(reason::NEEDS_DENIED.into(), message)
            }
        }
    }
}

impl LoadedPlugin {
    /// What it is asked with: the facts that it named and no others.
    fn request(
        &self,
        desired: &DesiredAddOn,
        cluster: &ClusterFacts<'_>,
        installed: Result<Option<&Inventory>, &str>,
    ) -> Request {
        let mut request = request(desired, cluster, installed);
        request.facts.retain(|it| self.facts.contains(&it.key) || ALWAYS.contains(&it.key.as_str()));
        request
    }
}

fn request(
    desired: &DesiredAddOn,
    cluster: &ClusterFacts<'_>,
    installed: Result<Option<&Inventory>, &str>,
) -> Request {
    let before = installed.ok().flatten();
    let is_upgrade = before.is_some_and(|it| it.config != desired.config);
    Request {
        operation: if is_upgrade { Operation::Upgrade } else { Operation::Install },
        host: HostInfo {
            version: env!("CARGO_PKG_VERSION").into(),
            features: FEATURES.iter().map(|it| (*it).to_owned()).collect(),
        },
        installed_version: before.map(|it| it.version.clone()),
        previous_config: before.map(|it| it.config.clone()),
        config: desired.config.clone(),
        facts: facts(cluster, installed),
        extra: json!({}),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crds::cluster_api::{Cluster, KubeadmControlPlane};

    use super::*;

    #[tokio::test]
    async fn a_plugin_is_asked_for_the_version_that_is_wanted() {
        let cluster: Cluster =
            serde_json::from_value(json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "one", "namespace": "default"}, "spec": {}}))
            .expect("a Cluster");
        let control_plane: KubeadmControlPlane = serde_json::from_value(
            json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": {"name": "one"}, "spec": {"version": "v1.36.0"}}),
        )
        .expect("a KubeadmControlPlane");
        let facts = ClusterFacts {
            cluster: &cluster,
            control_plane: Some(&control_plane),
            aws_cluster: None,
            requested: [(API_SERVER_VERSION, FactValue::Present(json!("v1.35.2")))].into(),
            profiles: Err("no matter".into()),
        };
        let spec = json!({"clusterName": "one", "cloudProvider": {"aws": {}}});
        let desired = addons::desired(&serde_json::from_value(spec).expect("a spec")).remove(0);
        let plugins = Plugins::load(PluginCalls::default(), None, None).expect("the built-in plugins");
        let Ok(loaded) = plugins.brought(&desired).await else { panic!("it is built in") };
        for (version, expected) in [
            (None, ":v1.35."),
            (Some("v1.36.3"), ":v1.36."),
            (Some("v1.34.0"), ":v1.34."),
            (Some("v1.37.0"), ""),
        ] {
            match plugins.ask_for(&loaded, &desired, &facts, Ok(None), version).await {
                Verdict::Plan(plan, _) => {
                    let text = json!(plan.steps).to_string();
                    assert!(!expected.is_empty() && text.contains(expected), "{version:?}: {text}");
                }
                Verdict::Unsupported(message) => {
                    assert!(expected.is_empty() && message.contains("v1.37.0"), "{version:?}: {message}");
                }
                _ => panic!("{version:?} has no plan"),
            }
        }
    }

    #[test]
    fn what_goes_wrong_with_a_plugin_has_a_documented_reason() {
        let documented: BTreeSet<&str> =
            crds::conditions::reason::ALL.iter().map(|(reason, _)| *reason).collect();
        let source = include_str!("../../../plugin/src/error.rs");
        let reasons: Vec<&str> = source
            .lines()
            .filter_map(|line| line.trim().split_once("=> \"")?.1.strip_suffix("\","))
            .collect();
        assert!(reasons.len() > 15, "{reasons:?}");
        let missing: Vec<&&str> = reasons.iter().filter(|reason| !documented.contains(**reason)).collect();
        assert!(missing.is_empty(), "not in crds/src/conditions.rs: {missing:?}");
    }
}
