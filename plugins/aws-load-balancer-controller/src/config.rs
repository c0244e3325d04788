//! The settings of the AWS Load Balancer Controller, and what is wrong with them.

use plugin_sdk::settings::{Resources, registry_problem};
use plugin_sdk::{Diagnostic, facts, identity};
use serde::Deserialize;
use serde_json::Value;

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
    pub target_type: TargetType,
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

impl Config {
    /// What keeps the settings from being carried out, whatever the cluster.
    pub fn problems(&self) -> Vec<Diagnostic> {
        registry_problem(self.image_registry.as_deref()).into_iter().collect()
    }

    /// What the user should know although it is carried out.
    pub fn warnings(&self, aws: &facts::Aws, subnets: Option<&[facts::Subnet]>) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        if self.role_arn.is_none() {
            warnings.push(identity::instance_role_warning("the controller"));
        }
        if aws.zones.len() < 2 {
            let message = "the cluster is in one zone, but an Application Load Balancer, which serves Ingresses, needs subnets in two";
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
        let has = |scheme: &str| subnets.iter().any(|subnet| subnet.load_balancer_schemes.iter().any(|one| one == scheme));
        // One kind alone is a choice; none at all is an oversight.
        if schemes.iter().any(|scheme| has(scheme)) {
            return Vec::new();
        }
        let tags =
            schemes.iter().map(|scheme| if *scheme == "internal" { "kubernetes.io/role/internal-elb" } else { "kubernetes.io/role/elb" });
        let tags = tags.collect::<Vec<_>>().join(" or ");
        let message = ["no subnet of the cluster has tag ", &tags, " (value 1), by which subnets for load balancers are found"];
        vec![Diagnostic::warning("UntaggedSubnets", "/ingressClass", message.concat())]
    }
}
