//! Which steps of an add-on's plan are checked again, and whether what a step waits for has come.

use serde_json::Value;

use super::ObjectRef;
use contract::{Step, StepSpec, WaitCondition, WaitSpec};

/// Whether a step that was carried out once is looked at again and again: what it asks for can come undone by
/// itself, or ends with time.
pub fn is_checked_again(step: &Step) -> bool {
    use StepSpec::{
        Apply, Certificate, Delete, EfsFileSystem, FieldWait, IamRole, InstanceRoles, SecurityGroupRule, Wait,
    };
    match step.typed() {
        Ok(Wait(_) | FieldWait(_) | IamRole(_) | InstanceRoles(_) | EfsFileSystem(_) | Certificate(_)) => {
            true
        }
        Ok(Apply(_) | Delete(_) | SecurityGroupRule(_)) | Err(_) => false,
    }
}

/// Whether a wait is over; if not, what it is waiting for, in the words of `kubectl`.
///
/// `live` is the object as the API server shows it, `None` when it, or its kind, is not there. `told` is the
/// generation of [`subject_of`].
pub fn waited(spec: &WaitSpec, live: Option<&Value>, generation: Option<i64>) -> Result<(), String> {
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
        WaitCondition::AvailableDeployment => deployment(live).map_err(|it| format!("{subject} {it}")),
        WaitCondition::ReadyDaemonset => daemonset(live).map_err(|it| format!("{subject} {it}")),
        WaitCondition::TigerastatusAvailable => {
            let is = |kind| condition(live, kind) == Some("True");
            if is("Degraded") {
                Err(format!("{subject} is degraded"))
            } else if !is("Available") || is("Progressing") {
                Err(format!("{subject} is progressing"))
            } else if generation.is_some_and(|generation| observed_generation(live) < generation) {
                Err(format!("{subject} is of an earlier generation"))
            } else {
                Ok(())
            }
        }
    }
}

/// The object that a TigeraStatus tells of. Its conditions count only when they are of this object's
/// generation: the operator writes down there which one it has carried out. It does so for these two
/// components of the Installation.
pub fn subject_of(spec: &WaitSpec) -> Option<ObjectRef> {
    let is_status = spec.condition == WaitCondition::TigerastatusAvailable
        && ["calico", "ippools"].contains(&spec.name.as_str());
    is_status.then(|| ObjectRef {
        api_version: spec.api_version.clone(),
        kind: "Installation".to_owned(),
        namespace: None,
        name: "default".to_owned(),
    })
}

/// The oldest generation that one of the conditions is of.
fn observed_generation(live: &Value) -> i64 {
    let all = live.pointer("/status/conditions").and_then(Value::as_array);
    all.into_iter().flatten().map(|it| number(it, "/observedGeneration")).min().unwrap_or(0)
}

/// Replicas of the template before keep a Deployment available: it counts when all of them are of this one, as
/// `kubectl rollout status` has it.
fn deployment(live: &Value) -> Result<(), String> {
    let at = |path| number(live, path);
    let (desired, available) = (desired_replicas(live), at("/status/availableReplicas"));
    let (updated, outdated) =
        (at("/status/updatedReplicas"), at("/status/replicas") - at("/status/updatedReplicas"));
    let is_available = condition(live, "Available") == Some("True") && (available > 0 || desired == 0);
    if !is_current(live) || !is_available {
        Err(format!("has {available} of {desired} replicas available"))
    } else if updated < desired {
        Err(format!("has {updated} of {desired} replicas updated"))
    } else if outdated > 0 {
        Err(format!("has {outdated} outdated replicas that wait for the updated ones"))
    } else {
        Ok(())
    }
}

fn daemonset(live: &Value) -> Result<(), String> {
    let at = |path| number(live, path);
    let desired = at("/status/desiredNumberScheduled");
    let available = at("/status/numberAvailable");
    let is_ready = is_current(live)
        && desired > 0
        && at("/status/updatedNumberScheduled") == desired
        && available == desired;
    if is_ready { Ok(()) } else { Err(format!("has {available} of {desired} pods available")) }
}

fn is_current(live: &Value) -> bool {
    number(live, "/status/observedGeneration") >= number(live, "/metadata/generation")
}

fn desired_replicas(live: &Value) -> i64 {
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
        assert_eq!(
            waited(&spec, Some(&live), None).unwrap_err(),
            "DaemonSet kube-system/it has 0 of 0 pods available"
        );
        let ready = json!({"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "desiredNumberScheduled": 2,
            "updatedNumberScheduled": 2, "numberAvailable": 2}});
        assert_eq!(waited(&spec, Some(&ready), None), Ok(()));
        let stale = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1, "desiredNumberScheduled": 2,
            "updatedNumberScheduled": 2, "numberAvailable": 2}});
        assert!(waited(&spec, Some(&stale), None).is_err());
    }

    #[test]
    fn a_deployment_is_awaited_while_it_has_replicas_of_before() {
        let spec = wait("Deployment", WaitCondition::AvailableDeployment);
        let live = |replicas: u32, updated: u32, available: u32, condition: &str| {
            json!({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": {"observedGeneration": 2,
                "replicas": replicas, "updatedReplicas": updated, "availableReplicas": available,
                "conditions": [{"type": "Available", "status": condition}]}})
        };
        let of = |live: Value| waited(&spec, Some(&live), None);
        assert_eq!(of(live(2, 2, 2, "True")), Ok(()));
        assert_eq!(of(live(2, 2, 1, "True")), Ok(()), "one may be missing for a while");
        let updating = "Deployment kube-system/it has 1 of 2 replicas updated";
        assert_eq!(of(live(3, 1, 2, "True")).unwrap_err(), updating);
        let outdated = "Deployment kube-system/it has 1 outdated replicas that wait for the updated ones";
        assert_eq!(of(live(3, 2, 2, "True")).unwrap_err(), outdated);
        let unavailable = "Deployment kube-system/it has 0 of 2 replicas available";
        assert_eq!(of(live(2, 2, 0, "True")).unwrap_err(), unavailable);
        assert_eq!(of(live(2, 2, 0, "False")).unwrap_err(), unavailable);
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
        assert_eq!(
            waited(&spec, Some(&live("True")), None).unwrap_err(),
            "TigeraStatus kube-system/it is degraded"
        );
    }

    #[test]
    fn a_tigerastatus_counts_when_it_is_of_the_current_generation() {
        let spec = |name: &str| WaitSpec {
            name: name.into(),
            ..wait("TigeraStatus", WaitCondition::TigerastatusAvailable)
        };
        let live = |generation: i64| {
            let one = |kind: &str, status: &str, generation: i64| json!({"type": kind, "status": status, "observedGeneration": generation});
            json!({"status": {"conditions": [one("Available", "True", 3), one("Progressing", "False", generation), one("Degraded", "False", 3)]}})
        };
        let of = subject_of(&spec("ippools")).map(|it| it.to_string());
        assert_eq!(of.as_deref(), Some("Installation default"));
        assert_eq!(
            [subject_of(&spec("tiers")), subject_of(&spec("apiserver"))],
            [None, None],
            "they say of no generation"
        );
        assert_eq!(waited(&spec("ippools"), Some(&live(3)), Some(3)), Ok(()));
        let before = waited(&spec("ippools"), Some(&live(2)), Some(3)).unwrap_err();
        assert_eq!(before, "TigeraStatus kube-system/ippools is of an earlier generation");
        assert_eq!(waited(&spec("tiers"), Some(&live(2)), None), Ok(()));
    }

    #[test]
    fn what_can_come_undone_by_itself_is_looked_at_again() {
        let object = json!({"apiVersion": "v1", "kind": "Pod", "namespace": "a", "name": "b"});
        let with = |more: Value| {
            let mut spec = object.clone();
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            spec
        };
        let fields = json!({"conditions": [{"path": "/status", "operator": "Exists"}]});
        let role = json!({"roleArn": "a", "trust": "node", "actions": [], "mode": "check"});
        let rule = json!({"group": "node", "protocol": "-1", "peer": "node", "description": ""});
        let again = |kind: &str, spec: Value| {
            let step = Step { id: "a".into(), kind: kind.into(), spec, after: vec![] };
            assert!(step.typed().is_ok(), "{kind}");
            is_checked_again(&step)
        };
        for (kind, spec, expected) in [
            ("k8s.wait/v1", with(json!({"condition": "exists", "timeoutSeconds": 1})), true),
            ("k8s.wait/v2", with(fields), true),
            ("aws.iam-role/v1", role, true),
            ("aws.instance-roles/v1", json!({"actions": []}), true),
            ("aws.efs-file-system/v1", json!({"fileSystemId": "fs-1"}), true),
            ("tls.certificate/v1", json!({"namespace": "a", "secretName": "b", "dnsNames": []}), true),
            // Drift of its objects is looked for by itself.
            ("k8s.apply/v1", json!({"objects": []}), false),
            ("k8s.delete/v1", with(json!({"wait": true})), false),
            ("aws.sg-rule/v1", rule, false),
        ] {
            assert_eq!(again(kind, spec), expected, "{kind}");
        }
    }
}
