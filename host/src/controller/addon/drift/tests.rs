//! The requests to an API server while somebody changes an object.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addons::{Inventory, ObjectRef, Standing, Writers};
use crds::cluster_api::Cluster;
use crds::cluster_plugin::{ClusterPlugin, Drift as Setting};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::check::{DriftCheck, DriftFindings};
use super::may_repair;
use crate::controller::addon::applied::AppliedObjects;
use crate::controller::addon::apply::apply;
use crate::controller::addon::check::Findings;
use crate::controller::addon::memory::{DriftMemory, Memories};
use crate::controller::addon::options::ApplyOptions;
use crate::controller::addon::progress::StepProgress;
use crate::controller::addon::timing::BUDGET;
use crate::object_name::ObjectName;
use crate::system::now;
use crate::workload::WorkloadCluster;
use crate::workload::fake::{Answer, Server, cluster, kinds};

const MANAGER: &str = "cluster-operator-calico";
const PATH: &str = "/api/v1/namespaces/a/configmaps/b";

/// A ConfigMap as its API server keeps it: what is ours of its data, and what is somebody's.
struct LiveObject {
    uid: &'static str,
    ours: Vec<&'static str>,
    theirs: Vec<&'static str>,
}

const ALL: [&str; 2] = ["f:c", "f:d"];

impl LiveObject {
    fn metadata(uid: &str, ours: &[&str], theirs: &[&str]) -> Value {
        let set = |names: &[&str]| {
            json!({"f:data": names.iter().map(|it| ((*it).to_owned(),
            json!({}))).collect::<BTreeMap<_, _>>()})
        };
        json!({"metadata": {"uid": uid, "managedFields": [
            {"manager": MANAGER, "operation": "Apply", "fieldsV1": set(ours)},
            {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": set(theirs)}]}})
    }

    fn answer(&mut self, method: &str, query: &str) -> Answer {
        match method {
            "GET" => Answer::json(&Self::metadata(self.uid, &self.ours, &self.theirs)),
            _ if query.contains("dryRun=All") => Answer::json(&Self::metadata(self.uid, &ALL, &[])),
            _ if !query.contains("force=true") && !self.theirs.is_empty() => Answer::Text(
                409,
                json!({"kind": "Status", "message": "conflict with \"kubectl-edit\""}).to_string(),
            ),
            _ => {
                (self.ours, self.theirs) = (ALL.to_vec(), Vec::new());
                Answer::json(&Self::metadata(self.uid, &ALL, &[]))
            }
        }
    }
}

struct World {
    server: Server,
    cluster: WorkloadCluster,
    live: Arc<Mutex<Option<LiveObject>>>,
    memory: DriftMemory,
    marks: BTreeMap<ObjectRef, String>,
    may_write: bool,
}

impl World {
    /// One in which the ConfigMap was applied, and that written down.
    async fn new() -> World {
        let live =
            Arc::new(Mutex::new(Some(LiveObject { uid: "1", ours: ALL.to_vec(), theirs: Vec::new() })));
        let held = live.clone();
        let server = Server::start(move |target| {
            if let Some(answer) = kinds(target) {
                return answer;
            }
            let (method, path) = target.split_once(' ').unwrap_or_default();
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let mut held = lock(&held);
            match (&mut *held, path == PATH, method) {
                (Some(live), true, _) => live.answer(method, query),
                (None, true, "PATCH") => held
                    .insert(LiveObject { uid: "2", ours: ALL.to_vec(), theirs: Vec::new() })
                    .answer("GET", ""),
                _ => Answer::Text(404, json!({"kind": "Status", "message": "not found"}).to_string()),
            }
        })
        .await;
        let mark = Writers::of(&LiveObject::metadata("1", &ALL, &[])).mark(MANAGER);
        let marks = BTreeMap::from([(ObjectRef::of(&object()).expect("it has a name"), mark)]);
        World {
            cluster: cluster(&server).await,
            server,
            live,
            memory: DriftMemory::default(),
            marks,
            may_write: true,
        }
    }

    /// Somebody takes a field.
    fn edit(&self) {
        let mut live = lock(&self.live);
        let live = live.get_or_insert(LiveObject { uid: "1", ours: Vec::new(), theirs: Vec::new() });
        (live.ours, live.theirs) = (vec!["f:c"], vec!["f:d"]);
    }

    async fn check(&mut self, setting: Setting, is_full: bool) -> Result<DriftFindings, StepProgress> {
        let (memories, name, objects, findings) = (
            Memories::default(),
            ObjectName::new("default", "one"),
            AppliedObjects::default(),
            Findings::new(),
        );
        let options = options(&memories, &name, &findings, &objects);
        let may_write = self.may_write;
        let may_write = move || may_write;
        let check =
            DriftCheck { cluster: &self.cluster, options: &options, setting, is_full, may_write: &may_write };
        check.all(&[object()], &mut self.marks, &mut self.memory).await
    }

    /// What was asked since, without which kinds there are: of dry runs and applies, how they were asked for.
    fn asked(&self) -> String {
        let mut all = lock(&self.server.asked);
        let one = |it: &String| {
            let target = it.lines().next().unwrap_or_default().trim_end_matches(" http/1.1");
            let is_metadata = it.contains("as=partialobjectmetadata");
            let (method, query) =
                (target.split(' ').next().unwrap_or_default(), target.split('?').nth(1).unwrap_or_default());
            let how = if query.contains("dryRun=All") {
                " dry"
            } else if query.contains("force=true") {
                " force"
            } else {
                ""
            };
            target
                .contains(PATH)
                .then(|| format!("{method}{how}{}", if is_metadata { "" } else { " all of it" }))
        };
        let res = all.iter().filter_map(one).collect::<Vec<_>>().join(", ");
        all.clear();
        res
    }
}

fn options<'a>(
    memories: &'a Memories,
    name: &'a ObjectName,
    findings: &'a Findings,
    objects: &'a AppliedObjects,
) -> ApplyOptions<'a> {
    ApplyOptions {
        field_manager: MANAGER,
        force: false,
        rules_are_there: true,
        findings,
        authority: None,
        memory: memories.of(name, "calico"),
        until: Instant::now() + BUDGET,
        taken_over: &[],
        own_only: false,
        objects,
        is_repair: false,
        was_complete: true,
        keeps_definitions: false,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn object() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "a"},
        "data": {"c": "1", "d": "2"}})
}

fn messages(findings: &DriftFindings) -> String {
    findings.events.iter().map(|it| format!("{}: {}", it.reason, it.message)).collect::<Vec<_>>().join("; ")
}

#[tokio::test]
async fn what_is_as_it_was_applied_costs_one_question_about_its_metadata() {
    let mut world = World::new().await;
    let findings = world.check(Setting::Correct, true).await.expect("it answers");
    assert_eq!((messages(&findings).as_str(), findings.is_repaired, findings.next), ("", false, None));
    assert_eq!(world.asked(), "GET");
    world.check(Setting::Correct, false).await.expect("it answers");
    assert_eq!(world.asked(), "", "between two checks of all of them");
}

#[tokio::test]
async fn edits_that_come_fast_are_set_back_once() {
    let mut world = World::new().await;
    let mut message = Vec::new();
    for _ in 0..20 {
        world.edit();
        let findings = world.check(Setting::Correct, true).await.expect("it answers");
        assert!(findings.next.is_some(), "it is checked again soon");
        message.extend(Some(messages(&findings)).filter(|it| !it.is_empty()));
    }
    assert_eq!(
        message,
        [r#"Repaired: .data.d of ConfigMap a/b was changed by "kubectl-edit", and is applied again"#]
    );
    let asked = world.asked();
    assert_eq!((asked.matches("PATCH force").count(), asked.matches("GET").count()), (1, 20), "{asked}");
    assert!(world.memory.repaired.is_some());
}

#[tokio::test]
async fn what_is_gone_is_applied_again_and_is_another_object_then() {
    let mut world = World::new().await;
    let before = world.marks.clone();
    *lock(&world.live) = None;
    let findings = world.check(Setting::Correct, true).await.expect("it answers");
    assert_eq!(messages(&findings), "Repaired: ConfigMap a/b was deleted, and is applied again");
    assert_eq!(world.asked(), "GET, PATCH force");
    assert_ne!(world.marks, before);
    world.check(Setting::Correct, true).await.expect("it answers");
    assert_eq!(world.asked(), "GET");
}

#[tokio::test]
async fn a_definition_that_is_gone_brings_everything() {
    let mut world = World::new().await;
    let definition = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let (memories, name, objects, findings) =
        (Memories::default(), ObjectName::new("default", "one"), AppliedObjects::default(), Findings::new());
    let options = options(&memories, &name, &findings, &objects);
    let check = DriftCheck {
        cluster: &world.cluster,
        options: &options,
        setting: Setting::Correct,
        is_full: true,
        may_write: &|| true,
    };
    let findings =
        check.all(&[definition, object()], &mut world.marks, &mut world.memory).await.expect("it answers");
    assert!(findings.is_base_gone && !findings.is_repaired);
    assert_eq!(world.asked(), "", "the rest is not asked for");
}

#[tokio::test]
async fn nothing_is_written_where_it_may_not_be() {
    let mut world = World::new().await;
    world.edit();
    world.may_write = false;
    for marked in [true, false] {
        if !marked {
            world.marks.clear();
        }
        let findings = world.check(Setting::Correct, true).await.expect("it answers");
        assert_eq!(messages(&findings), "");
        assert!(!world.asked().contains("PATCH force"));
    }
}

#[tokio::test]
async fn a_warning_is_an_event_once_and_writes_nothing() {
    let mut world = World::new().await;
    world.edit();
    let message =
        r#".data.d of ConfigMap a/b was changed by "kubectl-edit", and is not set back: spec.drift is Warn"#;
    for desired in [format!("NotRepaired: {message}"), String::new()] {
        let findings = world.check(Setting::Warn, true).await.expect("it answers");
        assert_eq!(messages(&findings), desired);
        assert_eq!(world.asked(), "GET, PATCH dry");
    }
    assert_eq!(world.memory.worse_of(StepProgress::Done), StepProgress::Done);
    *lock(&world.live) = Some(LiveObject { uid: "1", ours: ALL.to_vec(), theirs: Vec::new() });
    world.check(Setting::Warn, true).await.expect("it answers");
    assert!(world.memory.objects.is_empty(), "nothing is said any more");
}

#[tokio::test]
async fn who_changes_it_again_and_again_is_named_and_left_alone() {
    let mut world = World::new().await;
    let drift = addons::Drift {
        change: addons::Change::Fields(String::new()),
        by: "\"kubectl-edit\"".into(),
        left: vec![],
    };
    let one = world.memory.objects.entry(ObjectRef::of(&object()).expect("it has a name")).or_default();
    (1..=3).for_each(|it| one.history.repaired(&drift, now() - 1000.0 * f64::from(it)));
    world.edit();
    let findings = world.check(Setting::Correct, true).await.expect("it answers");
    let message = ".data.d of ConfigMap a/b was changed by \"kubectl-edit\" again and again, and is not set \
                   back any more: have \"kubectl-edit\" leave it alone, or set spec.drift to Warn";
    assert_eq!(messages(&findings), format!("NotRepaired: {message}"));
    assert_eq!(world.asked(), "GET, PATCH dry");
    assert_eq!(world.memory.worse_of(StepProgress::Done), StepProgress::Refused("Drift", message.into()));
}

#[tokio::test]
async fn a_changed_setting_takes_back_only_what_was_taken_since() {
    let applied = async |world: &World, marks: Vec<String>, setting: Setting| {
        let record = json!({"module": "calico", "version": "1", "digest": "", "config": {}, "planHash": "",
            "complete": true,
            "objects": [ObjectRef::of(&object())], "marks": marks, "removal": []});
        let record =
            Inventory { standing: Standing::Proven, ..serde_json::from_value(record).expect("a record") };
        let (memories, name, findings, objects) = (
            Memories::default(),
            ObjectName::new("default", "one"),
            Findings::new(),
            AppliedObjects::of(Some(&record), setting),
        );
        let options = options(&memories, &name, &findings, &objects);
        world.edit();
        let res = apply(&world.cluster, &object(), &options).await;
        format!("{}: {}", if res.is_ok() { "applied" } else { "refused" }, world.asked())
    };
    let world = World::new().await;
    let known = || world.marks.values().cloned().collect::<Vec<_>>();
    assert_eq!(
        applied(&world, known(), Setting::Correct).await,
        "applied: PATCH, GET, PATCH dry, PATCH force"
    );
    assert_eq!(applied(&world, known(), Setting::Warn).await, "refused: PATCH");
    assert_eq!(applied(&world, vec![], Setting::Correct).await, "refused: PATCH", "it was never ours");
    let world = World::new().await;
    world.edit();
    let edited = world
        .cluster
        .writers(&ObjectRef::of(&object()).expect("it has a name"))
        .await
        .expect("it answers")
        .expect("it is there");
    world.asked();
    let conflict = "refused: PATCH, GET";
    assert_eq!(
        applied(&world, vec![edited.mark(MANAGER)], Setting::Correct).await,
        conflict,
        "nobody took anything since"
    );
}

#[tokio::test]
async fn an_object_of_an_older_record_is_applied_once_as_at_first() {
    let mut world = World::new().await;
    let marks = std::mem::take(&mut world.marks);
    let findings = world.check(Setting::Correct, true).await.expect("it answers");
    assert_eq!((messages(&findings).as_str(), findings.is_repaired), ("", false));
    assert_eq!(world.asked(), "GET, PATCH");
    assert_eq!(world.marks, marks);
    world.check(Setting::Correct, true).await.expect("it answers");
    assert_eq!(world.asked(), "GET");

    world.marks.clear();
    world.edit();
    let findings = world.check(Setting::Correct, true).await.expect("it answers");
    assert_eq!(
        messages(&findings),
        "NotRepaired: ConfigMap a/b: \"conflict with 'kubectl-edit'\"; remove the field there, or set \
         spec.conflicts to Force"
    );
    assert_eq!(world.asked(), "GET, PATCH", "spec.conflicts is Refuse");
}

#[test]
fn nothing_is_repaired_that_is_moved_deleted_or_set_otherwise() {
    let metadata = |more: Value| {
        let mut res = json!({"name": "one", "namespace": "default"});
        for (name, value) in more.as_object().into_iter().flatten() {
            res[name.as_str()] = value.clone();
        }
        res
    };
    let plugin = |more: Value, drift: &str| -> ClusterPlugin {
        let spec = json!({"clusterName": "one", "drift": drift});
        serde_json::from_value(json!({"metadata": metadata(more), "spec": spec})).expect("a ClusterPlugin")
    };
    let cluster = |more: Value| -> Cluster {
        serde_json::from_value(json!({"metadata": metadata(more), "spec": {}})).expect("a Cluster")
    };
    let moved = json!({"annotations": {crds::names::DELETE_FOR_MOVE_ANNOTATION: ""}});
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let stays = || json!({});
    let repairs = |of_plugin: Value, of_cluster: Value| {
        may_repair(Some(&plugin(of_plugin, "Correct")), Some(&cluster(of_cluster)), Setting::Correct)
    };
    assert!(repairs(stays(), stays()));
    for gone in [moved, deleted] {
        assert!(!repairs(gone.clone(), stays()), "{gone}");
        assert!(!repairs(stays(), gone.clone()), "{gone}");
    }
    assert!(!may_repair(Some(&plugin(stays(), "Warn")), Some(&cluster(stays())), Setting::Correct));
    assert!(!may_repair(None, Some(&cluster(stays())), Setting::Correct));
    assert!(!may_repair(Some(&plugin(stays(), "Correct")), None, Setting::Correct));
}
