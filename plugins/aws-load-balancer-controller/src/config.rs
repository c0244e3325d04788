//! The settings of the AWS Load Balancer Controller, and what is wrong with them.

use plugin_sdk::settings::{
    ArgumentType, Extra, LogLevel, Resources, extra_problems, is_free_tag, registry_problem,
};
use plugin_sdk::{Diagnostic, facts, identity};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// `spec.ingress.awsLoadBalancerController` of a ClusterPlugin.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// IAM role of the controller's service account.
    #[serde(rename = "roleARN")]
    pub role_arn: Option<String>,
    pub replicas: Option<u32>,
    #[serde(default)]
    pub resources: Resources,
    /// As in a Pod.
    #[serde(default)]
    pub tolerations: Vec<Value>,
    #[serde(default)]
    pub node_selector: Map<String, Value>,
    #[serde(default)]
    pub log_level: LogLevel,
    #[serde(default)]
    pub extra_args: Map<String, Value>,
    #[serde(default)]
    pub image_pull_secrets: Vec<Value>,
    #[serde(default)]
    pub target_type: TargetType,
    /// `internal` or `internet-facing`.
    pub default_scheme: Option<String>,
    #[serde(rename = "defaultSSLPolicy")]
    pub default_ssl_policy: Option<String>,
    /// Keys.
    #[serde(default)]
    pub external_managed_tags: Vec<String>,
    #[serde(rename = "backendSecurityGroupID")]
    pub backend_security_group_id: Option<String>,
    #[serde(default)]
    pub ingress_class: IngressClass,
    #[serde(default)]
    pub service_mutator_webhook: bool,
    #[serde(default)]
    pub waf: bool,
    #[serde(default)]
    pub shield: bool,
    pub image_registry: Option<String>,
    pub image_tag: Option<String>,
}

/// What load balancers send to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetType {
    #[default]
    Instance,
    Ip,
}

impl TargetType {
    /// The word the controller has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            TargetType::Instance => "instance",
            TargetType::Ip => "ip",
        }
    }
}

/// The IngressClass that the controller serves.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IngressClass {
    pub name: Option<String>,
    #[serde(rename = "default", default)]
    pub is_default: bool,
    /// `internal` or `internet-facing`.
    pub scheme: Option<String>,
}

impl IngressClass {
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("alb")
    }
}

/// What of the release's documented arguments can be set without taking the place of another setting, or of
/// what the plugin decides.
pub const EXTRA_ARGS: &[Extra] = &[
    Extra { name: "aws-max-retries", takes: ArgumentType::Number(1, 100) },
    Extra { name: "disable-ingress-class-annotation", takes: ArgumentType::Switch },
    Extra { name: "disable-ingress-group-name-annotation", takes: ArgumentType::Switch },
    Extra { name: "disable-restricted-sg-rules", takes: ArgumentType::Switch },
    Extra { name: "enable-endpoint-slices", takes: ArgumentType::Switch },
    Extra { name: "enable-pod-readiness-gate-inject", takes: ArgumentType::Switch },
    Extra { name: "ingress-max-concurrent-reconciles", takes: ArgumentType::Number(1, 100) },
    Extra { name: "lb-stabilization-monitor-interval", takes: ArgumentType::Duration },
    Extra { name: "service-max-concurrent-reconciles", takes: ArgumentType::Number(1, 100) },
    Extra { name: "sync-period", takes: ArgumentType::Duration },
    Extra { name: "targetgroupbinding-max-concurrent-reconciles", takes: ArgumentType::Number(1, 100) },
    Extra { name: "targetgroupbinding-max-exponential-backoff-delay", takes: ArgumentType::Duration },
    Extra { name: "tolerate-non-existent-backend-action", takes: ArgumentType::Switch },
    Extra { name: "tolerate-non-existent-backend-service", takes: ArgumentType::Switch },
];

impl Config {
    /// What keeps the settings from being carried out, whatever the cluster.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let mut problems: Vec<Diagnostic> =
            registry_problem(self.image_registry.as_deref()).into_iter().collect();
        problems.extend(extra_problems(&self.extra_args, EXTRA_ARGS, "/extraArgs"));
        // The controller does not start with tags that it sets itself.
        let is_taken = |key: &str| !is_free_tag(key) || key.contains(',') || key.contains('"');
        for (index, _) in self.external_managed_tags.iter().enumerate().filter(|(_, key)| is_taken(key)) {
            let path = ["/externalManagedTags/", &index.to_string()].concat();
            problems.push(Diagnostic::error(
                "ReservedTag",
                &path,
                "is a key that AWS, Kubernetes or the controller sets itself, or has a comma or quote",
            ));
        }
        problems
    }

    /// Tags that the controller puts on all that it makes: those of the cluster that nobody else sets there.
    /// It does not start with one that is both.
    pub fn tags(&self, aws: &facts::Aws) -> BTreeMap<String, String> {
        let is_own = |key: &String| !self.external_managed_tags.contains(key);
        aws.tags
            .iter()
            .filter(|(key, _)| is_own(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// What the user should know although it is carried out.
    pub fn warnings(&self, aws: &facts::Aws, subnets: Option<&[facts::Subnet]>) -> Vec<Diagnostic> {
        let instance_role = identity::instance_role_warning(self.role_arn.as_deref(), "the controller");
        let mut warnings: Vec<Diagnostic> = instance_role.into_iter().collect();
        if aws.zones.len() < 2 {
            let message = "the cluster is in one zone, but an Application Load Balancer, which serves \
                           Ingresses, needs subnets in two";
            warnings.push(Diagnostic::warning("TooFewZones", "", message));
        }
        if let Some(subnets) = subnets {
            warnings.extend(self.untagged(subnets));
        }
        warnings
    }

    /// The schemes for which the controller finds no subnets by itself.
    fn untagged(&self, subnets: &[facts::Subnet]) -> Vec<Diagnostic> {
        let schemes = match self.ingress_class.scheme.as_deref() {
            Some(scheme) => vec![scheme],
            None => vec!["internet-facing", "internal"],
        };
        let has = |scheme: &str| {
            subnets.iter().any(|subnet| subnet.load_balancer_schemes.iter().any(|one| one == scheme))
        };
        // One kind alone is a choice; none at all is an oversight.
        if schemes.iter().any(|scheme| has(scheme)) {
            return Vec::new();
        }
        let tags = schemes.iter().map(|scheme| {
            if *scheme == "internal" { "kubernetes.io/role/internal-elb" } else { "kubernetes.io/role/elb" }
        });
        let tags = tags.collect::<Vec<_>>().join(" or ");
        let message = [
            "no subnet of the cluster has tag ",
            &tags,
            " (value 1), by which subnets for load balancers are found",
        ];
        vec![Diagnostic::warning("UntaggedSubnets", "/ingressClass", message.concat())]
    }
}
