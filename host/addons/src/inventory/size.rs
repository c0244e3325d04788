//! How large a record may be and how large one can get: what would not fit is refused before anything is applied.

use contract::{AddOnPlan, Step, StepSpec};
use serde_json::Value;

use super::{Inventory, objects, rules};
use crate::Standing;

/// Bytes of a record as text: several times what a large add-on has, and a fraction of a ConfigMap.
pub const LARGEST_RECORD: usize = 256 << 10;
/// Bytes of an object's mark in a record, with its quotes and comma.
const MARK: usize = 40;
/// Bytes of what is filled in later: digests, an upgrade that was undone, what was approved.
const LATER: usize = 8 << 10;

impl Inventory {
    /// How many bytes the record may get to have while its plan is carried out.
    pub fn bytes_at_most(&self) -> usize {
        let written = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        written.saturating_add(self.objects.len() * MARK + LATER)
    }
}

/// Why the record of this plan would not fit, with what makes it large; `None` when it does.
pub fn too_large_to_record(plan: &AddOnPlan, config: &Value) -> Option<String> {
    let record = Inventory {
        registered: None,
        module: String::new(),
        version: String::new(),
        digest: String::new(),
        config: config.clone(),
        plan_hash: String::new(),
        complete: true,
        objects: objects(&plan.steps),
        marks: Vec::new(),
        rules: rules(&plan.steps),
        removal: plan.removal.clone(),
        allowed: None,
        stored_plan: None,
        previous: None,
        undone: None,
        approved: None,
        outputs: contract::outputs(&plan.extra).unwrap_or_default(),
        standing: Standing::Proven,
    };
    // What is found to be allowed is some of what is asked for, and the configuration before is kept meanwhile.
    let asked: usize = plan.steps.iter().map(actions).sum();
    let bytes = record.bytes_at_most() + asked + config.to_string().len();
    (bytes > LARGEST_RECORD).then(|| too_large(&record, bytes))
}

/// What is said of a record that would have so many bytes.
pub fn too_large(record: &Inventory, bytes: usize) -> String {
    format!(
        "what is recorded of it in the cluster would have up to {bytes} bytes, more than {LARGEST_RECORD}: {} objects, {} \
         steps of its removal and its configuration are in it",
        record.objects.len(),
        record.removal.len()
    )
}

fn actions(step: &Step) -> usize {
    match step.typed() {
        Ok(StepSpec::IamRole(_) | StepSpec::InstanceRoles(_)) => step.spec.to_string().len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(objects: usize, removals: usize) -> AddOnPlan {
        let object = |it: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("{it:0200}"), "namespace": "a"}});
        let apply = json!({"objects": (0..objects).map(object).collect::<Vec<_>>()});
        let delete = |it: usize| Step {
            id: it.to_string(),
            kind: "k8s.delete/v1".into(),
            spec: json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": format!("{it:0200}"), "wait": true}),
            after: vec![],
        };
        AddOnPlan {
            steps: vec![Step { id: "a".into(), kind: "k8s.apply/v1".into(), spec: apply, after: vec![] }],
            removal: (0..removals).map(delete).collect(),
            diagnostics: vec![],
            extra: json!({}),
        }
    }

    #[test]
    fn what_can_be_recorded_is_told_from_what_cannot() {
        assert_eq!(too_large_to_record(&plan(350, 350), &json!({})), None);
        let why = too_large_to_record(&plan(512, 512), &json!({}));
        assert!(
            why.as_ref().is_some_and(|it| it.contains("512 objects, 512 steps of its removal")),
            "{why:?}"
        );
        let config = json!({"text": "x".repeat(LARGEST_RECORD)});
        assert!(too_large_to_record(&plan(1, 1), &config).is_some());
    }

    #[test]
    fn a_record_never_gets_larger_than_was_foreseen() {
        let plan = plan(300, 10);
        let marks = "f".repeat(MARK - 3);
        let record = |marks: Vec<String>, complete: bool| {
            let value = json!({"module": "a", "version": "1", "digest": "sha256:1", "config": {}, "planHash": "a".repeat(64),
                "complete": complete, "objects": objects(&plan.steps), "marks": marks, "removal": plan.removal});
            serde_json::from_value::<Inventory>(value).expect("a record")
        };
        let marked = serde_json::to_string(&record(vec![marks; 300], true)).expect("text").len();
        assert!(marked <= record(vec![], false).bytes_at_most());
    }
}
