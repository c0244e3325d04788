//! A repository that is read from: manifests and blobs, by digest or tag, each within its bound.

use http::header::HeaderValue;
use tokio::sync::Mutex;
use url::Url;

use crate::authentication::authorize;
use crate::credentials::{self, Credentials};
use crate::digest::Digest;
use crate::error::PullError;
use crate::limits::Limits;
use crate::source::{Name, Source};
use crate::transport::{Answer, Transport};

/// A repository in a registry. Several requests share a connection and a token.
pub struct Repository {
    pub(crate) name: Name,
    pub(crate) limits: Limits,
    transport: Transport,
    credentials: Option<Credentials>,
    authorization: Mutex<Option<HeaderValue>>,
    base: Url,
}

impl Repository {
    /// Reads the source; asks nobody yet.
    ///
    /// # Errors
    /// When something of the source is not written as it has to be.
    pub fn open(source: &Source, limits: Limits) -> Result<Self, PullError> {
        let name = Name::parse(&source.repository)?;
        let credentials = match &source.docker_config {
            Some(config) => credentials::find(config, &name)?,
            None => None,
        };
        let scheme = if source.plain_http { "http" } else { "https" };
        let base = Url::parse(&format!("{scheme}://{}/v2/{}/", name.host(), name.path)).map_err(|_| {
            PullError::Repository {
                repository: source.repository.clone(),
                problem: "begins with what is no host",
            }
        })?;
        let transport = Transport::new(source, &limits)?;
        Ok(Self { name, limits, transport, credentials, authorization: Mutex::new(None), base })
    }

    /// A manifest by its digest.
    pub(crate) async fn manifest(&self, digest: &Digest, accept: &str) -> Result<Vec<u8>, PullError> {
        let path = format!("manifests/{digest}");
        let bytes = self.fetch(&path, accept, "the manifest", self.limits.manifest).await?;
        checked(bytes, "the manifest", digest)
    }

    /// What a tag, or another path of the repository, shows now.
    pub(crate) async fn lookup(&self, path: &str, accept: &str) -> Result<Vec<u8>, PullError> {
        self.fetch(path, accept, "the list of signatures", self.limits.manifest).await
    }

    /// A blob by its digest, no larger than the descriptor says.
    pub(crate) async fn blob(
        &self,
        digest: &Digest,
        size: u64,
        what: &'static str,
        limit: u64,
    ) -> Result<Vec<u8>, PullError> {
        if size > limit {
            return Err(PullError::TooLarge { what, limit });
        }
        let bytes = self.fetch(&format!("blobs/{digest}"), "*/*", what, size).await?;
        checked(bytes, what, digest)
    }

    /// Gets a path of the repository, saying who we are once the registry asks.
    async fn fetch(
        &self,
        path: &str,
        accept: &str,
        what: &'static str,
        limit: u64,
    ) -> Result<Vec<u8>, PullError> {
        let url =
            self.base.join(path).map_err(|_| self.answered(what, "a path that is no URL".to_owned()))?;
        let known = self.authorization.lock().await.clone();
        let mut answer = self.transport.get(&url, accept, known.as_ref()).await?;
        if answer.status == 401 && !answer.is_elsewhere {
            let headers = &answer.headers;
            let given = authorize(&self.transport, &self.name, self.credentials.as_ref(), headers).await?;
            if let Some(authorization) = given {
                answer = self.transport.get(&url, accept, Some(&authorization)).await?;
                *self.authorization.lock().await = Some(authorization);
            }
        }
        self.accept(&answer, path, what)?;
        self.transport.read(answer, what, limit).await
    }

    /// What a status means.
    fn accept(&self, answer: &Answer, path: &str, what: &'static str) -> Result<(), PullError> {
        let registry = answer.host.clone();
        let unreachable =
            |status: u16| PullError::Unreachable { registry, why: format!("HTTP status {status}") };
        match answer.status.as_u16() {
            200 => Ok(()),
            // Where a registry sends us to, its own permission to read has run out or is wrong.
            status @ (401 | 403) if answer.is_elsewhere => Err(unreachable(status)),
            401 | 403 => Err(PullError::Unauthorized {
                registry: answer.host.clone(),
                repository: self.name.to_string(),
                with_credentials: self.credentials.is_some(),
            }),
            404 => Err(PullError::NotFound { repository: self.name.to_string(), what: path.to_owned() }),
            status @ (408 | 429 | 500..=599) => Err(unreachable(status)),
            status => Err(self.answered(what, format!("HTTP status {status}"))),
        }
    }

    pub(crate) fn answered(&self, what: &'static str, why: String) -> PullError {
        PullError::Answer { registry: self.name.host().to_owned(), what, why }
    }
}

fn checked(bytes: Vec<u8>, what: &'static str, expected: &Digest) -> Result<Vec<u8>, PullError> {
    let actual = Digest::of(&bytes);
    if actual == *expected {
        Ok(bytes)
    } else {
        Err(PullError::DigestMismatch { what, expected: expected.clone(), actual })
    }
}
