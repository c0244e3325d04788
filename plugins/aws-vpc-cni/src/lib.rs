//! The Amazon VPC CNI: gives Pods addresses of the VPC. It says which security-group rules, which rights in
//! AWS and which objects that takes; the host sees to them.
//!
//! Rules and the look at the IAM role come before objects, or no node would ever get ready. It never runs
//! without being the whole of one release: mixing the settings of one with the image of another makes it
//! crash.

mod config;
mod objects;
mod room;
mod rules;
mod versions;

pub use config::{Config, PodSubnet};
use plugin_sdk::steps::{self, APPLY, Condition, DELETE, IAM_ROLE, Object, SECURITY_GROUP_RULE, WAIT};
use plugin_sdk::{
    Descriptor, Diagnostic, Operation, Plan, Plugin, Request, Requires, Step, Stop, facts, settings,
};

/// The plugin.
pub struct AmazonVpcCni;

impl Plugin for AmazonVpcCni {
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor {
            name: "aws-vpc-cni",
            version: versions::NEWEST,
            category: "networking",
            config_schema: include_str!("../config-schema.json"),
            steps: &[APPLY, WAIT, DELETE, SECURITY_GROUP_RULE, IAM_ROLE],
            facts: &[
                facts::CLUSTER,
                facts::KUBERNETES_VERSION,
                facts::API_SERVER_VERSION,
                facts::AWS,
                facts::INSTANCE_TYPES,
            ],
            requires: Requires::default(),
        }
    }

    fn validate(request: &Request<Config>) -> Vec<Diagnostic> {
        request.config.problems()
    }

    fn plan(request: &Request<Config>) -> Result<Plan, Stop> {
        match request.operation {
            Operation::Install | Operation::Upgrade => install(request),
            Operation::Uninstall => Ok(Plan { removal: removal(), ..Plan::default() }),
            // Whatever else is still being removed needs a network until the end; the host sweeps network
            // interfaces when the machines are gone.
            Operation::DeleteCluster => Ok(Plan::default()),
        }
    }
}

plugin_sdk::export!(crate::AmazonVpcCni);

fn install(request: &Request<Config>) -> Result<Plan, Stop> {
    let config = &request.config;
    let cluster: facts::Cluster = request.fact(facts::CLUSTER)?;
    let aws: facts::Aws = request.fact(facts::AWS)?;
    let mut problems = config.problems();
    problems.extend(config.problems_in(&aws));
    if !problems.is_empty() {
        return Err(Stop::Invalid(problems));
    }
    let kubernetes = plugin_sdk::versions::running(request)?;
    let release = plugin_sdk::versions::release(
        &versions::RELEASES,
        "the Amazon VPC CNI",
        &kubernetes,
        config.image_tag.is_some(),
    )?;
    let tag = config.image_tag.as_deref().unwrap_or(release.version);
    let registry = config.image_registry.as_deref().unwrap_or(versions::registry(&aws.partition));

    let mut steps = rules::steps();
    if let Some(role) = &config.role_arn {
        request.needs_step(IAM_ROLE, "roleARN")?;
        steps.push(steps::service_account_role(
            "role",
            role,
            objects::NAMESPACE,
            objects::NAME,
            versions::ACTIONS,
        ));
    }
    let before: Vec<String> = steps.iter().map(|step| step.id.clone()).collect();
    steps.push(steps::apply("eniconfig-crd", vec![objects::eni_config_crd()]).after(before));
    steps.push(
        steps::wait("eniconfig-crd-established", objects::ENI_CONFIG_CRD, Condition::CrdEstablished, 60)
            .after(["eniconfig-crd"]),
    );
    let mut all: Vec<_> = config.custom_networking.iter().map(objects::eni_config).collect();
    all.extend(objects::access());
    all.push(objects::daemon_set(config, &cluster, &aws, registry, tag));
    settings::pull_with(&mut all, &config.image_pull_secrets);
    steps.push(steps::apply("objects", all).after(["eniconfig-crd-established"]));
    steps
        .push(steps::wait("running", objects::DAEMON_SET, Condition::ReadyDaemonset, 300).after(["objects"]));
    let mut diagnostics = config.warnings(&cluster, &aws);
    // Whatever keeps the types from being known keeps no network from a cluster.
    let types = request.optional_fact::<Vec<facts::InstanceType>>(facts::INSTANCE_TYPES).ok().flatten();
    diagnostics.extend(room::warnings(config, &types.unwrap_or_default()));
    Ok(Plan { steps, removal: removal(), diagnostics, ..Plan::default() })
}

/// The program goes first: without its rights it would only fill its log. The CustomResourceDefinition stays.
fn removal() -> Vec<Step> {
    let mut removal = vec![steps::delete("daemonset", objects::DAEMON_SET)];
    let rest: [(&str, Object<'_>); 3] = [
        ("cluster-role-binding", objects::CLUSTER_ROLE_BINDING),
        ("cluster-role", objects::CLUSTER_ROLE),
        ("service-account", objects::SERVICE_ACCOUNT),
    ];
    removal.extend(rest.map(|(id, object)| steps::delete(id, object).after(["daemonset"])));
    removal
}
