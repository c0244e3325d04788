//! The AWS cloud controller manager: gives nodes their providerID, addresses, zone and region labels, takes
//! away the taint with which they start, and makes load balancers for Services. It says which objects that
//! takes; the host makes them.
//!
//! It must run before anything else can, so its Pods use the host's network and tolerate every taint. Its
//! minor version is the cluster's, because nothing else is guaranteed to work, and it must not be newer than an
//! API server: it changes when the last one was upgraded. Its rights in AWS are those of the control plane's
//! instance profile.

mod objects;
mod versions;

use plugin_sdk::settings::{ArgumentType, Extra, LogLevel, Resources, extra_problems, pull_with};
use plugin_sdk::steps::{self, APPLY, Condition, DELETE, Object, WAIT};
use plugin_sdk::versions::running;
use plugin_sdk::{Descriptor, Diagnostic, Operation, Plan, Plugin, Request, Requires, Step, Stop, facts};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The plugin.
pub struct CloudControllerManager;

/// Its settings: `spec.cloudProvider.aws` of a ClusterPlugin.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    #[serde(default)]
    pub resources: Resources,
    #[serde(default)]
    pub node_selector: Map<String, Value>,
    #[serde(default)]
    pub log_level: LogLevel,
    #[serde(default)]
    pub extra_args: Map<String, Value>,
    #[serde(default)]
    pub image_pull_secrets: Vec<Value>,
    /// Registry and path in front of the image name.
    pub image_registry: Option<String>,
    /// Tag of the image, in place of the one that fits the Kubernetes version.
    pub image_tag: Option<String>,
}

/// What of the arguments that all its releases have can be set without taking the place of another setting,
/// or of what the plugin decides.
const EXTRA_ARGS: &[Extra] = &[
    Extra { name: "concurrent-node-syncs", takes: ArgumentType::Number(1, 100) },
    Extra { name: "concurrent-service-syncs", takes: ArgumentType::Number(1, 100) },
    Extra { name: "kube-api-burst", takes: ArgumentType::Number(1, 1000) },
    Extra { name: "kube-api-qps", takes: ArgumentType::Number(1, 1000) },
    Extra { name: "min-resync-period", takes: ArgumentType::Duration },
    Extra { name: "node-monitor-period", takes: ArgumentType::Duration },
    Extra { name: "node-status-update-frequency", takes: ArgumentType::Duration },
    Extra { name: "profiling", takes: ArgumentType::Switch },
];

impl Plugin for CloudControllerManager {
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor {
            name: "aws-cloud-controller-manager",
            version: versions::NEWEST,
            category: "cloud-provider",
            config_schema: include_str!("../config-schema.json"),
            steps: &[APPLY, WAIT, DELETE],
            facts: &[facts::CLUSTER, facts::KUBERNETES_VERSION, facts::API_SERVER_VERSION],
            requires: Requires::default(),
        }
    }

    fn validate(request: &Request<Config>) -> Vec<Diagnostic> {
        let mut problems = extra_problems(&request.config.extra_args, EXTRA_ARGS, "/extraArgs");
        if request.config.image_registry.as_deref().is_some_and(|it| !steps::is_registry(it)) {
            let message = "must be a registry and a path without scheme and without a slash at its end, such \
                           as registry.example.com/provider-aws";
            problems.push(Diagnostic::error("InvalidImageRegistry", "/imageRegistry", message));
        }
        problems
    }

    fn plan(request: &Request<Config>) -> Result<Plan, Stop> {
        let problems = Self::validate(request);
        if !problems.is_empty() {
            return Err(Stop::Invalid(problems));
        }
        let steps = match request.operation {
            Operation::Install | Operation::Upgrade => install(request)?,
            Operation::Uninstall | Operation::DeleteCluster => Vec::new(),
        };
        Ok(Plan { steps, removal: removal(), diagnostics: Vec::new(), ..Plan::default() })
    }
}

plugin_sdk::export!(crate::CloudControllerManager);

fn install(request: &Request<Config>) -> Result<Vec<Step>, Stop> {
    let cluster: facts::Cluster = request.fact(facts::CLUSTER)?;
    let tag = match &request.config.image_tag {
        Some(tag) => tag.clone(),
        None => versions::tag(&running(request)?)?.to_owned(),
    };
    let registry = request.config.image_registry.as_deref().unwrap_or("registry.k8s.io/provider-aws");
    let image = [registry, "/cloud-controller-manager:", &tag].concat();
    let mut all = objects::access();
    all.push(objects::daemon_set(&request.config, &image, &cluster.name));
    pull_with(&mut all, &request.config.image_pull_secrets);
    Ok(vec![
        steps::apply("objects", all),
        steps::wait("running", objects::DAEMON_SET, Condition::ReadyDaemonset, 300).after(["objects"]),
    ])
}

/// The program goes first: without its rights it would only fill its log.
fn removal() -> Vec<Step> {
    let mut removal = vec![steps::delete("daemonset", objects::DAEMON_SET)];
    let rest: [(&str, Object<'_>); 4] = [
        ("cluster-role-binding", objects::CLUSTER_ROLE_BINDING),
        ("cluster-role", objects::CLUSTER_ROLE),
        ("role-binding", objects::ROLE_BINDING),
        ("service-account", objects::SERVICE_ACCOUNT),
    ];
    removal.extend(rest.map(|(id, object)| steps::delete(id, object).after(["daemonset"])));
    removal
}
