//! The AWS Load Balancer Controller: makes load balancers for Ingresses, and for Services that ask for it. It
//! says which certificate, which rights in AWS and which objects that takes; the host sees to them. No key
//! ever reaches this plugin.
//!
//! New Ingresses wait for its webhooks, so their configurations come last and go first.

mod access;
mod config;
mod crds;
mod objects;
mod versions;
mod webhooks;

pub use config::{Config, IngressClass, TargetType};
use plugin_sdk::steps::{
    self, APPLY, CERTIFICATE, Condition, DELETE, IAM_ROLE, Role, SECURITY_GROUP_RULE, Traffic, WAIT,
};
use plugin_sdk::versions::{release, running};
use plugin_sdk::{
    Descriptor, Diagnostic, Operation, Plan, Plugin, Request, Requires, Step, Stop, facts, identity, settings,
};

/// The plugin.
pub struct LoadBalancerController;

impl Plugin for LoadBalancerController {
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor {
            name: "aws-load-balancer-controller",
            version: versions::NEWEST,
            category: "ingress",
            config_schema: include_str!("../config-schema.json"),
            steps: &[APPLY, WAIT, DELETE, SECURITY_GROUP_RULE, IAM_ROLE, CERTIFICATE],
            facts: &[
                facts::CLUSTER,
                facts::KUBERNETES_VERSION,
                facts::API_SERVER_VERSION,
                facts::AWS,
                facts::SUBNETS,
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
            Operation::Uninstall | Operation::DeleteCluster => {
                Ok(Plan { removal: removal(&request.config), ..Plan::default() })
            }
        }
    }
}

plugin_sdk::export!(crate::LoadBalancerController);

fn install(request: &Request<Config>) -> Result<Plan, Stop> {
    let config = &request.config;
    let cluster: facts::Cluster = request.fact(facts::CLUSTER)?;
    let aws: facts::Aws = request.fact(facts::AWS)?;
    let mut problems = config.problems();
    problems.extend(config.role_arn.iter().filter_map(|arn| identity::problem(arn, &aws.partition)));
    if !problems.is_empty() {
        return Err(Stop::Invalid(problems));
    }
    let kubernetes = running(request)?;
    let release = release(
        &versions::RELEASES,
        "the AWS Load Balancer Controller",
        &kubernetes,
        config.image_tag.is_some(),
    )?;
    let registry = config.image_registry.as_deref().unwrap_or("public.ecr.aws/eks");
    let image =
        [registry, "/aws-load-balancer-controller:", config.image_tag.as_deref().unwrap_or(release.version)]
            .concat();

    let mut steps = before(request)?;
    let first: Vec<String> = steps.iter().map(|step| step.id.clone()).collect();
    let mut controller = access::objects();
    controller.extend([
        objects::service(),
        objects::budget(),
        objects::deployment(config, &cluster, &aws, &image),
    ]);
    settings::pull_with(&mut controller, &config.image_pull_secrets);
    steps.extend([
        steps::apply("crds", crds::objects()),
        steps::wait("target-group-binding-crd", crds::TARGET_GROUP_BINDING, Condition::CrdEstablished, 60)
            .after(["crds"]),
        steps::wait("ingress-class-params-crd", crds::INGRESS_CLASS_PARAMS, Condition::CrdEstablished, 60)
            .after(["crds"]),
        steps::apply("controller", controller)
            .after(first)
            .after(["target-group-binding-crd", "ingress-class-params-crd"]),
        steps::wait("controller-available", objects::DEPLOYMENT, Condition::AvailableDeployment, 300)
            .after(["controller"]),
        steps::apply_with_ca_bundle(
            "webhooks",
            webhooks::objects(config.service_mutator_webhook),
            "certificate",
        )
        .after(["controller-available"]),
        // Their webhook may be there from before, so they wait for who serves it.
        steps::apply("ingress-class", objects::classes(&config.ingress_class))
            .after(["controller-available", "webhooks"]),
    ]);
    let subnets: Option<Vec<facts::Subnet>> = request.optional_fact(facts::SUBNETS)?;
    Ok(Plan {
        steps,
        removal: removal(config),
        diagnostics: config.warnings(&aws, subnets.as_deref()),
        ..Plan::default()
    })
}

/// What has to be so before the controller is made.
fn before(request: &Request<Config>) -> Result<Vec<Step>, Stop> {
    request.needs_step(CERTIFICATE, "a webhook")?;
    let traffic = Traffic::Tcp(objects::WEBHOOK_PORT);
    let description = "AWS Load Balancer Controller webhook";
    let mut steps = vec![
        steps::certificate("certificate", objects::NAMESPACE, objects::SECRET_NAME, objects::DNS_NAMES),
        steps::security_group_rule(
            "sg-webhook-control-plane-to-node",
            Role::Node,
            traffic,
            Role::ControlPlane,
            description,
        ),
        steps::security_group_rule(
            "sg-webhook-control-plane-to-control-plane",
            Role::ControlPlane,
            traffic,
            Role::ControlPlane,
            description,
        ),
    ];
    if let Some(role) = &request.config.role_arn {
        request.needs_step(IAM_ROLE, "roleARN")?;
        let mut actions = versions::ACTIONS.to_vec();
        if request.config.waf {
            actions.extend_from_slice(versions::WAF_ACTIONS);
        }
        if request.config.shield {
            actions.extend_from_slice(versions::SHIELD_ACTIONS);
        }
        steps.push(steps::service_account_role("role", role, objects::NAMESPACE, objects::NAME, &actions));
    }
    Ok(steps)
}

/// Webhook configurations go first: without the controller nobody would answer them. The
/// CustomResourceDefinitions stay.
fn removal(config: &Config) -> Vec<Step> {
    let class = config.ingress_class.name();
    let webhooks = ["mutating-webhooks", "validating-webhooks"];
    let mut removal = vec![
        steps::delete("mutating-webhooks", webhooks::MUTATING),
        steps::delete("validating-webhooks", webhooks::VALIDATING),
        steps::delete("ingress-class", objects::ingress_class(class)).after(webhooks),
        steps::delete("ingress-class-params", objects::ingress_class_params(class)).after(["ingress-class"]),
        steps::delete("controller", objects::DEPLOYMENT).after(["ingress-class-params"]),
    ];
    let rest = [objects::BUDGET, objects::SERVICE, objects::SECRET];
    removal.extend(settings::delete_after(&rest, "controller"));
    removal.extend(settings::delete_after(&access::references(), "controller"));
    removal
}
