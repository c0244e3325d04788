//! The Amazon EBS CSI driver: makes EBS volumes for claims and attaches them to nodes. It says which
//! rights in AWS and which objects that takes; the host sees to them. The CustomResourceDefinitions of
//! snapshots are not among them: a cluster has one set of them, whoever makes volumes.

mod access;
mod config;
mod objects;
mod pods;
mod role;
mod versions;

pub use config::{Config, StorageClass};
use objects::DRIVER;
use plugin_sdk::csi::{Images, NAMESPACE};
use plugin_sdk::settings::DefaultClass;
use plugin_sdk::steps::{self, APPLY, Condition, DELETE, IAM_ROLE_WITH_TAGS, Object, WAIT};
use plugin_sdk::versions::{minor, release, running};
use plugin_sdk::{
    Descriptor, Diagnostic, Operation, Plan, Plugin, Request, Requires, Step, Stop, facts, identity, settings,
};

/// The plugin.
pub struct EbsCsi;

impl Plugin for EbsCsi {
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor {
            name: "aws-ebs-csi",
            version: versions::NEWEST,
            category: "storage",
            config_schema: include_str!("../config-schema.json"),
            steps: &[APPLY, WAIT, DELETE, IAM_ROLE_WITH_TAGS],
            facts: &[
                facts::CLUSTER,
                facts::KUBERNETES_VERSION,
                facts::API_SERVER_VERSION,
                facts::AWS,
                facts::STORAGE_CLASSES,
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

plugin_sdk::export!(crate::EbsCsi);

fn install(request: &Request<Config>) -> Result<Plan, Stop> {
    let config = &request.config;
    let cluster: facts::Cluster = request.fact(facts::CLUSTER)?;
    let aws: facts::Aws = request.fact(facts::AWS)?;
    let mut problems = config.problems();
    problems.extend(config.role_arn.iter().filter_map(|arn| identity::problem(arn, &aws.partition)));
    problems.extend(role::problems(&aws.tags));
    if !problems.is_empty() {
        return Err(Stop::Invalid(problems));
    }
    let kubernetes = running(request)?;
    let release =
        release(&versions::RELEASES, "the Amazon EBS CSI driver", &kubernetes, config.image_tag.is_some())?;
    let images = Images {
        registry: config.image_registry.as_deref().unwrap_or("public.ecr.aws"),
        path: "ebs-csi-driver/aws-ebs-csi-driver",
        tag: config.image_tag.as_deref().unwrap_or(release.version),
    };

    let mut steps = before(request, &cluster, &aws)?;
    let first: Vec<String> = steps.iter().map(|step| step.id.clone()).collect();
    let kubernetes = versions::Kubernetes::of(minor(&kubernetes));
    let mut all = access::objects(config.snapshots);
    all.extend([
        objects::csi_driver(kubernetes.updates_allocatable),
        objects::budget(),
        pods::controller(config, &cluster, &aws, &images, &release.with, kubernetes),
        pods::node(config, &images, &release.with),
    ]);
    settings::pull_with(&mut all, &config.image_pull_secrets);
    steps.extend(DRIVER.install(all, first));
    for (path, class) in config.classes() {
        let otherwise = if path == "/storageClass" { DefaultClass::IfNone } else { DefaultClass::Never };
        let is_default = class.default_class.unwrap_or(otherwise).decide(class.name(), request)?;
        steps.push(
            steps::apply(&step_of(&path, class), vec![objects::storage_class(class, is_default)])
                .after(["driver"]),
        );
    }
    let warning = identity::instance_role_warning(config.role_arn.as_deref(), "the driver's controller");
    let diagnostics = warning.into_iter().collect();
    Ok(Plan { steps, removal: removal(config), diagnostics, ..Plan::default() })
}

/// What has to be so before any object is made.
fn before(request: &Request<Config>, cluster: &facts::Cluster, aws: &facts::Aws) -> Result<Vec<Step>, Stop> {
    let config = &request.config;
    let mut steps = Vec::new();
    if let Some(role) = &config.role_arn {
        request.needs_step(IAM_ROLE_WITH_TAGS, "roleARN")?;
        let actions = role::actions(config, cluster, aws);
        steps.push(steps::tagging_role("role", role, NAMESPACE, DRIVER.controller_account, actions));
    }
    if config.snapshots {
        // The sidecar for snapshots stops without them, and with it the whole controller.
        for kind in ["volumesnapshotclasses", "volumesnapshotcontents", "volumesnapshots"] {
            let name = [kind, ".snapshot.storage.k8s.io"].concat();
            let crd = Object {
                api_version: "apiextensions.k8s.io/v1",
                kind: "CustomResourceDefinition",
                namespace: None,
                name: &name,
            };
            steps.push(steps::wait(&[kind, "-crd"].concat(), crd, Condition::CrdEstablished, 300));
        }
    }
    Ok(steps)
}

const FIRST_CLASS: &str = "storage-class";

/// Id of the step about a class.
fn step_of(path: &str, class: &StorageClass) -> String {
    if path == "/storageClass" { FIRST_CLASS.to_owned() } else { [FIRST_CLASS, "-", class.name()].concat() }
}

/// Nothing new is made first, then the programs go, then what they needed.
fn removal(config: &Config) -> Vec<Step> {
    let classes = config.classes().into_iter().map(|(path, class)| (step_of(&path, class), class.name()));
    let mut removal = DRIVER.removal(&classes.collect::<Vec<_>>());
    removal.push(steps::delete("budget", objects::BUDGET).after(["controller"]));
    removal.extend(DRIVER.access_removal());
    removal
}
