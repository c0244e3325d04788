//! Discovers which kinds a workload cluster serves, and under which paths. What was once found is cached.

use std::sync::PoisonError;

use addons::ObjectRef;
use kube::Resource;
use kube::api::DynamicObject;
use kube::core::Request;
use kube::core::discovery::Scope;
use kube::discovery::ApiResource;
use serde_json::Value;

use super::parts::Parts;
use super::response::{self, Failure};
use super::{WorkloadCluster, WorkloadError, refusal, unsendable};

/// Kinds of one API version that are remembered: several times what any API has.
const KINDS: usize = 512;
/// Versions of one API group that are told.
const VERSIONS: usize = 16;

impl WorkloadCluster {
    pub(super) async fn resource(&self, object: &ObjectRef) -> Result<(ApiResource, Scope), WorkloadError> {
        let key = (object.api_version.clone(), object.kind.clone());
        let known = self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        self.discover(object).await
    }

    /// Asks for all kinds of an API version at once, since more of them are needed soon.
    async fn discover(&self, object: &ObjectRef) -> Result<(ApiResource, Scope), WorkloadError> {
        let unknown = || WorkloadError::UnknownKind { object: object.clone() };
        let root = if object.api_version.contains('/') { "apis" } else { "api" };
        self.requests.count("get");
        let request = http::Request::get(format!("/{root}/{}", object.api_version))
            .body(Vec::new())
            .map_err(unsendable)?;
        let found =
            match response::value(&self.client, request, &Parts::at(&["/resources"]), &mut self.share.hold())
                .await
            {
                Ok(found) => kinds(&object.api_version, &found),
                Err(Failure::Refused { code: 404, .. }) => return Err(unknown()),
                Err(failure) => return Err(refusal(object, failure)),
            };
        let mut known = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        for (resource, scope) in found {
            known.insert((object.api_version.clone(), resource.kind.clone()), (resource, scope));
        }
        known.get(&(object.api_version.clone(), object.kind.clone())).cloned().ok_or_else(unknown)
    }
}

impl WorkloadCluster {
    /// Whether objects of a kind are in namespaces.
    ///
    /// # Errors
    /// The API did not answer, or serves no such kind.
    pub async fn is_namespaced(&self, api_version: &str, kind: &str) -> Result<bool, WorkloadError> {
        Ok(self.resource(&any_of(api_version, kind)).await?.1 == Scope::Namespaced)
    }

    /// The versions of APIs that are served, such as `apps/v1`, sorted by group, and of each group the one that
    /// is preferred first.
    ///
    /// # Errors
    /// The API did not answer.
    pub async fn api_versions(&self) -> Result<Vec<String>, WorkloadError> {
        let core = self.discovery("/api", "/versions").await?;
        let groups = self.discovery("/apis", "/groups").await?;
        let list = |value: &Value, field: &str| value[field].as_array().cloned().unwrap_or_default();
        let core = list(&core, "versions").into_iter().filter_map(|it| it.as_str().map(str::to_owned));
        let mut named = Vec::new();
        for group in list(&groups, "groups").iter().take(KINDS) {
            let versions = list(group, "versions");
            let names = versions.iter().filter_map(|it| it["groupVersion"].as_str().map(str::to_owned));
            named.push(names.filter(|it| is_api_version(it)).take(VERSIONS).collect::<Vec<_>>());
        }
        named.sort();
        Ok(core.filter(|it| is_api_version(it)).take(VERSIONS).chain(named.into_iter().flatten()).collect())
    }

    /// The kinds of a version of an API, sorted; none when it is not served.
    ///
    /// # Errors
    /// The API did not answer.
    pub async fn served_kinds(&self, api_version: &str) -> Result<Vec<String>, WorkloadError> {
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let found = match self.discovery(&format!("/{root}/{api_version}"), "/resources").await {
            Err(WorkloadError::Refused { code: 404, .. }) => return Ok(Vec::new()),
            other => other?,
        };
        let mut names: Vec<String> = kinds(api_version, &found).into_iter().map(|(it, _)| it.kind).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    async fn discovery(&self, path: &str, part: &str) -> Result<Value, WorkloadError> {
        self.requests.count("get");
        let request = http::Request::get(path).body(Vec::new()).map_err(unsendable)?;
        let found = response::value(&self.client, request, &Parts::at(&[part]), &mut self.share.hold()).await;
        found.map_err(|failure| refusal(&any_of(path, "API"), failure))
    }
}

fn any_of(api_version: &str, kind: &str) -> ObjectRef {
    ObjectRef::at((api_version, kind, None, "*"))
}

fn is_api_version(text: &str) -> bool {
    let (group, version) = text.split_once('/').unwrap_or(("core", text));
    is_word(group) && is_word(version)
}

fn is_word(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_alphanumeric())
        && text.len() <= 253
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-.".contains(&it))
}

/// The kinds that an API version is said to have, without subresources and without what no path can be made
/// of.
fn kinds(api_version: &str, found: &Value) -> Vec<(ApiResource, Scope)> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let is_word = |it: &&str| is_word(it);
    let kind = |it: &Value| {
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: it["kind"].as_str().filter(is_word)?.to_owned(),
            plural: it["name"].as_str().filter(is_word)?.to_owned(),
        };
        Some((resource, if it["namespaced"] == true { Scope::Namespaced } else { Scope::Cluster }))
    };
    found["resources"].as_array().into_iter().flatten().filter_map(kind).take(KINDS).collect()
}

/// Where objects of a kind are; without a namespace those of all.
pub(super) fn path(resource: &ApiResource, namespace: Option<&str>) -> Request {
    Request::new(DynamicObject::url_path(resource, namespace))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_are_those_that_a_path_can_be_made_of() {
        let found = json!({"resources": [
            {"name": "pods", "kind": "Pod", "namespaced": true}, {"name": "pods/status", "kind": "Pod",
                "namespaced": true},
            {"name": "nodes", "kind": "Node", "namespaced": false}, {"name": "../x?y", "kind": "Evil"},
            {"name": "a"}, 1]});
        let names: Vec<_> = kinds("v1", &found).into_iter().map(|(it, scope)| (it.plural, scope)).collect();
        assert_eq!(names, [("pods".to_owned(), Scope::Namespaced), ("nodes".to_owned(), Scope::Cluster)]);
        let endless: Vec<Value> =
            (0..10_000).map(|it| json!({"name": format!("a{it}"), "kind": format!("A{it}")})).collect();
        assert_eq!(kinds("v1", &json!({"resources": endless})).len(), KINDS);
        assert_eq!(path(&kinds("v1", &found)[0].0, Some("shop")).url_path, "/api/v1/namespaces/shop/pods");
    }
}
