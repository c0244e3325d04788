//! Steps that are about something else than applying.

use super::*;

fn step(kind: &str, spec: Value) -> Step {
    Step { id: "it".into(), kind: kind.into(), spec, after: vec![] }
}

fn grants() -> Grants {
    granted(json!({
        "steps": ["aws.iam-role/v1", "aws.sg-rule/v1"],
        "objects": [
            {"group": "apps", "kinds": ["Deployment"], "namespaces": ["own"]},
            {"kinds": ["ServiceAccount"], "namespaces": ["own"], "names": ["own"]},
        ],
        "reads": [{"group": "apps", "kinds": ["DaemonSet"], "namespaces": ["kube-system"], "names": ["aws-node"]}],
    }))
}

#[test]
fn a_kind_of_step_that_is_not_granted_is_denied_with_all_the_rest() {
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "own"}});
    assert_eq!(
        denied(&applying(vec![object]), &Grants::default()),
        [
            "step kind k8s.apply/v1 is not granted <- grants.steps: [k8s.apply/v1]",
            "ConfigMap a of v1 in namespace own is not granted <- grants.objects: [{group: \"\", kinds: [ConfigMap], names: [a], namespaces: [own]}]",
        ]
    );
    let denials = authorize([&step("k8s.surprise/v9", json!({}))], &Grants::default());
    assert_eq!(denials.len(), 2);
    assert!(
        text(&denials).contains("unknown kind \"k8s.surprise/v9\" (rule steps; nothing grants it)"),
        "{}",
        text(&denials)
    );
}

#[test]
fn waits_are_for_granted_objects_and_for_what_apis_there_are() {
    let wait = |kind: &str, namespace: Option<&str>, name: &str, condition: &str| {
        let (api_version, kind) = kind.rsplit_once('/').expect("a version");
        let mut spec = json!({"apiVersion": api_version, "kind": kind, "name": name, "condition": condition, "timeoutSeconds": 1});
        if let Some(namespace) = namespace {
            spec["namespace"] = namespace.into();
        }
        denied(&step("k8s.wait/v1", spec), &grants())
    };
    assert_eq!(wait("apps/v1/Deployment", Some("own"), "a", "available-deployment"), [""; 0]);
    assert_eq!(wait("apps/v1/DaemonSet", Some("kube-system"), "aws-node", "ready-daemonset"), [""; 0]);
    assert_eq!(
        wait("apps/v1/Deployment", Some("default"), "a", "available-deployment"),
        [
            "Deployment a of apps/v1 in namespace default is not granted <- grants.reads: [{group: apps, kinds: [Deployment], names: [a], namespaces: [default]}]"
        ]
    );
    assert_eq!(wait("v1/Secret", Some("kube-system"), "admin", "exists").len(), 1);
    let definition = "apiextensions.k8s.io/v1/CustomResourceDefinition";
    assert_eq!(wait(definition, None, "a.b", "crd-established"), [""; 0]);
    assert_eq!(wait(definition, None, "a.b", "gone").len(), 1);
    assert_eq!(wait("example.com/v1/CustomResourceDefinition", None, "a.b", "crd-established").len(), 1);
    assert_eq!(wait("operator.tigera.io/v1/TigeraStatus", None, "calico", "tigerastatus-available"), [""; 0]);
}

#[test]
fn what_may_be_read_may_not_be_written() {
    let spec = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "namespace": "kube-system", "name": "aws-node", "wait": false});
    assert_eq!(
        denied(&step("k8s.delete/v1", spec), &grants()),
        [
            "DaemonSet aws-node of apps/v1 in namespace kube-system is not granted <- grants.objects: [{group: apps, kinds: [DaemonSet], names: [aws-node], namespaces: [kube-system]}]"
        ]
    );
}

#[test]
fn roles_are_only_looked_at_and_only_for_ones_own_service_accounts() {
    let role = |mode: &str, account: &str| {
        let spec = json!({"roleArn": "arn", "trust": "irsa", "namespace": "own", "serviceAccount": account, "actions": [], "mode": mode});
        denied(&step("aws.iam-role/v1", spec), &grants())
    };
    assert_eq!(role("check", "own"), [""; 0]);
    assert_eq!(role("ensure", "own"), ["changing IAM roles is not granted <- nothing"]);
    assert_eq!(role("check", "other").len(), 1);
    let nobody = json!({"roleArn": "arn", "trust": "irsa", "actions": [], "mode": "check"});
    assert_eq!(
        denied(&step("aws.iam-role/v1", nobody), &grants()),
        ["an IAM role for no service account is not granted <- nothing"]
    );
    let nodes = json!({"roleArn": "arn", "trust": "node", "actions": [], "mode": "check"});
    assert_eq!(
        denied(&step("aws.iam-role/v1", nodes), &grants()),
        ["looking at IAM roles that instances assume is not granted <- grants.nodeRoles: true"]
    );
}

#[test]
fn traffic_is_granted_by_who_sends_and_gets_it_and_port() {
    let rule = |group: &str, peer: &str, protocol: &str, ports: Option<(u16, u16)>, granted_rule: Value| {
        let mut spec = json!({"group": group, "peer": peer, "protocol": protocol, "description": "a"});
        if let Some((from, to)) = ports {
            spec["fromPort"] = from.into();
            spec["toPort"] = to.into();
        }
        let grants = merged(&grants(), &granted(json!({"securityGroupRules": [granted_rule]})));
        denied(&step("aws.sg-rule/v1", spec), &grants)
    };
    let tcp = |from: u16, to: u16| json!({"groups": ["control-plane", "node"], "peers": ["node"], "protocol": "tcp", "fromPort": from, "toPort": to});
    assert_eq!(rule("node", "node", "tcp", Some((80, 81)), tcp(80, 90)), [""; 0]);
    assert_eq!(
        rule("node", "control-plane", "tcp", Some((80, 80)), tcp(80, 90)),
        [
            "tcp ports 80 to 80 from the control plane to nodes is not granted <- grants.securityGroupRules: [{fromPort: 80, groups: [node], peers: [control-plane], protocol: tcp, toPort: 80}]"
        ]
    );
    assert_eq!(rule("node", "node", "tcp", Some((79, 80)), tcp(80, 90)).len(), 1);
    assert_eq!(rule("node", "node", "udp", Some((80, 80)), tcp(80, 90)).len(), 1);
    assert_eq!(rule("node", "node", "tcp", Some((2379, 2379)), tcp(0, 65535)), [""; 0], "nodes have no etcd");
    for ports in [(2379, 2379), (2380, 2381), (0, 65535)] {
        let said = rule("control-plane", "node", "tcp", Some(ports), tcp(0, 65535)).join("");
        assert!(said.contains("etcd's among them") && said.contains("etcd: true"), "{said}");
        let mut with_etcd = tcp(0, 65535);
        with_etcd["etcd"] = true.into();
        assert_eq!(rule("control-plane", "node", "tcp", Some(ports), with_etcd), [""; 0]);
    }
    assert_eq!(rule("control-plane", "node", "tcp", Some((2381, 65535)), tcp(0, 65535)), [""; 0]);
    let all = json!({"groups": ["node"], "peers": ["node"], "protocol": "-1"});
    assert_eq!(rule("node", "node", "-1", None, all.clone()), [""; 0]);
    assert_eq!(
        rule("node", "node", "tcp", Some((80, 80)), all).len(),
        1,
        "each protocol is a grant of its own"
    );
    assert_eq!(
        rule("node", "node", "-1", None, tcp(0, 65535)),
        [
            "all traffic from nodes to nodes is not granted <- grants.securityGroupRules: [{groups: [node], peers: [node], protocol: \"-1\"}]"
        ]
    );
}

#[test]
fn facts_and_steps_of_a_descriptor_are_granted_too() {
    let requires = json!({"steps": ["k8s.apply/v1", "aws.sg-rule/v1", "k8s.own/v1"], "facts": ["cluster", "installed", "subnets"]});
    let said = |denials: Vec<Denial>| denials.into_iter().map(|it| it.message).collect::<Vec<_>>();
    assert_eq!(said(denied_facts(&requires, &grants())), ["fact subnets is not granted"]);
    assert_eq!(
        said(denied_requirements(&requires, &grants())),
        ["step kind k8s.own/v1 is not granted", "fact subnets is not granted"]
    );
    let told = Grants { facts: vec!["subnets".into()], ..Grants::default() };
    assert_eq!(denied_facts(&requires, &told), []);
    assert_eq!(denied_requirements(&json!("a"), &told), []);
}

#[test]
fn a_plan_with_a_million_violations_is_judged_quickly() {
    let object = |place: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("a{place}"), "namespace": "b"}});
    let steps = [applying((0..200_000).map(object).collect())];
    let denials = authorize(&steps, &Grants::default());
    assert_eq!(denials.len(), 1000);
    assert!(text(&denials).len() < 8192 && text(&denials).ends_with("; and 980 more"));
}
