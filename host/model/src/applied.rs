//! Groups and tags that a machine's user added to its instance and may take away again. AWS does not say who
//! added what, so it is kept on the object: under the names and in the form of Cluster API Provider AWS, so
//! that a machine can be taken over either way. What cannot be read counts as nothing: it may be another's,
//! and at worst something stays that nobody wants any more.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::Tags;

/// Annotation of an AWSMachine: ids of the groups that its user added. JSON, id to `{}`.
pub const APPLIED_GROUPS_ANNOTATION: &str =
    "sigs.k8s.io/cluster-api-provider-aws-last-applied-security-groups";
/// Annotation of an AWSMachine: the tags that its user and its cluster's added. JSON, key to value.
pub const APPLIED_TAGS_ANNOTATION: &str = "sigs.k8s.io/cluster-api-provider-aws-last-applied-tags";

/// What may be on an instance because its user wanted it there at some time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// By id.
    pub groups: BTreeSet<String>,
    /// By key; a value that is no text is empty.
    pub tags: Tags,
}

impl Applied {
    /// What the annotations of an AWSMachine say; empty where they are absent or cannot be read.
    pub fn of(annotations: Option<&BTreeMap<String, String>>) -> Applied {
        let text = |name| annotations.and_then(|all| all.get(name)).map(String::as_str).unwrap_or_default();
        Applied { groups: groups(text(APPLIED_GROUPS_ANNOTATION)), tags: tags(text(APPLIED_TAGS_ANNOTATION)) }
    }

    /// The annotations that say this. A text that says it already stays as it is, whoever wrote it.
    pub fn annotations(&self, have: &BTreeMap<String, String>) -> [(&'static str, Option<String>); 2] {
        let text = |name: &'static str, same: &dyn Fn(&str) -> bool, fields: Map<String, Value>| {
            let kept = have.get(name).filter(|it| same(it)).cloned();
            (name, kept.or_else(|| (!fields.is_empty()).then(|| Value::Object(fields).to_string())))
        };
        [
            text(
                APPLIED_GROUPS_ANNOTATION,
                &|it| groups(it) == self.groups,
                self.groups.iter().map(|id| (id.clone(), json!({}))).collect(),
            ),
            text(
                APPLIED_TAGS_ANNOTATION,
                &|it| tags(it) == self.tags,
                self.tags.iter().map(|(k, v)| (k.clone(), json!(v))).collect(),
            ),
        ]
    }
}

fn fields(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

fn groups(text: &str) -> BTreeSet<String> {
    fields(text).into_iter().map(|(id, _)| id).collect()
}

fn tags(text: &str) -> Tags {
    fields(text)
        .into_iter()
        .map(|(key, value)| (key, value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(groups: &str, tags: &str) -> BTreeMap<String, String> {
        BTreeMap::from([
            (APPLIED_GROUPS_ANNOTATION.into(), groups.into()),
            (APPLIED_TAGS_ANNOTATION.into(), tags.into()),
        ])
    }

    #[test]
    fn what_the_other_provider_wrote_is_read_and_left_as_it_is() {
        let have = annotations(r#"{ "sg-2":{},"sg-1":{} }"#, r#"{"b":"\u003c2\u003e", "a":"1"}"#);
        let applied = Applied::of(Some(&have));
        assert_eq!(applied.groups, BTreeSet::from(["sg-1".to_owned(), "sg-2".to_owned()]));
        assert_eq!(applied.tags, Tags::from([("a".into(), "1".into()), ("b".into(), "<2>".into())]));
        for (name, text) in applied.annotations(&have) {
            assert_eq!(text.as_ref(), have.get(name));
        }
    }

    #[test]
    fn what_changed_is_written_in_its_form_and_nothing_is_no_annotation() {
        let have = annotations(r#"{"sg-1":{}}"#, "{}");
        let tags = Tags::from([("a".into(), "1".into())]);
        let applied = Applied { groups: BTreeSet::from(["sg-2".to_owned()]), tags };
        let texts = applied.annotations(&have).map(|(_, text)| text.unwrap_or_default());
        assert_eq!(texts, [r#"{"sg-2":{}}"#, r#"{"a":"1"}"#]);
        assert_eq!(Applied::default().annotations(&BTreeMap::new()).map(|(_, text)| text), [None, None]);
        assert_eq!(Applied::default().annotations(&have).map(|(_, text)| text), [None, Some("{}".into())]);
    }

    #[test]
    fn nonsense_counts_as_nothing_and_is_left_alone() {
        let have = annotations("nonsense", r#"["a"]"#);
        assert_eq!(Applied::of(Some(&have)), Applied::default());
        for (name, text) in Applied::default().annotations(&have) {
            assert_eq!(text.as_ref(), have.get(name));
        }
    }
}
