//! What follows for a PluginModule from what its plugin says of itself, and what an operator says of it.

use crds::conditions::READY;
use crds::plugin_module::{Grants, ModuleOperatorStatus};
use model::Timestamp;
use model::condition::{ConditionState, merge};
use serde_json::Value;

use crate::grant::{Denial, denied_requirements, fragment};
use crate::upgrade::Component;
use contract::{CONTRACT, Descriptor};

/// Longest text of a status field that a plugin chose.
const LONGEST: usize = 253;
/// Longest schema that is shown.
const LONGEST_SCHEMA: usize = 32 << 10;
/// How many demands are shown, and how long each may be.
const MOST: usize = 128;
const LONGEST_DEMAND: usize = 1024;

/// A component that was loaded, and where it is from.
#[derive(Clone, Copy, Debug)]
pub struct Loaded<'a> {
    /// Digest that the spec of the module names.
    pub source_digest: &'a str,
    pub component: &'a Component,
    pub descriptor: &'a Descriptor,
}

/// What a plugin asks for, in the words of its descriptor: step kinds and facts.
pub fn requires(descriptor: &Descriptor) -> Vec<String> {
    let all = |field: &str, what: &'static str| {
        let names = descriptor.requires.get(field).and_then(Value::as_array).into_iter().flatten();
        let names = names.filter_map(Value::as_str);
        names.map(|name| format!("{what} {}", cut(name, LONGEST))).take(MOST / 2).collect::<Vec<_>>()
    };
    [all("steps", "step kind"), all("facts", "fact")].concat()
}

/// What a plugin asks for and these grants do not have, each with the grant that it lacks.
pub fn not_granted(descriptor: &Descriptor, grants: &Grants) -> Vec<String> {
    let lacking = denied_requirements(&descriptor.requires, grants);
    let text = |it: &Denial| match it.grant.as_deref() {
        Some(grant) => format!("{} ({})", it.message, fragment(grant)),
        None => it.message.clone(),
    };
    lacking.iter().map(|it| cut(&text(it), LONGEST_DEMAND)).take(MOST).collect()
}

/// What an operator says of a module. `serving`: what serves, if anything does.
pub fn operator_status(
    previous: Option<&ModuleOperatorStatus>,
    operator: &str,
    generation: i64,
    serving: Option<Loaded<'_>>,
    not_granted: Vec<String>,
    ready: ConditionState<'_>,
    now: Timestamp,
) -> ModuleOperatorStatus {
    let before = previous.map(|it| it.conditions.as_slice()).unwrap_or_default();
    let conditions = merge(before, vec![(READY, ready)], Some(generation), now, &[READY]);
    let status = ModuleOperatorStatus {
        name: operator.to_owned(),
        observed_generation: generation,
        not_granted,
        conditions,
        ..ModuleOperatorStatus::default()
    };
    let Some(Loaded { source_digest, component, descriptor }) = serving else { return status };
    ModuleOperatorStatus {
        source_digest: source_digest.to_owned(),
        digest: component.digest.clone(),
        plugin: cut(&descriptor.name, LONGEST),
        version: cut(&component.version, LONGEST),
        category: cut(&descriptor.category, LONGEST),
        contract: CONTRACT.to_owned(),
        config_schema: Some(descriptor.config_schema.to_string())
            .filter(|it| it.len() <= LONGEST_SCHEMA)
            .unwrap_or_default(),
        requires: requires(descriptor),
        ..status
    }
}

/// The first bytes of a text, without part of a character.
fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn descriptor() -> Descriptor {
        Descriptor {
            name: "metrics".into(),
            version: "1.0.0".into(),
            category: "other".into(),
            config_schema: json!({"type": "object"}),
            requires: json!({"steps": ["k8s.apply/v1", "aws.sg-rule/v1"], "facts": ["subnets"], "more": ["a"]}),
            extra: json!({}),
        }
    }

    #[test]
    fn what_is_asked_for_and_not_granted_is_named_with_its_grant() {
        let grants = Grants { steps: vec!["k8s.apply/v1".into()], ..Grants::default() };
        assert_eq!(
            not_granted(&descriptor(), &grants),
            [
                "step kind aws.sg-rule/v1 is not granted (grants.steps: [aws.sg-rule/v1])",
                "fact subnets is not granted (grants.facts: [subnets])"
            ]
        );
        let all = Grants {
            steps: vec!["k8s.apply/v1".into(), "aws.sg-rule/v1".into()],
            facts: vec!["subnets".into()],
            ..Grants::default()
        };
        assert!(not_granted(&descriptor(), &all).is_empty());
    }

    #[test]
    fn what_a_plugin_says_of_itself_fits_into_the_status() {
        let long = "ä".repeat(1000);
        let component = Component { version: long.clone(), digest: "sha256:0".into() };
        let schema = json!({"description": "x".repeat(40_000)});
        let descriptor = Descriptor { name: long, config_schema: schema, ..descriptor() };
        let serving = Loaded { source_digest: "sha256:1", component: &component, descriptor: &descriptor };
        let said = operator_status(None, "system", 3, Some(serving), vec![], ConditionState::yes(), 0.0);
        assert_eq!((said.plugin.len(), said.version.len(), said.config_schema.len()), (252, 252, 0));
        assert_eq!(said.conditions.len(), 1);
    }
}
