//! Lists of objects of any kind, by page. What the API server does not serve is an empty list: a cluster
//! without the Gateway API has no Gateways.

use addons::ObjectRef;
use kube::api::ListParams;
use kube::core::Request;
use kube::core::discovery::Scope;
use serde_json::Value;

use super::budget::Hold;
use super::parts::{Page, Parts};
use super::response::{self, Failure};
use super::{WorkloadCluster, WorkloadError, discover, refusal, sanitize, unsendable};

/// Objects of one page. Where they are so large that a page is more than an answer may be, fewer are asked
/// for.
const PAGE: u32 = 200;
/// How many pages are read for lists that are used together: what has no end is no answer.
const PAGES: usize = 1000;

impl WorkloadCluster {
    /// Begins to read lists that are used together. It has to be kept for as long as they are: what it
    /// holds is room in memory.
    pub fn lists(&self) -> Lists<'_> {
        Lists { cluster: self, hold: self.share.hold(), pages: PAGES }
    }
}

/// Reads lists, one after the other.
pub struct Lists<'a> {
    cluster: &'a WorkloadCluster,
    hold: Hold<'a>,
    /// How many more pages are read.
    pages: usize,
}

impl Lists<'_> {
    /// All objects of a kind, in all namespaces, with nothing of them but these parts, as JSON pointers.
    ///
    /// # Errors
    /// The API did not answer, or more than there is room for: that is not an empty list.
    pub async fn all(
        &mut self,
        api_version: &str,
        kind: &str,
        parts: &[&str],
    ) -> Result<Vec<Value>, WorkloadError> {
        let kind = kind_only(api_version, kind);
        let path = match self.cluster.resource(&kind).await {
            Err(WorkloadError::UnknownKind { .. }) => return Ok(Vec::new()),
            other => discover::path(&other?.0, None),
        };
        self.pages(&path, &kind, ListParams::default(), parts, usize::MAX).await
    }

    /// Objects of a kind with these labels, of one namespace or of all, with nothing of them but these parts.
    /// When there are more than `most`, some of them, and more than that.
    ///
    /// # Errors
    /// As of [`Lists::all`]. A kind that is not served is an error here.
    pub async fn matching(
        &mut self,
        (api_version, kind, namespace): (&str, &str, Option<&str>),
        labels: &str,
        parts: &[&str],
        most: usize,
    ) -> Result<Vec<Value>, WorkloadError> {
        let kind = ObjectRef { namespace: namespace.map(str::to_owned), ..kind_only(api_version, kind) };
        let (resource, scope) = self.cluster.resource(&kind).await?;
        let path = discover::path(&resource, namespace.filter(|_| scope == Scope::Namespaced));
        let selected = ListParams::default();
        let selected = if labels.is_empty() { selected } else { selected.labels(labels) };
        self.pages(&path, &kind, selected, parts, most).await
    }

    /// Objects of a kind in one namespace that `parameters` select, with nothing of them but these parts.
    ///
    /// # Errors
    /// As of [`Lists::all`].
    pub async fn selected(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        parameters: ListParams,
        parts: &[&str],
    ) -> Result<Vec<Value>, WorkloadError> {
        let kind = ObjectRef { namespace: Some(namespace.to_owned()), ..kind_only(api_version, kind) };
        let path = self.cluster.path(&kind).await?;
        self.pages(&path, &kind, parameters, parts, usize::MAX).await
    }

    async fn pages(
        &mut self,
        path: &Request,
        kind: &ObjectRef,
        parameters: ListParams,
        parts: &[&str],
        most: usize,
    ) -> Result<Vec<Value>, WorkloadError> {
        let parts = Parts::at(parts);
        let (mut size, mut next, mut res) = (PAGE, String::new(), Vec::new());
        while let Some(left) = self.pages.checked_sub(1) {
            self.pages = left;
            self.cluster.requests.count("list");
            let mut parameters = parameters.clone().limit(size);
            parameters.continue_token = Some(next.clone()).filter(|it| !it.is_empty());
            let request = path.list(&parameters).map_err(unsendable)?;
            let page: Page = match response::page(&self.cluster.client, request, &parts, &mut self.hold).await
            {
                // The kind was known, and its definition was deleted since.
                Err(Failure::Refused { code: 404, .. }) => return Ok(Vec::new()),
                Err(Failure::TooLarge) if size > 1 => {
                    size = (size / 8).max(1);
                    continue;
                }
                other => other.map_err(|it| refusal(kind, it))?,
            };
            if !page.items.iter().all(is_named) {
                return Err(WorkloadError::Unreachable(format!(
                    "it lists a {} whose name no object can have",
                    kind.kind
                )));
            }
            res.extend(page.items);
            if res.len() > most {
                return Ok(res);
            }
            if page.next.is_empty() {
                return Ok(res);
            }
            next = page.next;
        }
        Err(WorkloadError::Unreachable(format!(
            "it lists more objects of kind {} than are looked at",
            kind.kind
        )))
    }
}

/// Whether its name, and that of its namespace if it has one, can be asked for and shown.
fn is_named(object: &Value) -> bool {
    let is_name = |it: &Value| it.as_str().is_some_and(sanitize::is_name);
    object.pointer("/metadata/name").is_some_and(is_name)
        && object.pointer("/metadata/namespace").is_none_or(is_name)
}

/// Names a kind where an object is named otherwise.
fn kind_only(api_version: &str, kind: &str) -> ObjectRef {
    ObjectRef {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: None,
        name: "*".into(),
    }
}
