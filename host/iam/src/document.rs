//! Policy documents: reads their JSON into statements.

use serde_json::{Map, Value};

/// A policy as IAM keeps it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Document {
    /// Whether values may hold variables such as `${aws:username}`: since version 2012-10-17.
    pub has_variables: bool,
    pub statements: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    /// How messages call it, such as `statement 1 (AllowEbs)`; counted from 1.
    pub name: String,
    pub effect: Effect,
    pub actions: Choice,
    /// None where the document has neither Principal nor NotPrincipal, as in a permissions policy.
    pub principals: Option<Principals>,
    /// None where the document has neither Resource nor NotResource, as in a trust policy.
    pub resources: Option<Choice>,
    /// All of them must hold.
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Allow,
    Deny,
}

/// `Action` and `NotAction`, `Resource` and `NotResource`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Choice {
    Only(Vec<String>),
    AllBut(Vec<String>),
}

/// `Principal` and `NotPrincipal`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Principals {
    Only(Vec<Principal>),
    AllBut(Vec<Principal>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Principal {
    /// `"*"` alone.
    Everyone,
    /// A type such as `Federated`, and one value.
    Of { kind: String, value: String },
}

/// One key of one operator; any of the values may match.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    pub operator: String,
    pub key: String,
    pub values: Vec<String>,
}

/// Why a text is no policy. The path says where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DocumentError {
    #[error("it is not percent-encoded UTF-8")]
    Encoding,
    #[error("it is not JSON: {0}")]
    Json(String),
    #[error("{path}: {message}")]
    Shape { path: String, message: String },
}

fn shape(path: impl Into<String>, message: impl Into<String>) -> DocumentError {
    DocumentError::Shape { path: path.into(), message: message.into() }
}

impl Document {
    /// Reads a policy, percent-encoded (RFC 3986) as IAM returns it, or plain.
    pub(super) fn read(text: &str) -> Result<Document, DocumentError> {
        let text = text.trim();
        let decoded = if text.starts_with('%') { decoded(text)? } else { text.to_owned() };
        let value: Value =
            serde_json::from_str(&decoded).map_err(|error| DocumentError::Json(error.to_string()))?;
        let document = value.as_object().ok_or_else(|| shape("policy", "is not an object"))?;
        if let Some(unknown) =
            document.keys().find(|it| !["Version", "Id", "Statement"].contains(&it.as_str()))
        {
            return Err(shape(unknown, "is not an element of a policy"));
        }
        let has_variables = match document.get("Version").map(|it| it.as_str().unwrap_or_default()) {
            Some("2012-10-17") => true,
            None | Some("2008-10-17") => false,
            Some(_) => return Err(shape("Version", "is neither 2012-10-17 nor 2008-10-17")),
        };
        let statements = match document.get("Statement") {
            Some(Value::Array(list)) => {
                list.iter().enumerate().map(|(index, it)| statement(index, it)).collect::<Result<_, _>>()?
            }
            Some(one @ Value::Object(_)) => vec![statement(0, one)?],
            Some(_) => return Err(shape("Statement", "is neither an object nor a list")),
            None => return Err(shape("Statement", "is missing")),
        };
        Ok(Document { has_variables, statements })
    }
}

fn decoded(text: &str) -> Result<String, DocumentError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after
            .get(..2)
            .and_then(|it| std::str::from_utf8(it).ok())
            .filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
        bytes.push(digits.and_then(|it| u8::from_str_radix(it, 16).ok()).ok_or(DocumentError::Encoding)?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| DocumentError::Encoding)
}

const ELEMENTS: [&str; 9] = [
    "Sid",
    "Effect",
    "Action",
    "NotAction",
    "Principal",
    "NotPrincipal",
    "Resource",
    "NotResource",
    "Condition",
];

fn statement(index: usize, value: &Value) -> Result<Statement, DocumentError> {
    let path = format!("Statement[{index}]");
    let fields = value.as_object().ok_or_else(|| shape(&path, "is not an object"))?;
    if let Some(unknown) = fields.keys().find(|it| !ELEMENTS.contains(&it.as_str())) {
        return Err(shape(format!("{path}.{unknown}"), "is not an element of a statement"));
    }
    let name = match fields.get("Sid").and_then(Value::as_str).filter(|it| !it.is_empty()) {
        Some(sid) => format!("statement {} ({sid})", index + 1),
        None => format!("statement {}", index + 1),
    };
    let effect = match fields.get("Effect").and_then(Value::as_str) {
        Some("Allow") => Effect::Allow,
        Some("Deny") => Effect::Deny,
        _ => return Err(shape(format!("{path}.Effect"), "is neither Allow nor Deny")),
    };
    let actions = choice(&path, fields, "Action", "NotAction")?
        .ok_or_else(|| shape(format!("{path}.Action"), "is missing"))?;
    let resources = choice(&path, fields, "Resource", "NotResource")?;
    let principals = principals(&path, fields)?;
    let conditions = conditions(&format!("{path}.Condition"), fields.get("Condition"))?;
    Ok(Statement { name, effect, actions, principals, resources, conditions })
}

fn choice(
    path: &str,
    fields: &Map<String, Value>,
    only: &str,
    all_but: &str,
) -> Result<Option<Choice>, DocumentError> {
    match (fields.get(only), fields.get(all_but)) {
        (None, None) => Ok(None),
        (Some(value), None) => Ok(Some(Choice::Only(texts(&format!("{path}.{only}"), value)?))),
        (None, Some(value)) => Ok(Some(Choice::AllBut(texts(&format!("{path}.{all_but}"), value)?))),
        (Some(_), Some(_)) => Err(shape(path, format!("has both {only} and {all_but}"))),
    }
}

fn principals(path: &str, fields: &Map<String, Value>) -> Result<Option<Principals>, DocumentError> {
    match (fields.get("Principal"), fields.get("NotPrincipal")) {
        (None, None) => Ok(None),
        (Some(value), None) => {
            Ok(Some(Principals::Only(principal_list(&format!("{path}.Principal"), value)?)))
        }
        (None, Some(value)) => {
            Ok(Some(Principals::AllBut(principal_list(&format!("{path}.NotPrincipal"), value)?)))
        }
        (Some(_), Some(_)) => Err(shape(path, "has both Principal and NotPrincipal")),
    }
}

fn principal_list(path: &str, value: &Value) -> Result<Vec<Principal>, DocumentError> {
    let kinds = match value {
        Value::String(text) if text == "*" => return Ok(vec![Principal::Everyone]),
        Value::Object(kinds) => kinds,
        _ => return Err(shape(path, "is neither \"*\" nor an object")),
    };
    let mut res = Vec::new();
    for (kind, value) in kinds {
        let values = texts(&format!("{path}.{kind}"), value)?;
        res.extend(values.into_iter().map(|value| Principal::Of { kind: kind.clone(), value }));
    }
    Ok(res)
}

fn conditions(path: &str, value: Option<&Value>) -> Result<Vec<Condition>, DocumentError> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let operators = value.as_object().ok_or_else(|| shape(path, "is not an object"))?;
    let mut res = Vec::new();
    for (operator, keys) in operators {
        let path = format!("{path}.{operator}");
        for (key, value) in keys.as_object().ok_or_else(|| shape(&path, "is not an object"))? {
            let values = texts(&format!("{path}.{key}"), value)?;
            res.push(Condition { operator: operator.clone(), key: key.clone(), values });
        }
    }
    Ok(res)
}

/// A text or a list of texts. IAM also takes numbers and booleans for values of conditions.
fn texts(path: &str, value: &Value) -> Result<Vec<String>, DocumentError> {
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        _ => Err(shape(path, "is neither a string nor a list of strings")),
    };
    match value {
        Value::Array(list) => list.iter().map(one).collect(),
        _ => Ok(vec![one(value)?]),
    }
}
