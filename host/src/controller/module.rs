//! Reconciles PluginModules: reads the component of each from where its spec says, has it described in the
//! sandbox, and tells the controller of add-ons what serves. The last good component serves until the next one
//! can. What follows from what a plugin says of itself is decided in `addons::plugin_module`.

mod source;

use std::sync::Arc;
use std::time::Duration;

use addons::built_in;
use addons::plugin_module::{Loaded, not_granted, operator_status};
use crds::conditions::reason;
use crds::plugin_module::PluginModuleSpec;
use crds::{ClusterPlugin, PluginModule, names};
use kube::ResourceExt;
use model::condition::ConditionState;
use serde_json::json;

use super::addon::plugins::{LoadedPlugin, ModuleProblem, Origin, Plugins, Registration};
use super::queue::Trigger;
use super::reconcile::{Controller, Memory, ReconcileResult};
use crate::context::Context;
use crate::management::{Cached, Error};
use crate::object_name::ObjectName;
use crate::system::now;
use source::SourceId;

/// How soon a source that did not answer is asked again, one that has not what the spec says, and a component that
/// cannot be used, which is the same each time.
const UNREACHABLE: Duration = Duration::from_secs(30);
const WRONG_SOURCE: Duration = Duration::from_secs(60);
const WRONG_COMPONENT: Duration = Duration::from_secs(300);

/// The controller of PluginModules.
pub struct Modules {
    context: Context,
    plugins: Arc<Plugins>,
    /// Has ClusterPlugins reconciled; `None` where nobody does.
    cluster_plugins: Option<Trigger>,
    memory: Memory<Known>,
}

/// What is known of a module between two reconciliations.
#[derive(Default)]
struct Known {
    /// What the spec names, once it was tried, and what became of it.
    newest: Option<(SourceId, Result<Arc<LoadedPlugin>, ModuleProblem>)>,
    /// What serves.
    serving: Option<(SourceId, Arc<LoadedPlugin>)>,
    /// Who may use it is in the spec too: its users were told of this generation.
    generation: Option<i64>,
    /// When what went wrong is tried again.
    retry: Option<tokio::time::Instant>,
}

impl Controller for Modules {
    const NAME: &'static str = "pluginmodule";
    fn context(&self) -> &Context {
        &self.context
    }

    async fn reconcile(&self, name: &ObjectName) -> Result<ReconcileResult, Error> {
        let object = self.context.management.get::<PluginModule>(name);
        // Several operators share one object, whatever label each looks for.
        let Some(object) = object.filter(|it| !it.is_deleting()) else {
            self.plugins.registered.remove(&name.name);
            self.memory.take(name);
            self.enqueue_users(&name.name);
            return Ok(ReconcileResult::Settled);
        };
        let mut known = self.memory.take(name);
        let resolved = self.resolve(&object, &mut known).await;
        let retry = known.retry;
        self.memory.put(name, known);
        resolved?;
        Ok(match retry {
            Some(until) => ReconcileResult::Waiting { until: Some(until) },
            None => ReconcileResult::Settled,
        })
    }
}

impl Modules {
    pub fn new(context: Context, plugins: Arc<Plugins>, cluster_plugins: Option<Trigger>) -> Self {
        let modules = Self { context, plugins, cluster_plugins, memory: Memory::default() };
        // Before anything is planned: until then a built-in plugin would have all its grants.
        for object in modules.context.management.list::<PluginModule>() {
            if built_in::find(&object.name_any()).is_some() && !object.is_deleting() {
                modules.narrow(&object);
            }
        }
        modules
    }

    /// Narrows what the built-in plugin of the module's name may do.
    fn narrow(&self, object: &PluginModule) {
        let problem = ModuleProblem {
            reason: reason::MODULE_NOT_READY,
            message: "it has the name of a built-in plugin".to_owned(),
            origin: Origin::Component,
        };
        let grants = Arc::new(object.spec.grants.clone());
        self.register(&object.name_any(), Registration { grants, serving: Err(problem) });
    }

    /// Finds out what serves a module, and reports it.
    async fn resolve(&self, object: &Arc<Cached<PluginModule>>, known: &mut Known) -> Result<(), Error> {
        let (name, spec) = (object.name_any(), &object.spec);
        let grants = Arc::new(spec.grants.clone());
        if known.generation != object.metadata.generation {
            known.generation = object.metadata.generation;
            // What was withdrawn counts at once, however long a new component takes.
            if let Some(before) = self.plugins.registered.get(&name) {
                self.plugins.registered.set(&name, Registration { grants: grants.clone(), ..before });
            }
            self.enqueue_users(&name);
        }
        if built_in::find(&name).is_some() {
            let message = "it narrows what the built-in plugin of its name may do";
            let state = ConditionState { message: message.to_owned(), ..ConditionState::yes() };
            self.narrow(object);
            return self.report(object, None, Vec::new(), state).await;
        }
        self.read(object, known).await;
        let Some((id, newest)) = &known.newest else { return Ok(()) };
        let mut lacking = Vec::new();
        let problem = match newest {
            Ok(loaded) => {
                lacking = not_granted(&loaded.descriptor, &grants);
                if lacking.is_empty() {
                    known.serving = Some((id.clone(), loaded.clone()));
                    None
                } else {
                    Some(ModuleProblem {
                        reason: reason::PENDING_APPROVAL,
                        message: format!(
                            "version {} ({}) asks for more than is granted: {}; grant it, or name another component",
                            loaded.component.version,
                            loaded.component.digest,
                            lacking.join(", ")
                        ),
                        origin: Origin::Component,
                    })
                }
            }
            Err(problem) => Some(problem.clone()),
        };
        let within = |(id, loaded): &(SourceId, Arc<LoadedPlugin>)| {
            (id.clone(), Arc::new(loaded.within(&grants.limits)))
        };
        let serving = known.serving.as_ref().map(within);
        let state = state_of(problem.as_ref(), serving.as_ref().map(|(_, loaded)| loaded));
        let registration = Registration {
            grants,
            serving: match (&serving, problem.clone()) {
                (Some((_, loaded)), _) => Ok(loaded.clone()),
                (None, Some(problem)) => Err(problem),
                (None, None) => return Ok(()),
            },
        };
        self.register(&name, registration);
        self.report(object, serving, lacking, state).await
    }

    /// Reads the component that the spec names, unless that was done before.
    async fn read(&self, object: &Cached<PluginModule>, known: &mut Known) {
        let (name, id) = (object.name_any(), SourceId::of(&object.spec));
        let is_known = known.newest.as_ref().is_some_and(|(newest, _)| *newest == id);
        let is_due = known.retry.is_some_and(|it| it <= tokio::time::Instant::now());
        if is_known && !is_due {
            return;
        }
        if let Some((_, loaded)) = known.serving.as_ref().filter(|(serving, _)| *serving == id) {
            (known.newest, known.retry) = (Some((id, Ok(loaded.clone()))), None);
            return;
        }
        let result = self.load(&name, &object.spec, &id).await;
        if let Err(problem) = &result {
            tracing::warn!(module = name, reason = problem.reason, "{}", problem.message);
            if known.serving.is_none() {
                known.serving = self.last_good(object, &id).await;
            }
        }
        known.retry = result.as_ref().err().map(|problem| {
            let delay = match problem.origin {
                Origin::Outage => UNREACHABLE,
                Origin::Source => WRONG_SOURCE,
                Origin::Component => WRONG_COMPONENT,
            };
            tokio::time::Instant::now() + delay
        });
        known.newest = Some((id, result));
    }

    async fn load(
        &self,
        name: &str,
        spec: &PluginModuleSpec,
        id: &SourceId,
    ) -> Result<Arc<LoadedPlugin>, ModuleProblem> {
        let bytes = match self.plugins.stored(&id.text()) {
            Some(bytes) => bytes,
            None => source::read(&self.context, spec).await?,
        };
        let loaded = self.plugins.load_registered(name, bytes).await.map_err(|error| ModuleProblem {
            reason: error.reason(),
            message: error.to_string(),
            origin: if error.is_permanent() { Origin::Component } else { Origin::Outage },
        })?;
        self.plugins.store_source(&id.text(), &loaded);
        Ok(loaded)
    }

    /// What served when an earlier process reported it, if that was verified as it has to be today. Only the place
    /// to look is taken from the status: what is stored there was verified by this operator.
    async fn last_good(
        &self,
        object: &Cached<PluginModule>,
        id: &SourceId,
    ) -> Option<(SourceId, Arc<LoadedPlugin>)> {
        let said = object.status.as_ref()?.operators.iter().find(|it| *it.name == *self.context.operator)?;
        let before = id.with_digest(&said.source_digest);
        let bytes = self.plugins.stored(&before.text())?;
        let loaded = self.plugins.load_registered(&object.name_any(), bytes).await.ok()?;
        let lacks_nothing = not_granted(&loaded.descriptor, &object.spec.grants).is_empty();
        lacks_nothing.then_some((before, loaded))
    }

    /// Tells those who use the module, if something is new.
    fn register(&self, name: &str, registration: Registration) {
        let digest = |it: &Registration| {
            it.serving.as_ref().map(|it| it.component.digest.clone()).map_err(Clone::clone)
        };
        let before = self.plugins.registered.get(name);
        let is_same =
            before.is_some_and(|it| it.grants == registration.grants && digest(&it) == digest(&registration));
        self.plugins.registered.set(name, registration);
        if !is_same {
            self.enqueue_users(name);
        }
    }

    /// Has the ClusterPlugins reconciled that name a module.
    fn enqueue_users(&self, module: &str) {
        let Some(trigger) = &self.cluster_plugins else { return };
        for object in self.context.management.list::<ClusterPlugin>() {
            // A built-in plugin of its name is narrowed.
            let is_user =
                addons::desired(&object.spec).iter().any(|it| it.is_of_module(module) || it.module == module);
            if is_user {
                trigger.enqueue(object.object_name());
            }
        }
    }

    async fn report(
        &self,
        object: &Arc<Cached<PluginModule>>,
        serving: Option<(SourceId, Arc<LoadedPlugin>)>,
        lacking: Vec<String>,
        state: ConditionState<'_>,
    ) -> Result<(), Error> {
        if self.context.management.is_read_only()
            || object.annotations().contains_key(names::PAUSED_ANNOTATION)
        {
            return Ok(());
        }
        let operator = &*self.context.operator;
        let all = object.status.as_ref().map(|it| it.operators.as_slice()).unwrap_or_default();
        let before = all.iter().find(|it| it.name == operator);
        let loaded = serving.as_ref().map(|(id, loaded)| Loaded {
            source_digest: &id.digest,
            component: &loaded.component,
            descriptor: &loaded.descriptor,
        });
        let generation = object.metadata.generation.unwrap_or_default();
        let status = operator_status(before, operator, generation, loaded, lacking, state, now());
        if before == Some(&status) {
            return Ok(());
        }
        let manager = format!("cluster-operator-{operator}");
        let status = json!({"operators": [status]});
        self.context.management.apply_status(object, &manager, status).await.map(drop)
    }
}

/// What the condition `Ready` says.
fn state_of<'a>(
    problem: Option<&'a ModuleProblem>,
    serving: Option<&Arc<LoadedPlugin>>,
) -> ConditionState<'a> {
    let Some(ModuleProblem { reason, message, .. }) = problem else { return ConditionState::yes() };
    let serves =
        serving.map(|it| format!("; version {} ({}) serves", it.component.version, it.component.digest));
    ConditionState::no(reason, format!("{message}{}", serves.unwrap_or_default()))
}
