//! Fills one cache from one watch. A broken connection, a missing CustomResourceDefinition or an object that
//! cannot be read never ends it.

use std::collections::BTreeSet;
use std::error::Error as _;

use futures::StreamExt;
use kube::Api;
use kube::core::ApiResource;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};

use super::raw::Raw;
use super::{Cached, Change, Management, WATCH_SECONDS, Watched, name_of};
use crate::object_name::ObjectName;

pub(super) async fn watch<K: Watched>(management: Management) {
    let client = management.0.client.clone();
    let resource = ApiResource::erase::<K>(&());
    let api: Api<Raw> = match &management.0.namespace {
        Some(namespace) if !K::IS_CLUSTER_SCOPED => Api::namespaced_with(client, namespace, &resource),
        _ => Api::all_with(client, &resource),
    };
    let mut events = std::pin::pin!(watcher(api, Config::default().timeout(WATCH_SECONDS)).default_backoff());
    let mut listed = BTreeSet::new();
    let mut problem = String::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                problem.clear();
                apply::<K>(&management, event, &mut listed);
            }
            Err(error) => {
                if K::IS_CLUSTER_SCOPED && is_refused(&error) {
                    K::cache(&management.0.caches).set_ready();
                }
                let text = error.source().map_or_else(|| error.to_string(), |it| format!("{error}: {it}"));
                if text != problem {
                    tracing::warn!(kind = K::KIND.as_str(), error = text, "cannot watch, trying again");
                    problem = text;
                }
            }
        }
    }
}

/// Whether this operator may not read the kind, or there is no such kind.
fn is_refused(error: &watcher::Error) -> bool {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => status,
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status,
        _ => return false,
    };
    status.is_forbidden() || status.is_not_found()
}

fn apply<K: Watched>(management: &Management, event: Event<Raw>, listed: &mut BTreeSet<ObjectName>) {
    let cache = K::cache(&management.0.caches);
    match event {
        Event::Init => listed.clear(),
        Event::InitApply(object) => {
            listed.insert(name_of(&object));
            apply_event::<K>(management, object);
        }
        Event::InitDone => {
            for name in cache.names().difference(listed) {
                delete::<K>(management, name);
            }
            cache.set_ready();
        }
        Event::Apply(object) => apply_event::<K>(management, object),
        Event::Delete(object) => delete::<K>(management, &name_of(&object)),
    }
}

fn apply_event<K: Watched>(management: &Management, object: Raw) {
    let cache = K::cache(&management.0.caches);
    let name = name_of(&object);
    // Most often the echo of a write of ours.
    if cache.is_current(&name, &object.metadata) {
        return;
    }
    let (diff, cluster) = match Cached::<K>::read(object) {
        Ok(object) => {
            let cluster = object.cluster();
            (cache.apply_event(object), cluster)
        }
        Err(error) => {
            let reason = error.source().map(ToString::to_string).unwrap_or_default();
            let diff = cache.insert_unreadable(name.clone(), reason.clone());
            if diff {
                tracing::warn!(kind = K::KIND.as_str(), object = %name, reason, "cannot be read");
            }
            (diff, None)
        }
    };
    if diff {
        management.announce(&Change { kind: K::KIND, name, cluster });
    }
}

fn delete<K: Watched>(management: &Management, name: &ObjectName) {
    let cluster = K::cache(&management.0.caches).remove(name).and_then(|it| it.cluster());
    management.announce(&Change { kind: K::KIND, name: name.clone(), cluster });
}
