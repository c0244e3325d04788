//! Counts what is sent to AWS, every attempt of every call.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::FinalizerInterceptorContextRef;
use aws_smithy_runtime_api::client::interceptors::{Intercept, dyn_dispatch_hint};
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;

/// By service, action and result.
type Counts = BTreeMap<(String, String, &'static str), u64>;

static COUNTS: LazyLock<Mutex<Counts>> = LazyLock::new(Mutex::default);

/// How often one AWS action was sent and how it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    /// The SDK's name of the service: `EC2`, `Elastic Load Balancing`.
    pub service: String,
    pub action: String,
    /// `ok`, `refused` (4xx), `error` (5xx, throttles of EC2 among them) or `no reply`.
    pub result: &'static str,
    pub count: u64,
}

/// Every attempt sent by this process so far.
pub fn calls() -> Vec<Calls> {
    let counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    counts
        .iter()
        .map(|((service, action, result), count)| Calls {
            service: service.clone(),
            action: action.clone(),
            result,
            count: *count,
        })
        .collect()
}

#[derive(Debug)]
pub(crate) struct Counter;

#[dyn_dispatch_hint]
impl Intercept for Counter {
    fn name(&self) -> &'static str {
        "Counter"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let result = match context.response().map(|it| it.status().as_u16()) {
            Some(200..400) => "ok",
            Some(400..500) => "refused",
            Some(_) => "error",
            None => "no reply",
        };
        if let Some(metadata) = config.load::<Metadata>() {
            let key = (metadata.service().to_owned(), metadata.name().to_owned(), result);
            *COUNTS.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default() += 1;
        }
        Ok(())
    }
}
