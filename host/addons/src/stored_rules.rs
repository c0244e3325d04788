//! Security-group rules of add-ons that stay when their ClusterPlugin goes, as the text of an annotation of
//! the AWSCluster: whoever reconciles the groups must know them when nobody asks for them any more.

use serde::{Deserialize, Serialize};

use super::{Inventory, Standing};
use model::AddOnRule;
use model::{Rule, Source};

/// Annotation of an AWSCluster: rules that its groups keep though no ClusterPlugin asks for them. JSON;
/// `null`: they could not be told, and nothing is revoked.
pub const STORED_RULES_ANNOTATION: &str = "cluster.kurator.dev/kept-rules";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoredRule {
    group: String,
    protocol: String,
    from_port: i32,
    to_port: i32,
    peer: String,
    #[serde(default)]
    description: String,
}

/// The text that keeps these rules; `None` when there is nothing to keep, and then there is no annotation.
/// `rules` is `None` when they could not be told.
pub fn stored_rules_text(rules: Option<&[AddOnRule]>) -> Option<String> {
    let Some(rules) = rules else { return Some("null".into()) };
    let stored: Vec<StoredRule> = rules.iter().filter_map(stored).collect();
    // Strings and numbers always serialize.
    (!stored.is_empty()).then(|| serde_json::to_string(&stored).unwrap_or_else(|_| "null".into()))
}

/// The rules that the text keeps. `None` when they cannot be told, which is no reason to revoke any.
pub fn stored_rules(text: Option<&str>) -> Option<Vec<AddOnRule>> {
    let Some(text) = text else { return Some(Vec::new()) };
    let stored: Option<Vec<StoredRule>> = serde_json::from_str(text).ok()?;
    Some(stored?.into_iter().map(rule).collect())
}

/// The rules that installed add-ons need. What is not known here opens nothing, nor does a record that
/// somebody else may have written.
pub fn rules_of_installed<'a>(installed: impl IntoIterator<Item = &'a Inventory>) -> Vec<AddOnRule> {
    let known = installed.into_iter().filter(|it| it.slot().is_some() && it.standing == Standing::Proven);
    known.flat_map(|it| it.rules.iter().map(crate::rule)).collect()
}

fn stored(rule: &AddOnRule) -> Option<StoredRule> {
    let AddOnRule { group, rule: Rule { protocol, from_port, to_port, source, description } } = rule;
    // Add-ons name their peers by role and in no other way.
    let Source::Group(peer) = source else { return None };
    Some(StoredRule {
        group: group.clone(),
        protocol: protocol.clone(),
        from_port: *from_port,
        to_port: *to_port,
        peer: peer.clone(),
        description: description.clone(),
    })
}

fn rule(stored: StoredRule) -> AddOnRule {
    let StoredRule { group, protocol, from_port, to_port, peer, description } = stored;
    AddOnRule { group, rule: Rule { protocol, from_port, to_port, source: Source::Group(peer), description } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn vxlan() -> AddOnRule {
        let spec = json!({"group": "node", "protocol": "udp", "fromPort": 4789, "toPort": 4789, "peer": "control-plane", "description": "VXLAN"});
        crate::rule(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn rules_are_kept_as_they_were_asked_for() {
        let text = stored_rules_text(Some(&[vxlan()])).unwrap();
        expect_test::expect![[
            r#"[{"group":"node","protocol":"udp","fromPort":4789,"toPort":4789,"peer":"controlplane","description":"VXLAN"}]"#
        ]]
        .assert_eq(&text);
        assert_eq!(stored_rules(Some(&text)), Some(vec![vxlan()]));
    }

    #[test]
    fn no_annotation_keeps_nothing_and_an_unreadable_one_revokes_none() {
        assert_eq!(stored_rules_text(Some(&[])), None);
        assert_eq!(stored_rules(None), Some(vec![]));
        let unknown = stored_rules_text(None).unwrap();
        assert_eq!(stored_rules(Some(&unknown)), None);
        assert_eq!(stored_rules(Some("[{\"group\": 1}]")), None);
    }
}
