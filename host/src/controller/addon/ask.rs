//! Asks plugins: gathers the facts that every plugin is given, and runs the plugin in the sandbox. A bad
//! plugin is an answer, never an error of this program.

use std::collections::BTreeMap;
use std::path::Path;

use addons::{Inventory, Wanted, authorize_removal};
use addons::{built_in, grant};
use contract::{
    AddOnPlan, AwsFact, ClusterFact, ControlPlaneEndpoint, Diagnostic, FEATURES, Fact, FactValue, Failure,
    HostInfo, InstalledFact, KUBERNETES_VERSION, Operation, Outcome, Request, Severity,
};
use crds::AWSCluster;
use crds::cluster_api::{Cluster, KubeadmControlPlane};
use iam::instance_roles::Profiles;
use kube::ResourceExt;
use plugin::PluginError;
use serde_json::json;
use tokio::sync::OnceCell;

use super::turns::Turns;
use crate::context::ObjectName;
use crate::metrics::PluginCalls;

/// Facts that every plugin is told; the others only to those that name them.
const ALWAYS: [&str; 4] = [ClusterFact::KEY, KUBERNETES_VERSION, AwsFact::KEY, InstalledFact::KEY];

/// The plugins of this program. Each is compiled when it is first asked: most clusters use few of them, and
/// compiled code is most of what this process would otherwise hold in memory.
pub struct Plugins {
    engine: plugin::Engine,
    turns: Turns,
    by_name: BTreeMap<&'static str, (&'static [u8], OnceCell<Ready>)>,
}

struct Ready {
    plugin: plugin::Plugin,
    version: String,
    /// Keys of the facts that it wants to be told.
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
    /// A plan that was judged and granted, and what the plugin wants to be looked at nevertheless.
    Plan(AddOnPlan, Vec<String>),
    /// Nobody has to act.
    Pending(String),
    /// Somebody has to act: a reason for a condition, and what to do.
    Refused(String, String),
}

/// What is known of a cluster, as far as plugins are told.
pub struct ClusterFacts<'a> {
    pub cluster: &'a Cluster,
    pub control_plane: Option<&'a KubeadmControlPlane>,
    pub aws_cluster: Option<&'a AWSCluster>,
    /// Facts that plugins have to ask for.
    pub told: Told,
    /// The instance profiles of its instances; or why they are not known.
    pub profiles: Result<Profiles, String>,
}

/// Facts by their keys.
pub type Told = BTreeMap<&'static str, FactValue>;

impl Plugins {
    /// Compiled plugins are stored in the folder `cache`, when given.
    ///
    /// # Errors
    /// This machine cannot run compiled code.
    pub fn load(metrics: PluginCalls, cache: Option<&Path>) -> anyhow::Result<Self> {
        let limits = plugin::Limits::default();
        let (engine, turns) = (plugin::Engine::new(limits, cache)?, Turns::new(limits.calls, metrics));
        let by_name = plugin::built_in().iter().map(|it| (it.name, (it.bytes, OnceCell::new()))).collect();
        Ok(Self { engine, turns, by_name })
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

    /// Keys of the facts that the plugin of an add-on wants to be told.
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
        world: &ClusterFacts<'_>,
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
                return refused_at_once(crds::conditions::reason::PLUGIN_MISSING, message);
            }
        };
        let mut request = request(wanted, world, installed);
        request.facts.retain(|it| ready.facts.contains(&it.key) || ALWAYS.contains(&it.key.as_str()));
        let cluster =
            ObjectName::new(world.cluster.namespace().unwrap_or_default(), world.cluster.name_any());
        let turn = self.turns.of(&cluster).await;
        let asked = ready.plugin.plan_async(request).await;
        drop(turn);
        let verdict = match asked.map(|it| it.value) {
            Err(error) => {
                Verdict::Refused(error.reason().to_owned(), format!("plugin {}: {error}", wanted.module))
            }
            Ok(Err(failure)) => refused(wanted, failure),
            Ok(Ok(Outcome::Complete(plan))) => judged(wanted, plan),
            Ok(Ok(Outcome::Pending(diagnostics))) => Verdict::Pending(text(wanted, &diagnostics)),
            Ok(Ok(Outcome::Needs(needs))) => {
                let keys: Vec<&str> = needs.iter().map(|it| it.key.as_str()).collect();
                let message = format!(
                    "plugin {} asks for {}, which this host does not answer",
                    wanted.module,
                    keys.join(", ")
                );
                Verdict::Refused(crds::conditions::reason::NEEDS_DENIED.into(), message)
            }
        };
        Answer { version: ready.version.clone(), digest: ready.plugin.digest().to_owned(), verdict }
    }
}

fn judged(wanted: &Wanted, plan: AddOnPlan) -> Verdict {
    let errors: Vec<Diagnostic> =
        plan.diagnostics.iter().filter(|it| it.severity == Severity::Error).cloned().collect();
    if !errors.is_empty() {
        return Verdict::Refused(
            crds::conditions::reason::INVALID_CONFIGURATION.into(),
            text(wanted, &errors),
        );
    }
    let grants = built_in::grants(wanted.module, &wanted.config);
    let mut denials = grant::authorize(&plan.steps, &grants);
    denials.extend(authorize_removal(&plan.removal, &grants));
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
            Verdict::Refused(crds::conditions::reason::PLAN_DENIED.into(), message)
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
    use crds::conditions::reason;
    match failure {
        Failure::Invalid(diagnostics) => {
            Verdict::Refused(reason::INVALID_CONFIGURATION.into(), text(wanted, &diagnostics))
        }
        Failure::Unsupported(diagnostic) => {
            Verdict::Refused(reason::UNSUPPORTED.into(), text(wanted, &[diagnostic]))
        }
        Failure::Internal(message) => Verdict::Refused(
            crds::conditions::reason::PLUGIN_FAILED.into(),
            format!("plugin {}: {message}", wanted.module),
        ),
    }
}

fn text(wanted: &Wanted, diagnostics: &[Diagnostic]) -> String {
    let one = |it: &Diagnostic| format!("{}{}: {}", wanted.path, it.path.replace('/', "."), it.message);
    diagnostics.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn request(
    wanted: &Wanted,
    world: &ClusterFacts<'_>,
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
        facts: facts(world, installed),
        extra: json!({}),
    }
}

fn facts(world: &ClusterFacts<'_>, installed: Result<Option<&Inventory>, &str>) -> Vec<Fact> {
    let spec = &world.cluster.spec;
    let cluster = ClusterFact {
        name: world.cluster.name_any(),
        namespace: world.cluster.namespace().unwrap_or_default(),
        pod_cidrs: spec.cluster_network.pods.cidr_blocks.clone(),
        service_cidrs: spec.cluster_network.services.cidr_blocks.clone(),
        control_plane_endpoint: ControlPlaneEndpoint {
            host: spec.control_plane_endpoint.host.clone(),
            port: u16::try_from(spec.control_plane_endpoint.port).unwrap_or_default(),
        },
    };
    let version = match world.control_plane {
        Some(control_plane) => FactValue::Present(json!(control_plane.spec.version)),
        None => FactValue::Unknown("the control plane object is not there".into()),
    };
    let installed = match installed {
        Ok(Some(it)) => present(&InstalledFact { version: it.version.clone(), digest: it.digest.clone() }),
        Ok(None) => FactValue::Absent,
        Err(why) => FactValue::Unknown(why.to_owned()),
    };
    let mut facts = vec![
        Fact { key: ClusterFact::KEY.into(), value: present(&cluster) },
        Fact { key: KUBERNETES_VERSION.into(), value: version },
        Fact { key: AwsFact::KEY.into(), value: aws(world) },
        Fact { key: InstalledFact::KEY.into(), value: installed },
    ];
    facts.extend(world.told.iter().map(|(key, value)| Fact { key: (*key).into(), value: value.clone() }));
    facts
}

fn aws(world: &ClusterFacts<'_>) -> FactValue {
    let Some(aws_cluster) = world.aws_cluster else {
        return FactValue::Unknown("the AWSCluster is not there".into());
    };
    let network = aws_cluster.status.as_ref().map(|it| &it.network_status);
    let Some(vpc) = network.and_then(|it| it.vpc.as_ref()) else {
        return FactValue::Unknown("the VPC is not there yet".into());
    };
    let mut zones: Vec<String> = network
        .map(|it| it.subnets.iter().map(|it| it.availability_zone.clone()).collect())
        .unwrap_or_default();
    zones.sort();
    zones.dedup();
    let region = aws_cluster.spec.region.clone();
    present(&AwsFact {
        partition: iam::partition::of_region(&region).into(),
        region,
        vpc_id: vpc.id.clone(),
        zones,
        tags: aws_cluster.spec.additional_tags.clone().into_iter().collect(),
    })
}

fn present(fact: &impl serde::Serialize) -> FactValue {
    match serde_json::to_value(fact) {
        Ok(value) => FactValue::Present(value),
        Err(error) => FactValue::Unknown(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn what_goes_wrong_with_a_plugin_has_a_reason_that_is_documented() {
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
