//! Narrowing: whoever is narrowed may do nothing that either of the two may not.

use super::*;
use crate::built_in;

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end.max(1)
    }
}

/// Grants with some of their items left out, and some of their lists within items.
fn fewer(value: &Value, numbers: &mut Numbers) -> Value {
    match value {
        Value::Array(items) => {
            let kept: Vec<&Value> = items.iter().filter(|_| numbers.below(8) > 0).collect();
            Value::Array(kept.into_iter().map(|it| fewer(it, numbers)).collect())
        }
        Value::Object(fields) => {
            let mut res = serde_json::Map::new();
            for (name, field) in fields {
                let inner = fewer(field, numbers);
                // Nothing in these would grant all.
                let is_all = ["names", "namespaces"].contains(&name.as_str()) && inner == json!([]);
                res.insert(name.clone(), if is_all { json!(["nobody"]) } else { inner });
            }
            Value::Object(res)
        }
        Value::Bool(true) => Value::Bool(numbers.below(8) > 0),
        other => other.clone(),
    }
}

/// Steps that ask for one thing each, of what built-in plugins are granted and of what nobody is.
fn questions() -> Vec<Step> {
    let step = |kind: &str, spec: Value| Step { id: "it".into(), kind: kind.into(), spec, after: vec![] };
    let mut res = vec![step("k8s.own/v1", json!({}))];
    for add_on in built_in::BUILT_IN {
        let grants = built_in::grants(add_on.name, &json!({}));
        for grant in &grants.objects {
            for kind in &grant.kinds {
                for name in grant.names.iter().map(String::as_str).chain(["others", "kubernetes"]) {
                    let api_version = format!("{}/v1", grant.group).trim_start_matches('/').to_owned();
                    let mut spec =
                        json!({"apiVersion": api_version, "kind": kind, "name": name, "wait": true});
                    if let Some(namespace) = grant.namespaces.first() {
                        spec["namespace"] = namespace.as_str().into();
                    }
                    res.push(step("k8s.delete/v1", spec));
                }
            }
        }
        for right in &grants.rights {
            for (group, resource) in
                right.groups.iter().flat_map(|it| right.resources.iter().map(move |resource| (it, resource)))
            {
                for verb in &right.verbs {
                    let rule = json!({"apiGroups": [group], "resources": [resource], "verbs": [verb], "resourceNames": ["a"]});
                    res.push(applying(vec![json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": "aws-node"}, "rules": [rule]})]));
                }
            }
        }
        for rule in &grants.security_group_rules {
            let value = serde_json::to_value(rule).expect("JSON");
            let mut spec = json!({"group": value["groups"][0], "peer": value["peers"][0], "protocol": value["protocol"], "description": "a"});
            if ["tcp", "udp"].contains(&value["protocol"].as_str().unwrap_or_default()) {
                spec["fromPort"] = value["fromPort"].as_u64().unwrap_or(0).into();
                spec["toPort"] = value["toPort"].as_u64().unwrap_or(2378).into();
            }
            res.push(step("aws.sg-rule/v1", spec));
        }
        let pods = serde_json::to_value(&grants.pods).expect("JSON");
        let list = |name: &str| pods[name].as_array().cloned().unwrap_or_default();
        let mut pod = |rest: Value| {
            let mut spec = json!({"serviceAccountName": "aws-node", "containers": [{"name": "a", "image": "quay.io/tigera/a"}]});
            spec.as_object_mut().expect("an object").extend(rest.as_object().cloned().expect("an object"));
            res.push(applying(vec![json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "aws-node", "namespace": "kube-system"},
                "spec": {"template": {"spec": spec}}})]));
        };
        list("tolerations")
            .into_iter()
            .for_each(|it| pod(json!({"tolerations": [{"key": if it == "*" { Value::Null } else { it }}]})));
        list("hostPaths")
            .into_iter()
            .for_each(|it| pod(json!({"volumes": [{"name": "a", "hostPath": {"path": it["path"]}}]})));
        list("priorityClasses").into_iter().for_each(|it| pod(json!({"priorityClassName": it})));
        pod(json!({"hostNetwork": true}));
        pod(json!({"nodeSelector": {"node-role.kubernetes.io/control-plane": ""}}));
    }
    res
}

/// Whether a step is granted.
fn passes(step: &Step, grants: &Grants) -> bool {
    authorize([step], grants).is_empty()
}

#[test]
fn what_is_narrowed_may_do_what_both_may_and_nothing_else() {
    let all = built_in::BUILT_IN.iter().map(|it| built_in::grants(it.name, &json!({})));
    let all = all.fold(Grants::default(), |all, it| merged(&all, &it));
    let questions = questions();
    let whole = serde_json::to_value(&all).expect("JSON");
    let mut numbers = Numbers(7);
    let mut some = || -> Grants { serde_json::from_value(fewer(&whole, &mut numbers)).expect("grants") };
    let (mut granted, mut denied) = (0, 0);
    for _ in 0..12 {
        let (one, other) = (some(), some());
        let both = narrowed(&one, &other);
        let same = narrowed(&all, &one);
        for step in &questions {
            let expected = passes(step, &one) && passes(step, &other);
            assert_eq!(passes(step, &both), expected, "{step:?}");
            *(if expected { &mut granted } else { &mut denied }) += 1;
            assert_eq!(passes(step, &same), passes(step, &one), "{step:?}");
        }
    }
    assert!(granted > 1000 && denied > 1000, "{granted} {denied}");
}

#[test]
fn what_is_the_same_in_other_words_is_narrowed_too() {
    let both = |one: Value, other: Value| {
        let [one, other] = [one, other].map(|it| serde_json::from_value::<Grants>(it).expect("grants"));
        let (there, back) = (narrowed(&one, &other), narrowed(&other, &one));
        assert_eq!(fragment(&there), fragment(&back));
        fragment(&there)
    };
    let registries = |it: &str| json!({"registries": [it]});
    assert_eq!(
        both(registries("quay.io"), registries("quay.io/tigera")),
        "grants.registries: [quay.io/tigera]"
    );
    assert_eq!(both(registries("quay.io/tigera"), registries("quay.io/tigera-evil")), "");
    let labels = |it: &str| json!({"labels": [it]});
    assert_eq!(both(labels("a.k8s.io/*"), labels("a.k8s.io/b")), "grants.labels: [a.k8s.io/b]");
    assert_eq!(both(labels("a.k8s.io/*"), labels("*")), "grants.labels: [\"a.k8s.io/*\"]");
    let paths =
        |path: &str, read_only: bool| json!({"pods": {"hostPaths": [{"path": path, "readOnly": read_only}]}});
    assert_eq!(
        both(paths("/var", false), paths("/var/lib/", true)),
        "grants.pods.hostPaths: [{path: /var/lib/, readOnly: true}]"
    );
    let rule = |from: u16, to: u16, etcd: bool| json!({"securityGroupRules": [{"groups": ["node"], "peers": ["node"], "protocol": "tcp", "fromPort": from, "toPort": to, "etcd": etcd}]});
    assert_eq!(
        both(rule(0, 100, true), rule(50, 200, false)),
        "grants.securityGroupRules: [{fromPort: 50, groups: [node], peers: [node], protocol: tcp, toPort: 100}]"
    );
    assert_eq!(both(rule(0, 49, true), rule(50, 200, true)), "");
    let objects = |names: Value, unread: bool| json!({"objects": [{"kinds": ["ConfigMap"], "namespaces": ["kube-system", "own"], "names": names, "unread": unread}]});
    assert_eq!(
        both(objects(json!([]), true), objects(json!(["coredns"]), false)),
        "grants.objects: [{group: \"\", kinds: [ConfigMap], names: [coredns], namespaces: [own]}]",
        "what has to be named is named by both"
    );
    let limits = |fuel: u64| json!({"limits": {"fuel": fuel}});
    assert_eq!(both(limits(10), limits(20)), "grants.limits.fuel: 10");
}
