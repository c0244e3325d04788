//! Whether an upgrade can be undone once it has begun. CustomResourceDefinitions go forward only: objects may be
//! stored in a version that the definition before does not have.

use std::collections::BTreeSet;

use contract::{AddOnPlan, StepSpec};
use serde_json::Value;

use crate::Inventory;

/// Why there is no way back from `after`; `None`: there is one. `before` is the plan of the installed
/// component, where it is known.
pub fn no_way_back(installed: &Inventory, before: Option<&AddOnPlan>, after: &AddOnPlan) -> Option<String> {
    let previous = installed.previous.as_ref().and_then(|it| it.stored_plan.as_ref());
    if installed.stored_plan.as_ref().or(previous).is_none() {
        return Some("the plan that was carried out before is not stored".to_owned());
    }
    let needed = served_versions(before?);
    let left = served_versions(after);
    let is_dropped = |(definition, version): &&(&str, &str)| {
        let is_known = left.iter().any(|(name, _)| name == definition);
        is_known && !left.contains(&(*definition, *version))
    };
    let (definition, version) = needed.iter().find(is_dropped)?;
    Some(format!(
        "CustomResourceDefinition {definition} does not serve {version} any more, which the installed \
         component reads, and definitions are never set back"
    ))
}

/// The versions that a plan's CustomResourceDefinitions serve, each with the name of its definition.
fn served_versions(plan: &AddOnPlan) -> BTreeSet<(&str, &str)> {
    let mut res = BTreeSet::new();
    for step in &plan.steps {
        let Ok(StepSpec::Apply(spec)) = step.typed() else { continue };
        let definitions = spec.objects.iter().filter(|it| it["kind"] == "CustomResourceDefinition");
        for definition in definitions {
            let Some(name) = definition.pointer("/metadata/name").and_then(Value::as_str) else { continue };
            let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
            let served = versions.into_iter().flatten().filter(|it| it["served"] == true);
            res.extend(served.filter_map(|it| Some((name, it["name"].as_str()?))));
        }
    }
    res
}

#[cfg(test)]
mod tests {
    use contract::Step;
    use serde_json::json;

    use super::*;

    fn plan(versions: &[(&str, bool)]) -> AddOnPlan {
        let versions: Vec<Value> =
            versions.iter().map(|(name, served)| json!({"name": name, "served": served})).collect();
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "pools.example.com"}, "spec": {"versions": versions}});
        let spec = json!({"objects": [definition]});
        let step = Step { id: "crds".into(), kind: "k8s.apply/v1".into(), spec, after: vec![] };
        AddOnPlan { steps: vec![step], removal: vec![], diagnostics: vec![], extra: json!({}) }
    }

    #[test]
    fn there_is_no_way_back_past_a_version_that_is_not_served_any_more() {
        let record = json!({"module": "a", "version": "1", "digest": "", "config": {}, "planHash": "", "complete": true,
            "objects": [], "removal": [], "storedPlan": "0"});
        let installed: Inventory = serde_json::from_value(record).expect("a record");
        let (old, both) = (plan(&[("v1", true)]), plan(&[("v1", true), ("v2", true)]));
        assert_eq!(no_way_back(&installed, Some(&old), &both), None);
        let why = no_way_back(&installed, Some(&both), &plan(&[("v1", false), ("v2", true)]));
        assert!(why.is_some_and(|why| why.contains("pools.example.com does not serve v1 any more")));
        assert_eq!(no_way_back(&installed, Some(&old), &plan(&[])), None, "it stays");
        let unstored = Inventory { stored_plan: None, ..installed };
        assert!(no_way_back(&unstored, Some(&old), &both).is_some());
    }
}
