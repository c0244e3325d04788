//! What stand-ins know of AWS: its SDK, as the identity that the pod was given, against the emulator.

pub mod credentials;
pub mod metadata;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::Result;
use aws_config::identity::IdentityCache;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sdk_ec2::types::{Filter, ResourceType, Tag, TagSpecification};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::emulator;
use credentials::Source;

/// How often a call is made that AWS throttled or could not serve.
const ATTEMPTS: u32 = 4;
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long before its end a session is renewed.
const EARLY: Duration = Duration::from_secs(300);

/// Tags by key.
pub type Tags = BTreeMap<String, String>;

/// An error that AWS answered with.
#[derive(Debug)]
pub struct Refusal {
    pub code: String,
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Refusal {}

/// AWS's error code, when the error is an answer of AWS.
pub fn code(error: &anyhow::Error) -> Option<&str> {
    error.downcast_ref::<Refusal>().map(|refusal| refusal.code.as_str())
}

/// Whether the identity lacks a right, or there is no identity: nothing that goes away by itself.
pub fn denied(error: &anyhow::Error) -> bool {
    const CODES: [&str; 8] = [
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "ExpiredToken",
        "InvalidClientTokenId",
        "RequestExpired",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    ];
    code(error).is_some_and(|code| CODES.contains(&code))
        || error.chain().any(|cause| cause.is::<CredentialsError>())
}

/// What a call returned, with AWS's own words for an error.
pub trait Answer<T> {
    /// # Errors
    /// A [`Refusal`] when AWS refused the call.
    fn answer(self) -> Result<T>;
}

impl<T, E, R> Answer<T> for Result<T, SdkError<E, R>>
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    R: fmt::Debug + Send + Sync + 'static,
{
    fn answer(self) -> Result<T> {
        self.map_err(|error| match error.code() {
            Some(code) => {
                let message = error.message().unwrap_or_default().to_owned();
                Refusal { code: code.to_owned(), message }.into()
            }
            None => error.into(),
        })
    }
}

/// Clients with an identity.
pub struct Aws {
    pub ec2: aws_sdk_ec2::Client,
    pub efs: aws_sdk_efs::Client,
    pub load_balancers: aws_sdk_elasticloadbalancingv2::Client,
    credentials: SharedCredentialsProvider,
}

impl Aws {
    /// Clients for the region, whose credentials come from `source`.
    pub fn new(region: String, source: &Source) -> Self {
        let region = Region::new(region);
        let credentials = source.provider(&region);
        let timeouts = TimeoutConfig::builder().operation_attempt_timeout(TIMEOUT).build();
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(region)
            .endpoint_url(emulator::ENDPOINT)
            .http_client(http_client())
            .credentials_provider(credentials.clone())
            .identity_cache(IdentityCache::lazy().buffer_time(EARLY).build())
            .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS))
            .timeout_config(timeouts)
            .build();
        Self {
            ec2: aws_sdk_ec2::Client::new(&config),
            efs: aws_sdk_efs::Client::new(&config),
            load_balancers: aws_sdk_elasticloadbalancingv2::Client::new(&config),
            credentials,
        }
    }

    /// Makes sure that there are credentials.
    pub async fn identify(&self) -> Result<()> {
        self.credentials.provide_credentials().await?;
        Ok(())
    }
}

/// The emulator and the metadata service speak HTTP without TLS.
fn http_client() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new().build_http()
}

/// One of EC2's filters.
pub fn filter(name: &str, values: impl IntoIterator<Item = impl Into<String>>) -> Filter {
    Filter::builder().name(name).set_values(Some(values.into_iter().map(Into::into).collect())).build()
}

/// The tags that EC2 shall give what it creates.
pub fn tagged(of: ResourceType, tags: &Tags) -> TagSpecification {
    let tags = tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build());
    TagSpecification::builder().resource_type(of).set_tags(Some(tags.collect())).build()
}

/// The value of one of EC2's tags.
pub fn tag<'a>(tags: &'a [Tag], key: &str) -> Option<&'a str> {
    tags.iter().find(|tag| tag.key() == Some(key))?.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_told_from_what_passes() {
        let refusal = |code: &str| {
            let refusal = Refusal { code: code.to_owned(), message: String::new() };
            anyhow::Error::from(refusal).context("making a volume")
        };
        assert!(denied(&refusal("UnauthorizedOperation")));
        assert!(denied(&anyhow::Error::from(CredentialsError::not_loaded("no role")).context("signing")));
        assert!(!denied(&refusal("RequestLimitExceeded")));
        assert!(!denied(&anyhow::anyhow!("no route")));
    }
}
