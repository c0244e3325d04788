//! Asks plugins for their plans in the sandbox. A bad plugin is an answer, never an error of this program.

mod checks;
mod faults;
mod going;
#[cfg(test)]
pub mod guest;
mod loaded;
mod registered;
#[cfg(test)]
mod tests;
mod verdict;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addons::grant::{Grants, narrowed};
use addons::upgrade::Component;
use addons::{DesiredAddOn, Inventory, Source, built_in};
use anyhow::Context;
use contract::{API_SERVER_VERSION, Fact, FactValue, KUBERNETES_VERSION, Outcome, Request};
use crds::conditions::reason;
use plugin::{Compiler, CompilerLimits, PluginError, Released};
use serde_json::json;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::facts::ClusterFacts;
use super::fair_queue::FairQueue;
use super::queries::{Asking, Rounds};
use crate::metrics::PluginCalls;

use checks::Checked;
use faults::{Faults, Question};
use verdict::{failed, refused, text};

pub use loaded::LoadedPlugin;
pub use registered::{ModuleProblem, Origin, Registration, Registrations};
pub use verdict::{Verdict, authorized, hints};

/// Bytes of a component that may fit into a cluster once it is compressed.
const MOST_KEPT: usize = 4 << 20;
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
    checked: Checked,
    faults: Faults,
}

/// A plugin that this program brings.
struct Brought {
    bytes: Cow<'static, [u8]>,
    loaded: OnceCell<Arc<LoadedPlugin>>,
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
        // Its own program: another one could be another version.
        let compiler = Compiler::new("/proc/self/exe", ["compile-plugin"], CompilerLimits::default());
        let engine = plugin::Engine::new(limits, cache)?.with_compiler(compiler);
        let queue = FairQueue::new(limits.calls, metrics);
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
        let (checked, faults) = (Checked::default(), Faults::default());
        Ok(Self { engine, queue, brought, registered, released, earlier, checked, faults })
    }

    /// The plugin of an add-on that this program brings, or that was registered.
    ///
    /// # Errors
    /// There is none, or it cannot be used: what follows.
    pub async fn brought(&self, desired: &DesiredAddOn) -> Result<Arc<LoadedPlugin>, Verdict> {
        if let Source::Registered(module) = &desired.source {
            return self.registered(desired, module).map_err(|verdict| *verdict);
        }
        let Some(brought) = self.brought.get(desired.module.as_str()) else {
            let message =
                format!("{}: no plugin named {} comes with this program", desired.path, desired.module);
            return Err(Verdict::Refused(reason::PLUGIN_MISSING.into(), message));
        };
        let load = async || self.compile(&desired.module, brought.bytes.clone()).await;
        brought
            .loaded
            .get_or_try_init(load)
            .await
            .cloned()
            .map_err(|error| failed(desired, error.reason(), error.to_string()))
    }

    fn registered(&self, desired: &DesiredAddOn, module: &str) -> Result<Arc<LoadedPlugin>, Box<Verdict>> {
        let Some(registration) = self.registered.get(module) else {
            let what = format!("for PluginModule {module} to be resolved");
            return Err(Box::new(Verdict::Pending(what)));
        };
        registration.serving.map_err(|problem| {
            let message = format!("PluginModule {module}: {}", problem.message);
            Box::new(if problem.origin == Origin::Outage {
                Verdict::Pending(message)
            } else {
                Verdict::Refused(problem.reason.into(), format!("{}: {message}", desired.path))
            })
        })
    }

    /// What the plugin of an add-on may do. A module that is not there may do nothing.
    pub fn grants(&self, desired: &DesiredAddOn) -> Grants {
        match &desired.source {
            Source::BuiltIn => {
                let grants = built_in::grants(&desired.module, &desired.config);
                match self.registered.get(&desired.module) {
                    Some(narrows) => narrowed(&grants, &narrows.grants),
                    None => grants,
                }
            }
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
        let plugin = self.engine.load_foreign(module, bytes.as_slice().into()).await?;
        let introduced = plugin.introduce_async().await?;
        // What is too large for a cluster is not kept for one.
        let bytes = if bytes.len() <= MOST_KEPT { Cow::Owned(bytes) } else { Cow::Borrowed(&[][..]) };
        Ok(Arc::new(LoadedPlugin::new(plugin, bytes, introduced)))
    }

    /// The component of this digest of a plugin that was registered, if this operator stored it.
    pub fn stored_component(&self, digest: &str) -> Option<Vec<u8>> {
        self.engine.stored(digest)
    }

    /// The component that was read from a source before, and verified, if it was stored.
    pub fn stored(&self, source: &str) -> Option<Vec<u8>> {
        self.engine.stored(&self.engine.component_of(source)?)
    }

    /// A component was read from a source and verified.
    pub fn store_source(&self, source: &str, loaded: &LoadedPlugin) {
        self.engine.store_source(source, &loaded.component.digest);
    }

    /// The component of this digest, if it is loaded.
    pub fn bytes(&self, module: &str, digest: &str) -> Option<Cow<'static, [u8]>> {
        let brought = self.brought.get(module).and_then(|brought| brought.loaded.get());
        let brought = brought.filter(|it| it.component.digest == digest).cloned();
        let brought = brought.or_else(|| self.registered.of_digest(digest));
        let loaded = brought.or_else(|| self.lock().get(digest).cloned())?;
        Some(loaded.bytes.clone()).filter(|bytes| !bytes.is_empty())
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
            Source::Registered(module) => {
                let loaded = self.load_registered(module, bytes.into_owned()).await?;
                Arc::new(loaded.within(&self.grants(desired).limits))
            }
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
            let introduced = plugin.introduce()?;
            Ok(Arc::new(LoadedPlugin::new(plugin, bytes, introduced)))
        };
        let broken = |error: tokio::task::JoinError| PluginError::Host { detail: error.to_string() };
        tokio::task::spawn_blocking(compile).await.map_err(broken)?
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<LoadedPlugin>>> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
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
        let question = Question::new(cluster.cluster_name(), &loaded.component.digest, &desired.config);
        if let Some(resting) = self.faults.resting(&question, Instant::now()) {
            return failed(desired, resting.reason, resting.message);
        }
        match self.converse(loaded, desired, cluster, installed, request).await {
            Ok(verdict) => {
                self.faults.answered(&question);
                verdict
            }
            Err(error) => {
                self.faults.failed(question, error.reason(), error.to_string(), Instant::now());
                failed(desired, error.reason(), error.to_string())
            }
        }
    }

    /// Asks whether a configuration can be taken, and then for its plan, until the plugin knows enough.
    async fn converse(
        &self,
        loaded: &LoadedPlugin,
        desired: &DesiredAddOn,
        cluster: &ClusterFacts<'_>,
        installed: Result<Option<&Inventory>, &str>,
        mut request: Request,
    ) -> Result<Verdict, PluginError> {
        let name = cluster.cluster_name();
        let warnings = match self.check(loaded, desired, &name, &request).await? {
            Ok(warnings) => warnings,
            Err(verdict) => return Ok(verdict),
        };
        let grants = self.grants(desired);
        let asking = Asking { module: &desired.module, grants: &grants, installed };
        let mut rounds = Rounds::default();
        loop {
            let permit = self.queue.acquire(&name).await;
            let outcome = loaded.plugin.plan_async(request.clone()).await;
            drop(permit);
            match outcome?.value {
                Err(failure) => return Ok(refused(desired, failure)),
                Ok(Outcome::Complete(plan)) => {
                    return Ok(authorized(desired, plan, &grants).and_warn(warnings));
                }
                Ok(Outcome::Pending(diagnostics)) => {
                    return Ok(Verdict::Pending(text(desired, &diagnostics)));
                }
                Ok(Outcome::Needs(needs)) => {
                    let answered = rounds.answer(&needs, &mut request, &cluster.queries, asking).await;
                    if let Err((reason, message)) = answered {
                        return Ok(Verdict::Refused(reason.into(), message));
                    }
                }
            }
        }
    }
}
