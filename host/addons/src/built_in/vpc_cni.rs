//! The Amazon VPC CNI, which gives Pods addresses of the VPC.

use serde_json::Value;

use super::builder::{
    APPLY, CRITICAL_ON_NODES, DELETE, IAM_ROLE, Objects, READ, Rights, SECURITY_GROUP_RULE, STS, SYSTEM,
    WAIT, grant, pods, rights, rule, texts, unread,
};
use super::{BuiltIn, to_value};
use crds::plugin_module::{MachineRole, PodGrants, RuleProtocol};

use crate::Slot;
use crate::grant::{Grants, RBAC};

pub const ADD_ON: BuiltIn = BuiltIn {
    name: "aws-vpc-cni",
    slot: Slot::Networking,
    path: "spec.networking.amazonVPC",
    settings: |spec| spec.networking.as_ref()?.amazon_vpc.as_ref().map(to_value),
    image_path: "",
    grants,
    driver: None,
};

fn grants(config: &Value) -> Grants {
    let objects: &[Objects<'_>] = &[
        ("", &["ServiceAccount"], SYSTEM, &["aws-node"]),
        ("apps", &["DaemonSet"], SYSTEM, &["aws-node"]),
        (RBAC, &["ClusterRole", "ClusterRoleBinding"], "", &["aws-node"]),
        ("apiextensions.k8s.io", &["CustomResourceDefinition"], "", &["eniconfigs.crd.k8s.amazonaws.com"]),
    ];
    // One for each partition.
    let registries = [
        "602401143452.dkr.ecr.us-west-2.amazonaws.com",
        "961992271922.dkr.ecr.cn-northwest-1.amazonaws.com.cn",
        "013241004608.dkr.ecr.us-gov-west-1.amazonaws.com",
    ];
    let allowed: &[Rights<'_>] = &[
        ("", &["crd.k8s.amazonaws.com"], &["eniconfigs"], READ),
        ("", &[""], &["namespaces", "nodes", "pods"], READ),
        ("", &["", "events.k8s.io"], &["events"], &["create", "list", "patch"]),
        ("", &["vpcresources.k8s.aws"], &["cninodes"], &["get", "list", "patch", "watch"]),
    ];
    let mut rest = grant(&[APPLY, WAIT, DELETE, SECURITY_GROUP_RULE, IAM_ROLE], &registries, objects);
    // They have names of zones.
    rest.objects.extend(unread(&[("crd.k8s.amazonaws.com", &["ENIConfig"], "", &[])]));
    let host_paths = [
        "/etc/cni/net.d",
        "/opt/cni/bin",
        "/run/xtables.lock",
        "/var/log/aws-routed-eni",
        "/var/run/aws-node",
    ];
    let pods = PodGrants {
        capabilities: texts(&["NET_ADMIN", "NET_RAW"]),
        token_audiences: texts(&[STS]),
        ..pods(config, &["hostNetwork", "privileged"], &host_paths, &["*"], CRITICAL_ON_NODES)
    };
    use MachineRole::{ControlPlane, Node};
    // Whatever Pods say to one another. Of the control plane's etcd, nothing from nodes.
    let security_group_rules = vec![
        rule(&[Node], &[ControlPlane, Node], RuleProtocol::All, None),
        rule(&[ControlPlane], &[ControlPlane], RuleProtocol::All, None),
        rule(&[ControlPlane], &[Node], RuleProtocol::Tcp, None),
        rule(&[ControlPlane], &[Node], RuleProtocol::Udp, None),
    ];
    Grants {
        facts: texts(&["api-server-version", "instance-types"]),
        rights: rights(allowed),
        security_group_rules,
        pods,
        ..rest
    }
}
