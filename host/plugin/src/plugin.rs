//! A loaded plugin: three questions, each answered by a fresh instance.

use crate::answer;
use crate::bindings::PluginPre;
use crate::bindings::exports::kurator::cluster_plugin::planner::Guest as Planner;
use crate::clock;
use crate::convert;
use crate::error::PluginError;
use crate::guest::{Guest, MOST_BYTES, MOST_MESSAGES, Refusal};
use crate::limits::Limits;
use crate::schema::ConfigSchema;
use contract::{Descriptor, Diagnostic, Failure, Outcome, Request};
use std::sync::Arc;
use tokio::sync::Semaphore;
use wasmtime::{Store, Trap};

/// What wasmtime says when an answer exceeds the limit; it has no type for it.
const ANSWER_TOO_LARGE: &str = "fuel allocated for hostcalls has been exhausted";

/// What a plugin said, and what it took.
#[derive(Clone, Debug)]
pub struct Answer<T> {
    pub value: T,
    /// Units of fuel; the same for the same question.
    pub fuel: u64,
}

/// A loaded plugin. Cheap to clone. Each question blocks for at most about a second; the `_async` forms ask
/// where blocking is allowed, and no more at once than the engine's limit says.
#[derive(Clone)]
pub struct Plugin {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    digest: String,
    pre: PluginPre<Guest>,
    limits: Limits,
    calls: Arc<Semaphore>,
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin")
            .field("name", &self.inner.name)
            .field("digest", &self.inner.digest)
            .finish_non_exhaustive()
    }
}

impl Plugin {
    pub(crate) fn new(
        name: &str,
        digest: String,
        pre: PluginPre<Guest>,
        limits: Limits,
        calls: Arc<Semaphore>,
    ) -> Plugin {
        Plugin { inner: Arc::new(Inner { name: name.to_owned(), digest, pre, limits, calls }) }
    }

    /// The same plugin within these limits, where they are lower than its own.
    #[must_use]
    pub fn within(&self, limits: Limits) -> Plugin {
        let Inner { name, digest, pre, limits: own, calls } = &*self.inner;
        let limits = own.lower(limits);
        let (name, digest, pre, calls) = (name.clone(), digest.clone(), pre.clone(), calls.clone());
        Plugin { inner: Arc::new(Inner { name, digest, pre, limits, calls }) }
    }

    /// The name it was loaded by.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// `sha256:` and the hash of its component.
    pub fn digest(&self) -> &str {
        &self.inner.digest
    }

    /// What it says about itself.
    ///
    /// # Errors
    /// It did not answer, or not in the form of the contract.
    pub fn describe(&self) -> Result<Answer<Descriptor>, PluginError> {
        let answer = self
            .call("describe", self.inner.limits.fuel / 10, |planner, store| planner.call_describe(store))?;
        let value = answer::descriptor(answer.value)?;
        Ok(Answer { value, fuel: answer.fuel })
    }

    /// What it says about itself, twice the same, and the schema of its configuration, which was found
    /// harmless. What a component from outside is asked before anything else.
    ///
    /// # Errors
    /// It did not answer, not in the form of the contract, or not the same when it was asked again; or its
    /// schema is refused.
    pub fn introduce(&self) -> Result<(Descriptor, ConfigSchema), PluginError> {
        let descriptor = the_same(self.describe()?.value, &self.describe()?.value)?;
        let schema = ConfigSchema::read(&descriptor.config_schema)?;
        Ok((descriptor, schema))
    }

    /// What is wrong with the configuration beyond its schema.
    ///
    /// # Errors
    /// It did not answer, or not in the form of the contract.
    pub fn validate(&self, request: &Request) -> Result<Answer<Vec<Diagnostic>>, PluginError> {
        let request = convert::request(request);
        let answer = self.call("validate", self.inner.limits.fuel / 10, |planner, store| {
            planner.call_validate(store, &request)
        })?;
        let value = answer::diagnostics("validate", answer.value)?;
        Ok(Answer { value, fuel: answer.fuel })
    }

    /// What shall be. The plan has the form of one: its kinds are among `request.host.features`, ids are
    /// unique, `after` has no circle.
    ///
    /// # Errors
    /// It did not answer, or not in the form of the contract.
    pub fn plan(&self, request: &Request) -> Result<Answer<Result<Outcome, Failure>>, PluginError> {
        let question = convert::request(request);
        let answer =
            self.call("plan", self.inner.limits.fuel, |planner, store| planner.call_plan(store, &question))?;
        let value = match answer.value {
            Ok(outcome) => Ok(answer::outcome(outcome, &request.host.features)?),
            Err(failure) => Err(answer::failure(failure)?),
        };
        Ok(Answer { value, fuel: answer.fuel })
    }

    /// [`Plugin::describe`] on a thread where blocking is allowed.
    ///
    /// # Errors
    /// Those of [`Plugin::describe`].
    pub async fn describe_async(&self) -> Result<Answer<Descriptor>, PluginError> {
        self.aside(|plugin| plugin.describe()).await
    }

    /// [`Plugin::introduce`] on a thread where blocking is allowed.
    ///
    /// # Errors
    /// Those of [`Plugin::introduce`].
    pub async fn introduce_async(&self) -> Result<(Descriptor, ConfigSchema), PluginError> {
        self.aside(|plugin| plugin.introduce()).await
    }

    /// [`Plugin::validate`] on a thread where blocking is allowed.
    ///
    /// # Errors
    /// Those of [`Plugin::validate`].
    pub async fn validate_async(&self, request: Request) -> Result<Answer<Vec<Diagnostic>>, PluginError> {
        self.aside(move |plugin| plugin.validate(&request)).await
    }

    /// [`Plugin::plan`] on a thread where blocking is allowed.
    ///
    /// # Errors
    /// Those of [`Plugin::plan`].
    pub async fn plan_async(
        &self,
        request: Request,
    ) -> Result<Answer<Result<Outcome, Failure>>, PluginError> {
        self.aside(move |plugin| plugin.plan(&request)).await
    }

    async fn aside<T, F>(&self, ask: F) -> Result<T, PluginError>
    where
        T: Send + 'static,
        F: FnOnce(&Plugin) -> Result<T, PluginError> + Send + 'static,
    {
        let host = |error: &dyn std::error::Error| PluginError::Host { detail: error.to_string() };
        let permit = self.inner.calls.clone().acquire_owned().await.map_err(|error| host(&error))?;
        let plugin = self.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            ask(&plugin)
        });
        asked.await.map_err(|error| host(&error))?
    }

    /// One question to an instance that nobody used before and nobody will use again.
    fn call<T>(
        &self,
        function: &'static str,
        fuel: u64,
        ask: impl FnOnce(&Planner, &mut Store<Guest>) -> wasmtime::Result<T>,
    ) -> Result<Answer<T>, PluginError> {
        let limits = self.inner.limits;
        let mut store = Store::new(self.inner.pre.engine(), Guest::new(&self.inner.name, limits.memory));
        store.limiter(|guest| guest);
        store.set_hostcall_fuel(limits.answer);
        store.set_epoch_deadline(clock::TICKS);
        let host = |error: wasmtime::Error| PluginError::Host { detail: format!("{error:#}") };
        store.set_fuel(fuel).map_err(host)?;
        let instance = match self.inner.pre.instantiate(&mut store) {
            Ok(instance) => instance,
            // Only here are the types of its functions compared with the contract's.
            Err(error) if !error.is::<Trap>() && store.data().refusal.is_none() => {
                return Err(PluginError::contract(&format!("{error:#}")));
            }
            Err(error) => return Err(classify(function, fuel, limits, &error, store.into_data())),
        };
        match ask(instance.kurator_cluster_plugin_planner(), &mut store) {
            Ok(value) => Ok(Answer { value, fuel: fuel - store.get_fuel().map_err(host)? }),
            Err(error) => Err(classify(function, fuel, limits, &error, store.into_data())),
        }
    }
}

/// The first of two descriptors, if the second is no other. An instance knows nothing that could make it
/// differ; a host that has a flaw might let it.
fn the_same(first: Descriptor, second: &Descriptor) -> Result<Descriptor, PluginError> {
    let fields = [
        ("name", first.name == second.name),
        ("version", first.version == second.version),
        ("category", first.category == second.category),
        ("config-schema", first.config_schema == second.config_schema),
        ("requires", first.requires == second.requires),
        ("extra", first.extra == second.extra),
    ];
    match fields.into_iter().find(|(_, is_same)| !is_same) {
        Some((field, _)) => Err(PluginError::Inconsistent { field }),
        None => Ok(first),
    }
}

/// What went wrong, from what wasmtime says and what the instance was refused.
fn classify(
    function: &'static str,
    fuel: u64,
    limits: Limits,
    error: &wasmtime::Error,
    guest: Guest,
) -> PluginError {
    match guest.refusal {
        Some(Refusal::Memory) => return PluginError::OutOfMemory { function, limit: limits.memory },
        Some(Refusal::Log) => {
            return PluginError::LogFlood { function, messages: MOST_MESSAGES, bytes: MOST_BYTES };
        }
        None => (),
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => PluginError::OutOfFuel { function, fuel },
        Some(Trap::Interrupt) => PluginError::RanTooLong { function, limit: limits.time },
        Some(Trap::StackOverflow) => PluginError::StackOverflow { function },
        Some(trap) => PluginError::Trap { function, trap: trap.to_string(), log: guest.last_error },
        None => {
            let detail = format!("{error:#}");
            if detail.contains(ANSWER_TOO_LARGE) {
                PluginError::PlanTooLarge { function, limit: limits.answer }
            } else {
                PluginError::malformed_answer(function, &detail)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_descriptor_that_changes_is_refused_by_the_field() {
        let descriptor = |version: &str, facts: &[&str]| Descriptor {
            name: "a".to_owned(),
            version: version.to_owned(),
            category: "other".to_owned(),
            config_schema: json!({}),
            requires: json!({ "facts": facts }),
            extra: json!({}),
        };
        let first = descriptor("1", &[]);
        assert!(the_same(first.clone(), &first).is_ok());
        for (second, field) in [(descriptor("2", &[]), "version"), (descriptor("1", &["aws"]), "requires")] {
            let error = the_same(first.clone(), &second).expect_err("it is another");
            assert!(matches!(error, PluginError::Inconsistent { field: found } if found == field), "{error}");
        }
    }
}
