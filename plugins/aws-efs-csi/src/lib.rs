//! The Amazon EFS CSI driver: makes volumes on an EFS file system and mounts them on nodes. It says which
//! rights in AWS and which objects that takes; the host sees to them. The file system itself, its mount
//! targets and who may reach them stay the user's.

mod config;
mod file_system;
mod objects;
mod path;
mod pods;
mod role;
mod storage_class;
mod versions;

pub use config::Config;
use objects::DRIVER;
use plugin_sdk::csi::{Images, NAMESPACE};
use plugin_sdk::steps::{self, APPLY, DELETE, EFS_FILE_SYSTEM, IAM_ROLE_WITH_TAGS, WAIT};
use plugin_sdk::versions::{release, running};
use plugin_sdk::{
    Descriptor, Diagnostic, Operation, Plan, Plugin, Request, Requires, Step, Stop, facts, identity, settings,
};
pub use storage_class::StorageClass;

/// The plugin.
pub struct EfsCsi;

impl Plugin for EfsCsi {
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor {
            name: "aws-efs-csi",
            version: versions::NEWEST,
            category: "storage",
            config_schema: include_str!("../config-schema.json"),
            steps: &[APPLY, WAIT, DELETE, IAM_ROLE_WITH_TAGS, EFS_FILE_SYSTEM],
            facts: &[
                facts::KUBERNETES_VERSION,
                facts::API_SERVER_VERSION,
                facts::AWS,
                facts::STORAGE_CLASSES,
                facts::FILE_SYSTEMS,
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

plugin_sdk::export!(crate::EfsCsi);

fn install(request: &Request<Config>) -> Result<Plan, Stop> {
    let config = &request.config;
    let aws: facts::Aws = request.fact(facts::AWS)?;
    let mut problems = config.problems();
    problems.extend(config.role_arn.iter().filter_map(|arn| identity::problem(arn, &aws.partition)));
    if !problems.is_empty() {
        return Err(Stop::Invalid(problems));
    }
    let kubernetes = running(request)?;
    let release =
        release(&versions::RELEASES, "the Amazon EFS CSI driver", &kubernetes, config.image_tag.is_some())?;
    let images = Images {
        registry: config.image_registry.as_deref().unwrap_or("public.ecr.aws"),
        path: "efs-csi-driver/amazon/aws-efs-csi-driver",
        tag: config.image_tag.as_deref().unwrap_or(release.version),
    };

    let mut steps = Vec::new();
    if let Some(role) = &config.role_arn {
        request.needs_step(IAM_ROLE_WITH_TAGS, "roleARN")?;
        let actions = role::actions(config, &aws.tags);
        steps.push(steps::tagging_role("role", role, NAMESPACE, DRIVER.controller_account, actions));
    }
    let before: Vec<String> = steps.iter().map(|step| step.id.clone()).collect();
    let mut all = DRIVER.access(DRIVER.roles, objects::rules);
    all.extend([
        objects::csi_driver(),
        pods::controller(config, &aws, &images, &release.with),
        pods::node(config, &images, &release.with),
    ]);
    settings::pull_with(&mut all, &config.image_pull_secrets);
    steps.extend(DRIVER.install(all, before));
    let warning = identity::instance_role_warning(config.role_arn.as_deref(), "the driver's controller");
    let mut diagnostics: Vec<Diagnostic> = warning.into_iter().collect();
    if let Some(class) = config.class() {
        let found = file_system::choose(request, class, &aws.region)?;
        steps.extend(storage_class(request, class, &found.id)?);
        diagnostics.extend(found.warning);
    }
    Ok(Plan { steps, removal: removal(config), diagnostics, ..Plan::default() })
}

/// Id of the step about the class.
const STORAGE_CLASS: &str = "storage-class";

/// The class, once the file system was seen by a host that can look at it.
fn storage_class(
    request: &Request<Config>,
    class: &StorageClass,
    file_system: &str,
) -> Result<Vec<Step>, Stop> {
    let is_default = match class.default_class {
        Some(choice) => choice.decide(class.name(), request)?,
        None => false,
    };
    let made = steps::apply(STORAGE_CLASS, vec![objects::storage_class(file_system, class, is_default)])
        .after(["driver"]);
    if request.offers(EFS_FILE_SYSTEM) {
        return Ok(vec![steps::efs_file_system("file-system", file_system), made.after(["file-system"])]);
    }
    Ok(vec![made])
}

/// Nothing new is made first, then the programs go, then what they needed.
fn removal(config: &Config) -> Vec<Step> {
    let classes = config.class().map(|class| (STORAGE_CLASS.to_owned(), class.name()));
    let mut removal = DRIVER.removal(classes.as_slice());
    removal.extend(DRIVER.access_removal());
    removal
}
