//! Settings of what serves Ingresses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::controller::{Arguments, ContainerResources, ControllerSettings};
use super::slots::Module;
use super::version::VersionPin;

/// What serves Ingresses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ingress {
    /// The AWS Load Balancer Controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aws_load_balancer_controller: Option<AWSLoadBalancerController>,
    /// A registered module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<Module>,
}

/// Settings of the AWS Load Balancer Controller: Application Load Balancers for Ingresses, and Network Load
/// Balancers for Services that ask for it. All of its copies answer webhooks. It needs subnets with tag
/// `kubernetes.io/role/elb` or `kubernetes.io/role/internal-elb`, in two zones for Ingresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AWSLoadBalancerController {
    /// Which version is wanted.
    #[serde(flatten)]
    pub pin: VersionPin,
    /// IAM role that service account `kube-system/aws-load-balancer-controller` assumes. When absent, the
    /// controller runs on machines of the control plane and their role must allow what it does.
    #[serde(rename = "roleARN", default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 2048),
        regex(pattern = r"^arn:aws(-cn|-us-gov)?:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$")
    )]
    pub role_arn: Option<String>,
    /// Copies, place and log of the controller.
    #[serde(flatten)]
    pub controller: ControllerSettings,
    /// What the controller asks for: 100m of processor time and 200Mi of memory when absent.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub resources: ContainerResources,
    /// Further arguments of the controller, by their names without hyphens in front, of these:
    /// aws-max-retries, disable-ingress-class-annotation, disable-ingress-group-name-annotation,
    /// disable-restricted-sg-rules, enable-endpoint-slices, enable-pod-readiness-gate-inject,
    /// ingress-max-concurrent-reconciles, lb-stabilization-monitor-interval,
    /// service-max-concurrent-reconciles, sync-period, targetgroupbinding-max-concurrent-reconciles,
    /// targetgroupbinding-max-exponential-backoff-delay, tolerate-non-existent-backend-action,
    /// tolerate-non-existent-backend-service.
    #[serde(default, skip_serializing_if = "Arguments::is_empty")]
    pub extra_args: Arguments,
    /// What load balancers send to unless an Ingress or Service says otherwise: `instance`, ports of nodes,
    /// which works with every network; or `ip`, Pods, which need addresses of the VPC
    /// (`networking.amazonVPC`).
    #[serde(default)]
    pub target_type: TargetType,
    /// Who reaches load balancers of Ingresses and Services that do not say it themselves. `internal` when
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_scheme: Option<IngressScheme>,
    /// Security policy of TLS listeners whose Ingress or Service names none, such as
    /// `ELBSecurityPolicy-TLS13-1-2-2021-06`. `ELBSecurityPolicy-2016-08` when absent.
    #[serde(rename = "defaultSSLPolicy", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), regex(pattern = r"^ELBSecurityPolicy-[A-Za-z0-9-]+$"))]
    pub default_ssl_policy: Option<String>,
    /// Keys of tags that others put on load balancers, target groups and security groups of the controller:
    /// it neither sets nor removes them, also where `additionalTags` of the AWSCluster has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 128)))]
    pub external_managed_tags: Vec<String>,
    /// Security group of load balancers from which nodes and Pods take traffic, in place of one that the
    /// controller makes. It has to be in the cluster's VPC.
    #[serde(rename = "backendSecurityGroupID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^sg-[0-9a-f]+$"))]
    pub backend_security_group_id: Option<String>,
    /// The IngressClass that the controller serves.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub ingress_class: ControllerIngressClass,
    /// Whether new Services of type LoadBalancer go to this controller and not to the cloud provider, unless
    /// they say otherwise. New Services then need the controller to be up, except in kube-system.
    #[serde(default)]
    pub service_mutator_webhook: bool,
    /// Whether web ACLs of AWS WAF can be put on load balancers. The role then needs rights for it.
    #[serde(default)]
    pub waf: bool,
    /// Whether AWS Shield Advanced can protect load balancers. The role then needs rights for it.
    #[serde(default)]
    pub shield: bool,
    /// Registry and path in front of the image name `aws-load-balancer-controller`. That of
    /// `spec.imageRegistry` when absent, or `public.ecr.aws/eks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub image_registry: Option<String>,
    /// Tag of the image. When absent, the newest release known for the cluster's Kubernetes version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"))]
    pub image_tag: Option<String>,
}

/// What load balancers send to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum TargetType {
    #[default]
    Instance,
    Ip,
}

/// The IngressClass of the AWS Load Balancer Controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControllerIngressClass {
    /// Name of the class and of its IngressClassParams. It cannot be changed, for Ingresses name it.
    #[serde(default = "alb")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Whether Ingresses that name no class get this one.
    #[serde(rename = "default", default)]
    pub is_default: bool,
    /// Who reaches the load balancers of all Ingresses of this class. Each Ingress says so itself when
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<IngressScheme>,
}

impl Default for ControllerIngressClass {
    fn default() -> Self {
        Self { name: alb(), is_default: false, scheme: None }
    }
}

fn alb() -> String {
    "alb".to_owned()
}

/// Who reaches a load balancer: the VPC, or everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum IngressScheme {
    Internal,
    InternetFacing,
}
