//! Lists of objects of any kind, by page. What the API server does not serve is an empty list: a cluster without the Gateway API has no
//! Gateways. It never says what the objects are for.

use kube::api::{Api, DynamicObject, ListParams};
use plan::addon::ObjectRef;
use serde_json::Value;

use super::{WorkloadCluster, WorkloadError, refusal};

/// Objects of one page.
const PAGE: u32 = 500;

impl WorkloadCluster {
    /// All objects of a kind, in all namespaces.
    ///
    /// # Errors
    /// The API did not answer: that is not an empty list.
    pub async fn list(&self, api_version: &str, kind: &str) -> Result<Vec<Value>, WorkloadError> {
        let kind = kind_only(api_version, kind);
        let api = match self.resource(&kind).await {
            Err(WorkloadError::UnknownKind { .. }) => return Ok(Vec::new()),
            other => Api::all_with(self.client.clone(), &other?.0),
        };
        self.pages(&api, &kind, ListParams::default()).await
    }

    /// Objects of a kind in one namespace that carry a label, whatever its value.
    pub(super) async fn list_in(&self, api_version: &str, kind: &str, namespace: &str, label: &str) -> Result<Vec<Value>, WorkloadError> {
        let kind = ObjectRef { namespace: Some(namespace.to_owned()), ..kind_only(api_version, kind) };
        let api = self.api(&kind).await?;
        self.pages(&api, &kind, ListParams::default().labels(label)).await
    }

    async fn pages(&self, api: &Api<DynamicObject>, kind: &ObjectRef, parameters: ListParams) -> Result<Vec<Value>, WorkloadError> {
        let mut parameters = parameters.limit(PAGE);
        let mut res = Vec::new();
        loop {
            self.requests.count("list");
            let page = match api.list(&parameters).await {
                // The kind was known, and its definition was deleted since.
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
                other => other.map_err(|it| refusal(kind, it))?,
            };
            for item in page.items {
                res.push(serde_json::to_value(item).map_err(|it| WorkloadError::Unreachable(it.to_string()))?);
            }
            match page.metadata.continue_ {
                Some(token) if !token.is_empty() => parameters = parameters.continue_token(&token),
                _ => return Ok(res),
            }
        }
    }
}

/// Names a kind where an object is named otherwise.
fn kind_only(api_version: &str, kind: &str) -> ObjectRef {
    ObjectRef { api_version: api_version.to_owned(), kind: kind.to_owned(), namespace: None, name: "*".into() }
}
