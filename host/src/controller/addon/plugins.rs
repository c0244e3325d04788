//! Asks plugins for their plans in the sandbox. A bad plugin is an answer, never an error of this program.

use std::collections::BTreeMap;

use addons::grant;
use addons::{Inventory, Wanted, judge_removal};
use contract::{AddOnPlan, Diagnostic, FEATURES, Failure, HostInfo, Operation, Outcome, Request, Severity};
use crds::conditions::reason;
use plugin::PluginError;
use serde_json::json;
use tokio::sync::OnceCell;

use super::facts::{ALWAYS, ClusterFacts, facts};
use super::fair_queue::FairQueue;
use crate::metrics::PluginCalls;

/// The plugins of this program. Each is compiled when it is first asked: most clusters use few of them, and
/// compiled code is most of what this process would otherwise hold in memory.
pub struct Plugins {
    engine: plugin::Engine,
    queue: FairQueue,
    by_name: BTreeMap<&'static str, (&'static [u8], OnceCell<Ready>)>,
}

struct Ready {
    plugin: plugin::Plugin,
    version: String,
    /// Keys of the facts that it asks for.
    facts: Vec<String>,
}

/// What a plugin answered.
pub struct Answer {
    pub version: String,
    /// `sha256:...`
    pub digest: String,
    pub verdict: Verdict,
}

/// What follows from it.
pub enum Verdict {
    /// A plan that was checked and granted, and what the plugin warns of.
    Plan(AddOnPlan, Vec<String>),
    /// Nobody has to act.
    Pending(String),
    /// Somebody has to act: a reason for a condition, and what to do.
    Refused(String, String),
}

impl Plugins {
    /// # Errors
    /// This machine cannot run compiled code.
    pub fn load(metrics: PluginCalls) -> anyhow::Result<Self> {
        let limits = plugin::Limits::default();
        let (engine, queue) = (plugin::Engine::new(limits, None)?, FairQueue::new(limits.calls, metrics));
        let by_name = plugin::built_in().iter().map(|it| (it.name, (it.bytes, OnceCell::new()))).collect();
        Ok(Self { engine, queue, by_name })
    }

    async fn ready(&self, name: &str) -> Option<Result<&Ready, PluginError>> {
        let (name, (bytes, cell)) = self.by_name.get_key_value(name)?;
        let (engine, name, bytes) = (self.engine.clone(), *name, *bytes);
        let load = move || {
            let plugin = engine.load(name, bytes)?;
            let descriptor = plugin.describe()?.value;
            let keys = descriptor.requires["facts"].as_array().into_iter().flatten();
            let facts = keys.filter_map(|it| it.as_str().map(str::to_owned)).collect();
            Ok(Ready { plugin, version: descriptor.version, facts })
        };
        let broken = |it: tokio::task::JoinError| PluginError::Host { detail: it.to_string() };
        Some(cell.get_or_try_init(async || tokio::task::spawn_blocking(load).await.map_err(broken)?).await)
    }

    /// Keys of the facts that the plugin of an add-on asks for.
    pub async fn facts(&self, wanted: &Wanted) -> &[String] {
        match self.ready(wanted.module).await {
            Some(Ok(ready)) => &ready.facts,
            _ => &[],
        }
    }

    /// Asks for the plan of one add-on. `installed` is `Err` when it could not be read.
    pub async fn ask(
        &self,
        wanted: &Wanted,
        cluster: &ClusterFacts<'_>,
        installed: Result<Option<&Inventory>, &str>,
    ) -> Answer {
        let refused_at_once = |reason: &str, message| Answer {
            version: String::new(),
            digest: String::new(),
            verdict: Verdict::Refused(reason.into(), message),
        };
        let ready = match self.ready(wanted.module).await {
            Some(Ok(ready)) => ready,
            Some(Err(error)) => {
                return refused_at_once(error.reason(), format!("plugin {}: {error}", wanted.module));
            }
            None => {
                let message =
                    format!("{}: no plugin named {} comes with this program", wanted.path, wanted.module);
                return refused_at_once(reason::PLUGIN_MISSING, message);
            }
        };
        let mut request = request(wanted, cluster, installed);
        request.facts.retain(|it| ready.facts.contains(&it.key) || ALWAYS.contains(&it.key.as_str()));
        let permit = self.queue.acquire(&cluster.cluster_name()).await;
        let outcome = ready.plugin.plan_async(request).await;
        drop(permit);
        let verdict = match outcome.map(|it| it.value) {
            Err(error) => {
                Verdict::Refused(error.reason().to_owned(), format!("plugin {}: {error}", wanted.module))
            }
            Ok(Err(failure)) => refused(wanted, failure),
            Ok(Ok(Outcome::Complete(plan))) => authorized(wanted, plan),
            Ok(Ok(Outcome::Pending(diagnostics))) => Verdict::Pending(text(wanted, &diagnostics)),
            Ok(Ok(Outcome::Needs(needs))) => {
                let keys: Vec<&str> = needs.iter().map(|it| it.key.as_str()).collect();
                let message = format!(
                    "plugin {} asks for {}, which this host does not answer",
                    wanted.module,
                    keys.join(", ")
                );
                Verdict::Refused(reason::NEEDS_DENIED.into(), message)
            }
        };
        Answer { version: ready.version.clone(), digest: ready.plugin.digest().to_owned(), verdict }
    }
}

fn authorized(wanted: &Wanted, plan: AddOnPlan) -> Verdict {
    let errors: Vec<Diagnostic> =
        plan.diagnostics.iter().filter(|it| it.severity == Severity::Error).cloned().collect();
    if !errors.is_empty() {
        return Verdict::Refused(reason::INVALID_CONFIGURATION.into(), text(wanted, &errors));
    }
    let grants = grant::built_in(wanted.module, &wanted.config);
    let mut denials = grant::authorize(&plan.steps, &grants);
    denials.extend(judge_removal(&plan.removal, &grants));
    match denials.first() {
        None => {
            let warnings = plan.diagnostics.iter().filter(|it| it.severity == Severity::Warning).cloned();
            let warnings = warnings.map(|it| text(wanted, &[it])).collect();
            Verdict::Plan(plan, warnings)
        }
        Some(first) => {
            let message = format!(
                "plugin {}, step {:?}: {} ({} denied in all)",
                wanted.module,
                first.step,
                first.message,
                denials.len()
            );
            Verdict::Refused(reason::PLAN_DENIED.into(), message)
        }
    }
}

/// What may help whoever waits for the plan longer than it should take.
pub(super) fn hints(wanted: &Wanted, plan: &AddOnPlan) -> Vec<String> {
    plan.diagnostics
        .iter()
        .filter(|it| it.severity == Severity::Info)
        .map(|it| text(wanted, std::slice::from_ref(it)))
        .collect()
}

fn refused(wanted: &Wanted, failure: Failure) -> Verdict {
    match failure {
        Failure::Invalid(diagnostics) => {
            Verdict::Refused(reason::INVALID_CONFIGURATION.into(), text(wanted, &diagnostics))
        }
        Failure::Unsupported(diagnostic) => {
            Verdict::Refused(reason::UNSUPPORTED.into(), text(wanted, &[diagnostic]))
        }
        Failure::Internal(message) => {
            Verdict::Refused(reason::PLUGIN_FAILED.into(), format!("plugin {}: {message}", wanted.module))
        }
    }
}

fn text(wanted: &Wanted, diagnostics: &[Diagnostic]) -> String {
    let one = |diagnostic: &Diagnostic| {
        format!("{}{}: {}", wanted.path, diagnostic.path.replace('/', "."), diagnostic.message)
    };
    diagnostics.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn request(
    wanted: &Wanted,
    cluster: &ClusterFacts<'_>,
    installed: Result<Option<&Inventory>, &str>,
) -> Request {
    let before = installed.ok().flatten();
    let is_upgrade = before.is_some_and(|it| it.config != wanted.config);
    Request {
        operation: if is_upgrade { Operation::Upgrade } else { Operation::Install },
        host: HostInfo {
            version: env!("CARGO_PKG_VERSION").into(),
            features: FEATURES.iter().map(|it| (*it).to_owned()).collect(),
        },
        installed_version: before.map(|it| it.version.clone()),
        previous_config: before.map(|it| it.config.clone()),
        config: wanted.config.clone(),
        facts: facts(cluster, installed),
        extra: json!({}),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
