//! Lists of objects of any kind, by page. What the API server does not serve is an empty list: a cluster without the Gateway API has no
//! Gateways. It never says what the objects are for.

use kube::api::{Api, DynamicObject, ListParams};
use plan::addon::ObjectRef;
use serde_json::{Map, Value};

use super::{WorkloadCluster, WorkloadError, answer, refusal};

/// Objects of one page.
const PAGE: u32 = 500;
/// How many pages are read: a list without an end is no answer.
const PAGES: usize = 200;

impl WorkloadCluster {
    /// All objects of a kind, in all namespaces.
    ///
    /// # Errors
    /// The API did not answer: that is not an empty list.
    pub async fn list(&self, api_version: &str, kind: &str) -> Result<Vec<Value>, WorkloadError> {
        self.list_only(api_version, kind, &[]).await
    }

    /// The same with nothing of the objects but these parts, as JSON pointers: of kinds of which a cluster has thousands. No part: all.
    ///
    /// # Errors
    /// The API did not answer, or without end.
    pub async fn list_only(&self, api_version: &str, kind: &str, parts: &[&str]) -> Result<Vec<Value>, WorkloadError> {
        let kind = kind_only(api_version, kind);
        let api = match self.resource(&kind).await {
            Err(WorkloadError::UnknownKind { .. }) => return Ok(Vec::new()),
            other => Api::all_with(self.client.clone(), &other?.0),
        };
        self.pages(&api, &kind, ListParams::default(), parts).await
    }

    /// Objects of a kind in one namespace that carry a label, whatever its value.
    pub(super) async fn list_in(&self, api_version: &str, kind: &str, namespace: &str, label: &str) -> Result<Vec<Value>, WorkloadError> {
        let kind = ObjectRef { namespace: Some(namespace.to_owned()), ..kind_only(api_version, kind) };
        let api = self.api(&kind).await?;
        self.pages(&api, &kind, ListParams::default().labels(label), &[]).await
    }

    async fn pages(
        &self,
        api: &Api<DynamicObject>,
        kind: &ObjectRef,
        parameters: ListParams,
        parts: &[&str],
    ) -> Result<Vec<Value>, WorkloadError> {
        let mut parameters = parameters.limit(PAGE);
        let mut res = Vec::new();
        for _ in 0..PAGES {
            self.requests.count("list");
            let page = match answer(api.list(&parameters)).await {
                // The kind was known, and its definition was deleted since.
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
                other => other.map_err(|it| refusal(kind, it))?,
            };
            for mut item in page.items {
                item.metadata.managed_fields = None;
                let item = serde_json::to_value(item).map_err(|it| WorkloadError::Unreachable(it.to_string()))?;
                res.push(if parts.is_empty() { item } else { only(&item, parts) });
            }
            match page.metadata.continue_ {
                Some(token) if !token.is_empty() => parameters = parameters.continue_token(&token),
                _ => return Ok(res),
            }
        }
        Err(WorkloadError::Unreachable(format!("it lists more than {} objects of kind {}", PAGES * PAGE as usize, kind.kind)))
    }
}

/// The parts of an object at these pointers, of which none goes through a list.
fn only(object: &Value, parts: &[&str]) -> Value {
    let mut res = Value::Object(Map::new());
    for part in parts {
        let Some(found) = object.pointer(part) else { continue };
        let mut place = &mut res;
        for name in part.split('/').skip(1) {
            place = &mut place[name];
        }
        *place = found.clone();
    }
    res
}

/// Names a kind where an object is named otherwise.
fn kind_only(api_version: &str, kind: &str) -> ObjectRef {
    ObjectRef { api_version: api_version.to_owned(), kind: kind.to_owned(), namespace: None, name: "*".into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_parts_that_are_asked_for_are_kept_where_they_were() {
        let pod = json!({"metadata": {"name": "a", "annotations": {"b": "c"}}, "spec": {"volumes": [{"name": "d"}], "containers": []}});
        let parts = ["/metadata/name", "/metadata/ownerReferences", "/spec/volumes"];
        assert_eq!(only(&pod, &parts), json!({"metadata": {"name": "a"}, "spec": {"volumes": [{"name": "d"}]}}));
    }
}
