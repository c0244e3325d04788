//! What follows from each state of a cluster that is being deleted.

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
            Teardown::Delete(objects) => {
                format!("delete {}\n", objects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
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
    let full = ObservedTeardown { load_balanced: vec![], bindings: vec![], load_balancers: denied, ..full() };
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
    assert_eq!(teardown(&ObservedTeardown { now: 1901.0, ..observed() }), Teardown::RemoveFinalizer(None));
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
