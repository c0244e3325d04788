//! Where a program's AWS credentials come from, in the order of AWS's SDKs: the role that the environment
//! names, by the service account token that was mounted; else the role of the instance, by its metadata
//! service.

use std::collections::BTreeMap;
use std::path::PathBuf;

use aws_config::Region;
use aws_config::imds::credentials::ImdsCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_config::web_identity_token::{StaticConfiguration, WebIdentityTokenCredentialsProvider};
use aws_credential_types::provider::SharedCredentialsProvider;

use super::http_client;
use super::metadata::Metadata;

/// Where credentials come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A role that is assumed with a token that a file holds.
    WebIdentity(StaticConfiguration),
    /// The role of the instance.
    Instance(Metadata),
}

impl Source {
    /// What the environment of a container of the pod `pod` asks for; `path` turns a path inside it into the
    /// machine's.
    pub fn of(
        environment: &BTreeMap<String, String>,
        metadata: Metadata,
        pod: &str,
        path: impl Fn(&str) -> PathBuf,
    ) -> Self {
        match (environment.get("AWS_ROLE_ARN"), environment.get("AWS_WEB_IDENTITY_TOKEN_FILE")) {
            (Some(role), Some(token)) => Self::WebIdentity(StaticConfiguration {
                web_identity_token_file: path(token),
                role_arn: role.clone(),
                session_name: pod.chars().take(64).collect(),
            }),
            _ => Self::Instance(metadata),
        }
    }

    /// The SDK's provider. It finds STS by the environment of this process.
    pub fn provider(&self, region: &Region) -> SharedCredentialsProvider {
        match self {
            Self::WebIdentity(configuration) => {
                let config = ProviderConfig::without_region()
                    .with_region(Some(region.clone()))
                    .with_http_client(http_client());
                let provider = WebIdentityTokenCredentialsProvider::builder()
                    .configure(&config)
                    .static_configuration(configuration.clone());
                SharedCredentialsProvider::new(provider.build())
            }
            Self::Instance(metadata) => {
                let provider = ImdsCredentialsProvider::builder().imds_client(metadata.client.clone());
                SharedCredentialsProvider::new(provider.build())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_in_the_environment_comes_before_that_of_the_instance() {
        let mut environment =
            BTreeMap::from([("AWS_ROLE_ARN".to_owned(), "arn:aws:iam::1:role/r".to_owned())]);
        let of = |environment: &_| {
            Source::of(environment, Metadata::new(2), "p", |path| PathBuf::from("/m").join(&path[1..]))
        };
        assert!(matches!(of(&environment), Source::Instance(_)));
        environment.insert("AWS_WEB_IDENTITY_TOKEN_FILE".to_owned(), "/var/token".to_owned());
        let Source::WebIdentity(found) = of(&environment) else { panic!("not by web identity") };
        assert_eq!(
            (found.role_arn.as_str(), found.web_identity_token_file, found.session_name.as_str()),
            ("arn:aws:iam::1:role/r", PathBuf::from("/m/var/token"), "p")
        );
    }
}
