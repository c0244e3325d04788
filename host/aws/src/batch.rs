//! Puts single requests for the same call together: those that come within a short window go out at once, and
//! when AWS refuses them together for what may be in one of them, each goes out alone, so that one bad id
//! fails nobody else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use tokio::sync::oneshot;

use crate::api::Api;
use crate::errors::Failure;

const WINDOW: Duration = Duration::from_millis(100);

/// Sends one call about these instances.
type Send = fn(Api, String, Vec<String>) -> BoxFuture<'static, Result<(), Failure>>;

/// A call that takes many instances. Those of the same action and of the same thing are put together.
#[derive(Clone)]
pub(crate) struct BatchedCall {
    /// Its name in IAM.
    pub action: &'static str,
    /// AWS's name for what it is about beside the instances; empty where that is nothing.
    pub of: String,
    pub send: Send,
}

type Waiting = Vec<(String, oneshot::Sender<Result<(), Failure>>)>;

#[derive(Clone, Default)]
pub(crate) struct Batches {
    /// By action and by what it is about.
    waiting: Arc<Mutex<BTreeMap<(&'static str, String), Waiting>>>,
}

impl Batches {
    /// Sends `call` for this instance together with others that come within the window.
    pub async fn send(&self, api: &Api, call: BatchedCall, instance: &str) -> Result<(), Failure> {
        let (sender, receiver) = oneshot::channel();
        let is_first = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let batch = waiting.entry((call.action, call.of.clone())).or_default();
            batch.push((instance.to_owned(), sender));
            batch.len() == 1
        };
        if is_first {
            tokio::spawn(self.clone().send_after_window(api.clone(), call));
        }
        let lost = || Failure {
            action: "batch",
            code: None,
            message: "the call was given up".to_owned(),
            open: true,
        };
        receiver.await.unwrap_or_else(|_| Err(lost()))
    }

    async fn send_after_window(self, api: Api, call: BatchedCall) {
        tokio::time::sleep(WINDOW).await;
        let batch = self
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&(call.action, call.of.clone()))
            .unwrap_or_default();
        let instances: Vec<String> = batch.iter().map(|it| it.0.clone()).collect();
        let send = |instances: Vec<String>| (call.send)(api.clone(), call.of.clone(), instances);
        let together = send(instances.clone()).await;
        let outcomes = match &together {
            Err(failure) if batch.len() > 1 && !failure.open && failure.may_be_about_one(&instances) => {
                join_all(instances.into_iter().map(|it| send(vec![it]))).await
            }
            _ => vec![together; batch.len()],
        };
        for ((_, sender), outcome) in batch.into_iter().zip(outcomes) {
            // Whoever asked may have gone meanwhile.
            let _ = sender.send(outcome);
        }
    }
}
