//! How large a schema is once its references are followed, found without following any of them twice.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Bytes of a schema.
const LARGEST: usize = 256 << 10;
/// Schemas within schemas, references followed.
const DEEPEST: usize = 32;
/// Values of a schema, references followed.
const MOST_VALUES: usize = 100_000;
/// Patterns of a schema, references followed, and bytes of each.
const MOST_PATTERNS: usize = 256;
const LONGEST_PATTERN: usize = 1024;
/// What a schema may say that it is.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// What a schema can take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// JSON values in it.
    pub values: usize,
    pub patterns: usize,
    depth: usize,
}

impl Size {
    /// A schema with this one in it.
    fn add(&mut self, inner: Size) {
        self.values = self.values.saturating_add(inner.values);
        self.patterns = self.patterns.saturating_add(inner.patterns);
        self.depth = self.depth.max(inner.depth + 1);
    }
}

/// The size of a schema, references followed.
///
/// # Errors
/// It is too large, or has what has no bound; what.
pub fn size(schema: &Value) -> Result<Size, String> {
    let bytes = schema.to_string().len();
    if bytes > LARGEST {
        return Err(format!("it has {bytes} bytes, more than {LARGEST}"));
    }
    let size = Walk { root: schema, targets: HashMap::new() }.schema(schema, 0)?;
    for (what, number, most) in
        [("values", size.values, MOST_VALUES), ("patterns", size.patterns, MOST_PATTERNS)]
    {
        if number > most {
            return Err(format!("it has {number} {what} when its references are followed, more than {most}"));
        }
    }
    Ok(size)
}

/// How many values JSON has, and bytes of its texts, names of fields among them.
pub fn values(json: &Value) -> (usize, usize) {
    let add = |(values, text): (usize, usize), inner: &Value| {
        let (more, longer) = self::values(inner);
        (values + more, text + longer)
    };
    match json {
        Value::Array(items) => items.iter().fold((1, 0), add),
        Value::Object(fields) => {
            let names: usize = fields.keys().map(String::len).sum();
            fields.values().fold((1, names), add)
        }
        Value::String(text) => (1, text.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => (1, 0),
    }
}

struct Walk<'a> {
    root: &'a Value,
    /// Sizes of what is referred to; none while it is being found.
    targets: HashMap<&'a str, Option<Size>>,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Result<Size, String> {
        if depth > DEEPEST {
            return Err(deeper());
        }
        let mut size = Size { values: 1, ..Size::default() };
        let Value::Object(keywords) = schema else { return Ok(size) };
        for (keyword, value) in keywords {
            self.keyword(keyword, value, depth, &mut size)?;
        }
        if size.depth > DEEPEST { Err(deeper()) } else { Ok(size) }
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &'a Value,
        depth: usize,
        size: &mut Size,
    ) -> Result<(), String> {
        match (keyword, value) {
            (
                "not"
                | "if"
                | "then"
                | "else"
                | "items"
                | "contains"
                | "additionalProperties"
                | "propertyNames",
                one,
            ) => size.add(self.schema(one, depth + 1)?),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(all)) => {
                for one in all {
                    size.add(self.schema(one, depth + 1)?);
                }
            }
            ("properties" | "dependentSchemas", Value::Object(all)) => self.each(all, depth, size)?,
            // Looked at, but nothing is checked by them unless something refers to them.
            ("$defs" | "definitions", Value::Object(all)) => self.each(all, depth, &mut Size::default())?,
            ("patternProperties", Value::Object(all)) => {
                all.keys().try_for_each(|it| pattern(it))?;
                size.patterns += all.len();
                self.each(all, depth, size)?;
            }
            ("pattern", Value::String(text)) => {
                pattern(text)?;
                size.values += 1;
                size.patterns += 1;
            }
            ("$ref", Value::String(reference)) => size.add(self.target(reference, depth)?),
            ("$schema", Value::String(dialect)) if dialect.trim_end_matches('#') == DIALECT => (),
            // Each of these leads somewhere else, looks at something again, or is of another dialect.
            (
                "$schema"
                | "$ref"
                | "$id"
                | "$anchor"
                | "$dynamicRef"
                | "$dynamicAnchor"
                | "$recursiveRef"
                | "$recursiveAnchor"
                | "$vocabulary"
                | "id"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "additionalItems"
                | "dependencies"
                | "contentSchema",
                value,
            ) => return Err(format!("{keyword}: {value} is not allowed; {}", instead(keyword))),
            // What is compared with, and what says nothing about validity.
            (_, value) => size.values = size.values.saturating_add(values(value).0),
        }
        Ok(())
    }

    fn each(&mut self, all: &'a Map<String, Value>, depth: usize, size: &mut Size) -> Result<(), String> {
        for one in all.values() {
            size.add(self.schema(one, depth + 1)?);
        }
        Ok(())
    }

    fn target(&mut self, reference: &'a str, depth: usize) -> Result<Size, String> {
        match self.targets.get(reference) {
            Some(Some(size)) => return Ok(*size),
            Some(None) => return Err(format!("{reference} refers to itself")),
            None => (),
        }
        // No character that one reader takes literally and another does not.
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "/_-.$".contains(it);
        let pointer = reference.strip_prefix('#').filter(|pointer| pointer.chars().all(is_plain));
        let Some(pointer) = pointer else {
            return Err(format!("$ref: {reference:?} is not allowed; refer to #/$defs/ and a plain name"));
        };
        let Some(target) = self.root.pointer(pointer) else {
            return Err(format!("$ref: {reference} is not there"));
        };
        self.targets.insert(reference, None);
        let size = self.schema(target, depth + 1)?;
        self.targets.insert(reference, Some(size));
        Ok(size)
    }
}

fn pattern(text: &str) -> Result<(), String> {
    if text.len() > LONGEST_PATTERN {
        return Err(format!("a pattern has {} bytes, more than {LONGEST_PATTERN}", text.len()));
    }
    Ok(())
}

fn deeper() -> String {
    format!("more than {DEEPEST} schemas are within one another when its references are followed")
}

fn instead(keyword: &str) -> String {
    match keyword {
        "$schema" => format!("it is read as {DIALECT}"),
        "unevaluatedProperties" => "use additionalProperties".to_owned(),
        "unevaluatedItems" => "use items".to_owned(),
        _ => "refer to #/$defs/ and a plain name".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(schema: Value) -> String {
        size(&schema).expect_err("it has no bound")
    }

    #[test]
    fn a_reference_counts_as_often_as_it_is_there() {
        let schema = json!({
            "$defs": { "port": { "type": "integer", "maximum": 65535 }, "name": { "pattern": "^a$" } },
            "properties": { "a": { "$ref": "#/$defs/port" }, "b": { "$ref": "#/$defs/port" },
                "c": { "$ref": "#/$defs/name" } },
        });
        let found = size(&schema).expect("it is harmless");
        assert_eq!((found.values, found.patterns, found.depth), (12, 1, 2));
    }

    #[test]
    fn a_schema_that_grows_with_each_reference_is_refused() {
        let definitions: Map<String, Value> = (0..15)
            .map(|level| {
                let next = json!({ "$ref": format!("#/$defs/a{}", level + 1) });
                (format!("a{level}"), json!({ "anyOf": [next, next, next] }))
            })
            .chain([("a15".to_owned(), json!(false))])
            .collect();
        let text = refused(json!({ "$ref": "#/$defs/a0", "$defs": definitions }));
        assert!(text.contains("values when its references are followed"), "{text}");
    }

    #[test]
    fn a_schema_that_refers_to_itself_is_refused() {
        for schema in [
            json!({ "$ref": "#" }),
            json!({ "allOf": [{ "$ref": "#" }] }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "items": { "$ref": "#/$defs/a" } } } }),
            json!({ "$ref": "#/$defs/a", "$defs": {
                "a": { "not": { "$ref": "#/$defs/b" } }, "b": { "not": { "$ref": "#/$defs/a" } } } }),
        ] {
            let text = refused(schema);
            assert!(text.contains("refers to itself"), "{text}");
        }
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for schema in [
            json!({ "$ref": "https://example.com/schema" }),
            json!({ "$ref": "other.json#/$defs/a" }),
            json!({ "$ref": "#name", "$defs": { "a": { "$anchor": "name" } } }),
            json!({ "$ref": "#/$defs/a~1b", "$defs": { "a/b": true } }),
            json!({ "$ref": "#/%24defs/a", "$defs": { "a": true } }),
            json!({ "$ref": "#/default", "default": { "$id": "https://example.com/" } }),
            json!({ "$dynamicRef": "#node" }),
            json!({ "items": { "$id": "https://example.com/" } }),
            json!({ "$schema": "http://json-schema.org/draft-07/schema#" }),
            json!({ "$schema": "https://example.com/own", "$vocabulary": {} }),
            json!({ "properties": { "a": { "unevaluatedProperties": false } } }),
            json!({ "dependencies": { "a": { "not": {} } } }),
        ] {
            let text = refused(schema.clone());
            assert!(text.contains("not allowed"), "{schema}: {text}");
        }
        assert!(refused(json!({ "$ref": "#/$defs/b" })).contains("not there"));
    }

    #[test]
    fn fields_may_have_the_names_of_keywords() {
        let schema = json!({ "properties": { "$ref": { "type": "string" }, "$id": {}, "pattern": {} } });
        assert_eq!(size(&schema).map(|size| size.patterns), Ok(0));
    }

    #[test]
    fn depth_patterns_and_bytes_end() {
        let deep = |levels| (0..levels).fold(json!({}), |inner, _| json!({ "items": inner }));
        assert!(size(&deep(DEEPEST)).is_ok());
        assert!(refused(deep(DEEPEST + 1)).contains("within one another"));
        let chain: Map<String, Value> = (0..40)
            .map(|link| (format!("a{link}"), json!({ "$ref": format!("#/$defs/a{}", link + 1) })))
            .chain([("a40".to_owned(), json!(true))])
            .collect();
        assert!(refused(json!({ "$ref": "#/$defs/a0", "$defs": chain })).contains("within one another"));
        let patterns = |count: usize| json!({ "allOf": vec![json!({ "pattern": "a" }); count] });
        assert!(size(&patterns(MOST_PATTERNS)).is_ok());
        assert!(refused(patterns(MOST_PATTERNS + 1)).contains("patterns"));
        assert!(refused(json!({ "pattern": "a".repeat(LONGEST_PATTERN + 1) })).contains("a pattern has"));
        assert!(refused(json!({ "description": "a".repeat(LARGEST) })).contains("bytes"));
    }
}
