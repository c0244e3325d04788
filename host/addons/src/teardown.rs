//! What to do next for the add-ons of a cluster that is being deleted: first what made AWS resources from
//! inside the cluster, then its volumes as far as they are to go, then ingress, storage and the cloud
//! provider, and only then the machines may go. Networking stays to the end and goes with the machines.

use std::time::Duration;

use super::load_balancer_users::listed;
use super::{Exposure, Inventory, ObjectRef, Slot, VolumeWork, slot_of, volumes_that_stay};
use model::Timestamp;

/// Whether the workload cluster's API can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Api {
    Answers,
    /// There is no kubeconfig Secret: there never was a control plane, or it is gone.
    NoKubeconfig,
    /// Why not.
    Unreachable(String),
}

/// What AWS says of load balancers that the cluster made, by tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadBalancers {
    /// Ids of those that are left.
    Left(Vec<String>),
    /// Somebody would have to act before they can be read, and perhaps nobody will; with what AWS said.
    Denied(String),
    /// AWS could not be asked, and may be later.
    Unknown(String),
}

/// What is known when the question is put. What comes later in the order need not be read while something
/// earlier is left, unless the time is over.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedTeardown {
    /// The Cluster's deletionTimestamp.
    pub began: Timestamp,
    pub now: Timestamp,
    /// `spec.deletion.timeout`.
    pub timeout: Duration,
    /// Annotation `cluster.kurator.dev/force-delete`.
    pub forced: bool,
    /// Whether there ever was a control plane that add-ons could have been installed on.
    pub initialized: bool,
    pub api: Api,
    /// Gateways, Ingresses and Services that are still there, in the order in which they are to be deleted.
    pub load_balanced: Vec<Exposure>,
    /// What binds Pods to target groups.
    pub bindings: Vec<Exposure>,
    pub load_balancers: LoadBalancers,
    pub volumes: VolumeWork,
    /// Add-ons whose removal is still to be carried out, in order.
    pub installed: Vec<String>,
    /// A record that somebody wrote over: what it told of goes with the machines, and nothing waits for it.
    pub unreadable: Option<String>,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Teardown {
    /// Ask for the deletion of these; they are gone when their finalizers are.
    Delete(Vec<ObjectRef>),
    /// Carry out what is to be done about volumes.
    DeleteVolumes,
    /// Carry out the removal of this add-on.
    Remove(String),
    /// Wait, and say this.
    Wait(String),
    /// Take the finalizers off; the machines may go. The text says what was skipped and why, if anything was.
    RemoveFinalizer(Option<String>),
}

impl ObservedTeardown {
    /// Whether `spec.deletion.timeout` is over.
    pub fn is_late(&self) -> bool {
        self.now >= self.began + self.timeout.as_secs_f64()
    }

    /// Volumes that the user's policy leaves in AWS, in words.
    pub fn stays(&self) -> Option<String> {
        volumes_that_stay(&self.volumes.stay)
    }
}

/// The add-ons that are removed while their cluster is deleted, in order: what makes AWS resources before
/// what all others need. Networking and what this program does not know go with the machines.
pub fn removed_with_cluster(installed: &[Inventory]) -> Vec<String> {
    let known = installed.iter().filter_map(|it| Some((slot_of(&it.module)?, it.module.clone())));
    let mut res: Vec<(Slot, String)> = known.filter(|it| it.0 != Slot::Networking).collect();
    res.sort_by(|(one, first), (other, second)| other.cmp(one).then_with(|| first.cmp(second)));
    res.into_iter().map(|it| it.1).collect()
}

/// Decides the next thing to do. Whatever users' automation makes again is looked at first each time.
pub fn teardown(observed: &ObservedTeardown) -> Teardown {
    if observed.forced {
        return Teardown::RemoveFinalizer(Some(
            "annotation cluster.kurator.dev/force-delete: add-ons were not removed".into(),
        ));
    }
    match &observed.api {
        Api::NoKubeconfig => {
            return Teardown::RemoveFinalizer(Some("no kubeconfig Secret: add-ons were not removed".into()));
        }
        Api::Unreachable(_) if !observed.initialized => {
            return Teardown::RemoveFinalizer(Some(
                "the control plane was never initialized: there were no add-ons to remove".into(),
            ));
        }
        Api::Unreachable(why) if observed.is_late() => {
            return Teardown::RemoveFinalizer(Some(format!(
                "the API server did not answer within spec.deletion.timeout ({why}): add-ons were not removed"
            )));
        }
        Api::Unreachable(why) => return Teardown::Wait(format!("for the API server: {why}")),
        Api::Answers => (),
    }
    match next(observed) {
        Teardown::RemoveFinalizer(skipped) => Teardown::RemoveFinalizer(skipped),
        _ if observed.is_late() => Teardown::RemoveFinalizer(Some(format!(
            "spec.deletion.timeout is over while waiting {}",
            awaited(observed)
        ))),
        next => next,
    }
}

fn next(observed: &ObservedTeardown) -> Teardown {
    for exposed in [&observed.load_balanced, &observed.bindings] {
        let open: Vec<ObjectRef> =
            exposed.iter().filter(|it| !it.is_deleting).map(|it| it.object.clone()).collect();
        if !open.is_empty() {
            return Teardown::Delete(open);
        }
        if !exposed.is_empty() {
            return Teardown::Wait(awaited(observed));
        }
    }
    if matches!(&observed.load_balancers, LoadBalancers::Left(ids) if !ids.is_empty()) {
        return Teardown::Wait(awaited(observed));
    }
    if !observed.volumes.stop.is_empty() || !observed.volumes.delete.is_empty() {
        return Teardown::DeleteVolumes;
    }
    match observed.installed.first() {
        _ if !observed.volumes.awaited.is_empty() => Teardown::Wait(awaited(observed)),
        Some(module) => Teardown::Remove(module.clone()),
        None => match &observed.load_balancers {
            LoadBalancers::Unknown(_) => Teardown::Wait(awaited(observed)),
            LoadBalancers::Denied(why) => {
                Teardown::RemoveFinalizer(Some(format!("load balancers of the cluster may be left: {why}")))
            }
            LoadBalancers::Left(_) => Teardown::RemoveFinalizer(observed.unreadable.clone()),
        },
    }
}

/// What is waited for, first things first.
pub fn awaited(observed: &ObservedTeardown) -> String {
    let names =
        |exposed: &[Exposure]| listed(&exposed.iter().map(|it| it.object.to_string()).collect::<Vec<_>>());
    match &observed.load_balancers {
        _ if !observed.load_balanced.is_empty() => {
            format!("for what has load balancers to be gone: {}", names(&observed.load_balanced))
        }
        _ if !observed.bindings.is_empty() => {
            format!("for target groups to be let go: {}", names(&observed.bindings))
        }
        LoadBalancers::Left(ids) if !ids.is_empty() => {
            format!("for load balancers that the cluster made to be gone: {}", listed(ids))
        }
        _ if !observed.volumes.awaited.is_empty() => {
            format!("for volumes to be deleted: {}", listed(&observed.volumes.awaited))
        }
        _ if !observed.installed.is_empty() => {
            format!("for add-ons to be removed: {}", observed.installed.join(", "))
        }
        LoadBalancers::Unknown(why) => {
            format!("to know whether load balancers of the cluster are left: {why}")
        }
        LoadBalancers::Left(_) | LoadBalancers::Denied(_) => "for nothing more".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn observed() -> ObservedTeardown {
        ObservedTeardown {
            began: 1000.0,
            now: 1010.0,
            timeout: Duration::from_secs(900),
            forced: false,
            initialized: true,
            api: Api::Answers,
            load_balanced: vec![],
            bindings: vec![],
            load_balancers: LoadBalancers::Left(vec![]),
            volumes: VolumeWork::default(),
            installed: vec![],
            unreadable: None,
        }
    }

    fn exposed(kind: &str, is_deleting: bool) -> Exposure {
        let object = ObjectRef {
            api_version: "v1".into(),
            kind: kind.into(),
            namespace: Some("shop".into()),
            name: "web".into(),
        };
        Exposure { object, is_deleting }
    }

    fn full() -> ObservedTeardown {
        ObservedTeardown {
            load_balanced: vec![exposed("Ingress", true), exposed("Service", false)],
            bindings: vec![exposed("TargetGroupBinding", false)],
            load_balancers: LoadBalancers::Left(vec!["a1b2".into()]),
            volumes: VolumeWork {
                stop: vec![],
                delete: vec![exposed("PersistentVolumeClaim", false).object],
                awaited: vec!["PersistentVolume db (vol-1)".into()],
                stay: vec!["PersistentVolume keep (vol-2)".into()],
            },
            installed: vec!["aws-ebs-csi".into()],
            ..observed()
        }
    }

    /// The decisions of a teardown in which everything that is asked for happens, one at a time.
    fn course(mut observed: ObservedTeardown) -> String {
        let mut res = String::new();
        loop {
            let next = teardown(&observed);
            res += &match &next {
                Teardown::Delete(objects) => format!(
                    "delete {}\n",
                    objects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
                ),
                Teardown::Wait(what) => format!("wait {what}\n"),
                Teardown::RemoveFinalizer(skipped) => format!("release {skipped:?}\n"),
                other => format!("{other:?}\n"),
            };
            match next {
                Teardown::Delete(_) => {
                    for it in if observed.load_balanced.is_empty() {
                        &mut observed.bindings
                    } else {
                        &mut observed.load_balanced
                    } {
                        it.is_deleting = true;
                    }
                }
                Teardown::DeleteVolumes => observed.volumes.delete.clear(),
                Teardown::Remove(_) => drop(observed.installed.remove(0)),
                Teardown::Wait(_) if !observed.load_balanced.is_empty() => observed.load_balanced.clear(),
                Teardown::Wait(_) if !observed.bindings.is_empty() => observed.bindings.clear(),
                Teardown::Wait(_) if observed.load_balancers != LoadBalancers::Left(vec![]) => {
                    observed.load_balancers = LoadBalancers::Left(vec![])
                }
                Teardown::Wait(_) => observed.volumes.awaited.clear(),
                Teardown::RemoveFinalizer(_) => return res,
            }
        }
    }

    #[test]
    fn load_balancers_go_before_volumes_and_volumes_before_add_ons() {
        expect_test::expect![[r#"
            delete Service shop/web
            wait for what has load balancers to be gone: Ingress shop/web, Service shop/web
            delete TargetGroupBinding shop/web
            wait for target groups to be let go: TargetGroupBinding shop/web
            wait for load balancers that the cluster made to be gone: a1b2
            DeleteVolumes
            wait for volumes to be deleted: PersistentVolume db (vol-1)
            Remove("aws-ebs-csi")
            release None
        "#]]
        .assert_eq(&course(full()));
        assert_eq!(course(observed()), "release None\n");
    }

    #[test]
    fn what_is_made_again_is_deleted_again() {
        let removing = ObservedTeardown { installed: vec!["aws-ebs-csi".into()], ..observed() };
        assert_eq!(teardown(&removing), Teardown::Remove("aws-ebs-csi".into()));
        let again = exposed("Service", false);
        assert_eq!(
            teardown(&ObservedTeardown { load_balanced: vec![again.clone()], ..removing }),
            Teardown::Delete(vec![again.object])
        );
    }

    #[test]
    fn a_record_that_cannot_be_read_hinders_nothing_and_is_said() {
        let broken = ObservedTeardown {
            unreadable: Some("ConfigMap a".into()),
            installed: vec!["aws-ebs-csi".into()],
            ..observed()
        };
        assert_eq!(course(broken), "Remove(\"aws-ebs-csi\")\nrelease Some(\"ConfigMap a\")\n");
    }

    #[test]
    fn not_knowing_whether_load_balancers_are_left_is_not_their_absence() {
        let unknown =
            ObservedTeardown { load_balancers: LoadBalancers::Unknown("throttled".into()), ..observed() };
        assert!(matches!(teardown(&unknown), Teardown::Wait(why) if why.contains("throttled")));
    }

    #[test]
    fn what_may_not_be_read_hinders_nothing_else_and_is_said() {
        let denied = LoadBalancers::Denied("AccessDenied on tag:GetResources".into());
        let full =
            ObservedTeardown { load_balanced: vec![], bindings: vec![], load_balancers: denied, ..full() };
        assert_eq!(teardown(&full), Teardown::DeleteVolumes);
        let add_ons = ObservedTeardown { volumes: VolumeWork::default(), ..full };
        assert!(matches!(teardown(&add_ons), Teardown::Remove(_)));
        let nothing = ObservedTeardown { installed: vec![], ..add_ons };
        assert!(
            matches!(teardown(&nothing), Teardown::RemoveFinalizer(Some(why)) if why.contains("AccessDenied"))
        );
    }

    #[test]
    fn a_dead_api_server_holds_and_a_missing_kubeconfig_does_not() {
        let dead = ObservedTeardown { api: Api::Unreachable("connection refused".into()), ..full() };
        assert!(matches!(teardown(&dead), Teardown::Wait(_)));
        assert!(matches!(
            teardown(&ObservedTeardown { now: 1900.0, ..dead }),
            Teardown::RemoveFinalizer(Some(_))
        ));
        assert!(matches!(
            teardown(&ObservedTeardown { api: Api::NoKubeconfig, ..full() }),
            Teardown::RemoveFinalizer(Some(_))
        ));
    }

    #[test]
    fn a_control_plane_that_never_was_holds_nothing() {
        let dead = ObservedTeardown {
            api: Api::Unreachable("connection refused".into()),
            initialized: false,
            ..observed()
        };
        assert!(
            matches!(teardown(&dead), Teardown::RemoveFinalizer(Some(why)) if why.contains("never initialized"))
        );
        assert!(matches!(
            teardown(&ObservedTeardown { api: Api::Answers, initialized: false, ..full() }),
            Teardown::Delete(_)
        ));
    }

    #[test]
    fn force_and_timeout_let_go_whatever_is_left_and_say_what() {
        assert!(matches!(
            teardown(&ObservedTeardown { forced: true, ..full() }),
            Teardown::RemoveFinalizer(Some(_))
        ));
        let late = ObservedTeardown { now: 1901.0, ..full() };
        let volumes = ObservedTeardown {
            load_balanced: vec![],
            bindings: vec![],
            load_balancers: LoadBalancers::Left(vec![]),
            ..late.clone()
        };
        let add_ons = ObservedTeardown { volumes: VolumeWork::default(), ..volumes.clone() };
        let said = |observed: &ObservedTeardown| match teardown(observed) {
            Teardown::RemoveFinalizer(Some(why)) => why,
            other => format!("{other:?}"),
        };
        expect_test::expect![[r#"
            spec.deletion.timeout is over while waiting for what has load balancers to be gone: Ingress shop/web, Service shop/web
            spec.deletion.timeout is over while waiting for volumes to be deleted: PersistentVolume db (vol-1)
            spec.deletion.timeout is over while waiting for add-ons to be removed: aws-ebs-csi"#]]
        .assert_eq(&[said(&late), said(&volumes), said(&add_ons)].join("\n"));
        assert_eq!(
            teardown(&ObservedTeardown { now: 1901.0, ..observed() }),
            Teardown::RemoveFinalizer(None)
        );
    }

    #[test]
    fn networking_and_what_is_not_known_go_with_the_machines() {
        let one = |module: &str| -> Inventory {
            let record = json!({"module": module, "version": "", "digest": "", "config": {}, "planHash": "", "complete": true,
                "objects": [], "removal": []});
            serde_json::from_value(record).unwrap()
        };
        let all = [
            "aws-cloud-controller-manager",
            "calico",
            "aws-efs-csi",
            "aws-ebs-csi",
            "acme",
            "aws-load-balancer-controller",
        ]
        .map(one);
        let order =
            ["aws-load-balancer-controller", "aws-ebs-csi", "aws-efs-csi", "aws-cloud-controller-manager"];
        assert_eq!(removed_with_cluster(&all), order);
    }
}
