//! Puts single requests for the same call together: those that come within a short window go out at once, and
//! when AWS refuses them together for what may be in one of them, each goes out alone, so that one bad id
//! fails nobody else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::oneshot;

use crate::api::Api;
use crate::errors::Failure;
use crate::kinds::{instance, target};

const WINDOW: Duration = Duration::from_millis(100);

/// Where instances are registered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// A classic load balancer, by name.
    LoadBalancer(String),
    /// By ARN.
    TargetGroup(String),
}

/// One call; its requests are instance ids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Call {
    Terminate,
    Register(Group),
    Deregister(Group),
}

type Waiting = Vec<(String, oneshot::Sender<Result<(), Failure>>)>;

#[derive(Clone, Default)]
pub(crate) struct Batches {
    waiting: Arc<Mutex<BTreeMap<Call, Waiting>>>,
}

impl Batches {
    pub async fn terminate(&self, api: &Api, instance: &str) -> Result<(), Failure> {
        self.ask(api, Call::Terminate, instance).await
    }

    pub async fn register(&self, api: &Api, group: Group, instance: &str) -> Result<(), Failure> {
        self.ask(api, Call::Register(group), instance).await
    }

    pub async fn deregister(&self, api: &Api, group: Group, instance: &str) -> Result<(), Failure> {
        self.ask(api, Call::Deregister(group), instance).await
    }

    async fn ask(&self, api: &Api, call: Call, instance: &str) -> Result<(), Failure> {
        let (sender, receiver) = oneshot::channel();
        let first = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let batch = waiting.entry(call.clone()).or_default();
            batch.push((instance.to_owned(), sender));
            batch.len() == 1
        };
        if first {
            tokio::spawn(self.clone().send(api.clone(), call));
        }
        let lost = || Failure {
            action: "batch",
            code: None,
            message: "the call was given up".to_owned(),
            open: true,
        };
        receiver.await.unwrap_or_else(|_| Err(lost()))
    }

    async fn send(self, api: Api, call: Call) {
        tokio::time::sleep(WINDOW).await;
        let batch =
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&call).unwrap_or_default();
        let instances: Vec<String> = batch.iter().map(|it| it.0.clone()).collect();
        let together = call.send(&api, &instances).await;
        let outcomes = match &together {
            Err(failure) if batch.len() > 1 && !failure.open && failure.may_be_about_one(&instances) => {
                join_all(instances.iter().map(|it| call.send(&api, std::slice::from_ref(it)))).await
            }
            _ => vec![together; batch.len()],
        };
        for ((_, sender), outcome) in batch.into_iter().zip(outcomes) {
            // Whoever asked may have gone meanwhile.
            let _ = sender.send(outcome);
        }
    }
}

impl Call {
    async fn send(&self, api: &Api, instances: &[String]) -> Result<(), Failure> {
        match self {
            Call::Terminate => instance::terminate(api, instances).await,
            Call::Register(group) => target::register(api, group, instances).await,
            Call::Deregister(group) => target::deregister(api, group, instances).await,
        }
    }
}
