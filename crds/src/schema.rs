//! The derived OpenAPI schema of a kind as plain JSON: brought into the form that API servers want, and a way
//! to add rules and fields at a path.

use serde_json::{Map, Value, json};

/// Lists that are maps by a key, so that several managers can own elements of one list.
const LIST_MAPS: &[(&str, &str)] = &[
    ("conditions", "type"),
    ("customNetworking", "zone"),
    ("failureDomains", "name"),
    ("imagePullSecrets", "name"),
    ("operators", "name"),
    ("plugins", "name"),
    ("subnets", "id"),
];

/// The schema of a spec, and what its fields are called in messages.
pub struct Spec<'a> {
    schema: &'a mut Value,
    /// `spec`, or `spec.template.spec` in a template.
    pub path: &'static str,
}

impl<'a> Spec<'a> {
    /// The spec at `path` of a kind with this schema.
    pub fn new(kind: &'a mut Value, path: &'static str) -> Self {
        Self { schema: field(kind, path), path }
    }

    /// The schema of a field, such as `network.subnets[].tags`; the spec's own when empty.
    pub fn at(&mut self, path: &str) -> &mut Value {
        field(self.schema, path)
    }

    /// Names of the fields of the spec.
    pub fn fields(&self) -> Vec<String> {
        self.schema["properties"]
            .as_object()
            .map(|fields| fields.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// Adds a field. One that is there already only gets the rules added to it later.
    pub fn add(&mut self, path: &str, schema: Value) {
        let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
        self.at(parent)["properties"][name] = schema;
    }

    /// Adds a CEL rule to a field.
    pub fn rule(&mut self, path: &str, rule: &str, message: &str) {
        push(self.at(path), json!({"rule": rule, "message": message}));
    }

    /// Adds a CEL rule to a field's parent whose failure is reported at the field, for rules about its
    /// presence.
    pub fn rule_about(&mut self, parent: &str, name: &str, rule: &str, message: &str) {
        push(self.at(parent), json!({"rule": rule, "message": message, "fieldPath": format!(".{name}")}));
    }
}

fn push(schema: &mut Value, rule: Value) {
    match &mut schema["x-kubernetes-validations"] {
        Value::Array(rules) => rules.push(rule),
        none => *none = json!([rule]),
    }
}

/// Walks to a field. The paths are constants of this crate: one that leads nowhere is an error in it, which
/// every test that prints the definitions finds.
fn field<'a>(schema: &'a mut Value, path: &str) -> &'a mut Value {
    let mut at = schema;
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let (name, in_list) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
        at = &mut at["properties"][name];
        if in_list {
            at = &mut at["items"];
        }
        assert!(at.is_object(), "the schema has no field {path}");
    }
    at
}

/// Brings a derived schema into the form that API servers want.
pub fn normalize(schema: &mut Value) {
    if let Value::Object(map) = schema {
        // Null is pruned where it is not allowed. Allowing it would make it a value that every rule has to
        // know.
        map.remove("nullable");
        if let Some(Value::Array(values)) = map.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        normalize_scalars(map);
        if let Some(Value::Object(properties)) = map.get_mut("properties") {
            for (name, list_key) in LIST_MAPS {
                if let Some(list) = properties.get_mut(*name).filter(|list| list["type"] == "array") {
                    list["x-kubernetes-list-type"] = json!("map");
                    list["x-kubernetes-list-map-keys"] = json!([list_key]);
                }
            }
            properties.values_mut().for_each(normalize);
        }
        for inner in ["items", "additionalProperties"] {
            if let Some(inner) = map.get_mut(inner) {
                normalize(inner);
            }
        }
    }
}

fn normalize_scalars(map: &mut Map<String, Value>) {
    if let Some(Value::String(description)) = map.get_mut("description") {
        let paragraphs: Vec<String> =
            description.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
        *description = paragraphs.join("\n\n");
    }
    for bound in ["minimum", "maximum"] {
        if let Some(number) = map.get(bound).and_then(Value::as_f64).filter(|number| number.fract() == 0.0) {
            map.insert(bound.into(), json!(number as i64));
        }
    }
}

/// The same value with the keys of every map in order, whatever order the JSON crate keeps.
pub fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> =
                map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            entries.into_iter().collect::<Map<_, _>>().into()
        }
        Value::Array(list) => list.into_iter().map(sorted).collect(),
        scalar => scalar,
    }
}
