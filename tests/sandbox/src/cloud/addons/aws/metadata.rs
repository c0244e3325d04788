//! The instance metadata service, as a pod reaches it.

use std::time::Duration;

use anyhow::{Context, Result};
use aws_config::imds;
use aws_config::provider_config::ProviderConfig;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

use super::http_client;
use crate::cloud::imds::HOPS;

/// The metadata service is near: who does not hear from it within this time never will.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A client of it.
#[derive(Clone, Debug)]
pub struct Metadata {
    pub client: imds::Client,
}

impl Metadata {
    /// A client that is so many hops away: one on the host's network, two on a pod's own.
    pub fn new(hops: u32) -> Self {
        let http = Distant { inner: http_client(), hops };
        let client = imds::Client::builder()
            .configure(&ProviderConfig::without_region().with_http_client(http))
            .max_attempts(1)
            .connect_timeout(TIMEOUT)
            .read_timeout(TIMEOUT)
            .operation_attempt_timeout(TIMEOUT)
            .operation_timeout(TIMEOUT * 2)
            .build();
        Self { client }
    }

    /// The value at a path such as `meta-data/instance-id`.
    ///
    /// # Errors
    /// When it does not answer, as with a hop limit that is too low, or has no such value.
    pub async fn get(&self, path: &str) -> Result<String> {
        let value = self.client.get(format!("/latest/{path}")).await;
        value.map(Into::into).with_context(|| format!("asking the metadata service for {path}"))
    }
}

/// Says with every request how many hops it has come, which the bed's networks cannot count.
#[derive(Clone, Debug)]
struct Distant<T> {
    inner: T,
    hops: u32,
}

impl HttpClient for Distant<SharedHttpClient> {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Distant { inner, hops: self.hops })
    }
}

impl HttpConnector for Distant<SharedHttpConnector> {
    fn call(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        request.headers_mut().insert(HOPS, self.hops.to_string());
        self.inner.call(request)
    }
}
