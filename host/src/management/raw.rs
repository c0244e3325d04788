//! An object as the API server sent it, of whatever kind: read whole or not at all, so that one that is not
//! what its type says ends no watch. The record of who set which field, which is most of what is sent, is
//! skipped.

use std::borrow::Cow;
use std::fmt;

use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// An object of any kind.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub metadata: ObjectMeta,
    /// The whole object, metadata included.
    pub value: Value,
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = deserializer.deserialize_map(ObjectFields)?;
        let metadata = match fields.get("metadata") {
            Some(metadata) => ObjectMeta::deserialize(metadata).map_err(D::Error::custom)?,
            None => ObjectMeta::default(),
        };
        Ok(Self { metadata, value: Value::Object(fields) })
    }
}

struct ObjectFields;

impl<'de> Visitor<'de> for ObjectFields {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut res = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = match name.as_str() {
                "metadata" => Value::Object(fields.next_value::<Metadata>()?.0),
                _ => fields.next_value()?,
            };
            res.insert(name, value);
        }
        Ok(res)
    }
}

/// Metadata without `managedFields`.
struct Metadata(Map<String, Value>);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetadataFields).map(Metadata)
    }
}

struct MetadataFields;

impl<'de> Visitor<'de> for MetadataFields {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut res = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if name == "managedFields" {
                fields.next_value::<IgnoredAny>()?;
            } else {
                res.insert(name, fields.next_value()?);
            }
        }
        Ok(res)
    }
}

impl Resource for Raw {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_of_an_object_is_read_but_for_who_set_which_field() {
        let text = r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "prod", "resourceVersion": "7",
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:data": {}}}]}, "data": {"a": "b"}}"#;
        let raw: Raw = serde_json::from_str(text).expect("an object");
        assert_eq!(
            (raw.metadata.name.as_deref(), raw.metadata.resource_version.as_deref()),
            (Some("prod"), Some("7"))
        );
        assert_eq!(raw.metadata.managed_fields, None);
        let expected = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "prod",
            "resourceVersion": "7"}, "data": {"a": "b"}});
        assert_eq!(raw.value, expected);
    }
}
