//! Pods: only what is harmless needs no grant, wherever they are.

use super::*;

/// What a Deployment of these may do by itself: be there, with its own things and images.
pub(super) fn base() -> Value {
    json!({
        "objects": [
            {"group": "apps", "kinds": ["Deployment"], "namespaces": ["own"]},
            {"kinds": ["ConfigMap", "PersistentVolumeClaim", "Secret", "ServiceAccount"], "namespaces": ["own"], "names": ["own"]},
        ],
        "reads": [{"kinds": ["ConfigMap"], "namespaces": ["own"], "names": ["read"]}],
        "certificates": [{"namespace": "own", "secrets": ["certificate"]}],
        "registries": ["quay.io/tigera"],
    })
}

pub(super) fn deployment(pod: Value) -> Value {
    let mut spec = json!({"serviceAccountName": "own", "containers": [{"name": "a", "image": "quay.io/tigera/operator:v1"}]});
    spec.as_object_mut().expect("an object").extend(pod.as_object().cloned().expect("an object"));
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "own"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}, "spec": spec}}})
}

/// What is denied of a Pod with these fields, by the place in the Pod.
pub(super) fn of(pod: Value) -> Vec<String> {
    let denied = denied_of(deployment(pod), base());
    denied.into_iter().map(|it| it.replace("spec.template.spec.", "")).collect()
}

/// The same of a container.
fn of_container(container: Value) -> Vec<String> {
    let mut whole = json!({"name": "a", "image": "quay.io/tigera/operator:v1"});
    whole.as_object_mut().expect("an object").extend(container.as_object().cloned().expect("an object"));
    let denied = of(json!({"containers": [whole]}));
    denied.into_iter().map(|it| it.replace("containers[0].", "")).collect()
}

#[test]
fn a_pod_that_keeps_to_itself_needs_no_grant() {
    let container = json!({
        "name": "a", "image": "quay.io/tigera/operator:v1", "args": ["--a"], "resources": {"requests": {"cpu": "1"}},
        "ports": [{"containerPort": 80, "hostPort": 0}], "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
        "securityContext": {"privileged": false, "runAsUser": 0, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}},
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "own", "key": "a"}}}],
        "envFrom": [{"configMapRef": {"name": "read"}}],
        "volumeMounts": [{"name": "a", "mountPath": "/a", "mountPropagation": "HostToContainer"}],
    });
    let pod = json!({
        "containers": [container], "initContainers": null, "hostNetwork": false, "hostPID": null, "shareProcessNamespace": true,
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}], "dnsConfig": {"nameservers": ["10.0.0.1"]},
        "nodeSelector": {"kubernetes.io/os": "linux"}, "schedulerName": "default-scheduler",
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, {"key": "CriticalAddonsOnly", "operator": "Exists"}],
        "affinity": {
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"topologyKey": "a"}}]},
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "node-role.kubernetes.io/control-plane", "operator": "DoesNotExist"}, {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}]}},
        },
        "volumes": [
            {"name": "a", "emptyDir": {}}, {"name": "b", "persistentVolumeClaim": {"claimName": "own"}},
            {"name": "c", "secret": {"secretName": "certificate"}},
            {"name": "d", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"configMap": {"name": "own"}}]}},
            {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "ebs"}}}},
        ],
    });
    assert_eq!(of(pod), [""; 0]);
}

#[test]
fn what_belongs_to_the_machine_is_granted_by_name() {
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        let granted = format!("{field}: {field} of a Pod is not granted <- grants.pods.fields: [{field}]");
        assert_eq!(of(json!({field: true})), [granted]);
    }
    let cases = [
        (json!({"privileged": true}), "privileged", "privileged"),
        (json!({"procMount": "Unmasked"}), "procMount", "procMount"),
        (json!({"seccompProfile": {"type": "Unconfined"}}), "seccompProfile", "seccompProfile"),
        (json!({"appArmorProfile": {"type": "Localhost"}}), "appArmorProfile", "appArmorProfile"),
        (json!({"seLinuxOptions": {"type": "spc_t"}}), "seLinuxOptions", "seLinuxOptions"),
        (json!({"windowsOptions": {"hostProcess": true}}), "windowsOptions.hostProcess", "hostProcess"),
        (
            json!({"windowsOptions": {"gmsaCredentialSpec": "a"}}),
            "windowsOptions.gmsaCredentialSpec",
            "gmsaCredentialSpec",
        ),
    ];
    for (context, path, name) in cases {
        let granted =
            format!("securityContext.{path}: {name} of a Pod is not granted <- grants.pods.fields: [{name}]");
        assert_eq!(of_container(json!({"securityContext": context})), [granted]);
    }
    assert_eq!(
        of(
            json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}], "seccompProfile": {"type": "Unconfined"}}})
        ),
        [
            "securityContext.seccompProfile: seccompProfile of a Pod is not granted <- grants.pods.fields: [seccompProfile]",
            "securityContext.sysctls: sysctls of a Pod is not granted <- grants.pods.fields: [sysctls]",
        ]
    );
    assert_eq!(
        of_container(json!({"securityContext": {"capabilities": {"add": ["NET_ADMIN", "cap_sys_admin"]}}})),
        [
            "securityContext.capabilities.add: capability NET_ADMIN is not granted <- grants.pods.capabilities: [NET_ADMIN]",
            "securityContext.capabilities.add: capability SYS_ADMIN is not granted <- grants.pods.capabilities: [SYS_ADMIN]",
        ]
    );
    assert_eq!(
        of_container(json!({
            "ports": [{"containerPort": 80, "hostPort": 80}], "readinessProbe": {"tcpSocket": {"host": "169.254.169.254", "port": 80}},
            "lifecycle": {"preStop": {"httpGet": {"host": "127.0.0.1", "port": 80}}}, "volumeMounts": [{"name": "a", "mountPath": "/", "mountPropagation": "Bidirectional"}],
        })),
        [
            "lifecycle.preStop.httpGet.host: probeHost of a Pod is not granted <- grants.pods.fields: [probeHost]",
            "ports[0].hostPort: hostPort of a Pod is not granted <- grants.pods.fields: [hostPort]",
            "readinessProbe.tcpSocket.host: probeHost of a Pod is not granted <- grants.pods.fields: [probeHost]",
            "volumeMounts[0].mountPropagation: mountPropagation of a Pod is not granted <- grants.pods.fields: [mountPropagation]",
        ]
    );
}

#[test]
fn nobody_gets_onto_the_control_plane_without_a_grant() {
    let control_plane =
        "running on machines of the control plane is not granted <- grants.pods.controlPlane: true";
    assert_eq!(of(json!({"nodeName": "cp-1"})), ["nodeName is not granted <- nothing"]);
    assert_eq!(
        of(json!({"tolerations": [{"operator": "Exists"}]})),
        [
            format!("tolerations: {control_plane}"),
            "tolerations: tolerating every taint is not granted <- grants.pods.tolerations: [\"*\"]"
                .to_owned(),
        ]
    );
    for key in ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"] {
        assert_eq!(
            of(json!({"tolerations": [{"key": key, "effect": "NoSchedule"}]})),
            [
                format!("tolerations: {control_plane}"),
                format!(
                    "tolerations: tolerating taint {key} is not granted <- grants.pods.tolerations: [{key}]"
                ),
            ]
        );
        assert_eq!(of(json!({"nodeSelector": {key: ""}})), [format!("nodeSelector: {control_plane}")]);
        let terms = |operator: &str| json!([{"matchExpressions": [{"key": key, "operator": operator}]}]);
        let required = |operator: &str| {
            of(
                json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms(operator)}}}}),
            )
        };
        let path = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions";
        assert_eq!(required("Exists"), [format!("{path}: {control_plane}")]);
        assert_eq!(required("DoesNotExist"), [""; 0]);
    }
    assert_eq!(
        of(json!({"nodeSelector": {"kubernetes.io/hostname": "cp-1"}})),
        [
            "nodeSelector: choosing machines by label kubernetes.io/hostname is not granted <- grants.pods.nodeLabels: [kubernetes.io/hostname]"
        ]
    );
    let fields = json!([{"preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["cp-1"]}]}, "weight": 1}]);
    assert_eq!(
        of(
            json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": fields}}})
        ),
        [
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields is not granted <- nothing"
        ]
    );
    let term = json!([{"topologyKey": "kubernetes.io/hostname", "namespaces": ["kube-system"]}]);
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": term});
    assert_eq!(
        of(json!({"affinity": {"podAffinity": required, "podAntiAffinity": required}})),
        [
            "affinity.podAffinity: podAffinity of a Pod is not granted <- grants.pods.fields: [podAffinity]",
            "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaces: affinityToNamespaces of a Pod is not granted <- grants.pods.fields: [affinityToNamespaces]",
            "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution: requiredPodAntiAffinity of a Pod is not granted <- grants.pods.fields: [requiredPodAntiAffinity]",
            "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaces: affinityToNamespaces of a Pod is not granted <- grants.pods.fields: [affinityToNamespaces]",
        ]
    );
}

#[test]
fn what_the_scheduler_is_told_is_granted_by_name() {
    let cases = [
        (
            json!({"priorityClassName": "system-node-critical"}),
            "priorityClassName: PriorityClass system-node-critical is not granted <- grants.pods.priorityClasses: [system-node-critical]",
        ),
        (json!({"priority": 2_000_001_000}), "priority is not granted <- nothing"),
        (
            json!({"schedulerName": "mine"}),
            "schedulerName: schedulerName of a Pod is not granted <- grants.pods.fields: [schedulerName]",
        ),
        (
            json!({"runtimeClassName": "mine"}),
            "runtimeClassName: runtimeClassName of a Pod is not granted <- grants.pods.fields: [runtimeClassName]",
        ),
        (
            json!({"resourceClaims": [{"name": "a", "resourceClaimName": "others"}]}),
            "resourceClaims: resourceClaims of a Pod is not granted <- grants.pods.fields: [resourceClaims]",
        ),
        (json!({"overhead": {"cpu": "1"}}), "overhead is not granted <- nothing"),
    ];
    for (pod, said) in cases {
        assert_eq!(of(pod), [said]);
    }
}

#[test]
fn identity_secrets_and_images_are_ones_own() {
    let account = |name: &str| {
        format!(
            "ServiceAccount {name} of v1 in namespace own is not granted <- grants.objects: [{{group: \"\", kinds: [ServiceAccount], names: [{name}], namespaces: [own]}}]"
        )
    };
    assert_eq!(of(json!({"serviceAccountName": "admin"})), [account("admin")]);
    assert_eq!(of(json!({"serviceAccountName": null})), [account("default")]);
    assert_eq!(of(json!({"serviceAccount": "admin"})), [account("admin")], "the older name counts too");
    assert_eq!(
        of_container(json!({"image": "quay.io/tigera-evil/operator:v1"})),
        [
            "image quay.io/tigera-evil/operator:v1 comes from a registry that is not granted <- grants.registries: [quay.io/tigera-evil]"
        ]
    );
    let twice =
        json!([{"name": "a", "image": "evil.example.com/a"}, {"name": "b", "image": "evil.example.com/a"}]);
    assert_eq!(of(json!({"containers": twice})).len(), 1, "it is said once");
    assert_eq!(
        of_container(json!({"image": "nginx"})),
        ["image nginx comes from a registry that is not granted <- nothing"]
    );
    let secret = "Secret token of v1 in namespace own is not granted <- grants.reads: [{group: \"\", kinds: [Secret], names: [token], namespaces: [own]}]";
    assert_eq!(of_container(json!({"envFrom": [{"secretRef": {"name": "token"}}]})), [secret]);
    let env = json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "token", "key": "a"}}}]);
    assert_eq!(of_container(json!({"env": env})), [secret]);
}

#[test]
fn a_secret_to_pull_images_with_can_be_used_for_nothing_else() {
    let with = |pull_secrets: &[&str], pod: Value| {
        let mut grants = base();
        grants["pullSecrets"] = json!(pull_secrets);
        denied_of(deployment(pod), grants)
    };
    let pulled = json!({"imagePullSecrets": [{"name": "mirror"}]});
    assert_eq!(with(&["mirror"], pulled.clone()), [""; 0]);
    assert_eq!(
        with(&["other"], pulled),
        ["Secret mirror of v1 in namespace own is not granted <- grants.pullSecrets: [mirror]"]
    );
    assert_eq!(
        with(&["mirror"], json!({"volumes": [{"name": "a", "secret": {"secretName": "mirror"}}]})).len(),
        1
    );
    let mut grants = base();
    grants["pullSecrets"] = json!(["mirror"]);
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mirror", "namespace": "own"}});
    assert_eq!(denied_of(secret, grants).len(), 1);
}

#[test]
fn what_no_table_knows_is_denied() {
    assert_eq!(of(json!({"hostnameOverride": "a"})), ["hostnameOverride is not known <- nothing"]);
    assert_eq!(of(json!({"HostNetwork": true})), ["HostNetwork is not known <- nothing"]);
    assert_eq!(
        of_container(json!({"restartPolicyRules": [{}]})),
        ["restartPolicyRules is not known <- nothing"]
    );
    assert_eq!(
        of_container(json!({"securityContext": "all"})),
        ["securityContext is no SecurityContext <- nothing"]
    );
    assert_eq!(
        of(json!({"ephemeralContainers": [{"name": "a"}]})),
        ["ephemeralContainers is not granted <- nothing"]
    );
    let path = "a.\n".repeat(200);
    let said = of(json!({path.clone(): 1})).join("");
    assert!(said.len() < 400 && !said.contains('\n'), "{said}");
}

#[test]
fn templates_are_pods_in_whatever_kind_they_are() {
    let pod = json!({"serviceAccountName": "own", "hostPID": true});
    let template = json!({"metadata": {"labels": {"k8s-app": "kube-dns"}}, "spec": pod});
    let kinds = [
        ("v1", "Pod", json!({"spec": pod})),
        ("v1", "PodTemplate", json!({"template": template})),
        ("v1", "ReplicationController", json!({"spec": {"template": template}})),
        ("apps/v1", "DaemonSet", json!({"spec": {"template": template}})),
        ("apps/v1", "StatefulSet", json!({"spec": {"template": template}})),
        ("apps/v1", "ReplicaSet", json!({"spec": {"template": template}})),
        ("batch/v1", "Job", json!({"spec": {"template": template}})),
        ("batch/v1", "CronJob", json!({"spec": {"jobTemplate": {"spec": {"template": template}}}})),
        ("example.com/v1", "Widget", json!({"spec": {"deep": [{"template": template}]}})),
        ("example.com/v1", "Widget", json!({"spec": {"podTemplate": template}})),
        ("example.com/v1", "Widget", json!({"spec": {"podSpec": pod}})),
        ("example.com/v1", "Widget", json!({"list": [{"hostPID": true, "containers": []}]})),
        ("apps/v1beta9", "Hybrid", json!({"template": template})),
    ];
    for (api_version, kind, rest) in kinds {
        let mut object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "own"}});
        object.as_object_mut().expect("an object").extend(rest.as_object().cloned().expect("an object"));
        let mut grants = base();
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let own = json!({"group": group, "kinds": [kind], "namespaces": ["own"], "unread": true});
        grants["objects"].as_array_mut().expect("a list").push(own);
        let said = denied_of(object, grants);
        assert!(
            said.iter().any(|it| it
                .ends_with("hostPID: hostPID of a Pod is not granted <- grants.pods.fields: [hostPID]")),
            "{kind}: {said:?}"
        );
    }
}

#[test]
fn what_only_looks_like_a_pod_can_be_granted() {
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "own"}, "spec": {
        "containers": [{"name": "a", "own": {"template": {"spec": {"tolerations": []}}}}, "text"], "replicas": 1, "version": {"containers": [{"image": "quay.io/tigera/a"}]},
        "template": {"spec": {"nodeClassRef": {"name": "a"}}}}});
    let mut grants = base();
    let own = json!({"group": "example.com", "kinds": ["Widget"], "namespaces": ["own"], "unread": true});
    grants["objects"].as_array_mut().expect("a list").push(own);
    assert_eq!(denied_of(widget, grants), [""; 0]);
}
