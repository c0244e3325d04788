//! Calico, which Tigera's operator installs.

use serde_json::Value;

use super::builder::{
    APPLY, COORDINATION, DELETE, INSTANCE_ROLES, OWN, OWN_AND_PATCH, Objects, READ, Rights,
    SECURITY_GROUP_RULE, STORAGE, WAIT, grant, object, pods, rights, rule, texts, unread,
};
use super::{BuiltIn, to_value};
use crds::plugin_module::{MachineRole, RuleProtocol, SecurityGroupRuleGrant};

use crate::Slot;
use crate::grant::{Grants, RBAC, TakeOver};

pub const ADD_ON: BuiltIn = BuiltIn {
    name: "calico",
    slot: Slot::Networking,
    path: "spec.networking.calico",
    settings: |spec| spec.networking.as_ref()?.calico.as_ref().map(to_value),
    image_path: "",
    grants,
    driver: None,
};

fn grants(config: &Value) -> Grants {
    let objects: &[Objects<'_>] = &[
        ("", &["Namespace"], "", &["tigera-operator"]),
        ("", &["ServiceAccount", "ConfigMap"], "tigera-operator", &[]),
        ("apps", &["Deployment"], "tigera-operator", &["tigera-operator"]),
        (RBAC, &["RoleBinding", "Role"], "tigera-operator", &[]),
        (RBAC, &["ClusterRole", "ClusterRoleBinding"], "", &["tigera-operator", "tigera-operator-secrets"]),
        ("operator.tigera.io", &["Installation"], "", &["default"]),
    ];
    let mut rest =
        grant(&[APPLY, WAIT, DELETE, SECURITY_GROUP_RULE, INSTANCE_ROLES], &["quay.io/tigera"], objects);
    // It writes the defaults of what the Installation leaves open into the Installation.
    let installation = object(&("operator.tigera.io", &["Installation"], "", &["default"]));
    let taken_over = vec![TakeOver { object: installation, manager: "tigera-operator".to_owned() }];
    rest.objects.extend(unread(&[
        ("operator.tigera.io", &["APIServer"], "", &["default"]),
        ("crd.projectcalico.org", &["FelixConfiguration"], "", &["default"]),
    ]));
    let pods = pods(config, &["hostNetwork"], &["/var/lib/calico"], &["*"], &["system-cluster-critical"]);
    Grants {
        facts: texts(&["api-server-version", "ip-pools", "machine-subnets"]),
        labels: texts(&["pod-security.kubernetes.io/enforce"]),
        rights: rights(CALICO),
        security_group_rules: traffic(config),
        pods,
        taken_over,
        ..rest
    }
}

/// What passes between machines with each encapsulation. Packets of Pods that are not wrapped are of whatever
/// protocol the Pods speak.
fn traffic(config: &Value) -> Vec<SecurityGroupRuleGrant> {
    let all = [MachineRole::ControlPlane, MachineRole::Node];
    let any = |protocol, port: Option<u16>| rule(&all, &all, protocol, port.map(|it| (it, it)));
    let typha = any(RuleProtocol::Tcp, Some(5473));
    let api_server = rule(&all, &[MachineRole::ControlPlane], RuleProtocol::Tcp, Some((5443, 5443)));
    match config.get("encapsulation").and_then(Value::as_str).unwrap_or("VXLAN") {
        "VXLAN" => vec![any(RuleProtocol::Udp, Some(4789)), typha, api_server],
        "IPIP" => vec![any(RuleProtocol::IpInIp, None), any(RuleProtocol::Tcp, Some(179)), typha, api_server],
        _ => vec![any(RuleProtocol::All, None)],
    }
}

/// The operator makes whatever Calico needs, roles of any kind among it: it can do all that can be done in
/// the cluster.
const CALICO: &[Rights<'_>] = &[
    (
        "",
        &[""],
        &[
            "configmaps",
            "endpoints",
            "events",
            "namespaces",
            "pods",
            "podtemplates",
            "serviceaccounts",
            "services",
        ],
        OWN,
    ),
    ("", &[""], &["resourcequotas", "secrets"], OWN),
    ("", &[""], &["nodes"], &["get", "list", "patch", "watch"]),
    ("", &["authentication.k8s.io"], &["tokenreviews"], &["create"]),
    ("", &[RBAC], &["clusterrolebindings", "clusterroles", "rolebindings", "roles"], &["bind", "escalate"]),
    ("", &[RBAC], &["clusterrolebindings", "clusterroles", "rolebindings", "roles"], OWN),
    ("", &["apps"], &["daemonsets", "deployments", "statefulsets"], OWN_AND_PATCH),
    ("", &["apps"], &["deployments/finalizers"], &["update"]),
    ("", &["networking.k8s.io"], &["networkpolicies"], OWN),
    ("", &["scheduling.k8s.io"], &["priorityclasses"], OWN),
    ("", &["policy"], &["poddisruptionbudgets"], OWN),
    ("", &["apiregistration.k8s.io"], &["apiservices"], OWN),
    ("", &["discovery.k8s.io"], &["endpointslices"], READ),
    ("", &[COORDINATION], &["leases"], OWN),
    ("", &[STORAGE], &["csidrivers"], OWN),
    ("", &["certificates.k8s.io"], &["certificatesigningrequests"], &["list", "watch"]),
    (
        "",
        &["admissionregistration.k8s.io"],
        &[
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ],
        OWN,
    ),
    ("", &["apiextensions.k8s.io"], &["customresourcedefinitions"], OWN),
    (
        "",
        &["operator.tigera.io"],
        &[
            "apiservers",
            "apiservers/finalizers",
            "apiservers/status",
            "gatewayapis",
            "gatewayapis/finalizers",
            "gatewayapis/status",
            "goldmanes",
            "goldmanes/finalizers",
            "goldmanes/status",
            "imagesets",
            "imagesets/finalizers",
            "imagesets/status",
            "installations",
            "installations/finalizers",
            "installations/status",
            "istios",
            "istios/finalizers",
            "istios/status",
            "managementclusterconnections",
            "managementclusterconnections/finalizers",
            "managementclusterconnections/status",
            "tigerastatuses",
            "tigerastatuses/finalizers",
            "tigerastatuses/status",
            "whiskers",
            "whiskers/finalizers",
            "whiskers/status",
        ],
        OWN_AND_PATCH,
    ),
    (
        "",
        &["crd.projectcalico.org", "projectcalico.org"],
        &[
            "bgpconfigurations",
            "clusterinformations",
            "felixconfigurations",
            "globalnetworkpolicies",
            "ipamconfigurations",
            "ippools",
            "kubecontrollersconfigurations",
            "networkpolicies",
            "networksets",
            "tier.globalnetworkpolicies",
            "tier.networkpolicies",
            "tiers",
        ],
        OWN_AND_PATCH,
    ),
    ("", &["migration.projectcalico.org"], &["datastoremigrations"], READ),
    ("", &["kubevirt.io"], &["virtualmachineinstancemigrations"], READ),
];
