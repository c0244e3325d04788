//! What is written down in the workload cluster about an installed add-on, so that it can be changed,
//! pruned and removed even when the plugin, or the whole management cluster, is gone.

mod size;
mod succession;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Slot, Standing};
use contract::{AddOnPlan, ApplySpec, Prune, SecurityGroupRuleSpec, Step, StepSpec};

pub use size::{LARGEST_RECORD, too_large, too_large_to_record};
pub use succession::{Previous, Succession, UndoneUpgrade};

/// One object of the workload cluster, without its content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    pub api_version: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub name: String,
}

impl ObjectRef {
    /// `None` when the object lacks apiVersion, kind or name.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).map(str::to_owned);
        Some(ObjectRef {
            api_version: text("/apiVersion")?,
            kind: text("/kind")?,
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name")?,
        })
    }

    /// By API version, kind, namespace and name.
    pub fn at((api_version, kind, namespace, name): (&str, &str, Option<&str>, &str)) -> Self {
        ObjectRef {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    /// Whether both name one object: its API version may change between releases of an add-on.
    pub fn same_object(&self, other: &Self) -> bool {
        let group =
            |it: &Self| it.api_version.split_once('/').map_or(String::new(), |(group, _)| group.to_owned());
        group(self) == group(other)
            && self.kind == other.kind
            && self.namespace == other.namespace
            && self.name == other.name
    }
}

impl std::fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// Which plugin of a third party installed an add-on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registered {
    /// Name of its PluginModule.
    pub module: String,
    pub slot: Slot,
}

/// The record of one add-on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    pub module: String,
    /// Absent for plugins that come with the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered: Option<Registered>,
    pub version: String,
    /// `sha256:` and the hash of the component.
    pub digest: String,
    pub config: Value,
    /// Of the plan that is being carried out or was carried out.
    pub plan_hash: String,
    /// Every step of that plan was carried out once.
    pub complete: bool,
    /// What was applied and not deleted since, by this plan or an earlier one.
    pub objects: Vec<ObjectRef>,
    /// What the API server answered when they were applied, as [`Writers::mark`](super::Writers::mark) has
    /// it, in the order of `objects`. Empty until the plan was carried out, and in records of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
    /// The security-group rules that it needs for as long as it is there.
    #[serde(default)]
    pub rules: Vec<SecurityGroupRuleSpec>,
    /// What uninstalls it.
    pub removal: Vec<Step>,
    /// What its role in AWS was found to allow of what was asked for when every step had been carried out.
    /// Absent where that was before anybody wrote it down, or has not been yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// Digest of the plan that is stored beside the record with the component, as
    /// [`plan_digest`](crate::stored::plan_digest) has it. Absent until the add-on was whole for the first
    /// time, and in records of earlier versions, which stored neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_plan: Option<String>,
    /// While another component replaces it: the one that installed it before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
    /// An upgrade that was undone: it is not tried again without new consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<UndoneUpgrade>,
    /// What of it was approved. Absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Approved>,
    /// What its plugin tells of what it installed, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
    /// Whether this program wrote it. No record says so itself.
    #[serde(skip)]
    pub standing: Standing,
}

/// The plan that may be carried out without asking anybody again, and how often somebody was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approved {
    /// Digest of the component and its plan, as [`plan_id`](crate::approval::plan_id) has it.
    pub plan: String,
    /// How many approvals of the add-on were used.
    #[serde(default)]
    pub serial: u64,
}

impl Inventory {
    /// What is written down of each object, as far as something is.
    pub fn marked(&self) -> BTreeMap<ObjectRef, String> {
        let all = self.objects.iter().zip(&self.marks).filter(|(_, mark)| !mark.is_empty());
        all.map(|(object, mark)| (object.clone(), mark.clone())).collect()
    }

    /// The same record with these marks of its objects.
    #[must_use]
    pub fn with_marks(self, marks: &BTreeMap<ObjectRef, String>) -> Self {
        let marks = self.objects.iter().map(|it| marks.get(it).cloned().unwrap_or_default()).collect();
        Inventory { marks, ..self }
    }

    /// Whether all of it was there at some time, and it is not being uninstalled: marks are recorded when every
    /// step was carried out. Records of earlier versions say it by nothing else while they are changed.
    pub fn was_whole(&self) -> bool {
        let is_marked = !self.plan_hash.is_empty() && self.marks.iter().any(|mark| !mark.is_empty());
        self.complete || self.stored_plan.is_some() || is_marked
    }

    /// What its role allowed when it was installed, if it is, and acts as the role of this configuration: an
    /// operator that asks for more than the one that installed it does not hold it.
    pub fn allowed_before(&self, config: &Value) -> Option<Vec<String>> {
        let role = |config: &Value| config.get("roleARN").cloned();
        let is_same = self.standing == Standing::Proven && role(&self.config) == role(config);
        let before = self.allowed.clone().or_else(|| self.complete.then(Vec::new));
        before.filter(|_| is_same)
    }
}

/// Hex SHA-256 of the plan's steps, and of the bundle of authorities that goes into them: the same plan, the
/// same text.
pub fn plan_hash(plan: &AddOnPlan, bundle: &str) -> String {
    let text = serde_json::to_string(&plan.steps).unwrap_or_default();
    Sha256::digest([text.as_bytes(), bundle.as_bytes()].concat())
        .iter()
        .map(|it| format!("{it:02x}"))
        .collect()
}

/// The objects that a plan applies, in its order.
pub fn objects(steps: &[Step]) -> Vec<ObjectRef> {
    applies(steps).flat_map(|it| it.objects).filter_map(ObjectRef::of).collect()
}

/// The security-group rules that a plan asks for.
pub fn rules(steps: &[Step]) -> Vec<SecurityGroupRuleSpec> {
    let rule = |it: &Step| match it.typed() {
        Ok(StepSpec::SecurityGroupRule(spec)) => Some(spec),
        _ => None,
    };
    steps.iter().filter_map(rule).collect()
}

/// The rules of an earlier plan, which are needed until this one is carried out, and those of this one.
pub fn merged_rules(installed: Option<&Inventory>, plan: &AddOnPlan) -> Vec<SecurityGroupRuleSpec> {
    let proven = installed.filter(|it| it.standing == Standing::Proven);
    let mut res = proven.map(|it| it.rules.clone()).unwrap_or_default();
    res.extend(rules(&plan.steps));
    let mut unique: Vec<SecurityGroupRuleSpec> = Vec::new();
    for rule in res {
        if !unique.contains(&rule) {
            unique.push(rule);
        }
    }
    unique
}

fn applies(steps: &[Step]) -> impl Iterator<Item = ApplySpec<'_>> {
    steps.iter().filter_map(|it| match it.typed() {
        Ok(StepSpec::Apply(spec)) => Some(spec),
        _ => None,
    })
}

/// Objects of the inventory that the plan no longer has and that may be deleted, last applied first.
/// CustomResourceDefinitions and Namespaces stay unless the plan says otherwise: deleting them takes along
/// what users put there.
pub fn prune(inventory: &Inventory, plan: &AddOnPlan) -> Vec<ObjectRef> {
    let kept = objects(&plan.steps);
    let orphan: BTreeSet<&str> = BTreeSet::from(["CustomResourceDefinition", "Namespace"]);
    let forced = applies(&plan.steps).any(|it| it.prune == Some(Prune::Delete));
    let never = applies(&plan.steps).any(|it| it.prune == Some(Prune::Orphan));
    let is_gone = |it: &&ObjectRef| !kept.iter().any(|other| it.same_object(other));
    let may_go = |it: &&ObjectRef| !never && (forced || !orphan.contains(it.kind.as_str()));
    inventory.objects.iter().rev().filter(is_gone).filter(may_go).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, name: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "kube-system"}})
    }

    fn plan(objects: &[Value]) -> AddOnPlan {
        let spec = json!({"objects": objects});
        let steps = vec![Step { id: "objects".into(), kind: "k8s.apply/v1".into(), spec, after: vec![] }];
        AddOnPlan { steps, removal: vec![], diagnostics: vec![], extra: json!({}) }
    }

    fn installed(objects: &[Value]) -> Inventory {
        let plan = plan(objects);
        Inventory {
            registered: None,
            module: "calico".into(),
            version: "3.32.1".into(),
            digest: "sha256:0".into(),
            config: json!({}),
            plan_hash: plan_hash(&plan, ""),
            complete: true,
            objects: super::objects(&plan.steps),
            marks: vec![],
            rules: vec![],
            removal: vec![],
            allowed: None,
            stored_plan: None,
            previous: None,
            undone: None,
            approved: None,
            outputs: BTreeMap::new(),
            standing: Standing::default(),
        }
    }

    #[test]
    fn findings_about_a_role_count_once_all_was_carried_out() {
        let config = |role: &str| json!({"roleARN": role, "replicas": 1});
        let it = Inventory { config: config("a"), standing: Standing::Proven, ..installed(&[]) };
        assert_eq!(
            it.allowed_before(&json!({"roleARN": "a"})),
            Some(vec![]),
            "nobody wrote down what it allowed"
        );
        assert_eq!(it.allowed_before(&config("b")), None);
        assert_eq!(
            Inventory { complete: false, ..it.clone() }.allowed_before(&config("a")),
            None,
            "never carried out"
        );
        assert_eq!(
            Inventory { standing: Standing::default(), ..it.clone() }.allowed_before(&config("a")),
            None,
            "anybody can write that"
        );
        let allowed = Some(vec!["ec2:AttachVolume".to_owned()]);
        let changing = Inventory { complete: false, allowed: allowed.clone(), ..it };
        assert_eq!(changing.allowed_before(&config("a")), allowed, "kept while a change is carried out");
    }

    #[test]
    fn what_a_change_no_longer_has_is_pruned_last_applied_first() {
        let before =
            installed(&[object("ConfigMap", "a"), object("ConfigMap", "b"), object("Deployment", "c")]);
        let pruned = prune(&before, &plan(&[object("ConfigMap", "a")]));
        assert_eq!(pruned.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["c", "b"]);
    }

    #[test]
    fn definitions_and_namespaces_outlive_a_change() {
        let before = installed(&[object("Namespace", "a"), object("CustomResourceDefinition", "b")]);
        assert_eq!(prune(&before, &plan(&[])), []);
    }

    #[test]
    fn a_record_without_rules_is_read() {
        let mut stored = serde_json::to_value(installed(&[])).unwrap();
        stored.as_object_mut().unwrap().remove("rules");
        assert_eq!(serde_json::from_value::<Inventory>(stored).unwrap(), installed(&[]));
    }

    #[test]
    fn marks_stay_with_their_objects_and_a_record_without_any_is_read() {
        let record =
            installed(&[object("ConfigMap", "a"), object("ConfigMap", "b"), object("ConfigMap", "c")]);
        assert_eq!(record.marked(), BTreeMap::new());
        assert!(!serde_json::to_string(&record).unwrap().contains("marks"));
        let marks = BTreeMap::from([
            (record.objects[0].clone(), "x".to_owned()),
            (record.objects[2].clone(), "z".to_owned()),
        ]);
        let marked = record.with_marks(&marks);
        let read: Inventory = serde_json::from_str(&serde_json::to_string(&marked).unwrap()).unwrap();
        assert_eq!((read.marked(), read), (marks, marked));
    }

    #[test]
    fn another_api_version_is_the_same_object() {
        let mut newer = object("Deployment", "c");
        newer["apiVersion"] = "apps/v2".into();
        assert_eq!(prune(&installed(&[object("Deployment", "c")]), &plan(&[newer])), []);
    }
}
