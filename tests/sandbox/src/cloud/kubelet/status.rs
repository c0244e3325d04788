//! What a kubelet says of a pod in its status.
//!
//! Pure. It speaks for pods that run for real and for those that only look so, without telling which.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodCondition};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::cloud::process::State;

/// How a pod fares on this node.
#[derive(Clone, Debug)]
pub struct Fare {
    /// When the node took the pod.
    pub since: Timestamp,
    /// Its own address, or the node's with `hostNetwork`.
    pub address: String,
    pub node_address: String,
    /// Whether its network is there; without it no container starts.
    pub network: bool,
    /// Containers that run for real, by name; the others run as soon as the network is there.
    pub programs: BTreeMap<String, State>,
}

impl Fare {
    fn state(&self, container: &Container) -> State {
        let runs = || State { since: Some(self.since), ready: true, ..State::default() };
        self.programs.get(&container.name).cloned().unwrap_or_else(runs)
    }
}

fn started(state: &State) -> bool {
    state.since.is_some() || state.restarts > 0
}

/// The status to patch.
pub fn status(pod: &Pod, fare: &Fare) -> Value {
    let since = time(fare.since);
    let spec = pod.spec.as_ref();
    let containers = || spec.into_iter().flat_map(|spec| &spec.containers);
    let once = spec.and_then(|spec| spec.restart_policy.as_deref()).is_some_and(|policy| policy != "Always");
    let states: Vec<State> = containers().map(|container| fare.state(container)).collect();
    let started = fare.network && states.iter().all(started);
    let ready = started && states.iter().all(|state| state.ready) && !once;
    let phase = match (started, once) {
        (false, _) => "Pending",
        (true, true) => "Succeeded",
        (true, false) => "Running",
    };
    let reason = match (ready, once && started) {
        (true, _) => None,
        (false, true) => Some("PodCompleted"),
        (false, false) => Some("ContainersNotReady"),
    };
    let condition = |kind: &str, status: bool, reason: Option<&str>| {
        json!({
            "type": kind, "status": if status { "True" } else { "False" }, "reason": reason,
            "lastProbeTime": null, "lastTransitionTime": time(Timestamp::now()),
        })
    };
    let mut status = json!({
        "phase": phase, "startTime": since,
        "hostIP": fare.node_address, "hostIPs": [{"ip": fare.node_address}],
        "conditions": [
            condition("PodReadyToStartContainers", fare.network, None),
            condition("Initialized", fare.network, None),
            condition("ContainersReady", ready, reason),
            condition("Ready", ready, reason),
        ],
        "containerStatuses": containers().map(|container| container_status(pod, container, fare, once)).collect::<Vec<_>>(),
    });
    if fare.network {
        status["podIP"] = json!(fare.address);
        status["podIPs"] = json!([{"ip": fare.address}]);
        let first = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
        let done = first.iter().map(|container| {
            json!({
                "name": container.name, "image": container.image, "imageID": "", "ready": true, "restartCount": 0,
                "started": false, "state": terminated(&since, ""),
            })
        });
        status["initContainerStatuses"] = done.collect();
    }
    status
}

fn container_status(pod: &Pod, container: &Container, fare: &Fare, once: bool) -> Value {
    let fares = fare.state(container);
    let started = fare.network && started(&fares);
    let id = format!("containerd://{}-{}-{}", pod.uid().unwrap_or_default(), container.name, fares.restarts);
    let why = fares.message.as_deref().unwrap_or("the program ended and will be started again");
    let state = match fares.since {
        _ if !started => json!({"waiting": {"reason": "ContainerCreating", "message": fares.message}}),
        Some(since) if once => terminated(&time(since), &id),
        Some(since) => json!({"running": {"startedAt": time(since)}}),
        None => json!({"waiting": {"reason": "CrashLoopBackOff", "message": why}}),
    };
    let runs = started && fares.since.is_some() && !once;
    json!({
        "name": container.name, "image": container.image, "imageID": if started { container.image.as_deref() } else { Some("") },
        "containerID": if started { id } else { String::new() },
        "ready": runs && fares.ready, "started": runs, "restartCount": fares.restarts, "state": state,
    })
}

fn terminated(since: &str, id: &str) -> Value {
    json!({"terminated": {
        "exitCode": 0, "reason": "Completed", "startedAt": since, "finishedAt": since, "containerID": id,
    }})
}

/// Whether the pod's status is not what `wanted` says, times of conditions aside.
pub fn differs(pod: &Pod, wanted: &Value) -> bool {
    let Some(found) = &pod.status else { return true };
    let empty = Vec::new();
    let conditions = wanted["conditions"].as_array().unwrap_or(&empty);
    let held = |condition: &Value| {
        let same =
            |found: &PodCondition| condition["type"] == *found.type_ && condition["status"] == *found.status;
        found.conditions.iter().flatten().any(same)
    };
    let containers = wanted["containerStatuses"].as_array().unwrap_or(&empty);
    let shown = |container: &Value| {
        found.container_statuses.iter().flatten().any(|found| {
            let waiting = found.state.as_ref().and_then(|state| state.waiting.as_ref());
            container["name"] == *found.name
                && container["ready"] == found.ready
                && container["restartCount"] == found.restart_count
                && container["state"]["waiting"]["message"].as_str()
                    == waiting.and_then(|waiting| waiting.message.as_deref())
        })
    };
    wanted["phase"].as_str() != found.phase.as_deref()
        || wanted["podIP"].as_str() != found.pod_ip.as_deref()
        || !conditions.iter().all(held)
        || !containers.iter().all(shown)
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(policy: &str) -> Pod {
        let pod = json!({
            "metadata": {"name": "p", "uid": "u"},
            "spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]},
        });
        serde_json::from_value(pod).expect("a pod")
    }

    fn fare(network: bool, running: bool) -> Fare {
        let since = Timestamp::UNIX_EPOCH;
        let state = State { since: running.then_some(since), ready: running, ..State::default() };
        let programs = BTreeMap::from([("c".to_owned(), state)]);
        Fare {
            since,
            address: "192.168.0.1".to_owned(),
            node_address: "10.0.0.4".to_owned(),
            network,
            programs,
        }
    }

    fn with(mut pod: Pod, status: &Value) -> Pod {
        pod.status = Some(serde_json::from_value(status.clone()).expect("a status"));
        pod
    }

    #[test]
    fn without_a_network_a_pod_is_pending_and_has_no_address() {
        let status = status(&pod("Always"), &fare(false, true));
        assert_eq!(status["phase"], "Pending");
        assert_eq!(status["podIP"], Value::Null);
        assert_eq!(status["containerStatuses"][0]["state"]["waiting"]["reason"], "ContainerCreating");
    }

    #[test]
    fn a_status_that_was_taken_over_does_not_differ() {
        let wanted = status(&pod("Always"), &fare(true, true));
        assert_eq!(wanted["phase"], "Running");
        assert!(differs(&pod("Always"), &wanted));
        assert!(!differs(&with(pod("Always"), &wanted), &wanted));
    }

    #[test]
    fn a_pod_that_the_node_lifecycle_set_not_ready_differs() {
        let wanted = status(&pod("Always"), &fare(true, true));
        let mut found = wanted.clone();
        found["conditions"][3]["status"] = json!("False");
        assert!(differs(&with(pod("Always"), &found), &wanted));
    }

    #[test]
    fn a_pod_that_runs_once_succeeds() {
        let status = status(&pod("Never"), &fare(true, true));
        assert_eq!(status["phase"], "Succeeded");
        assert_eq!(status["containerStatuses"][0]["state"]["terminated"]["exitCode"], 0);
    }

    #[test]
    fn a_program_that_ended_shows_as_a_crash_loop() {
        let mut fare = fare(true, false);
        fare.programs.insert(
            "c".to_owned(),
            State { restarts: 3, message: Some("no role".to_owned()), ..State::default() },
        );
        let status = status(&pod("Always"), &fare);
        assert_eq!(status["phase"], "Running");
        assert_eq!(status["containerStatuses"][0]["ready"], false);
        assert_eq!(status["containerStatuses"][0]["state"]["waiting"]["reason"], "CrashLoopBackOff");
        assert_eq!(status["containerStatuses"][0]["state"]["waiting"]["message"], "no role");
    }

    #[test]
    fn a_pod_is_not_ready_while_one_of_its_programs_is_down() {
        let mut pod = pod("Always");
        let beside: Container =
            serde_json::from_value(json!({"name": "beside", "image": "i"})).expect("a container");
        pod.spec.as_mut().expect("a spec").containers.push(beside);
        let mut fare = fare(true, false);
        fare.programs.insert("c".to_owned(), State { restarts: 1, ..State::default() });
        let status = status(&pod, &fare);
        let ready: Vec<bool> = status["containerStatuses"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|container| container["ready"] == true)
            .collect();
        assert_eq!(ready, [false, true]);
        assert_eq!(status["conditions"][3]["status"], "False");
    }
}
