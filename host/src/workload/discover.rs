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

/// The kinds that an API version is said to have, without subresources and without what no path can be made
/// of.
fn kinds(api_version: &str, found: &Value) -> Vec<(ApiResource, Scope)> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let is_word = |it: &&str| {
        !it.is_empty()
            && it.len() <= 253
            && it.bytes().all(|it| it.is_ascii_alphanumeric() || b"-.".contains(&it))
    };
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
