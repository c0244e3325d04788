//! What a plugin may ask back (`needs`): the kinds of queries, each with its JSON Schema and that of its
//! answer in `wit/queries/`. Whether a query is granted is decided elsewhere.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

use crate::step::reference::{flaw, segment_flaw};

/// Objects that one answer has at most.
pub const MOST_OBJECTS: usize = 500;
/// Fields that one query asks for at most, and labels that it selects by.
const MOST_FIELDS: usize = 32;
const MOST_LABELS: usize = 16;
/// Groups whose kinds one query asks for, and kinds of its own objects.
const MOST_NAMES: usize = 16;
/// Characters of a field's pointer, and of a label's key or value.
const LONGEST: usize = 256;

/// The form of every query.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryForm {
    kind: String,
    spec: Value,
}

/// A question about the workload cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// Objects of one kind.
    Objects(ObjectsQuery),
    /// How many Nodes there are, and of what sort.
    Nodes(NodesQuery),
    /// What the API server serves.
    Apis(ApisQuery),
    /// The objects that the plugin itself applied.
    OwnObjects(OwnObjectsQuery),
    /// What another plugin of the cluster tells of what it installed.
    Outputs(OutputsQuery),
}

/// `k8s.objects/v1`: objects of one kind, with nothing of them but what is asked for. The answer is a list of
/// them, sorted by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectsQuery {
    /// Of the objects, such as `apps/v1`.
    pub api_version: String,
    /// Of the objects.
    pub kind: String,
    /// Only those of this namespace; those of all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Only the one of this name. The answer is absent when it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Only those with these labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub label_selector: BTreeMap<String, String>,
    /// JSON pointers to what is told of each, beside its namespace and name. None leads through a list.
    #[serde(default)]
    pub fields: Vec<String>,
    /// More objects than these are no answer: it is unknown then.
    pub limit: u32,
}

impl ObjectsQuery {
    /// Kind of the query.
    pub const KIND: &'static str = "k8s.objects/v1";
}

/// `k8s.nodes/v1`: how many Nodes there are, and of what sort.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodesQuery {}

impl NodesQuery {
    /// Kind of the query.
    pub const KIND: &'static str = "k8s.nodes/v1";
}

/// The answer to [`NodesQuery`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodesAnswer {
    /// How many Nodes there are.
    pub count: u32,
    /// How many of them are Ready.
    pub ready: u32,
    /// How many there are of each architecture, such as `arm64`.
    pub architectures: BTreeMap<String, u32>,
    /// Their taints, sorted, each once.
    pub taints: Vec<TaintAnswer>,
}

/// A taint of Nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaintAnswer {
    /// Of the taint.
    pub key: String,
    /// Of the taint; empty where it has none.
    pub value: String,
    /// Such as `NoSchedule`.
    pub effect: String,
    /// How many Nodes have it.
    pub count: u32,
}

/// `k8s.apis/v1`: which versions of APIs are served, and which kinds of those groups that are named. The
/// answer is a list of [`ApiAnswer`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApisQuery {
    /// Groups, of which the kinds are told too; an empty text is the core group. All groups, without kinds,
    /// when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

impl ApisQuery {
    /// Kind of the query.
    pub const KIND: &'static str = "k8s.apis/v1";
}

/// One element of the answer to [`ApisQuery`]: a version of an API, sorted by group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiAnswer {
    /// Group and version, such as `apps/v1`.
    pub api_version: String,
    /// Its kinds, sorted; absent where nobody asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
}

/// `own-objects/v1`: the objects that the plugin applied, as they are now. Secrets are left out. The answer is
/// a list of [`OwnObjectAnswer`], in the order of its record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnObjectsQuery {
    /// Only objects of these kinds; of all when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// JSON pointers to what is told of each, as in [`ObjectsQuery`].
    #[serde(default)]
    pub fields: Vec<String>,
}

impl OwnObjectsQuery {
    /// Kind of the query.
    pub const KIND: &'static str = "own-objects/v1";
}

/// One element of the answer to [`OwnObjectsQuery`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnObjectAnswer {
    /// As it was applied.
    pub api_version: String,
    /// Of the object.
    pub kind: String,
    /// Of the object; absent for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Of the object.
    pub name: String,
    /// What was asked for of it; null when it is not there.
    pub object: Value,
}

/// `outputs/v1`: what another plugin of the cluster tells of what it installed, texts by their names. Absent
/// while it is not installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutputsQuery {
    /// Name of the add-on in the ClusterPlugin.
    pub plugin: String,
}

impl OutputsQuery {
    /// Kind of the query.
    pub const KIND: &'static str = "outputs/v1";
}

/// Why a query has no meaning.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The host does not know this kind of query.
    #[error("{0:?} is no kind of query that this host answers")]
    UnknownKind(String),
    /// It does not have the shape of its kind.
    #[error("it is no query: {0}")]
    Malformed(String),
}

impl Query {
    /// The kinds of queries that this host answers.
    pub const KINDS: [&'static str; 5] =
        [ObjectsQuery::KIND, NodesQuery::KIND, ApisQuery::KIND, OwnObjectsQuery::KIND, OutputsQuery::KIND];

    /// Reads the query of a need: `{"kind": ..., "spec": ...}`.
    ///
    /// # Errors
    /// The kind is not of this contract, a field is unknown, missing or of the wrong type, or leads elsewhere.
    pub fn read(query: &Value) -> Result<Query, QueryError> {
        fn spec<'a, T: Deserialize<'a>>(spec: &'a Value) -> Result<T, QueryError> {
            T::deserialize(spec).map_err(|error| QueryError::Malformed(error.to_string()))
        }
        let form = QueryForm::deserialize(query).map_err(|it| QueryError::Malformed(it.to_string()))?;
        let read = match form.kind.as_str() {
            ObjectsQuery::KIND => Query::Objects(spec(&form.spec)?),
            NodesQuery::KIND => Query::Nodes(spec(&form.spec)?),
            ApisQuery::KIND => Query::Apis(spec(&form.spec)?),
            OwnObjectsQuery::KIND => Query::OwnObjects(spec(&form.spec)?),
            OutputsQuery::KIND => Query::Outputs(spec(&form.spec)?),
            _ => return Err(QueryError::UnknownKind(form.kind.chars().take(LONGEST).collect())),
        };
        read.flaw().map_or(Ok(read), |flaw| Err(QueryError::Malformed(flaw)))
    }

    /// Kind of the query.
    pub fn kind(&self) -> &'static str {
        match self {
            Query::Objects(_) => ObjectsQuery::KIND,
            Query::Nodes(_) => NodesQuery::KIND,
            Query::Apis(_) => ApisQuery::KIND,
            Query::OwnObjects(_) => OwnObjectsQuery::KIND,
            Query::Outputs(_) => OutputsQuery::KIND,
        }
    }

    fn flaw(&self) -> Option<String> {
        match self {
            Query::Objects(query) => query.flaw(),
            Query::Nodes(_) => None,
            Query::Apis(query) => too_many("groups", query.groups.len(), MOST_NAMES).or_else(|| {
                let mut named = query.groups.iter().filter(|group| !group.is_empty());
                named.find_map(|group| segment_flaw("group", group))
            }),
            Query::OwnObjects(query) => too_many("kinds", query.kinds.len(), MOST_NAMES)
                .or_else(|| query.kinds.iter().find_map(|kind| segment_flaw("kind", kind)))
                .or_else(|| fields_flaw(&query.fields)),
            Query::Outputs(query) => segment_flaw("plugin", &query.plugin),
        }
    }
}

impl ObjectsQuery {
    fn flaw(&self) -> Option<String> {
        // What is not named can be any name.
        let name = self.name.as_deref().unwrap_or("any");
        let selects = |(key, value): (&String, &String)| {
            let is_fit = |text: &str, more: &str| {
                text.len() <= LONGEST
                    && text.chars().all(|it| it.is_ascii_alphanumeric() || more.contains(it))
            };
            let is_label = !key.is_empty() && is_fit(key, "-_./") && is_fit(value, "-_.");
            (!is_label).then(|| "labelSelector has what is no label".to_owned())
        };
        flaw(&self.api_version, &self.kind, self.namespace.as_deref(), name)
            .or_else(|| {
                let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
                (limit == 0 || limit > MOST_OBJECTS).then(|| format!("limit is not 1 to {MOST_OBJECTS}"))
            })
            .or_else(|| too_many("labelSelector", self.label_selector.len(), MOST_LABELS))
            .or_else(|| self.label_selector.iter().find_map(selects))
            .or_else(|| {
                let both = self.name.is_some() && !self.label_selector.is_empty();
                both.then(|| "name and labelSelector exclude one another".to_owned())
            })
            .or_else(|| fields_flaw(&self.fields))
    }
}

fn too_many(field: &str, count: usize, most: usize) -> Option<String> {
    (count > most).then(|| format!("{field} has {count} entries, more than {most}"))
}

/// Why these are no pointers to parts of an object.
fn fields_flaw(fields: &[String]) -> Option<String> {
    let is_pointer = |field: &&String| {
        let mut segments = field.split('/');
        segments.next() == Some("")
            && segments.clone().count() > 0
            && segments.all(|segment| !segment.is_empty())
            && field.chars().count() <= LONGEST
            && !field.chars().any(char::is_control)
    };
    too_many("fields", fields.len(), MOST_FIELDS).or_else(|| {
        let wrong = fields.iter().find(|field| !is_pointer(field))?;
        let shown: String = wrong.chars().take(LONGEST).collect();
        Some(format!("field {shown:?} is no JSON pointer of at most {LONGEST} characters to a part"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn objects(field: &str, value: Value) -> Result<Query, QueryError> {
        let mut spec = json!({"apiVersion": "v1", "kind": "Pod", "namespace": "n", "limit": 10});
        spec[field] = value;
        Query::read(&json!({"kind": ObjectsQuery::KIND, "spec": spec}))
    }

    #[test]
    fn a_query_leads_nowhere_else() {
        assert!(objects("fields", json!(["/spec/nodeName", "/metadata/labels/a~1b"])).is_ok());
        let refused = [
            ("namespace", json!("kube-system/pods/a")),
            ("kind", json!("Pod?x")),
            ("name", json!("..")),
            ("limit", json!(0)),
            ("limit", json!(501)),
            ("labelSelector", json!({"a": "b,c in (d)"})),
            ("labelSelector", json!({"a=b,c": "d"})),
            ("labelSelector", json!({"": "d"})),
            ("fields", json!([""])),
            ("fields", json!(["spec"])),
            ("fields", json!(["/spec//nodeName"])),
            ("fields", json!(["/"])),
            ("fields", json!(vec!["/spec"; 33])),
            ("watch", json!(true)),
        ];
        for (field, value) in refused {
            assert!(
                matches!(objects(field, value.clone()), Err(QueryError::Malformed(_))),
                "{field} {value}"
            );
        }
    }

    #[test]
    fn a_kind_that_nobody_knows_is_told_from_a_query_that_is_none() {
        let unknown = Query::read(&json!({"kind": "k8s.objects/v9", "spec": {}}));
        assert_eq!(unknown, Err(QueryError::UnknownKind("k8s.objects/v9".into())));
        for none in
            [json!(1), json!({"kind": NodesQuery::KIND}), json!({"kind": NodesQuery::KIND, "spec": {"a": 1}})]
        {
            assert!(matches!(Query::read(&none), Err(QueryError::Malformed(_))), "{none}");
        }
        for kind in Query::KINDS {
            let read = Query::read(&json!({"kind": kind, "spec": {"apiVersion": "v1"}}));
            assert!(!matches!(read, Err(QueryError::UnknownKind(_))), "{kind}");
        }
    }
}
