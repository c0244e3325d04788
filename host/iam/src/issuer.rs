//! The issuer of service account tokens: its URL, the two public documents that STS reads, and where they lie
//! in a bucket. It publishes nothing, and it takes public keys only.

mod key;

pub use key::{Jwk, KeyError, KeySet, PublicKey, SetError};

use serde::Serialize;

use super::partition;

/// Where OpenID Connect has the discovery document, under the issuer.
const DISCOVERY_PATH: &str = ".well-known/openid-configuration";
/// Where Kubernetes has the key set, under the issuer.
const JWKS_PATH: &str = "openid/v1/jwks";
/// What both documents are served as.
pub const CONTENT_TYPE: &str = "application/json";
/// The longest URL that CreateOpenIDConnectProvider takes.
const LONGEST_URL: usize = 255;
/// Where a KubeadmControlPlane has arguments of the API server.
const EXTRA_ARGS: &str = "spec.kubeadmConfigSpec.clusterConfiguration.apiServer.extraArgs";

/// Why an issuer cannot be one. Each says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssuerError {
    #[error("{field}: issuer {issuer:?} {problem}")]
    Url { field: String, issuer: String, problem: &'static str },
    #[error(
        "{field}: {bucket:?} cannot be the bucket of an issuer; its name has 3 to 63 lower-case letters, digits and hyphens, begins and ends with \
         a letter or digit, and has no dot, because the certificate of S3 does not cover names with dots"
    )]
    Bucket { field: String, bucket: String },
    #[error(
        "{field}: {prefix:?} cannot be a prefix; write segments of letters, digits and characters of ._- with single slashes between them"
    )]
    Prefix { field: String, prefix: String },
}

/// Checks an issuer by what IAM takes and what the API server makes of it. The field path is the one of the
/// user's object.
///
/// # Errors
/// It is not a plain `https://` URL without port, query, fragment and last slash, of at most 255 characters.
pub fn check_url(field: &str, issuer: &str) -> Result<(), IssuerError> {
    let refuse =
        |problem| Err(IssuerError::Url { field: field.to_owned(), issuer: issuer.to_owned(), problem });
    let Some(rest) = issuer.strip_prefix("https://") else { return refuse("does not begin with https://") };
    let host = rest.split('/').next().unwrap_or_default();
    let is_label = |it: &str| {
        !it.is_empty() && it.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-')
    };
    if rest.contains(['?', '#']) {
        refuse("has a query or fragment; leave it out")
    } else if host.contains('@') {
        refuse("has a user; leave it out")
    } else if host.contains(':') {
        refuse("has a port, which IAM does not take; serve it at 443")
    } else if !host.contains('.') || !host.split('.').all(is_label) {
        refuse("has no full host name in lower case")
    } else if issuer.ends_with('/') {
        refuse("ends with a slash; leave it out, there and in service-account-issuer")
    } else if rest.split('/').skip(1).any(|it| !is_segment(it)) {
        refuse("has a path that is not plain; write segments of letters, digits and characters of ._-")
    } else if issuer.len() > LONGEST_URL {
        refuse("is longer than the 255 characters that IAM takes")
    } else {
        Ok(())
    }
}

fn is_segment(text: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
    !text.is_empty() && text != "." && text != ".." && text.chars().all(is_plain)
}

/// An issuer whose documents lie in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The issuer, exactly as tokens must name it.
    pub issuer: String,
    /// Keys of the objects.
    pub discovery_key: String,
    pub jwks_key: String,
    /// Where anyone reads them.
    pub discovery_url: String,
    pub jwks_url: String,
}

/// A public document and the key of its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub key: String,
    pub body: String,
}

impl Publication {
    /// The issuer of a bucket, addressed by virtual host, in a region. The prefix lets one bucket serve many
    /// clusters; it may be empty. The field path is the one of the user's object.
    ///
    /// # Errors
    /// The bucket or the prefix cannot be part of an issuer's URL.
    pub fn in_bucket(
        field: &str,
        bucket: &str,
        prefix: &str,
        region: &str,
    ) -> Result<Publication, IssuerError> {
        let ends_well =
            |it: Option<char>| it.is_some_and(|it| it.is_ascii_lowercase() || it.is_ascii_digit());
        let is_plain = bucket.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-');
        if !(3..=63).contains(&bucket.len())
            || !is_plain
            || !ends_well(bucket.chars().next())
            || !ends_well(bucket.chars().last())
        {
            return Err(IssuerError::Bucket { field: field.to_owned(), bucket: bucket.to_owned() });
        }
        if !prefix.is_empty() && !prefix.split('/').all(is_segment) {
            return Err(IssuerError::Prefix { field: field.to_owned(), prefix: prefix.to_owned() });
        }
        let base =
            format!("https://{bucket}.s3.{region}.{}", partition::dns_suffix(partition::of_region(region)));
        let under = |path: &str| if prefix.is_empty() { path.to_owned() } else { format!("{prefix}/{path}") };
        let issuer = if prefix.is_empty() { base.clone() } else { format!("{base}/{prefix}") };
        check_url(field, &issuer)?;
        let (discovery_key, jwks_key) = (under(DISCOVERY_PATH), under(JWKS_PATH));
        let (discovery_url, jwks_url) = (format!("{base}/{discovery_key}"), format!("{base}/{jwks_key}"));
        Ok(Publication { issuer, discovery_key, jwks_key, discovery_url, jwks_url })
    }

    /// Whether the prefix is, or ends in, `<namespace>/<name>`: then it is no other cluster's that does.
    pub fn ends_with(&self, namespace_and_name: &str) -> bool {
        format!("/{}", self.jwks_key).ends_with(&format!("/{namespace_and_name}/{JWKS_PATH}"))
    }

    /// Both documents. The key set comes first: who finds the discovery document must find what it names.
    pub fn documents(&self, keys: &KeySet) -> [Document; 2] {
        let discovery = discovery(&self.issuer, &self.jwks_url, keys);
        [
            Document { key: self.jwks_key.clone(), body: keys.to_json() },
            Document { key: self.discovery_key.clone(), body: discovery },
        ]
    }
}

/// Where the discovery document of an issuer is, wherever it is served from.
pub fn discovery_url(issuer: &str) -> String {
    format!("{issuer}/{DISCOVERY_PATH}")
}

/// The fields that OpenID Connect Discovery requires and a token issuer can fill.
#[derive(Serialize)]
struct Discovery<'a> {
    issuer: &'a str,
    jwks_uri: &'a str,
    response_types_supported: [&'static str; 1],
    subject_types_supported: [&'static str; 1],
    id_token_signing_alg_values_supported: Vec<&'a str>,
}

/// The discovery document of an issuer, as JSON.
pub fn discovery(issuer: &str, jwks_url: &str, keys: &KeySet) -> String {
    let discovery = Discovery {
        issuer,
        jwks_uri: jwks_url,
        response_types_supported: ["id_token"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: keys.algorithms(),
    };
    key::pretty(&discovery)
}

/// Why the API server does not issue tokens of the issuer, and what to write in the KubeadmControlPlane.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    #[error(
        "KubeadmControlPlane has no service-account-issuer, so tokens are not of issuer {issuer}; add to {EXTRA_ARGS}: \
         {{name: service-account-issuer, value: \"{issuer}\"}}"
    )]
    Missing { issuer: String },
    #[error(
        "KubeadmControlPlane has service-account-issuer {found:?}, which differs from {issuer:?} only by a slash or case; write it exactly so in {EXTRA_ARGS}"
    )]
    NotExact { issuer: String, found: String },
    #[error(
        "KubeadmControlPlane has service-account-issuer {found:?} first, and tokens are of the first; in {EXTRA_ARGS} put {issuer:?} before it"
    )]
    NotFirst { issuer: String, found: String },
    #[error(
        "KubeadmControlPlane has service-account-issuer {found:?}; set it in {EXTRA_ARGS} to {issuer:?} \
         (in a live cluster, keep the old value as a second one until its tokens have ended)"
    )]
    Other { issuer: String, found: String },
}

/// Checks the values of `service-account-issuer` in a KubeadmControlPlane, in their order: the first issues,
/// the others are accepted.
///
/// # Errors
/// Tokens would not be of the issuer.
pub fn check_argument<T: AsRef<str>>(issuer: &str, values: &[T]) -> Result<(), ArgumentError> {
    let Some(first) = values.first() else {
        return Err(ArgumentError::Missing { issuer: issuer.to_owned() });
    };
    let (issuer, found) = (issuer.to_owned(), first.as_ref().to_owned());
    if found == issuer {
        Ok(())
    } else if values.iter().any(|it| it.as_ref() == issuer) {
        Err(ArgumentError::NotFirst { issuer, found })
    } else if found.trim_end_matches('/').eq_ignore_ascii_case(issuer.trim_end_matches('/')) {
        Err(ArgumentError::NotExact { issuer, found })
    } else {
        Err(ArgumentError::Other { issuer, found })
    }
}

#[cfg(test)]
mod tests;
