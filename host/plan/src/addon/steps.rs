//! Which steps of an add-on's plan can be carried out now, and whether what a step waits for has come. Nothing here carries one out.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::ObjectRef;
use crate::contract::{Step, StepSpec, WaitCondition, WaitSpec};

/// Steps that are not done and whose predecessors are, in the order of the plan.
pub fn runnable<'a>(steps: &'a [Step], done: &BTreeSet<String>) -> Vec<&'a Step> {
    let is_done = |id: &String| done.contains(id);
    steps.iter().filter(|it| !is_done(&it.id) && it.after.iter().all(is_done)).collect()
}

/// Whether a step that was carried out once is looked at again and again: what it asks for can come undone by itself, or ends with time.
pub fn is_looked_at_again(step: &Step) -> bool {
    use StepSpec::{Apply, Certificate, Delete, EfsFileSystem, IamRole, InstanceRoles, SecurityGroupRule, Wait};
    match step.typed() {
        Ok(Wait(_) | IamRole(_) | InstanceRoles(_) | EfsFileSystem(_) | Certificate(_)) => true,
        Ok(Apply(_) | Delete(_) | SecurityGroupRule(_)) | Err(_) => false,
    }
}

/// What keeps a plan from ever being finished: an id used twice, a predecessor that does not exist, a circle. Each predecessor is looked at
/// once or twice, however many there are and however often they are named.
pub fn flaw(steps: &[Step]) -> Option<String> {
    let mut places = HashMap::with_capacity(steps.len());
    for (place, step) in steps.iter().enumerate() {
        if places.insert(step.id.as_str(), place).is_some() {
            return Some(format!("the id {:?} is used twice", step.id));
        }
    }
    let mut before = Vec::with_capacity(steps.len());
    for step in steps {
        let mut predecessors = Vec::with_capacity(step.after.len());
        for id in &step.after {
            match places.get(id.as_str()) {
                Some(place) => predecessors.push(*place),
                None => return Some(format!("step {:?} comes after {id:?}, which is not there", step.id)),
            }
        }
        before.push(predecessors);
    }
    circle(&before).map(|place| format!("step {:?} comes after itself", steps[place].id))
}

/// A step in a circle, if there is one. `before` has the places of each step's predecessors.
fn circle(before: &[Vec<usize>]) -> Option<usize> {
    let mut awaited: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut after = vec![Vec::new(); before.len()];
    for (place, predecessors) in before.iter().enumerate() {
        predecessors.iter().for_each(|predecessor| after[*predecessor].push(place));
    }
    let mut free: Vec<usize> = (0..before.len()).filter(|place| awaited[*place] == 0).collect();
    while let Some(done) = free.pop() {
        for place in &after[done] {
            awaited[*place] -= 1;
            if awaited[*place] == 0 {
                free.push(*place);
            }
        }
    }
    // What is never free has a predecessor that is never free either, so the way back comes round.
    let mut place = awaited.iter().position(|count| *count > 0)?;
    let mut seen = vec![false; before.len()];
    while !std::mem::replace(&mut seen[place], true) {
        place = before[place].iter().copied().find(|predecessor| awaited[*predecessor] > 0)?;
    }
    Some(place)
}

/// Whether a wait is over; if not, what it is waiting for, in the words of `kubectl`.
///
/// `live` is the object as the API server shows it, `None` when it, or its kind, is not there. `told` is the generation of [`tells_of`].
pub fn waited(spec: &WaitSpec, live: Option<&Value>, told: Option<i64>) -> Result<(), String> {
    let subject = match &spec.namespace {
        Some(namespace) => format!("{} {namespace}/{}", spec.kind, spec.name),
        None => format!("{} {}", spec.kind, spec.name),
    };
    let Some(live) = live else {
        return match spec.condition {
            WaitCondition::Gone => Ok(()),
            _ => Err(format!("{subject} is not there yet")),
        };
    };
    match spec.condition {
        WaitCondition::Exists => Ok(()),
        WaitCondition::Gone => Err(format!("{subject} is being deleted")),
        WaitCondition::CrdEstablished => match condition(live, "Established") {
            Some("True") => Ok(()),
            _ => Err(format!("{subject} is not established")),
        },
        WaitCondition::AvailableDeployment => match is_current(live) && condition(live, "Available") == Some("True") {
            true => Ok(()),
            false => Err(format!("{subject} has {} of {} replicas available", number(live, "/status/availableReplicas"), wanted(live))),
        },
        WaitCondition::ReadyDaemonset => daemonset(live).map_err(|it| format!("{subject} {it}")),
        WaitCondition::TigerastatusAvailable => {
            let is = |kind| condition(live, kind) == Some("True");
            match is("Available") && !is("Progressing") && !is("Degraded") {
                true if told.is_some_and(|told| observed(live) < told) => Err(format!("{subject} is of an earlier generation")),
                true => Ok(()),
                false => Err(format!("{subject} is {}", if is("Degraded") { "degraded" } else { "progressing" })),
            }
        }
    }
}

/// The object that a TigeraStatus tells of. Its conditions count only when they are of this object's generation: the operator writes down there
/// which one it has carried out. It does so for these two components of the Installation.
pub fn tells_of(spec: &WaitSpec) -> Option<ObjectRef> {
    let tells = spec.condition == WaitCondition::TigerastatusAvailable && ["calico", "ippools"].contains(&spec.name.as_str());
    tells.then(|| ObjectRef {
        api_version: spec.api_version.clone(),
        kind: "Installation".to_owned(),
        namespace: None,
        name: "default".to_owned(),
    })
}

/// The oldest generation that one of the conditions is of.
fn observed(live: &Value) -> i64 {
    let all = live.pointer("/status/conditions").and_then(Value::as_array);
    all.into_iter().flatten().map(|it| number(it, "/observedGeneration")).min().unwrap_or(0)
}

fn daemonset(live: &Value) -> Result<(), String> {
    let at = |path| number(live, path);
    let wanted = at("/status/desiredNumberScheduled");
    let available = at("/status/numberAvailable");
    let is_ready = is_current(live) && wanted > 0 && at("/status/updatedNumberScheduled") == wanted && available == wanted;
    if is_ready { Ok(()) } else { Err(format!("has {available} of {wanted} pods available")) }
}

fn is_current(live: &Value) -> bool {
    number(live, "/status/observedGeneration") >= number(live, "/metadata/generation")
}

fn wanted(live: &Value) -> i64 {
    live.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
}

fn number(live: &Value, path: &str) -> i64 {
    live.pointer(path).and_then(Value::as_i64).unwrap_or(0)
}

fn condition<'a>(live: &'a Value, kind: &str) -> Option<&'a str> {
    let all = live.pointer("/status/conditions")?.as_array()?;
    all.iter().find(|it| it["type"] == kind)?["status"].as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(id: &str, after: &[&str]) -> Step {
        Step { id: id.into(), kind: "k8s.apply/v1".into(), spec: json!({}), after: after.iter().map(|it| it.to_string()).collect() }
    }

    #[test]
    fn a_step_runs_when_all_before_it_are_done() {
        let steps = [step("crds", &[]), step("operator", &["crds"]), step("rules", &[]), step("wait", &["operator", "rules"])];
        let ids = |done: &[&str]| -> Vec<String> {
            let done = done.iter().map(|it| it.to_string()).collect();
            runnable(&steps, &done).into_iter().map(|it| it.id.clone()).collect()
        };
        assert_eq!(ids(&[]), ["crds", "rules"]);
        assert_eq!(ids(&["crds"]), ["operator", "rules"]);
        assert_eq!(ids(&["crds", "operator"]), ["rules"]);
        assert_eq!(ids(&["crds", "operator", "rules"]), ["wait"]);
    }

    #[test]
    fn flaws_of_a_plan_are_found_before_its_first_step() {
        assert_eq!(flaw(&[step("a", &[]), step("b", &["a"])]), None);
        assert_eq!(flaw(&[step("a", &[]), step("a", &[])]).unwrap(), "the id \"a\" is used twice");
        assert_eq!(flaw(&[step("a", &["z"])]).unwrap(), "step \"a\" comes after \"z\", which is not there");
        assert_eq!(flaw(&[step("a", &["b"]), step("b", &["a"])]).unwrap(), "step \"a\" comes after itself");
        assert_eq!(flaw(&[step("a", &["a", "a"])]).unwrap(), "step \"a\" comes after itself");
    }

    #[test]
    fn the_step_that_is_named_is_in_the_circle() {
        let steps = [step("first", &[]), step("late", &["first", "b"]), step("b", &["c"]), step("c", &["first", "d"]), step("d", &["b"])];
        assert_eq!(flaw(&steps).unwrap(), "step \"b\" comes after itself");
    }

    fn wait(kind: &str, condition: WaitCondition) -> WaitSpec {
        WaitSpec {
            api_version: "apps/v1".into(),
            kind: kind.into(),
            namespace: Some("kube-system".into()),
            name: "it".into(),
            condition,
            timeout_seconds: 60,
        }
    }

    #[test]
    fn a_daemonset_without_wanted_pods_is_not_ready() {
        let spec = wait("DaemonSet", WaitCondition::ReadyDaemonset);
        let live = json!({"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "desiredNumberScheduled": 0}});
        assert_eq!(waited(&spec, Some(&live), None).unwrap_err(), "DaemonSet kube-system/it has 0 of 0 pods available");
        let ready = json!({"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "desiredNumberScheduled": 2,
            "updatedNumberScheduled": 2, "numberAvailable": 2}});
        assert_eq!(waited(&spec, Some(&ready), None), Ok(()));
        let stale = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1, "desiredNumberScheduled": 2,
            "updatedNumberScheduled": 2, "numberAvailable": 2}});
        assert!(waited(&spec, Some(&stale), None).is_err());
    }

    #[test]
    fn absence_ends_only_the_wait_for_absence() {
        assert_eq!(waited(&wait("DaemonSet", WaitCondition::Gone), None, None), Ok(()));
        assert!(waited(&wait("DaemonSet", WaitCondition::Exists), None, None).is_err());
        assert!(waited(&wait("DaemonSet", WaitCondition::Gone), Some(&json!({})), None).is_err());
    }

    #[test]
    fn a_degraded_tigerastatus_is_not_available() {
        let spec = wait("TigeraStatus", WaitCondition::TigerastatusAvailable);
        let live = |degraded: &str| {
            json!({"status": {"conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "False"},
                {"type": "Degraded", "status": degraded}]}})
        };
        assert_eq!(waited(&spec, Some(&live("False")), None), Ok(()));
        assert_eq!(waited(&spec, Some(&live("True")), None).unwrap_err(), "TigeraStatus kube-system/it is degraded");
    }

    #[test]
    fn a_tigerastatus_counts_when_it_is_of_the_generation_that_it_tells_of() {
        let spec = |name: &str| WaitSpec { name: name.into(), ..wait("TigeraStatus", WaitCondition::TigerastatusAvailable) };
        let live = |generation: i64| {
            let one = |kind: &str, status: &str, generation: i64| json!({"type": kind, "status": status, "observedGeneration": generation});
            json!({"status": {"conditions": [one("Available", "True", 3), one("Progressing", "False", generation), one("Degraded", "False", 3)]}})
        };
        let of = tells_of(&spec("ippools")).map(|it| it.to_string());
        assert_eq!(of.as_deref(), Some("Installation default"));
        assert_eq!([tells_of(&spec("tiers")), tells_of(&spec("apiserver"))], [None, None], "they say of no generation");
        assert_eq!(waited(&spec("ippools"), Some(&live(3)), Some(3)), Ok(()));
        let before = waited(&spec("ippools"), Some(&live(2)), Some(3)).unwrap_err();
        assert_eq!(before, "TigeraStatus kube-system/ippools is of an earlier generation");
        assert_eq!(waited(&spec("tiers"), Some(&live(2)), None), Ok(()));
    }
}
