//! The way to AWS: credentials and endpoints from the SDK's usual environment, one HTTP client, timeouts and
//! retries. It sends nothing itself but what the SDK needs to get credentials.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use aws_config::environment::region::EnvironmentVariableRegionProvider;
use aws_config::meta::region::RegionProviderChain;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, ConfigLoader, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_s3::config::{RequestChecksumCalculation, ResponseChecksumValidation};
use aws_smithy_http_client::tls;
use model::Timestamp;
use tokio::sync::OnceCell;

use crate::api::Api;
use crate::calls::Counter;
use crate::limits::Limits;
use crate::now;
use crate::region::Region;

/// Where credentials come from is asked for in this region unless `AWS_REGION` says otherwise; nothing else
/// uses it.
const FALLBACK_REGION: &str = "us-east-1";

/// Sets the endpoint of S3 alone.
const S3_ENDPOINT: &str = "AWS_ENDPOINT_URL_S3";

/// Why AWS cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(
        "no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, \
         or run with a role"
    )]
    NoCredentials,
    #[error("the AWS credentials cannot be used")]
    Credentials(#[source] CredentialsError),
    #[error("no AWS credentials: the SDK was built without any source of them")]
    NoProvider,
}

/// AWS as one identity sees it.
#[derive(Clone)]
pub struct Aws {
    config: SdkConfig,
    limits: Arc<Limits>,
    account: Arc<OnceCell<String>>,
    regions: Arc<Mutex<BTreeMap<String, Region>>>,
    began: Arc<OnceLock<Timestamp>>,
}

impl Aws {
    /// Finds credentials and endpoints as every AWS SDK does (environment, profile, web identity, container,
    /// instance), `AWS_ENDPOINT_URL` included.
    ///
    /// # Errors
    /// When there are no credentials.
    pub async fn connect() -> Result<Aws, ConnectError> {
        Self::load(aws_config::defaults(BehaviorVersion::latest())).await
    }

    /// As [`connect`](Self::connect), but to an endpoint and with credentials that are given: an emulator's,
    /// usually.
    ///
    /// # Errors
    /// None that can be: the credentials are there.
    pub async fn connect_to(endpoint: &str, credentials: Credentials) -> Result<Aws, ConnectError> {
        Self::load(
            aws_config::defaults(BehaviorVersion::latest())
                .endpoint_url(endpoint)
                .credentials_provider(credentials),
        )
        .await
    }

    async fn load(loader: ConfigLoader) -> Result<Aws, ConnectError> {
        let http = aws_smithy_http_client::Builder::new()
            .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
            .build_https();
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(3))
            .operation_attempt_timeout(Duration::from_secs(15))
            .operation_timeout(Duration::from_secs(45))
            .build();
        let config = loader
            .http_client(http)
            .timeout_config(timeouts)
            .retry_config(RetryConfig::standard())
            .region(
                RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new())
                    .or_else(FALLBACK_REGION),
            )
            .load()
            .await;
        let provider = config.credentials_provider().ok_or(ConnectError::NoProvider)?;
        provider.provide_credentials().await.map_err(|error| match error {
            // Each source in turn had nothing to say, which helps nobody.
            CredentialsError::CredentialsNotLoaded(_) => ConnectError::NoCredentials,
            error => ConnectError::Credentials(error),
        })?;
        Ok(Aws {
            config,
            limits: Arc::default(),
            account: Arc::default(),
            regions: Arc::default(),
            began: Arc::default(),
        })
    }

    /// Says that from now on this process acts, and no earlier one. Without it, that is taken to begin with
    /// the first use of a region.
    pub fn begin(&self) {
        self.began.get_or_init(now);
    }

    /// One region. The first call for a region makes it; nothing is read before somebody is
    /// [interested](Region::interest).
    pub fn region(&self, name: &str) -> Region {
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        regions
            .entry(name.to_owned())
            .or_insert_with(|| Region::new(name, self.api(name), *self.began.get_or_init(now)))
            .clone()
    }

    fn api(&self, region: &str) -> Api {
        macro_rules! client {
            ($sdk:ident, $retry:expr) => {{
                let config = $sdk::config::Builder::from(&self.config)
                    .region($sdk::config::Region::new(region.to_owned()))
                    .retry_config($retry)
                    .interceptor(Counter)
                    .build();
                $sdk::Client::from_conf(config)
            }};
        }
        Api {
            ec2: client!(aws_sdk_ec2, RetryConfig::standard()),
            ec2_once: client!(aws_sdk_ec2, RetryConfig::disabled()),
            classic: client!(aws_sdk_elasticloadbalancing, RetryConfig::standard()),
            elb: client!(aws_sdk_elasticloadbalancingv2, RetryConfig::standard()),
            secrets: client!(aws_sdk_secretsmanager, RetryConfig::standard()),
            tagging: client!(aws_sdk_resourcegroupstagging, RetryConfig::standard()),
            iam: client!(aws_sdk_iam, RetryConfig::standard()),
            sts: client!(aws_sdk_sts, RetryConfig::standard()),
            efs: client!(aws_sdk_efs, RetryConfig::standard()),
            s3: self.s3(region),
            account: self.account.clone(),
            limits: self.limits.clone(),
        }
    }
    /// Buckets are host names at AWS. An endpoint that was set is one host, which has no such names, and may
    /// not know checksums.
    fn s3(&self, region: &str) -> aws_sdk_s3::Client {
        let is_one_host = self.config.endpoint_url().is_some() || std::env::var_os(S3_ENDPOINT).is_some();
        let config = aws_sdk_s3::config::Builder::from(&self.config)
            .region(aws_sdk_s3::config::Region::new(region.to_owned()))
            .interceptor(Counter)
            .force_path_style(is_one_host)
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
            .build();
        aws_sdk_s3::Client::from_conf(config)
    }
}
