//! The AWS Load Balancer Controller, which serves Ingresses and Services.

use serde_json::Value;

use super::builder::{
    APPLY, CERTIFICATE, CONTROL_PLANE, COORDINATION, DELETE, IAM_ROLE, OWN_AND_PATCH, Objects, READ, Rights,
    SECURITY_GROUP_RULE, STS, SYSTEM, WAIT, certificate, chosen, grant, pods, rights, rule, texts, unread,
};
use super::{BuiltIn, to_value};
use crds::plugin_module::{MachineRole, PodGrants, RuleProtocol};

use crate::Slot;
use crate::grant::{Grants, RBAC};

pub const ADD_ON: BuiltIn = BuiltIn {
    name: "aws-load-balancer-controller",
    slot: Slot::Ingress,
    path: "spec.ingress.awsLoadBalancerController",
    settings: |spec| spec.ingress.as_ref()?.aws_load_balancer_controller.as_ref().map(to_value),
    image_path: "/eks",
    grants,
    driver: None,
};

fn grants(config: &Value) -> Grants {
    const NAME: &str = "aws-load-balancer-controller";
    let class = chosen(config, "/ingressClass/name", "alb");
    let crds = ["targetgroupbindings.elbv2.k8s.aws", "ingressclassparams.elbv2.k8s.aws"];
    let webhooks = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    let objects: &[Objects<'_>] = &[
        ("", &["ServiceAccount"], SYSTEM, &[NAME]),
        ("", &["Service"], SYSTEM, &["aws-load-balancer-webhook-service"]),
        ("apps", &["Deployment"], SYSTEM, &[NAME]),
        (RBAC, &["Role"], SYSTEM, &["aws-load-balancer-controller-leader-election-role"]),
        (RBAC, &["RoleBinding"], SYSTEM, &["aws-load-balancer-controller-leader-election-rolebinding"]),
        (RBAC, &["ClusterRole"], "", &["aws-load-balancer-controller-role"]),
        (RBAC, &["ClusterRoleBinding"], "", &["aws-load-balancer-controller-rolebinding"]),
        ("apiextensions.k8s.io", &["CustomResourceDefinition"], "", &crds),
        ("admissionregistration.k8s.io", &webhooks, "", &["aws-load-balancer-webhook"]),
        ("networking.k8s.io", &["IngressClass"], "", &[class]),
    ];
    let (elb, networking) = ("elbv2.k8s.aws", "networking.k8s.io");
    let allowed: &[Rights<'_>] = &[
        ("", &[""], &["endpoints", "namespaces", "nodes", "pods"], READ),
        ("", &["discovery.k8s.io"], &["endpointslices"], READ),
        ("", &[networking], &["ingressclasses"], READ),
        ("", &[elb], &["ingressclassparams"], READ),
        ("", &[""], &["events"], &["create", "patch"]),
        ("", &[""], &["configmaps"], &["create", "delete", "get", "update"]),
        ("", &[""], &["services"], &["get", "list", "patch", "update", "watch"]),
        ("", &[""], &["pods/status", "services/status"], &["patch", "update"]),
        ("", &[networking], &["ingresses"], &["get", "list", "patch", "update", "watch"]),
        ("", &[networking], &["ingresses/status"], &["patch", "update"]),
        ("", &[elb], &["targetgroupbindings"], OWN_AND_PATCH),
        ("", &[elb], &["targetgroupbindings/status"], &["patch", "update"]),
        (SYSTEM, &[""], &["configmaps"], &["create", "get", "patch", "update"]),
        (SYSTEM, &[COORDINATION], &["leases"], &["create", "get", "patch", "update"]),
    ];
    let asked: &[Rights<'_>] = &[
        ("", &[""], &["pods", "services"], &["CREATE"]),
        ("", &[elb], &["ingressclassparams", "targetgroupbindings"], &["CREATE", "UPDATE"]),
        ("", &[networking], &["ingresses"], &["CREATE", "UPDATE"]),
    ];
    let mut rest = grant(
        &[APPLY, WAIT, DELETE, SECURITY_GROUP_RULE, IAM_ROLE, CERTIFICATE],
        &["public.ecr.aws/eks"],
        objects,
    );
    rest.objects.extend(unread(&[
        ("policy", &["PodDisruptionBudget"], SYSTEM, &[NAME]),
        (elb, &["IngressClassParams"], "", &[class]),
    ]));
    let pods = PodGrants {
        token_audiences: texts(&[STS]),
        ..pods(config, &[], &[], &[CONTROL_PLANE], &["system-cluster-critical"])
    };
    let both = [MachineRole::ControlPlane, MachineRole::Node];
    Grants {
        facts: texts(&["api-server-version", "subnets"]),
        fields: texts(&["Webhook.failurePolicy"]),
        annotations: texts(&["ingressclass.kubernetes.io/is-default-class"]),
        // The host makes it; none is applied.
        certificates: vec![certificate(SYSTEM, "aws-load-balancer-tls")],
        rights: rights(allowed),
        webhooks: rights(asked),
        security_group_rules: vec![rule(
            &both,
            &[MachineRole::ControlPlane],
            RuleProtocol::Tcp,
            Some((9443, 9443)),
        )],
        pods,
        ..rest
    }
}
