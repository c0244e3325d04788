//! How a stand-in's controller runs: level-triggered, on every change of what it watches and every so often.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use futures::stream::BoxStream;
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};

use super::aws;
use super::log::explain;
use super::stand_in::StandIn;

/// How long changes are gathered.
const GATHER: Duration = Duration::from_millis(300);
/// When what failed is tried again.
const RETRY: Duration = Duration::from_secs(3);
/// When everything is looked at although nothing changed.
const INTERVAL: Duration = Duration::from_secs(60);

/// Changes of some kind of object.
pub type Changes = BoxStream<'static, watcher::Result<()>>;

/// Changes of the objects of an API.
pub fn changes<K>(api: Api<K>) -> Changes
where
    K: kube::Resource + Clone + std::fmt::Debug + Send + serde::de::DeserializeOwned + 'static,
{
    watcher(api, watcher::Config::default()).default_backoff().map(|event| event.map(drop)).boxed()
}

/// What a controller does about the world as it is.
pub trait Controller: Sync {
    /// Compares all there is with what should be, and acts.
    fn reconcile(&self) -> impl Future<Output = Result<()>> + Send;
}

/// Reconciles on every change; says that the program is ready as soon as no right is missing.
///
/// # Errors
/// When a right is missing, in the cluster or in AWS: the program ends, and so shows it. All else is logged
/// and tried again.
pub async fn follow(stand_in: &StandIn, changes: Vec<Changes>, controller: &impl Controller) -> Result<()> {
    let mut changes = futures::stream::select_all(changes);
    loop {
        let mut wait = INTERVAL;
        match controller.reconcile().await {
            Ok(()) => {}
            Err(error) if aws::denied(&error) || forbidden(&error) => return Err(error),
            Err(error) => {
                stand_in.log(&explain(&error));
                wait = RETRY;
            }
        }
        stand_in.ready();
        match tokio::time::timeout(wait, changes.next()).await {
            Err(_) => continue,
            Ok(Some(Ok(()))) => {}
            Ok(Some(Err(error))) => {
                let error = anyhow::Error::from(error).context("watching");
                if forbidden(&error) {
                    return Err(error);
                }
                stand_in.log(&explain(&error));
            }
            Ok(None) => return Err(anyhow::anyhow!("the watches ended")),
        }
        // What else happens in the same moment needs no further pass.
        let gather = tokio::time::sleep(GATHER);
        tokio::pin!(gather);
        loop {
            tokio::select! {
                () = &mut gather => break,
                change = changes.next() => drop(change.context("the watches ended")?),
            }
        }
    }
}

/// Whether the API server says that the pod's service account lacks a right.
pub fn forbidden(error: &anyhow::Error) -> bool {
    let refused = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 403);
    error.chain().any(|cause| {
        cause.downcast_ref::<kube::Error>().is_some_and(refused)
            || match cause.downcast_ref::<watcher::Error>() {
                Some(watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) => {
                    refused(error)
                }
                _ => false,
            }
    })
}
