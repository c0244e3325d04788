//! Why something of an add-on does not come up: what the Pods of a Deployment or DaemonSet say, or
//! Tigera's operator. And which Pods count: a node that is gone takes its own along, and that is not the
//! add-on's fault. Words of the cluster are kept apart from ours.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::load_balancer_users::text;

/// Of this many Pods of a DaemonSet that is installed, one may be missing.
const A_TENTH: i64 = 10;
/// Reasons of a waiting container that are no trouble.
const USUAL: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// What decides of a Pod, as JSON pointers.
pub const POD_PARTS: [&str; 9] = [
    "/metadata/namespace",
    "/metadata/name",
    "/spec/nodeName",
    "/status/phase",
    "/status/reason",
    "/status/message",
    "/status/conditions",
    "/status/containerStatuses",
    "/status/initContainerStatuses",
];
/// The same of a Node.
pub const NODE_PARTS: [&str; 2] = ["/metadata/name", "/status/conditions"];

/// Why something does not come up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What it is with, in our words.
    pub subject: String,
    /// What the cluster says of it: whoever administers it can choose this.
    pub words: String,
}

/// How many of these Pods are on nodes that are gone, or whose kubelet answers no more.
pub fn on_lost_nodes(pods: &[Value], nodes: &[Value]) -> i64 {
    let is_known = |it: &&Value| condition(it, "Ready").is_some_and(|it| text(it, "/status") != "Unknown");
    let known: BTreeSet<&str> = nodes.iter().filter(is_known).map(|it| text(it, "/metadata/name")).collect();
    let lost =
        pods.iter().map(|it| text(it, "/spec/nodeName")).filter(|it| !it.is_empty() && !known.contains(it));
    i64::try_from(lost.count()).unwrap_or(i64::MAX)
}

/// Whether a DaemonSet works, but for what is on nodes that are lost and for less than a tenth of the rest.
/// It has to work somewhere, and no node that is there may have an earlier version of it.
pub fn works_but_for(live: &Value, on_lost_nodes: i64) -> bool {
    let at = |path: &str| live.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let current = at("/status/observedGeneration") >= at("/metadata/generation");
    let counted = at("/status/desiredNumberScheduled") - on_lost_nodes;
    let (updated, available) = (at("/status/updatedNumberScheduled"), at("/status/numberAvailable"));
    current && counted > 0 && available > 0 && updated >= counted && available >= counted - counted / A_TENTH
}

/// What is wrong with Pods that are not ready: what most of them say, and one of them for all.
pub fn find_problem(live: &Value, pods: &[Value]) -> Option<Problem> {
    let mut all: BTreeMap<String, Vec<Problem>> = BTreeMap::new();
    for pod in pods.iter().filter(|it| !is_ready(it)) {
        if let Some((reason, problem)) = of_pod(pod) {
            all.entry(reason).or_default().push(problem);
        }
    }
    let most = all.into_values().max_by_key(Vec::len);
    let told = most.and_then(|alike| {
        let others = alike.len() - 1;
        let first = alike.into_iter().next()?;
        let subject =
            if others == 0 { first.subject } else { format!("{} and {others} more", first.subject) };
        Some(Problem { subject, ..first })
    });
    told.or_else(|| of_controller(live))
}

/// What a Deployment says of Pods that it cannot even make: a quota, a policy.
fn of_controller(live: &Value) -> Option<Problem> {
    let failure = condition(live, "ReplicaFailure").filter(|it| text(it, "/status") == "True")?;
    Some(Problem {
        subject: "its Pods cannot be made".into(),
        words: words(text(failure, "/reason"), text(failure, "/message")),
    })
}

/// What Tigera's operator says of what it cannot do, or has not done yet.
pub fn tigera_status(live: &Value) -> Option<Problem> {
    let mut all = ["Degraded", "Progressing"]
        .into_iter()
        .filter_map(|it| condition(live, it))
        .filter(|it| text(it, "/status") == "True");
    let words =
        all.next().map(|it| words(text(it, "/reason"), text(it, "/message"))).filter(|it| !it.is_empty())?;
    Some(Problem { subject: "Tigera's operator says".into(), words })
}

/// A reason to count by, and what to say.
fn of_pod(pod: &Value) -> Option<(String, Problem)> {
    let name = format!("Pod {}/{}", text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
    let statuses = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let containers = statuses.iter().filter_map(|it| pod.pointer(it)?.as_array()).flatten();
    for container in containers {
        if let Some((reason, message)) = of_container(container) {
            let subject = format!("{name}, container {}", text(container, "/name"));
            return Some((reason.to_owned(), Problem { subject, words: words(reason, &message) }));
        }
    }
    let scheduled = condition(pod, "PodScheduled").filter(|it| text(it, "/status") == "False");
    let (reason, message) = match scheduled {
        Some(it) => (text(it, "/reason"), text(it, "/message")),
        None => (text(pod, "/status/reason"), text(pod, "/status/message")),
    };
    (!reason.is_empty() || !message.is_empty())
        .then(|| (reason.to_owned(), Problem { subject: name, words: words(reason, message) }))
}

/// Why a container does not run, if it has a reason: what it waits for, and how it ended before.
fn of_container(container: &Value) -> Option<(&str, String)> {
    let ended = |at: &str| {
        let code = container.pointer(&format!("{at}/exitCode")).and_then(Value::as_i64)?;
        let message = text(container.pointer(at)?, "/message").trim();
        let reason = text(container.pointer(at)?, "/reason");
        let how =
            if ["", "Error", "Completed"].contains(&reason) { String::new() } else { format!("{reason}, ") };
        Some(if message.is_empty() {
            format!("{how}exit code {code}")
        } else {
            format!("{how}exit code {code}: {message}")
        })
    };
    let waiting = text(container, "/state/waiting/reason");
    if !waiting.is_empty() && !USUAL.contains(&waiting) {
        let last = ended("/lastState/terminated")
            .unwrap_or_else(|| text(container, "/state/waiting/message").to_owned());
        return Some((waiting, last));
    }
    let failed =
        container.pointer("/state/terminated/exitCode").and_then(Value::as_i64).is_some_and(|it| it != 0);
    failed.then(|| Some(("Terminated", ended("/state/terminated")?))).flatten()
}

fn words(reason: &str, message: &str) -> String {
    match (reason.is_empty(), message.is_empty()) {
        (_, true) => reason.to_owned(),
        (true, _) => message.to_owned(),
        _ => format!("{reason}: {message}"),
    }
}

fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|it| text(it, "/status") == "True")
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object.pointer("/status/conditions")?.as_array()?.iter().find(|it| it["type"] == kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, node: &str, status: Value) -> Value {
        json!({"metadata": {"namespace": "kube-system", "name": name}, "spec": {"nodeName": node}, "status": status})
    }

    fn waiting(name: &str, reason: &str, message: &str) -> Value {
        let state = json!({"waiting": {"reason": reason, "message": message}});
        pod(
            name,
            "one",
            json!({"phase": "Pending", "containerStatuses": [{"name": "driver", "state": state}]}),
        )
    }

    fn told(pods: &[Value]) -> Option<(String, String)> {
        find_problem(&json!({}), pods).map(|it| (it.subject, it.words))
    }

    fn some(subject: &str, words: &str) -> Option<(String, String)> {
        Some((subject.to_owned(), words.to_owned()))
    }

    #[test]
    fn the_reason_of_most_pods_is_told_with_one_of_them() {
        let image = "Back-off pulling image \"x\"";
        let pods = [
            waiting("a", "CreateContainerError", "no"),
            waiting("b", "ImagePullBackOff", image),
            waiting("c", "ImagePullBackOff", image),
        ];
        let expected = some(
            "Pod kube-system/b, container driver and 1 more",
            "ImagePullBackOff: Back-off pulling image \"x\"",
        );
        assert_eq!(told(&pods), expected);
        assert_eq!(told(&[waiting("a", "ContainerCreating", "")]), None);
    }

    #[test]
    fn a_container_that_crashes_says_how_it_ended() {
        let crashed = |last: Value| {
            let state = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}});
            let status = json!({"name": "driver", "state": state, "lastState": {"terminated": last}});
            told(&[pod("a", "one", json!({"containerStatuses": [status]}))]).expect("trouble").1
        };
        assert_eq!(
            crashed(json!({"exitCode": 1, "reason": "Error", "message": "no region\n"})),
            "CrashLoopBackOff: exit code 1: no region"
        );
        assert_eq!(
            crashed(json!({"exitCode": 137, "reason": "OOMKilled"})),
            "CrashLoopBackOff: OOMKilled, exit code 137"
        );
    }

    #[test]
    fn what_cannot_be_scheduled_or_made_says_why() {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"});
        let pending = pod("a", "", json!({"conditions": [condition]}));
        assert_eq!(told(&[pending]), some("Pod kube-system/a", "Unschedulable: 0/3 nodes are available"));
        let quota = json!({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"});
        let live = json!({"status": {"conditions": [quota]}});
        let found = find_problem(&live, &[]).expect("trouble");
        assert_eq!(
            (found.subject.as_str(), found.words.as_str()),
            ("its Pods cannot be made", "FailedCreate: exceeded quota")
        );
    }

    #[test]
    fn tigeras_operator_says_what_it_waits_for() {
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "ResourceNotReady", "message": "no pool"});
        let words = |all: &[Value]| tigera_status(&json!({"status": {"conditions": all}})).map(|it| it.words);
        assert_eq!(
            words(&[condition("Available", "False"), condition("Degraded", "True")]),
            Some("ResourceNotReady: no pool".to_owned())
        );
        assert_eq!(words(&[condition("Degraded", "False")]), None);
    }

    #[test]
    fn pods_that_are_ready_are_no_trouble() {
        let ready = json!({"type": "Ready", "status": "True"});
        let state = json!({"terminated": {"exitCode": 1}});
        let status =
            json!({"conditions": [ready], "initContainerStatuses": [{"name": "init", "state": state}]});
        assert_eq!(told(&[pod("a", "one", status)]), None);
    }

    fn daemon_set(wanted: i64, updated: i64, available: i64) -> Value {
        json!({"metadata": {"generation": 3}, "status": {"observedGeneration": 3, "desiredNumberScheduled": wanted,
            "updatedNumberScheduled": updated, "numberAvailable": available}})
    }

    #[test]
    fn a_daemonset_works_when_no_more_than_a_tenth_of_its_pods_do_not() {
        for (wanted, updated, available, lost, expected) in [
            (20, 20, 18, 0, true),
            (20, 20, 17, 0, false),
            (9, 9, 8, 0, false),
            (3, 3, 2, 1, true),
            (3, 2, 2, 1, true),
            (3, 3, 1, 1, false),
            // One node has the earlier version still.
            (20, 19, 20, 0, false),
            (1, 1, 0, 1, false),
            (1, 1, 0, 0, false),
            (0, 0, 0, 0, false),
        ] {
            assert_eq!(
                works_but_for(&daemon_set(wanted, updated, available), lost),
                expected,
                "{wanted} {updated} {available} {lost}"
            );
        }
        let mut stale = daemon_set(20, 20, 20);
        stale["metadata"]["generation"] = 4.into();
        assert!(!works_but_for(&stale, 0));
    }

    #[test]
    fn a_node_is_lost_when_its_kubelet_is_silent_not_when_unready() {
        let node = |name: &str, ready: &str| json!({"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}]}});
        let nodes = [node("one", "True"), node("two", "Unknown"), node("three", "False")];
        let pods = ["one", "two", "three", "gone", ""].map(|it| pod("a", it, json!({})));
        assert_eq!(on_lost_nodes(&pods, &nodes), 2);
    }
}
