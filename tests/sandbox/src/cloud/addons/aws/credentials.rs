//! Where a program's AWS credentials come from, in the order of AWS's SDKs: the role that the environment
//! names, by the service account token that was mounted; else the role of the instance, by its metadata
//! service.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::query::Query;
use super::{Refusal, answer, xml};
use crate::cloud::imds::HOPS;
use crate::emulator;

/// Code of the error that says that there are no credentials.
pub const MISSING: &str = "NoCredentials";
const VERSION: &str = "2011-06-15";
const METADATA: &str = "http://169.254.169.254/latest";
/// The metadata service is near: who does not hear from it within this time never will.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Seconds before its end at which a session is renewed.
const EARLY: i64 = 300;

/// Credentials of a session.
#[derive(Clone, Debug)]
pub struct Session {
    pub key: String,
    pub secret: String,
    pub token: String,
    pub expires: Timestamp,
}

impl Session {
    /// Whether it lasts long enough to be used.
    pub fn fresh(&self) -> bool {
        self.expires.as_second() > Timestamp::now().as_second() + EARLY
    }
}

/// The instance metadata service, as a pod reaches it.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// Network hops to it: one from the host's network, two from a pod's own.
    pub hops: u32,
}

impl Metadata {
    /// The value at a path such as `meta-data/instance-id`.
    ///
    /// # Errors
    /// When it does not answer, as with a hop limit that is too low, or has no such value.
    pub async fn get(&self, path: &str) -> Result<String> {
        let http = reqwest::Client::builder().timeout(TIMEOUT).build().context("making the HTTP client")?;
        let hops = self.hops.to_string();
        let token = http
            .put(format!("{METADATA}/api/token"))
            .header("x-aws-ec2-metadata-token-ttl-seconds", "21600")
            .header(HOPS, &hops);
        let token = token.send().await.context("asking the metadata service for a token")?;
        let token = token
            .error_for_status()
            .context("asking the metadata service for a token")?
            .text()
            .await
            .context("reading the token")?;
        let value = http.get(format!("{METADATA}/{path}")).header("x-aws-ec2-metadata-token", token);
        let value = value.send().await.with_context(|| format!("asking the metadata service for {path}"))?;
        let value =
            value.error_for_status().with_context(|| format!("asking the metadata service for {path}"))?;
        value.text().await.with_context(|| format!("reading {path} of the metadata service"))
    }
}

/// Where credentials come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A role that is assumed with a token that a file holds.
    WebIdentity { role: String, token: PathBuf, session: String },
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
            (Some(role), Some(token)) => Self::WebIdentity {
                role: role.clone(),
                token: path(token),
                session: pod.chars().take(64).collect(),
            },
            _ => Self::Instance(metadata),
        }
    }

    /// Gets credentials.
    ///
    /// # Errors
    /// A [`Refusal`] with AWS's own code, or [`MISSING`].
    pub async fn obtain(&self, http: &reqwest::Client) -> Result<Session> {
        match self {
            Self::WebIdentity { role, token, session } => {
                let missing = |error: anyhow::Error| missing("AssumeRoleWithWebIdentity", &error);
                let token = std::fs::read_to_string(token)
                    .with_context(|| format!("reading {}", token.display()))
                    .map_err(missing)?;
                assume(http, role, token.trim(), session).await
            }
            Self::Instance(metadata) => {
                instance(metadata).await.map_err(|error| missing("the metadata service", &error).into())
            }
        }
    }
}

fn missing(action: &str, error: &anyhow::Error) -> Refusal {
    Refusal { action: action.to_owned(), code: MISSING.to_owned(), message: format!("{error:#}") }
}

async fn assume(http: &reqwest::Client, role: &str, token: &str, session: &str) -> Result<Session> {
    const ACTION: &str = "AssumeRoleWithWebIdentity";
    let query = Query::new(ACTION)
        .with("RoleArn", role)
        .with("RoleSessionName", session)
        .with("WebIdentityToken", token);
    let request = http
        .post(emulator::ENDPOINT)
        .header("content-type", "application/x-www-form-urlencoded; charset=utf-8");
    let text = match answer(request.body(query.encode(VERSION)), ACTION).await? {
        Ok(text) => text,
        // Without the role there are no credentials, whatever the code.
        Err((400..500, refusal)) => {
            let message = format!("{} {}: {}", role, refusal.code, refusal.message);
            return Err(Refusal { action: ACTION.to_owned(), code: MISSING.to_owned(), message }.into());
        }
        Err((_, refusal)) => return Err(refusal.into()),
    };
    let response = xml::parse(&text).context("reading the answer to AssumeRoleWithWebIdentity")?;
    let found = response.descend("Credentials").context("the answer has no credentials")?;
    let expires = found.text("Expiration").parse().context("reading the end of the session")?;
    let text = |name| found.text(name).to_owned();
    Ok(Session {
        key: text("AccessKeyId"),
        secret: text("SecretAccessKey"),
        token: text("SessionToken"),
        expires,
    })
}

async fn instance(metadata: &Metadata) -> Result<Session> {
    let roles = metadata.get("meta-data/iam/security-credentials/").await?;
    let role = roles.lines().next().context("the instance has no role")?;
    let text = metadata.get(&format!("meta-data/iam/security-credentials/{role}")).await?;
    let found: Value = serde_json::from_str(&text).context("reading the role's credentials")?;
    let text = |name: &str| {
        found[name]
            .as_str()
            .map(str::to_owned)
            .with_context(|| format!("the role's credentials have no {name}"))
    };
    let expires = text("Expiration")?.parse().context("reading the end of the credentials")?;
    Ok(Session {
        key: text("AccessKeyId")?,
        secret: text("SecretAccessKey")?,
        token: text("Token")?,
        expires,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_in_the_environment_comes_before_that_of_the_instance() {
        let mut environment =
            BTreeMap::from([("AWS_ROLE_ARN".to_owned(), "arn:aws:iam::1:role/r".to_owned())]);
        let of = |environment: &_| {
            Source::of(environment, Metadata { hops: 2 }, "p", |path| PathBuf::from("/m").join(&path[1..]))
        };
        assert!(matches!(of(&environment), Source::Instance(Metadata { hops: 2 })));
        environment.insert("AWS_WEB_IDENTITY_TOKEN_FILE".to_owned(), "/var/token".to_owned());
        let Source::WebIdentity { role, token, session } = of(&environment) else {
            panic!("not by web identity")
        };
        assert_eq!(
            (role.as_str(), token, session.as_str()),
            ("arn:aws:iam::1:role/r", PathBuf::from("/m/var/token"), "p")
        );
    }

    #[test]
    fn a_session_is_renewed_before_it_ends() {
        let session = |seconds: i64| Session {
            key: String::new(),
            secret: String::new(),
            token: String::new(),
            expires: Timestamp::from_second(Timestamp::now().as_second() + seconds).expect("a time"),
        };
        assert!(session(900).fresh());
        assert!(!session(200).fresh());
    }
}
