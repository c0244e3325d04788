//! The Tigera operator and what it may do. It runs on the host's network and tolerates every taint, because
//! nothing is ready before it.
//!
//! Its rights are wide: it may make roles with rights that it does not have itself, so it is as good as an
//! administrator of the cluster. Left out are rights for parts that this plugin does not install (Gateway
//! API, Istio, OpenShift, pod security policies).

use plugin_sdk::steps::Object;
use serde_json::{Value, json};

const VERSION: &str = "v1.42.3";
const NAME: &str = "tigera-operator";
const SECRETS: &str = "tigera-operator-secrets";
const RBAC: &str = "rbac.authorization.k8s.io/v1";

pub const NAMESPACE_OBJECT: Object<'static> =
    Object { api_version: "v1", kind: "Namespace", namespace: None, name: NAME };
pub const DEPLOYMENT: Object<'static> =
    Object { api_version: "apps/v1", kind: "Deployment", namespace: Some(NAME), name: NAME };
pub const CLUSTER_ROLE: Object<'static> =
    Object { api_version: RBAC, kind: "ClusterRole", namespace: None, name: NAME };
pub const CLUSTER_ROLE_BINDING: Object<'static> =
    Object { api_version: RBAC, kind: "ClusterRoleBinding", namespace: None, name: NAME };
pub const SECRETS_CLUSTER_ROLE: Object<'static> =
    Object { api_version: RBAC, kind: "ClusterRole", namespace: None, name: SECRETS };
pub const SECRETS_ROLE_BINDING: Object<'static> =
    Object { api_version: RBAC, kind: "RoleBinding", namespace: Some(NAME), name: SECRETS };

/// All of it, with images from `registry`.
pub fn objects(registry: &str) -> Vec<Value> {
    let subjects = json!([{ "kind": "ServiceAccount", "name": NAME, "namespace": NAME }]);
    let role =
        |name: &str| json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name });
    vec![
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": NAME, "labels": { "name": NAME, "pod-security.kubernetes.io/enforce": "privileged" } },
        }),
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": NAME, "namespace": NAME } }),
        json!({ "apiVersion": RBAC, "kind": "ClusterRole", "metadata": { "name": NAME }, "rules": rules() }),
        json!({
            "apiVersion": RBAC, "kind": "ClusterRole", "metadata": { "name": SECRETS },
            "rules": [{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "update", "delete"] }],
        }),
        json!({
            "apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": { "name": NAME },
            "roleRef": role(NAME), "subjects": subjects,
        }),
        json!({
            "apiVersion": RBAC, "kind": "RoleBinding", "metadata": { "name": SECRETS, "namespace": NAME },
            "roleRef": role(SECRETS), "subjects": subjects,
        }),
        deployment(&[registry, "/tigera/operator:", VERSION].concat()),
    ]
}

fn deployment(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": NAME, "namespace": NAME, "labels": { "k8s-app": NAME } },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "name": NAME } },
            "template": {
                "metadata": { "labels": { "k8s-app": NAME, "name": NAME } },
                "spec": {
                    "serviceAccountName": NAME,
                    "priorityClassName": "system-cluster-critical",
                    "hostNetwork": true,
                    "dnsPolicy": "ClusterFirstWithHostNet",
                    "nodeSelector": { "kubernetes.io/os": "linux" },
                    "tolerations": [{ "effect": "NoExecute", "operator": "Exists" }, { "effect": "NoSchedule", "operator": "Exists" }],
                    // As long as it takes down what it made.
                    "terminationGracePeriodSeconds": 60,
                    "containers": [container(image)],
                    "volumes": [{ "name": "var-lib-calico", "hostPath": { "path": "/var/lib/calico" } }],
                },
            },
        },
    })
}

fn container(image: &str) -> Value {
    json!({
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["operator"],
        "args": ["-manage-crds=true"],
        "env": [
            { "name": "WATCH_NAMESPACE", "value": "" },
            { "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
            { "name": "OPERATOR_NAME", "value": NAME },
            { "name": "TIGERA_OPERATOR_INIT_IMAGE_VERSION", "value": VERSION },
        ],
        // Where the API server is, for clusters without kube-proxy.
        "envFrom": [{ "configMapRef": { "name": "kubernetes-services-endpoint", "optional": true } }],
        "resources": { "requests": { "cpu": "50m", "memory": "128Mi" } },
        "volumeMounts": [{ "name": "var-lib-calico", "mountPath": "/var/lib/calico", "readOnly": true }],
    })
}

const READ: &[&str] = &["get", "list", "watch"];
const OWN: &[&str] = &["create", "delete", "get", "list", "update", "watch"];
const OWN_AND_PATCH: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CALICO_GROUPS: &[&str] = &["crd.projectcalico.org", "projectcalico.org"];

fn rules() -> Vec<Value> {
    let mut rules = vec![
        rule(
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
        rule(&[""], &["resourcequotas", "secrets"], READ),
        named(&[""], &["resourcequotas"], &["calico-critical-pods", "tigera-critical-pods"], OWN),
        rule(&[""], &["nodes"], &["get", "list", "patch", "watch"]),
        rule(&["authentication.k8s.io"], &["tokenreviews"], &["create"]),
        rule(
            &["rbac.authorization.k8s.io"],
            &["clusterrolebindings", "clusterroles", "rolebindings", "roles"],
            &["bind", "create", "delete", "escalate", "get", "list", "update", "watch"],
        ),
        rule(&["apps"], &["daemonsets", "deployments", "statefulsets"], OWN_AND_PATCH),
        named(&["apps"], &["deployments/finalizers"], &[NAME], &["update"]),
        rule(&["networking.k8s.io"], &["networkpolicies"], OWN),
        rule(&["scheduling.k8s.io"], &["priorityclasses"], OWN),
        rule(&["policy"], &["poddisruptionbudgets"], OWN),
        rule(&["apiregistration.k8s.io"], &["apiservices"], OWN),
        rule(&["discovery.k8s.io"], &["endpointslices"], READ),
        rule(&["coordination.k8s.io"], &["leases"], OWN),
        rule(&["storage.k8s.io"], &["csidrivers"], OWN),
        rule(&["certificates.k8s.io"], &["certificatesigningrequests"], &["list", "watch"]),
        rule(
            &["admissionregistration.k8s.io"],
            &[
                "mutatingadmissionpolicies",
                "mutatingadmissionpolicybindings",
                "validatingadmissionpolicies",
                "validatingadmissionpolicybindings",
                "validatingwebhookconfigurations",
            ],
            OWN,
        ),
        rule(
            &["admissionregistration.k8s.io"],
            &["mutatingwebhookconfigurations"],
            &["create", "delete", "get", "list", "watch"],
        ),
    ];
    rules.extend(crd_rules());
    rules.extend(own_rules());
    rules.extend(calico_rules());
    rules
}

/// It makes any CustomResourceDefinition, but changes only those that are its own and Calico's.
fn crd_rules() -> [Value; 4] {
    const GROUP: &[&str] = &["apiextensions.k8s.io"];
    const CRDS: &[&str] = &["customresourcedefinitions"];
    let of = |group: &str, names: &[&str]| -> Vec<String> {
        names.iter().map(|name| [name, ".", group].concat()).collect()
    };
    let mut calico = of("crd.projectcalico.org", CALICO_KINDS);
    calico.extend(of("crd.projectcalico.org", &["ipamconfigs"]));
    calico.extend(of("projectcalico.org", CALICO_KINDS));
    calico.extend(of("projectcalico.org", &["ipamconfigurations"]));
    [
        rule(GROUP, CRDS, &["create", "get", "list", "watch"]),
        json!({ "apiGroups": GROUP, "resources": CRDS, "resourceNames": calico, "verbs": ["update"] }),
        json!({ "apiGroups": GROUP, "resources": CRDS, "resourceNames": of("operator.tigera.io", OPERATOR_KINDS), "verbs": ["update"] }),
        named(GROUP, CRDS, &["clusternetworkpolicies.policy.networking.k8s.io"], &["delete", "update"]),
    ]
}

const CALICO_KINDS: &[&str] = &[
    "bgpconfigurations",
    "bgpfilters",
    "bgppeers",
    "blockaffinities",
    "caliconodestatuses",
    "clusterinformations",
    "felixconfigurations",
    "globalnetworkpolicies",
    "globalnetworksets",
    "hostendpoints",
    "ipamblocks",
    "ipamhandles",
    "ippools",
    "ipreservations",
    "kubecontrollersconfigurations",
    "networkpolicies",
    "networksets",
    "stagedglobalnetworkpolicies",
    "stagedkubernetesnetworkpolicies",
    "stagednetworkpolicies",
    "tiers",
];

const OPERATOR_KINDS: &[&str] = &[
    "apiservers",
    "gatewayapis",
    "goldmanes",
    "imagesets",
    "installations",
    "istios",
    "managementclusterconnections",
    "tigerastatuses",
    "whiskers",
];

/// What it does with the objects that tell it what to do.
fn own_rules() -> [Value; 3] {
    const GROUP: &[&str] = &["operator.tigera.io"];
    let mut resources = Vec::new();
    for kind in OPERATOR_KINDS {
        resources.extend([(*kind).to_owned(), [kind, "/finalizers"].concat(), [kind, "/status"].concat()]);
    }
    [
        json!({ "apiGroups": GROUP, "resources": resources, "verbs": ["get", "list", "patch", "update", "watch"] }),
        rule(GROUP, &["tigerastatuses"], &["create", "delete"]),
        rule(GROUP, &["apiservers", "goldmanes", "installations", "whiskers"], &["delete"]),
    ]
}

/// What it does with Calico's own objects.
fn calico_rules() -> Vec<Value> {
    const V3: &[&str] = &["projectcalico.org"];
    const TIERED: &[&str] = &["tier.globalnetworkpolicies", "tier.networkpolicies"];
    vec![
        rule(
            CALICO_GROUPS,
            &["bgpconfigurations", "felixconfigurations", "ippools"],
            &["create", "get", "list", "patch", "watch"],
        ),
        rule(
            CALICO_GROUPS,
            &["clusterinformations", "ipamconfigurations", "kubecontrollersconfigurations"],
            READ,
        ),
        rule(V3, &["globalnetworkpolicies", "ippools", "networkpolicies", "networksets"], OWN_AND_PATCH),
        rule(V3, TIERED, READ),
        named(V3, TIERED, &["calico-system.*"], OWN),
        rule(V3, &["tiers"], &["create", "get", "list", "watch"]),
        named(V3, &["tiers"], &["calico-system"], &["delete", "get", "update"]),
        rule(&["migration.projectcalico.org"], &["datastoremigrations"], READ),
        // It does not read these itself, but hands the right on to Typha and calico-node.
        rule(&["kubevirt.io"], &["virtualmachineinstancemigrations"], READ),
    ]
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs })
}

fn named(groups: &[&str], resources: &[&str], names: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "resourceNames": names, "verbs": verbs })
}
