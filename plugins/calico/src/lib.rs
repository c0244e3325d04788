//! Calico, run by the Tigera operator: gives Pods their addresses and connects them, and enforces network policies.
//! It says which security-group rules and objects that takes; the host makes them.
//!
//! The operator brings its own CustomResourceDefinitions (they are too large for a plan), so the plan waits for them before it makes the
//! Installation. Rules come before objects, or no node would ever get ready.

mod config;
mod installation;
mod operator;
mod rules;

pub use config::{Config, Encapsulation};
use plugin_sdk::steps::{self, APPLY, Condition, DELETE, Object, SECURITY_GROUP_RULE, WAIT};
use plugin_sdk::{Descriptor, Diagnostic, Operation, Plan, Plugin, Request, Step, Stop, facts, settings};

/// The plugin.
pub struct Calico;

impl Plugin for Calico {
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor {
            name: "calico",
            version: "3.32.1",
            category: "networking",
            config_schema: include_str!("../config-schema.json"),
            steps: &[APPLY, WAIT, DELETE, SECURITY_GROUP_RULE],
            facts: &[facts::CLUSTER],
        }
    }

    fn validate(request: &Request<Config>) -> Vec<Diagnostic> {
        request.config.problems()
    }

    fn plan(request: &Request<Config>) -> Result<Plan, Stop> {
        let problems = request.config.problems();
        if !problems.is_empty() {
            return Err(Stop::Invalid(problems));
        }
        match request.operation {
            Operation::Install | Operation::Upgrade => Ok(Plan {
                steps: install(&request.config, &request.fact(facts::CLUSTER)?)?,
                removal: removal(),
                diagnostics: request.config.encapsulation.warnings(),
            }),
            Operation::Uninstall => Ok(Plan { removal: removal(), ..Plan::default() }),
            // It leaves nothing in AWS, and whatever else is still being removed needs a network until the end.
            Operation::DeleteCluster => Ok(Plan::default()),
        }
    }
}

plugin_sdk::export!(crate::Calico);

const INSTALLATION_CRD: Object<'static> = Object {
    api_version: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    namespace: None,
    name: "installations.operator.tigera.io",
};
const STATUS: Object<'static> = Object { api_version: "operator.tigera.io/v1", kind: "TigeraStatus", namespace: None, name: "calico" };

fn install(config: &Config, cluster: &facts::Cluster) -> Result<Vec<Step>, Stop> {
    let installation = installation::object(config, cluster)?;
    let mut operator = operator::objects(config.registry());
    settings::pull_with(&mut operator, &config.image_pull_secrets);
    let mut steps = rules::steps(config.encapsulation);
    let rules: Vec<String> = steps.iter().map(|step| step.id.clone()).collect();
    steps.extend([
        steps::apply("operator", operator).after(rules),
        steps::wait("operator-available", operator::DEPLOYMENT, Condition::AvailableDeployment, 300).after(["operator"]),
        steps::wait("installation-crd", INSTALLATION_CRD, Condition::CrdEstablished, 300).after(["operator"]),
        steps::apply("installation", vec![installation]).after(["installation-crd"]),
        steps::wait("calico-available", STATUS, Condition::TigerastatusAvailable, 600).after(["installation"]),
    ]);
    Ok(steps)
}

/// The operator takes down what it made, and needs its rights until it is done; so it goes last. Its CustomResourceDefinitions stay.
fn removal() -> Vec<Step> {
    vec![
        steps::delete("installation", installation::INSTALLATION),
        steps::delete("operator", operator::DEPLOYMENT).after(["installation"]),
        steps::delete("secrets-role-binding", operator::SECRETS_ROLE_BINDING).after(["operator"]),
        steps::delete("cluster-role-binding", operator::CLUSTER_ROLE_BINDING).after(["operator"]),
        steps::delete("cluster-role", operator::CLUSTER_ROLE).after(["cluster-role-binding"]),
        steps::delete("secrets-cluster-role", operator::SECRETS_CLUSTER_ROLE).after(["secrets-role-binding"]),
        steps::delete("namespace", operator::NAMESPACE_OBJECT).after(["operator", "secrets-role-binding"]),
    ]
}
