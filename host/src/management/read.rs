//! Fills one cache by lists alone, of one namespace and once, in place of a watch.

use std::error::Error as _;

use kube::api::ListParams;
use kube::core::ApiResource;
use serde_json::Value;

use super::raw::Raw;
use super::{Cached, Error, Management, Watched, answer, name_of};

/// Objects of one page.
const PAGE: u32 = 500;

/// What the objects of a kind are taken to be, by what they are.
pub type Amend<'a> = &'a (dyn Fn(&ApiResource, Vec<Value>) -> Vec<Value> + Sync);

/// Fills the cache of one kind.
///
/// # Errors
/// The API did not answer, does not know the kind, or does not let this user list it.
pub(super) async fn read<K: Watched>(
    management: &Management,
    namespace: &str,
    amend: Amend<'_>,
) -> Result<(), Error> {
    let api = management.raw::<K>(namespace);
    let mut parameters = ListParams::default().limit(PAGE);
    let mut live = Vec::new();
    loop {
        let page = match answer(api.list(&parameters)).await {
            Ok(page) => page,
            Err(kube::Error::Api(status))
                if K::IS_CLUSTER_SCOPED && (status.is_forbidden() || status.is_not_found()) =>
            {
                break;
            }
            Err(source) => {
                let name = format!("objects of namespace {namespace}");
                return Err(Error::Read { kind: K::KIND.as_str(), name, source: Box::new(source) });
            }
        };
        live.extend(page.items.into_iter().map(|raw| raw.value));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => break,
        }
    }
    let cache = K::cache(&management.0.caches);
    for value in amend(&ApiResource::erase::<K>(&()), live) {
        let unreadable = |source| Error::Unreadable {
            kind: K::KIND.as_str(),
            name: format!("of namespace {namespace}"),
            source,
        };
        let raw: Raw = serde_json::from_value(value).map_err(unreadable)?;
        let name = name_of(&raw);
        match Cached::<K>::read(raw) {
            Ok(object) => drop(cache.apply_event(object)),
            Err(error) => {
                let reason = error.source().map(ToString::to_string).unwrap_or_default();
                cache.insert_unreadable(name, reason);
            }
        }
    }
    cache.set_ready();
    Ok(())
}
