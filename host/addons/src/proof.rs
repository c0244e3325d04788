//! Whether a record of an add-on is what this program wrote. Whoever may write ConfigMaps in
//! `kube-system` of the workload cluster can write over it; so the management cluster keeps digests, in an
//! annotation of the ClusterPlugin, because `clusterctl move` takes along annotations and no status.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Inventory, Slot, built_in};
use crate::grant::{self, Denial};
use contract::{Step, StepSpec};
use model::AddOnRule;

/// Annotation of a ClusterPlugin: digests of its add-ons' records in the workload cluster. JSON.
pub const RECORDS_ANNOTATION: &str = "cluster.kurator.dev/records";

/// Digests of one record: what is being written, what is there, and what was to be when writing was
/// interrupted.
const MOST_DIGESTS: usize = 3;
/// Steps of a removal that nobody vouches for.
const MOST_STEPS: usize = 512;

/// Hex SHA-256 of a record's text.
pub fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|it| format!("{it:02x}")).collect()
}

/// What is known of who wrote a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// This program did: the management cluster has its digest.
    Proven,
    /// The management cluster knows of no record of this add-on: it was lost, or the record is older than
    /// digests are.
    Unknown,
    /// Somebody else: the management cluster knows another digest. Also whatever was not compared.
    #[default]
    Foreign,
}

/// Digests of records, by module. For a moment there are several of one: it is written down before the record
/// is, so that whatever is interrupted leaves a record that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Proofs(BTreeMap<String, Vec<String>>);

impl Proofs {
    /// What an annotation says; `None` when there is none. One that cannot be read knows no digest.
    pub fn read(annotation: Option<&String>) -> Option<Proofs> {
        Some(serde_json::from_str(annotation?).unwrap_or_default())
    }

    /// The first proofs of a cluster whose records are older than proofs, or than the ClusterPlugin, are.
    /// Only networks are believed, which stay whoever wants it or not and without whose security-group rules
    /// Pods could not talk; and of those the ones that the management cluster knows of: `told` are modules of
    /// the ClusterPlugin's status, `kept` rules that the AWSCluster keeps.
    pub fn first<'a>(
        records: impl IntoIterator<Item = (&'a Inventory, &'a str)>,
        told: &[&str],
        kept: &[AddOnRule],
    ) -> Proofs {
        let is_known = |it: &Inventory| {
            let is_kept =
                !it.rules.is_empty() && it.rules.iter().all(|rule| kept.contains(&crate::rule(rule)));
            told.contains(&it.module.as_str()) || is_kept
        };
        let known = records.into_iter().filter(|(it, _)| it.slot() == Some(Slot::Networking) && is_known(it));
        Proofs(known.map(|(it, digest)| (it.module.clone(), vec![digest.to_owned()])).collect())
    }

    /// Whose a record is that has this digest.
    pub fn standing(&self, module: &str, digest: &str) -> Standing {
        match self.0.get(module) {
            Some(known) if known.iter().any(|it| it == digest) => Standing::Proven,
            Some(_) => Standing::Foreign,
            None => Standing::Unknown,
        }
    }

    /// Before a record is written: it is known, and so is whatever is there.
    #[must_use]
    pub fn with(mut self, module: &str, new: &str) -> Proofs {
        let known = self.0.entry(module.to_owned()).or_default();
        known.retain(|it| it != new);
        known.insert(0, new.to_owned());
        known.truncate(MOST_DIGESTS);
        self
    }

    /// Once it is written: earlier ones are nobody's any more.
    #[must_use]
    pub fn only(mut self, module: &str, new: &str) -> Proofs {
        self.0.insert(module.to_owned(), vec![new.to_owned()]);
        self
    }

    /// Once it is removed.
    #[must_use]
    pub fn without(mut self, module: &str) -> Proofs {
        self.0.remove(module);
        self
    }

    /// The text of the annotation.
    pub fn text(&self) -> String {
        // Strings always serialize.
        serde_json::to_string(&self.0).unwrap_or_default()
    }
}

/// What of a record's removal may be carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Removal {
    pub steps: Vec<Step>,
    /// Only objects that the add-on's field manager applied are deleted; others are left.
    pub own_only: bool,
}

/// A removal deletes and waits, and never applies. What this program wrote down is carried out as far as it
/// is granted; of any other record only what it would delete, without waiting for anything that it names.
///
/// # Errors
/// This program wrote down something that is not granted, or nothing that is a removal.
pub fn removal(record: &Inventory) -> Result<Removal, Denial> {
    if record.standing == Standing::Proven {
        // What a module installed was authorized by its grants then; the module, or its grants, may be gone.
        let denials = match built_in::find(&record.module) {
            None if record.registered.is_some() => changes(&record.removal).collect(),
            _ => authorize_removal(&record.removal, &built_in::grants(&record.module, &record.config)),
        };
        return match denials.into_iter().next() {
            Some(denial) => Err(denial),
            None => Ok(Removal { steps: record.removal.clone(), own_only: false }),
        };
    }
    let deletes = record.removal.iter().filter(|it| matches!(it.typed(), Ok(StepSpec::Delete(_))));
    // What they come after may be none of them.
    let steps = deletes.take(MOST_STEPS).enumerate().map(|(place, it)| Step {
        id: place.to_string(),
        after: Vec::new(),
        ..it.clone()
    });
    Ok(Removal { steps: steps.collect(), own_only: true })
}

/// Authorizes the steps of a removal: what is granted, and neither applies nor makes anything.
pub fn authorize_removal(steps: &[Step], grants: &grant::Grants) -> Vec<Denial> {
    changes(steps).chain(grant::authorize(steps, grants)).collect()
}

/// What in a removal is neither a deletion nor a wait.
fn changes(steps: &[Step]) -> impl Iterator<Item = Denial> {
    let changes = steps.iter().filter(|it| {
        !matches!(it.typed(), Ok(StepSpec::Delete(_) | StepSpec::Wait(_) | StepSpec::FieldWait(_)))
    });
    let message = |it: &Step| format!("a removal deletes and waits, and {} does neither", it.kind);
    changes.map(move |it| Denial::of_step(&it.id, "removals", message(it)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Registered;

    fn record(module: &str, removal: Vec<Value>, standing: Standing) -> Inventory {
        let value = json!({"module": module, "version": "1", "digest": "", "config": {"imageRegistry": "evil.example.com"},
            "planHash": "", "complete": true, "objects": [], "removal": removal});
        Inventory { standing, ..serde_json::from_value(value).expect("a record") }
    }

    fn delete(kind: &str, namespace: &str, name: &str) -> Value {
        let spec = json!({"apiVersion": "apps/v1", "kind": kind, "namespace": namespace, "name": name, "wait": true});
        json!({"id": name, "kind": "k8s.delete/v1", "spec": spec, "after": []})
    }

    fn daemon_set(image: &str) -> Value {
        let pod = json!({"serviceAccountName": "ebs-csi-node-sa", "hostNetwork": true, "containers": [{"name": "a", "image": image}]});
        let object = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "ebs-csi-node", "namespace": "kube-system"},
            "spec": {"template": {"spec": pod}}});
        json!({"id": "evil", "kind": "k8s.apply/v1", "spec": {"objects": [object]}, "after": []})
    }

    fn kinds(removal: Result<Removal, Denial>) -> String {
        match removal {
            Ok(it) => {
                let steps: Vec<String> = it
                    .steps
                    .iter()
                    .map(|it| format!("{} {}", it.kind, it.spec["name"].as_str().unwrap_or("")))
                    .collect();
                format!("{}{}", steps.join(", "), if it.own_only { ", its own only" } else { "" })
            }
            Err(it) => format!("{}: {}", it.step, it.message),
        }
    }

    #[test]
    fn a_removal_never_applies_whoever_wrote_it() {
        let evil =
            || vec![daemon_set("evil.example.com/a"), delete("DaemonSet", "kube-system", "ebs-csi-node")];
        expect_test::expect!["evil: a removal deletes and waits, and k8s.apply/v1 does neither"]
            .assert_eq(&kinds(removal(&record("aws-ebs-csi", evil(), Standing::Proven))));
        for standing in [Standing::Unknown, Standing::Foreign] {
            expect_test::expect!["k8s.delete/v1 ebs-csi-node, its own only"]
                .assert_eq(&kinds(removal(&record("aws-ebs-csi", evil(), standing))));
        }
    }

    #[test]
    fn what_this_program_wrote_is_checked_and_carried_out_in_its_order() {
        let own = vec![delete("DaemonSet", "kube-system", "ebs-csi-node")];
        assert_eq!(
            kinds(removal(&record("aws-ebs-csi", own, Standing::Proven))),
            "k8s.delete/v1 ebs-csi-node"
        );
        let other = vec![delete("Deployment", "kube-system", "coredns")];
        expect_test::expect![
            "coredns: Deployment coredns of apps/v1 in namespace kube-system is not granted"
        ]
        .assert_eq(&kinds(removal(&record("aws-ebs-csi", other, Standing::Proven))));
    }

    #[test]
    fn what_a_module_installed_is_removed_without_its_grants() {
        let registered = |standing: Standing, removal: Vec<Value>| {
            let registered = Some(Registered { module: "acme".into(), slot: Slot::Other });
            Inventory { registered, ..record("metrics", removal, standing) }
        };
        let own = || vec![delete("Deployment", "metrics", "metrics")];
        assert_eq!(kinds(removal(&registered(Standing::Proven, own()))), "k8s.delete/v1 metrics");
        assert_eq!(
            kinds(removal(&registered(Standing::Foreign, own()))),
            "k8s.delete/v1 metrics, its own only"
        );
        let evil = vec![daemon_set("evil.example.com/a")];
        expect_test::expect!["evil: a removal deletes and waits, and k8s.apply/v1 does neither"]
            .assert_eq(&kinds(removal(&registered(Standing::Proven, evil))));
    }

    #[test]
    fn what_nobody_vouches_for_waits_for_nothing_and_ends() {
        let wait = json!({"id": "wait", "kind": "k8s.wait/v1", "after": [], "spec": {"apiVersion": "v1", "kind": "Pod", "name": "never",
            "namespace": "a", "condition": "exists", "timeoutSeconds": 1}});
        let mut circle = delete("DaemonSet", "kube-system", "ebs-csi-node");
        circle["after"] = json!(["wait", "ebs-csi-node", "nothing"]);
        let found = removal(&record("aws-ebs-csi", vec![wait, circle], Standing::Foreign))
            .expect("it is carried out");
        assert!(found.steps.len() == 1 && found.steps[0].after.is_empty());
        let many = (0..10_000).map(|it| delete("DaemonSet", "kube-system", &format!("a{it}"))).collect();
        assert_eq!(
            removal(&record("aws-ebs-csi", many, Standing::Foreign)).map(|it| it.steps.len()),
            Ok(MOST_STEPS)
        );
    }

    #[test]
    fn an_older_record_is_unknown_once_a_newer_one_is_written() {
        let first = Proofs::default().with("calico", "one");
        assert_eq!(first.standing("calico", "one"), Standing::Proven);
        assert_eq!(first.standing("aws-ebs-csi", "one"), Standing::Unknown);
        let writing = first.with("calico", "two");
        for digest in ["one", "two"] {
            assert_eq!(writing.standing("calico", digest), Standing::Proven, "{digest}");
        }
        let written = writing.only("calico", "two");
        assert_eq!(written.standing("calico", "one"), Standing::Foreign, "an older record that is replayed");
        assert_eq!(Proofs::read(Some(&written.text())), Some(written.clone()));
        let endless = (0..100).fold(written.clone(), |it, n| it.with("calico", &n.to_string()));
        expect_test::expect![[r#"{"calico":["99","98","97"]}"#]].assert_eq(&endless.text());
        assert_eq!(written.without("calico").standing("calico", "two"), Standing::Unknown);
        assert_eq!(Proofs::read(None), None);
        assert_eq!(Proofs::read(Some(&"{".to_owned())), Some(Proofs::default()));
    }

    #[test]
    fn of_records_older_than_proofs_only_known_networks_are_believed() {
        let rule = |port: u16| {
            let rule = json!({"group": "node", "protocol": "udp", "fromPort": port, "toPort": port, "peer": "node", "description": "VXLAN"});
            serde_json::from_value(rule).expect("a rule")
        };
        let all = ["calico", "aws-ebs-csi", "acme"]
            .map(|it| Inventory { rules: vec![rule(4789)], ..record(it, vec![], Standing::Foreign) });
        let first = |told: &[&str], kept: &[AddOnRule]| {
            Proofs::first(all.iter().map(|it| (it, "digest")), told, kept).text()
        };
        assert_eq!(first(&["calico", "aws-ebs-csi", "acme"], &[]), r#"{"calico":["digest"]}"#);
        assert_eq!(first(&[], &[crate::rule(&rule(4789))]), r#"{"calico":["digest"]}"#);
        assert_eq!(first(&["aws-ebs-csi"], &[crate::rule(&rule(179))]), "{}");
    }
}
