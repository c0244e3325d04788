//! Volumes of the storage drivers: what still uses a driver, and what becomes of volumes when their
//! cluster is deleted. It is decided from lists of the API server.

mod users;

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_plugin::Volumes;
use serde_json::{Value, json};

use super::ObjectRef;
use super::built_in::{BUILT_IN, CsiDriver};
use super::load_balancer_users::{is_deleting, listed, named, text};

pub use users::used_by_storage;

/// Lists as the API server gave them. Pods and ReplicaSets matter only where volumes are to be deleted.
#[derive(Clone, Debug, Default)]
pub struct ObservedStorage {
    pub volumes: Vec<Value>,
    pub attachments: Vec<Value>,
    pub claims: Vec<Value>,
    pub classes: Vec<Value>,
    pub pods: Vec<Value>,
    pub replica_sets: Vec<Value>,
}

/// What to do about volumes before the storage drivers go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeWork {
    /// What would make Pods again, with the merge patch that stops it.
    pub stop: Vec<(ObjectRef, Value)>,
    /// Pods first, then the claims that they hold.
    pub delete: Vec<ObjectRef>,
    /// What is not gone yet and will be.
    pub awaited: Vec<String>,
    /// What stays in AWS.
    pub stay: Vec<String>,
}

/// Claims whose volumes are to be deleted with the cluster, and those that would still get one.
pub fn claims_to_delete(policy: Volumes, observed: &ObservedStorage) -> Vec<&Value> {
    // Whoever administers the cluster says how many there are of each: none is looked for among all others.
    let going = observed.volumes.iter().filter(|it| is_ours(it) && goes_with_claim(it));
    let going: BTreeSet<&str> = going.map(|it| text(it, "/metadata/name")).collect();
    let drivers: Vec<_> = drivers().map(|driver| (driver, driver.classes(observed))).collect();
    let goes = |claim: &Value| {
        let bound = going.contains(text(claim, "/spec/volumeName"));
        bound || drivers.iter().any(|(driver, classes)| driver.is_asked(claim, classes))
    };
    match policy {
        Volumes::Retain => Vec::new(),
        Volumes::Delete => observed.claims.iter().filter(|it| goes(it)).collect(),
    }
}

/// What is to be done about the volumes of a cluster that is being deleted.
pub fn volumes(policy: Volumes, observed: &ObservedStorage) -> VolumeWork {
    let ours = || observed.volumes.iter().filter(|it| is_ours(it));
    if policy == Volumes::Retain {
        return VolumeWork { stay: ours().map(volume_text).collect(), ..VolumeWork::default() };
    }
    let claims = claims_to_delete(policy, observed);
    let held: BTreeSet<(&str, &str)> = claims.iter().map(|it| place(it)).collect();
    let pods: Vec<&Value> =
        observed.pods.iter().filter(|it| !has_ended(it) && !is_deleting(it) && uses(it, &held)).collect();
    let replica_sets: BTreeMap<(&str, &str), &Value> =
        observed.replica_sets.iter().map(|it| (place(it), it)).collect();
    let mut known = BTreeSet::new();
    let found = pods.iter().filter_map(|it| stopped(it, &replica_sets));
    let stop: Vec<(ObjectRef, Value)> = found.filter(|(object, _)| known.insert(object.clone())).collect();
    let open_claims = claims.iter().filter(|it| !is_deleting(it)).map(|it| claim(it));
    let (going, stay): (Vec<&Value>, Vec<&Value>) = ours().partition(|it| goes_with_claim(it));
    let unbound =
        claims.iter().filter(|it| text(it, "/spec/volumeName").is_empty()).map(|it| claim(it).to_string());
    VolumeWork {
        stop,
        delete: pods.iter().map(|it| named("v1", "Pod", it)).chain(open_claims).collect(),
        awaited: going.into_iter().map(volume_text).chain(unbound).collect(),
        stay: stay.into_iter().map(volume_text).collect(),
    }
}

/// Tells what stays in AWS; `None` when nothing does.
pub fn volumes_that_stay(stay: &[String]) -> Option<String> {
    match stay.len() {
        0 => None,
        1 => Some(format!("1 volume stays in AWS: {}", stay[0])),
        count => Some(format!("{count} volumes stay in AWS: {}", listed(stay))),
    }
}

/// The drivers of all built-in add-ons.
fn drivers() -> impl Iterator<Item = CsiDriver<'static>> {
    BUILT_IN.iter().filter_map(|add_on| add_on.driver)
}

impl CsiDriver<'_> {
    fn has(&self, volume: &Value) -> bool {
        let in_tree = self.in_tree.is_some() && volume.pointer("/spec/awsElasticBlockStore").is_some();
        in_tree || text(volume, "/spec/csi/driver") == self.name
    }

    fn is(&self, provisioner: &str) -> bool {
        provisioner == self.name || self.in_tree == Some(provisioner)
    }

    /// Names of the classes that it makes volumes of.
    fn classes<'a>(&self, observed: &'a ObservedStorage) -> BTreeSet<&'a str> {
        let own = observed.classes.iter().filter(|it| self.is(text(it, "/provisioner")));
        own.map(|it| text(it, "/metadata/name")).collect()
    }

    /// Whether a claim without a volume waits for this driver, whose classes these are, to make one.
    fn is_asked(&self, claim: &Value, classes: &BTreeSet<&str>) -> bool {
        if !text(claim, "/spec/volumeName").is_empty() || text(claim, "/status/phase") == "Lost" {
            return false;
        }
        let annotation = claim
            .pointer("/metadata/annotations/volume.kubernetes.io~1storage-provisioner")
            .and_then(Value::as_str);
        annotation.is_some_and(|it| self.is(it)) || classes.contains(text(claim, "/spec/storageClassName"))
    }
}

fn is_ours(volume: &Value) -> bool {
    drivers().any(|driver| driver.has(volume))
}

/// Whether the driver deletes the volume when its claim goes. A volume that was never claimed is deleted by
/// nobody.
fn goes_with_claim(volume: &Value) -> bool {
    text(volume, "/spec/persistentVolumeReclaimPolicy") == "Delete"
        && volume.pointer("/spec/claimRef").is_some()
}

/// How much of a volume's id is shown.
const ID_CHARACTERS: usize = 128;

fn volume_text(volume: &Value) -> String {
    let in_csi = text(volume, "/spec/csi/volumeHandle");
    let in_tree = text(volume, "/spec/awsElasticBlockStore/volumeID");
    let id = if in_csi.is_empty() { in_tree.rsplit('/').next().unwrap_or_default() } else { in_csi };
    // Whoever administers the cluster wrote it.
    let id: String = id.chars().filter(char::is_ascii_graphic).take(ID_CHARACTERS).collect();
    format!("PersistentVolume {} ({id})", text(volume, "/metadata/name"))
}

fn place(object: &Value) -> (&str, &str) {
    (text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

fn claim(claim: &Value) -> ObjectRef {
    named("v1", "PersistentVolumeClaim", claim)
}

fn has_ended(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

fn uses(pod: &Value, held: &BTreeSet<(&str, &str)>) -> bool {
    let (namespace, name) = (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    volumes.into_iter().flatten().any(|volume| match volume.get("ephemeral") {
        // The claim of such a volume is named after the Pod.
        Some(_) => held.contains(&(namespace, format!("{name}-{}", text(volume, "/name")).as_str())),
        None => held.contains(&(namespace, text(volume, "/persistentVolumeClaim/claimName"))),
    })
}

/// What would make this Pod again, and the patch that keeps it from doing so. Pods of other owners wait in
/// vain for a claim that is going, and an unscheduled Pod holds none.
fn stopped(pod: &Value, replica_sets: &BTreeMap<(&str, &str), &Value>) -> Option<(ObjectRef, Value)> {
    let group =
        |it: &ObjectRef| it.api_version.split_once('/').map_or(String::new(), |(group, _)| group.to_owned());
    let owner = controller(pod)?;
    let above = match (group(&owner).as_str(), owner.kind.as_str()) {
        ("apps", "ReplicaSet") => {
            let set =
                replica_sets.get(&(owner.namespace.as_deref().unwrap_or_default(), owner.name.as_str()));
            set.and_then(|it| controller(it)).filter(|it| it.kind == "Deployment")
        }
        _ => None,
    };
    let owner = above.unwrap_or(owner);
    let group = group(&owner);
    let patch = match (group.as_str(), owner.kind.as_str()) {
        ("apps", "StatefulSet" | "Deployment" | "ReplicaSet") | ("", "ReplicationController") => {
            json!({"spec": {"replicas": 0}})
        }
        ("batch", "Job") => json!({"spec": {"suspend": true}}),
        _ => return None,
    };
    Some((owner, patch))
}

fn controller(object: &Value) -> Option<ObjectRef> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|it| it["controller"] == true)?;
    Some(ObjectRef {
        api_version: text(owner, "/apiVersion").to_owned(),
        kind: text(owner, "/kind").to_owned(),
        namespace: Some(text(object, "/metadata/namespace").to_owned()),
        name: text(owner, "/name").to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(module: &str) -> crate::Inventory {
        let record = json!({"module": module, "version": "1", "digest": "", "config": {}, "planHash": "",
            "complete": true, "objects": [], "removal": []});
        serde_json::from_value(record).expect("a record")
    }

    fn volume(name: &str, driver: &str, policy: &str, claim: Option<&str>) -> Value {
        let mut res = json!({"metadata": {"name": name}, "spec": {"persistentVolumeReclaimPolicy": policy,
            "csi": {"driver": driver, "volumeHandle": format!("vol-{name}")}}});
        if let Some(claim) = claim {
            res["spec"]["claimRef"] = json!({"namespace": "shop", "name": claim});
        }
        res
    }

    fn claimed(name: &str, volume: &str, class: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "shop"}, "spec": {"volumeName": volume, "storageClassName": class}})
    }

    fn pod(name: &str, claim: &str, owner: Value) -> Value {
        json!({"metadata": {"name": name, "namespace": "shop", "ownerReferences": owner},
            "spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}, "status": {"phase": "Running"}})
    }

    fn owned(api_version: &str, kind: &str, name: &str) -> Value {
        json!([{"apiVersion": api_version, "kind": kind, "name": name, "controller": true}])
    }

    fn observed() -> ObservedStorage {
        const EBS: &str = "ebs.csi.aws.com";
        ObservedStorage {
            volumes: vec![
                volume("db", EBS, "Delete", Some("data-db-0")),
                volume("keep", EBS, "Retain", Some("archive")),
                volume("files", "efs.csi.aws.com", "Delete", Some("files")),
                volume("spare", EBS, "Delete", None),
                volume("nfs", "nfs.csi.k8s.io", "Delete", Some("nfs")),
                json!({"metadata": {"name": "old"}, "spec": {"persistentVolumeReclaimPolicy": "Retain",
                    "awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-0old"}}}),
            ],
            attachments: vec![
                json!({"metadata": {"name": "of-db"}, "spec": {"attacher": EBS, "source": {"persistentVolumeName": "db"}}}),
                json!({"metadata": {"name": "stray"}, "spec": {"attacher": EBS, "source": {"persistentVolumeName": "gone"}}}),
            ],
            claims: vec![
                claimed("data-db-0", "db", "gp3"),
                claimed("archive", "keep", "gp3"),
                claimed("files", "files", "efs"),
                claimed("nfs", "nfs", "nfs"),
                claimed("soon", "", "gp3"),
                claimed("never", "", "nfs"),
            ],
            classes: vec![
                json!({"metadata": {"name": "gp3"}, "provisioner": EBS}),
                json!({"metadata": {"name": "nfs"}, "provisioner": "nfs.csi.k8s.io"}),
            ],
            pods: vec![
                pod("db-0", "data-db-0", owned("apps/v1", "StatefulSet", "db")),
                pod("files-1", "files", owned("apps/v1", "ReplicaSet", "files-abc")),
                pod("files-2", "files", owned("apps/v1", "ReplicaSet", "files-abc")),
                pod("bare", "files", json!([])),
                pod("reader", "archive", owned("apps/v1", "StatefulSet", "reader")),
                pod("web", "nfs", owned("apps/v1", "StatefulSet", "web")),
            ],
            replica_sets: vec![json!({"metadata": {"name": "files-abc", "namespace": "shop",
                "ownerReferences": owned("apps/v1", "Deployment", "files")}})],
        }
    }

    fn lines(work: &VolumeWork) -> String {
        let stop = work.stop.iter().map(|(object, patch)| format!("stop {object} by {patch}\n"));
        let delete = work.delete.iter().map(|it| format!("delete {it}\n"));
        let rest = work
            .awaited
            .iter()
            .map(|it| format!("await {it}\n"))
            .chain(work.stay.iter().map(|it| format!("stays {it}\n")));
        stop.chain(delete).chain(rest).collect()
    }

    #[test]
    fn retained_volumes_are_reported_and_nothing_is_deleted() {
        expect_test::expect![[r#"
            stays PersistentVolume db (vol-db)
            stays PersistentVolume keep (vol-keep)
            stays PersistentVolume files (vol-files)
            stays PersistentVolume spare (vol-spare)
            stays PersistentVolume old (vol-0old)
        "#]]
        .assert_eq(&lines(&volumes(Volumes::Retain, &observed())));
    }

    #[test]
    fn volumes_go_with_their_claims_after_what_makes_pods_was_stopped() {
        expect_test::expect![[r#"
            stop StatefulSet shop/db by {"spec":{"replicas":0}}
            stop Deployment shop/files by {"spec":{"replicas":0}}
            delete Pod shop/db-0
            delete Pod shop/files-1
            delete Pod shop/files-2
            delete Pod shop/bare
            delete PersistentVolumeClaim shop/data-db-0
            delete PersistentVolumeClaim shop/files
            delete PersistentVolumeClaim shop/soon
            await PersistentVolume db (vol-db)
            await PersistentVolume files (vol-files)
            await PersistentVolumeClaim shop/soon
            stays PersistentVolume keep (vol-keep)
            stays PersistentVolume spare (vol-spare)
            stays PersistentVolume old (vol-0old)
        "#]]
        .assert_eq(&lines(&volumes(Volumes::Delete, &observed())));
    }

    #[test]
    fn what_is_going_is_awaited_and_not_asked_again() {
        let mut observed = observed();
        for object in observed.claims.iter_mut().chain(&mut observed.pods) {
            object["metadata"]["deletionTimestamp"] = json!("2026-11-01T00:00:00Z");
        }
        let work = volumes(Volumes::Delete, &observed);
        assert_eq!((work.stop, work.delete), (vec![], vec![]));
        assert!(!work.awaited.is_empty());
        observed.volumes.clear();
        observed.claims.clear();
        assert_eq!(volumes(Volumes::Delete, &observed), VolumeWork::default());
    }

    #[test]
    fn ended_pods_hold_nothing_and_an_ephemeral_volume_is_a_claim() {
        let mut pod = pod("job-1", "", owned("batch/v1", "Job", "job"));
        pod["spec"]["volumes"] = json!([{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]);
        let mut observed = ObservedStorage {
            volumes: vec![volume("a", "ebs.csi.aws.com", "Delete", Some("job-1-scratch"))],
            claims: vec![claimed("job-1-scratch", "a", "gp3")],
            pods: vec![pod],
            ..ObservedStorage::default()
        };
        expect_test::expect![[r#"
            stop Job shop/job by {"spec":{"suspend":true}}
            delete Pod shop/job-1
            delete PersistentVolumeClaim shop/job-1-scratch
            await PersistentVolume a (vol-a)
        "#]]
        .assert_eq(&lines(&volumes(Volumes::Delete, &observed)));
        observed.pods[0]["status"]["phase"] = json!("Succeeded");
        assert_eq!(volumes(Volumes::Delete, &observed).stop, []);
    }

    #[test]
    fn a_driver_is_used_by_volumes_attachments_and_waiting_claims() {
        expect_test::expect![[r#"
            PersistentVolume db (vol-db)
            PersistentVolume keep (vol-keep)
            PersistentVolume spare (vol-spare)
            PersistentVolume old (vol-0old)
            VolumeAttachment stray
            PersistentVolumeClaim shop/soon"#]]
        .assert_eq(&used_by_storage(&installed("aws-ebs-csi"), &observed()).join("\n"));
        assert_eq!(
            used_by_storage(&installed("aws-efs-csi"), &observed()),
            ["PersistentVolume files (vol-files)"]
        );
        let classes_alone = ObservedStorage { classes: observed().classes, ..ObservedStorage::default() };
        assert_eq!(used_by_storage(&installed("aws-ebs-csi"), &classes_alone), Vec::<String>::new());
    }

    #[test]
    fn a_report_counts_and_names() {
        assert_eq!(volumes_that_stay(&[]), None);
        assert_eq!(volumes_that_stay(&["a".into()]).unwrap(), "1 volume stays in AWS: a");
        let many: Vec<String> = (1..=12).map(|it| it.to_string()).collect();
        assert_eq!(
            volumes_that_stay(&many).unwrap(),
            "12 volumes stay in AWS: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more"
        );
    }
}
