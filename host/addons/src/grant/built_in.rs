//! What the plugins that come with the host may do: no more than their plans need, by name wherever a name is
//! known. They get nothing that is not listed here.

use serde_json::Value;

use super::{Grants, ObjectGrant, RBAC, Right, TakeOver};

/// Group, kinds, namespace (empty for cluster-scoped objects) and names (empty for all).
type Objects<'a> = (&'a str, &'a [&'a str], &'a str, &'a [&'a str]);

/// Namespace (empty for the whole cluster), groups, resources and verbs.
type Rights<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str]);

const SYSTEM: &str = "kube-system";
const APPLY: &str = "k8s.apply/v1";
const WAIT: &str = "k8s.wait/v1";
const DELETE: &str = "k8s.delete/v1";
const SECURITY_GROUP_RULE: &str = "aws.sg-rule/v1";
const IAM_ROLE: &str = "aws.iam-role/v1";
const IAM_ROLE_WITH_TAGS: &str = "aws.iam-role/v2";
const INSTANCE_ROLES: &str = "aws.instance-roles/v1";
const EFS_FILE_SYSTEM: &str = "aws.efs-file-system/v1";
const CERTIFICATE: &str = "tls.certificate/v1";

const COORDINATION: &str = "coordination.k8s.io";
const STORAGE: &str = "storage.k8s.io";
const READ: &[&str] = &["get", "list", "watch"];
const OWN: &[&str] = &["create", "delete", "get", "list", "update", "watch"];
const OWN_AND_PATCH: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

/// What a plugin that comes with the host may do; nothing at all for any other name. `config` is its
/// configuration: a registry that the user names there is granted, and so are Secrets to pull images with,
/// and objects whose names the user chooses there.
pub fn built_in(module: &str, config: &Value) -> Grants {
    let mut grants = match module {
        "aws-cloud-controller-manager" => cloud_controller_manager(),
        "aws-ebs-csi" => ebs_csi(config),
        "aws-efs-csi" => efs_csi(config),
        "aws-load-balancer-controller" => load_balancer_controller(config),
        "aws-vpc-cni" => vpc_cni(),
        "calico" => calico(),
        _ => return Grants::default(),
    };
    let named = config.get("imageRegistry").and_then(Value::as_str);
    grants.registries.extend(named.map(|it| it.trim_end_matches('/').to_owned()));
    let secrets = config.get("imagePullSecrets").and_then(Value::as_array).into_iter().flatten();
    grants.pull_secrets = secrets.filter_map(|it| it["name"].as_str().map(str::to_owned)).collect();
    grants
}

fn grants(steps: &[&str], registries: &[&str], objects: &[Objects<'_>]) -> Grants {
    Grants {
        steps: texts(steps),
        objects: objects.iter().map(object).collect(),
        registries: texts(registries),
        ..Grants::default()
    }
}

fn object((group, kinds, namespace, names): &Objects<'_>) -> ObjectGrant {
    ObjectGrant {
        group: (*group).to_owned(),
        kinds: texts(kinds),
        namespaces: if namespace.is_empty() { Vec::new() } else { vec![(*namespace).to_owned()] },
        names: texts(names),
    }
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|it| (*it).to_owned()).collect()
}

fn rights(all: &[Rights<'_>]) -> Vec<Right> {
    let right = |(namespace, groups, resources, verbs): &Rights<'_>| Right {
        namespace: (*namespace).to_owned(),
        groups: texts(groups),
        resources: texts(resources),
        verbs: texts(verbs),
    };
    all.iter().map(right).collect()
}

/// A name that the user may choose, and the one that is taken otherwise.
fn chosen<'a>(config: &'a Value, path: &str, otherwise: &'a str) -> &'a str {
    config.pointer(path).and_then(Value::as_str).unwrap_or(otherwise)
}

fn cloud_controller_manager() -> Grants {
    let objects: &[Objects<'_>] = &[
        ("", &["ServiceAccount"], SYSTEM, &["cloud-controller-manager"]),
        ("apps", &["DaemonSet"], SYSTEM, &["aws-cloud-controller-manager"]),
        (RBAC, &["RoleBinding"], SYSTEM, &["cloud-controller-manager:apiserver-authentication-reader"]),
        (RBAC, &["ClusterRole", "ClusterRoleBinding"], "", &["system:cloud-controller-manager"]),
    ];
    let allowed: &[Rights<'_>] = &[
        ("", &[""], &["nodes"], &["*"]),
        ("", &[""], &["nodes/status"], &["patch"]),
        ("", &[""], &["services", "services/status"], &["list", "patch", "update", "watch"]),
        ("", &[""], &["events"], &["create", "patch", "update"]),
        ("", &[""], &["serviceaccounts"], &["create", "get", "list", "watch"]),
        // Of each of its controllers.
        ("", &[""], &["serviceaccounts/token"], &["create"]),
        ("", &[""], &["persistentvolumes"], &["get", "list", "update", "watch"]),
        ("", &[""], &["endpoints"], &["create", "get", "list", "update", "watch"]),
        ("", &[COORDINATION], &["leases"], &["create", "get", "list", "update", "watch"]),
        ("", &["authentication.k8s.io"], &["tokenreviews"], &["create"]),
        ("", &["authorization.k8s.io"], &["subjectaccessreviews"], &["create"]),
    ];
    let reader = ObjectGrant {
        group: RBAC.into(),
        kinds: vec!["Role".into()],
        namespaces: vec![SYSTEM.into()],
        names: vec!["extension-apiserver-authentication-reader".into()],
    };
    let rest = grants(&[APPLY, WAIT, DELETE], &["registry.k8s.io/provider-aws"], objects);
    Grants { rights: rights(allowed), roles: vec![reader], host: true, ..rest }
}

fn calico() -> Grants {
    let objects: &[Objects<'_>] = &[
        ("", &["Namespace"], "", &["tigera-operator"]),
        ("", &["ServiceAccount", "ConfigMap"], "tigera-operator", &[]),
        ("apps", &["Deployment"], "tigera-operator", &["tigera-operator"]),
        (RBAC, &["RoleBinding", "Role"], "tigera-operator", &[]),
        (RBAC, &["ClusterRole", "ClusterRoleBinding"], "", &["tigera-operator", "tigera-operator-secrets"]),
        ("operator.tigera.io", &["Installation", "APIServer"], "", &["default"]),
        ("crd.projectcalico.org", &["FelixConfiguration"], "", &["default"]),
    ];
    let rest =
        grants(&[APPLY, WAIT, DELETE, SECURITY_GROUP_RULE, INSTANCE_ROLES], &["quay.io/tigera"], objects);
    // It writes the defaults of what the Installation leaves open into the Installation.
    let installation = object(&("operator.tigera.io", &["Installation"], "", &["default"]));
    let taken_over = vec![TakeOver { object: installation, manager: "tigera-operator".to_owned() }];
    Grants { rights: rights(CALICO), host: true, taken_over, ..rest }
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

fn vpc_cni() -> Grants {
    let objects: &[Objects<'_>] = &[
        ("", &["ServiceAccount"], SYSTEM, &["aws-node"]),
        ("apps", &["DaemonSet"], SYSTEM, &["aws-node"]),
        (RBAC, &["ClusterRole", "ClusterRoleBinding"], "", &["aws-node"]),
        ("apiextensions.k8s.io", &["CustomResourceDefinition"], "", &["eniconfigs.crd.k8s.amazonaws.com"]),
        // They have names of zones.
        ("crd.k8s.amazonaws.com", &["ENIConfig"], "", &[]),
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
    let rest = grants(&[APPLY, WAIT, DELETE, SECURITY_GROUP_RULE, IAM_ROLE], &registries, objects);
    Grants { rights: rights(allowed), host: true, ..rest }
}

fn ebs_csi(config: &Value) -> Grants {
    let more = config.get("storageClasses").and_then(Value::as_array).into_iter().flatten();
    let classes: Vec<&str> = [chosen(config, "/storageClass/name", "ebs")]
        .into_iter()
        .chain(more.filter_map(|it| it.get("name")?.as_str()))
        .collect();
    let roles = [
        "ebs-external-provisioner-role",
        "ebs-external-attacher-role",
        "ebs-external-resizer-role",
        "ebs-external-snapshotter-role",
        "ebs-csi-node-role",
    ];
    let bindings = [
        "ebs-csi-provisioner-binding",
        "ebs-csi-attacher-binding",
        "ebs-csi-resizer-binding",
        "ebs-csi-snapshotter-binding",
        "ebs-csi-node-getter-binding",
    ];
    let objects: &[Objects<'_>] = &[
        ("", &["ServiceAccount"], SYSTEM, &["ebs-csi-controller-sa", "ebs-csi-node-sa"]),
        ("apps", &["Deployment"], SYSTEM, &["ebs-csi-controller"]),
        ("apps", &["DaemonSet"], SYSTEM, &["ebs-csi-node"]),
        ("policy", &["PodDisruptionBudget"], SYSTEM, &["ebs-csi-controller"]),
        (RBAC, &["ClusterRole"], "", &roles),
        (RBAC, &["ClusterRoleBinding"], "", &bindings),
        (RBAC, &["Role", "RoleBinding"], SYSTEM, &["ebs-csi-leases-role"]),
        ("storage.k8s.io", &["CSIDriver"], "", &["ebs.csi.aws.com"]),
        ("storage.k8s.io", &["StorageClass"], "", &classes),
    ];
    let snapshot = "snapshot.storage.k8s.io";
    let allowed: &[Rights<'_>] = &[
        ("", &[""], &["persistentvolumes"], &["create", "delete", "get", "list", "patch", "watch"]),
        ("", &[""], &["persistentvolumeclaims"], &["get", "list", "update", "watch"]),
        ("", &[""], &["persistentvolumeclaims/status"], &["patch"]),
        ("", &[""], &["pods"], READ),
        ("", &[""], &["nodes"], &["get", "list", "patch", "watch"]),
        ("", &[""], &["events"], &["create", "list", "patch", "update", "watch"]),
        (
            "",
            &[STORAGE],
            &["csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses"],
            READ,
        ),
        ("", &[STORAGE], &["volumeattachments", "volumeattachments/status"], &["patch"]),
        ("", &[snapshot], &["volumesnapshots"], &["get", "list", "update", "watch"]),
        ("", &[snapshot], &["volumesnapshotclasses"], READ),
        ("", &[snapshot], &["volumesnapshotcontents"], &["get", "list", "patch", "update", "watch"]),
        ("", &[snapshot], &["volumesnapshotcontents/status"], &["patch", "update"]),
        (SYSTEM, &[COORDINATION], &["leases"], OWN_AND_PATCH),
    ];
    let registries = ["public.ecr.aws/ebs-csi-driver", "public.ecr.aws/csi-components"];
    Grants {
        rights: rights(allowed),
        host: true,
        ..grants(&[APPLY, WAIT, DELETE, IAM_ROLE_WITH_TAGS], &registries, objects)
    }
}

fn efs_csi(config: &Value) -> Grants {
    let objects: &[Objects<'_>] = &[
        ("", &["ServiceAccount"], SYSTEM, &["efs-csi-controller-sa", "efs-csi-node-sa"]),
        ("apps", &["Deployment"], SYSTEM, &["efs-csi-controller"]),
        ("apps", &["DaemonSet"], SYSTEM, &["efs-csi-node"]),
        (RBAC, &["ClusterRole"], "", &["efs-csi-external-provisioner-role", "efs-csi-node-role"]),
        (RBAC, &["ClusterRoleBinding"], "", &["efs-csi-provisioner-binding", "efs-csi-node-binding"]),
        (RBAC, &["Role", "RoleBinding"], SYSTEM, &["efs-csi-leases-role"]),
        ("storage.k8s.io", &["CSIDriver"], "", &["efs.csi.aws.com"]),
        ("storage.k8s.io", &["StorageClass"], "", &[chosen(config, "/storageClass/name", "efs")]),
    ];
    let registries = ["public.ecr.aws/efs-csi-driver", "public.ecr.aws/csi-components"];
    let allowed: &[Rights<'_>] = &[
        ("", &[""], &["persistentvolumes"], &["create", "delete", "get", "list", "patch", "watch"]),
        ("", &[""], &["persistentvolumeclaims"], &["get", "list", "update", "watch"]),
        ("", &[""], &["nodes"], &["get", "list", "patch", "watch"]),
        ("", &[""], &["events"], &["create", "list", "patch", "watch"]),
        ("", &[STORAGE], &["csinodes", "storageclasses"], READ),
        (SYSTEM, &[COORDINATION], &["leases"], OWN_AND_PATCH),
    ];
    let rest = grants(&[APPLY, WAIT, DELETE, IAM_ROLE_WITH_TAGS, EFS_FILE_SYSTEM], &registries, objects);
    Grants { rights: rights(allowed), host: true, ..rest }
}

fn load_balancer_controller(config: &Value) -> Grants {
    const NAME: &str = "aws-load-balancer-controller";
    let class = chosen(config, "/ingressClass/name", "alb");
    let crds = ["targetgroupbindings.elbv2.k8s.aws", "ingressclassparams.elbv2.k8s.aws"];
    let webhooks = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    let objects: &[Objects<'_>] = &[
        ("", &["ServiceAccount"], SYSTEM, &[NAME]),
        ("", &["Service"], SYSTEM, &["aws-load-balancer-webhook-service"]),
        ("", &["Secret"], SYSTEM, &["aws-load-balancer-tls"]),
        ("apps", &["Deployment"], SYSTEM, &[NAME]),
        ("policy", &["PodDisruptionBudget"], SYSTEM, &[NAME]),
        (RBAC, &["Role"], SYSTEM, &["aws-load-balancer-controller-leader-election-role"]),
        (RBAC, &["RoleBinding"], SYSTEM, &["aws-load-balancer-controller-leader-election-rolebinding"]),
        (RBAC, &["ClusterRole"], "", &["aws-load-balancer-controller-role"]),
        (RBAC, &["ClusterRoleBinding"], "", &["aws-load-balancer-controller-rolebinding"]),
        ("apiextensions.k8s.io", &["CustomResourceDefinition"], "", &crds),
        ("admissionregistration.k8s.io", &webhooks, "", &["aws-load-balancer-webhook"]),
        ("networking.k8s.io", &["IngressClass"], "", &[class]),
        ("elbv2.k8s.aws", &["IngressClassParams"], "", &[class]),
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
    let rest = grants(
        &[APPLY, WAIT, DELETE, SECURITY_GROUP_RULE, IAM_ROLE, CERTIFICATE],
        &["public.ecr.aws/eks"],
        objects,
    );
    Grants { rights: rights(allowed), webhooks: rights(asked), ..rest }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_plugin_gets_nothing() {
        assert_eq!(built_in("unknown", &json!({"imageRegistry": "quay.io"})), Grants::default());
    }

    #[test]
    fn the_registry_that_the_user_names_is_granted() {
        let registries =
            built_in("aws-load-balancer-controller", &json!({"imageRegistry": "registry.example.com/aws"}))
                .registries;
        assert_eq!(registries, ["public.ecr.aws/eks", "registry.example.com/aws"]);
    }

    #[test]
    fn names_that_the_user_chooses_take_the_place_of_the_usual_ones() {
        let classes = |config: Value| {
            let objects = built_in("aws-ebs-csi", &config).objects;
            objects.into_iter().find(|it| it.kinds == ["StorageClass"]).map(|it| it.names)
        };
        assert_eq!(classes(json!({})), Some(vec!["ebs".to_owned()]));
        assert_eq!(classes(json!({"storageClass": {"name": "fast"}})), Some(vec!["fast".to_owned()]));
        assert_eq!(
            classes(json!({"storageClasses": [{"name": "cold"}]})),
            Some(vec!["ebs".to_owned(), "cold".to_owned()])
        );
    }
}
