//! Calico, run by the Tigera operator: gives Pods their addresses and connects them, and enforces network
//! policies. It says which security-group rules and objects that takes; the host makes them.
//!
//! The operator brings its own CustomResourceDefinitions (they are too large for a plan), so the plan waits
//! for them before it makes the Installation. Rules come before objects, or no node would ever get ready;
//! those of another encapsulation go once the operator says that it has carried out this one.

mod config;
mod installation;
mod operator;
mod pools;
mod rules;

pub use config::{Config, Encapsulation, SourceDestinationCheck};
use plugin_sdk::steps::{self, APPLY, Condition, DELETE, INSTANCE_ROLES, Object, SECURITY_GROUP_RULE, WAIT};
use plugin_sdk::{
    Descriptor, Diagnostic, FactValue, Operation, Plan, Plugin, Request, Requires, Step, Stop, facts,
    settings, versions,
};
use serde_json::Value;

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
            steps: &[APPLY, WAIT, DELETE, SECURITY_GROUP_RULE, INSTANCE_ROLES],
            facts: &[
                facts::CLUSTER,
                facts::KUBERNETES_VERSION,
                facts::API_SERVER_VERSION,
                facts::IP_POOLS,
                facts::MACHINE_SUBNETS,
            ],
            requires: Requires::default(),
        }
    }

    fn validate(request: &Request<Config>) -> Vec<Diagnostic> {
        request.config.problems(request.previous_config.as_ref())
    }

    fn plan(request: &Request<Config>) -> Result<Plan, Stop> {
        let problems = request.config.problems(request.previous_config.as_ref());
        if !problems.is_empty() {
            return Err(Stop::Invalid(problems));
        }
        match request.operation {
            Operation::Install | Operation::Upgrade => {
                one_subnet(request)?;
                let pools =
                    pools::pools(&request.config, &request.fact(facts::CLUSTER)?, &pools_there(request)?)?;
                let mut diagnostics = request.config.warnings();
                diagnostics.extend(untested(request));
                Ok(Plan {
                    steps: install(&request.config, pools),
                    removal: removal(),
                    diagnostics,
                    ..Plan::default()
                })
            }
            Operation::Uninstall => Ok(Plan { removal: removal(), ..Plan::default() }),
            // It leaves nothing in AWS, and whatever else is still being removed needs a network until the
            // end.
            Operation::DeleteCluster => Ok(Plan::default()),
        }
    }
}

plugin_sdk::export!(crate::Calico);

const INSTALLATION_CRD: Object<'static> = definition("installations.operator.tigera.io");
const API_SERVER_CRD: Object<'static> = definition("apiservers.operator.tigera.io");
const FELIX_CRD: Object<'static> = definition("felixconfigurations.crd.projectcalico.org");

const fn definition(name: &str) -> Object<'_> {
    Object { api_version: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", namespace: None, name }
}

/// What the operator says of each part of Calico, and how many seconds it may take before that is good.
const STATUSES: [(&str, u32); 4] = [("calico", 600), ("ippools", 600), ("apiserver", 600), ("tiers", 600)];

/// First and last minor version of Kubernetes 1 that Tigera tests Calico 3.32 with (docs.tigera.io, "System
/// requirements").
const TESTED: (u32, u32) = (34, 36);

/// What the user is told where nobody tests Calico with the cluster's Kubernetes: it is installed all the
/// same, also where no version is known.
fn untested(request: &Request<Config>) -> Option<Diagnostic> {
    let kubernetes = versions::running(request).ok()?;
    let is_tested = versions::minor(&kubernetes).is_none_or(|minor| (TESTED.0..=TESTED.1).contains(&minor));
    let message = ["Calico 3.32 is tested with Kubernetes 1.34 to 1.36, and the cluster has ", &kubernetes];
    (!is_tested).then(|| Diagnostic::warning("UntestedKubernetesVersion", "", message.concat()))
}

/// The pools that are in the cluster. Before anything can be read of it nothing can be applied either: then
/// only the rules of the plan count.
fn pools_there(request: &Request<Config>) -> Result<Vec<facts::IpPool>, Stop> {
    let is_unknown =
        |key: &str| request.facts.iter().any(|it| it.key == key && matches!(it.value, FactValue::Unknown(_)));
    if is_unknown(facts::INSTALLED) && is_unknown(facts::IP_POOLS) {
        return Ok(Vec::new());
    }
    Ok(request.optional_fact(facts::IP_POOLS)?.unwrap_or_default())
}

/// # Errors
/// Packets with addresses of Pods would have to pass the router of the VPC, which knows none of them.
fn one_subnet(request: &Request<Config>) -> Result<(), Stop> {
    if request.config.encapsulation != Encapsulation::None {
        return Ok(());
    }
    let subnets: Vec<String> = request.optional_fact(facts::MACHINE_SUBNETS)?.unwrap_or_default();
    if subnets.len() < 2 {
        return Ok(());
    }
    let message = [
        "the machines of the cluster are in ",
        &subnets.len().to_string(),
        " subnets (",
        &subnets.join(", "),
        "), and between subnets the VPC drops packets with addresses of Pods; put all machines into one \
         subnet, or use VXLANCrossSubnet, VXLAN or IPIP",
    ];
    Err(Stop::Invalid(vec![Diagnostic::error("SeveralSubnets", "/encapsulation", message.concat())]))
}

fn install(config: &Config, pools: Vec<Value>) -> Vec<Step> {
    let mut operator = operator::objects(config.registry());
    settings::pull_with(&mut operator, &config.image_pull_secrets);
    let mut steps = rules::steps(config.encapsulation);
    let rules: Vec<String> = steps.iter().map(|step| step.id.clone()).collect();
    steps.extend([
        steps::apply("operator", operator).after(rules),
        steps::wait("operator-available", operator::DEPLOYMENT, Condition::AvailableDeployment, 300)
            .after(["operator"]),
        steps::wait("installation-crd", INSTALLATION_CRD, Condition::CrdEstablished, 300).after(["operator"]),
        steps::wait("apiserver-crd", API_SERVER_CRD, Condition::CrdEstablished, 300).after(["operator"]),
    ]);
    let mut before = vec!["installation-crd"];
    if let Some(felix) = installation::felix_configuration(config) {
        steps.push(steps::wait("felix-crd", FELIX_CRD, Condition::CrdEstablished, 300).after(["operator"]));
        let mut needed = vec!["felix-crd"];
        if config.source_destination_check.is_some_and(SourceDestinationCheck::is_set_by_felix) {
            steps.push(steps::instance_roles("felix-rights", &config::FELIX_ACTIONS));
            needed.push("felix-rights");
        }
        // Users have settings of theirs in it: it stays when this one goes.
        steps.push(steps::apply("felix", vec![felix]).after(needed));
        before.push("felix");
    }
    steps.extend([
        steps::apply_and_keep("installation", vec![installation::installation(config, pools)]).after(before),
        steps::apply("apiserver", vec![installation::api_server()]).after(["installation", "apiserver-crd"]),
    ]);
    let last = ["installation", "apiserver"];
    steps.extend(STATUSES.map(|(name, patience)| {
        let status =
            Object { api_version: "operator.tigera.io/v1", kind: "TigeraStatus", namespace: None, name };
        steps::wait(&[name, "-available"].concat(), status, Condition::TigerastatusAvailable, patience)
            .after(last)
    }));
    steps
}

/// The operator takes down what it made, and needs its rights until it is done; so it goes last. Its API
/// server goes before the network that its Pods are on. Its CustomResourceDefinitions stay.
fn removal() -> Vec<Step> {
    vec![
        steps::delete("apiserver", installation::API_SERVER),
        steps::delete("installation", installation::INSTALLATION).after(["apiserver"]),
        steps::delete("operator", operator::DEPLOYMENT).after(["installation"]),
        steps::delete("secrets-role-binding", operator::SECRETS_ROLE_BINDING).after(["operator"]),
        steps::delete("cluster-role-binding", operator::CLUSTER_ROLE_BINDING).after(["operator"]),
        steps::delete("cluster-role", operator::CLUSTER_ROLE).after(["cluster-role-binding"]),
        steps::delete("secrets-cluster-role", operator::SECRETS_CLUSTER_ROLE).after(["secrets-role-binding"]),
        steps::delete("namespace", operator::NAMESPACE_OBJECT).after(["operator", "secrets-role-binding"]),
    ]
}
