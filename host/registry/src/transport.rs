//! One GET over HTTP: redirects without credentials, bodies within bounds, time limits, and what a failure means.

use std::error::Error;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;
use url::Url;

use crate::ca::client_config;
use crate::error::PullError;
use crate::limits::Limits;
use crate::source::Source;
use crate::text::shown;

/// How often a registry may send us on.
const REDIRECTS: usize = 5;
/// A transfer that takes longer says how far it is, and says so again after as long.
const PROGRESS: Duration = Duration::from_secs(2);

/// A client that is a stranger to every host: who asks is said with each request.
pub struct Transport {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    plain_http: bool,
    read: Duration,
}

/// An answer, and where it came from in the end.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Host, and port where it is not the usual one.
    pub host: String,
    /// Whether another than the one that was asked gave it.
    pub is_elsewhere: bool,
    body: Incoming,
}

impl Transport {
    /// A client for a source.
    ///
    /// # Errors
    /// When its CA bundle cannot be used.
    pub fn new(source: &Source, limits: &Limits) -> Result<Self, PullError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(limits.connect));
        tcp.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(client_config(source.ca_bundle.as_deref())?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { client, plain_http: source.plain_http, read: limits.read })
    }

    /// Whether credentials and contents may go over such a URL.
    pub fn is_allowed(&self, url: &Url) -> bool {
        url.scheme() == "https" || (self.plain_http && url.scheme() == "http")
    }

    /// Asks, and follows redirects; who asks is told to nobody but the host that was asked.
    ///
    /// # Errors
    /// When there is no answer. One that says no is an answer.
    pub async fn get(
        &self,
        url: &Url,
        accept: &str,
        authorization: Option<&HeaderValue>,
    ) -> Result<Answer, PullError> {
        let mut target = url.clone();
        for _ in 0..=REDIRECTS {
            let is_elsewhere = target.origin() != url.origin();
            let known_to = authorization.filter(|_| !is_elsewhere);
            let answer = self.send(&target, accept, known_to, is_elsewhere).await?;
            if !matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(answer);
            }
            target = self.next(&target, &answer)?;
        }
        Err(PullError::Redirect { registry: host(url), why: format!("yet another place {REDIRECTS} times") })
    }

    async fn send(
        &self,
        url: &Url,
        accept: &str,
        authorization: Option<&HeaderValue>,
        is_elsewhere: bool,
    ) -> Result<Answer, PullError> {
        let host = host(url);
        let mut request = Request::get(url.as_str())
            .header(ACCEPT, accept)
            .header(USER_AGENT, concat!("cluster-operator/", env!("CARGO_PKG_VERSION")));
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Empty::new()).map_err(|_| PullError::Redirect {
            registry: host.clone(),
            why: "what is no URL of HTTP".to_owned(),
        })?;
        match timeout(self.read, self.client.request(request)).await {
            Err(_) => Err(silent(host, self.read)),
            Ok(Err(error)) => Err(failure(host, &error)),
            Ok(Ok(response)) => {
                let (head, body) = response.into_parts();
                Ok(Answer { status: head.status, headers: head.headers, host, is_elsewhere, body })
            }
        }
    }

    /// Where a redirect leads to.
    fn next(&self, from: &Url, answer: &Answer) -> Result<Url, PullError> {
        let refused = |why: String| PullError::Redirect { registry: answer.host.clone(), why };
        let location = answer.headers.get(LOCATION).and_then(|location| location.to_str().ok());
        let mut url = location
            .and_then(|location| from.join(location).ok())
            .ok_or_else(|| refused("what is no URL".to_owned()))?;
        if !self.is_allowed(&url) || url.host().is_none() {
            return Err(refused(format!(
                "{} over {}, which is taken only where plain HTTP is meant",
                host(&url),
                shown(url.scheme())
            )));
        }
        url.set_fragment(None);
        let without_user = url.set_username("").and_then(|()| url.set_password(None));
        without_user.map_err(|()| refused("what is no URL of HTTP".to_owned()))?;
        Ok(url)
    }

    /// The whole body, or none of it when it is larger than the limit.
    ///
    /// # Errors
    /// When it is too large, or does not come.
    pub async fn read(
        &self,
        mut answer: Answer,
        what: &'static str,
        limit: u64,
    ) -> Result<Vec<u8>, PullError> {
        let too_large = || PullError::TooLarge { what, limit };
        let announced = answer.body.size_hint().exact();
        if announced.is_some_and(|size| size > limit) {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        let mut told = Instant::now();
        loop {
            let frame = match timeout(self.read, answer.body.frame()).await {
                Err(_) => return Err(silent(answer.host, self.read)),
                Ok(None) => return Ok(bytes),
                Ok(Some(Err(error))) => return Err(failure(answer.host, &error)),
                Ok(Some(Ok(frame))) => frame,
            };
            let data = frame.into_data().unwrap_or_default();
            if (bytes.len() + data.len()) as u64 > limit {
                return Err(too_large());
            }
            bytes.extend_from_slice(&data);
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                tracing::info!(
                    host = answer.host,
                    what,
                    received = bytes.len(),
                    of = announced,
                    "still reading"
                );
            }
        }
    }
}

/// What of a URL may be shown: no user, no path, no query.
pub fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or("nowhere");
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn silent(registry: String, time: Duration) -> PullError {
    PullError::Unreachable { registry, why: format!("nothing came for {} seconds", time.as_secs_f32()) }
}

/// What a failure of HTTP, TLS or the network means.
fn failure(registry: String, error: &(dyn Error + 'static)) -> PullError {
    match tls(error) {
        Some(rustls::Error::InvalidCertificate(why)) => {
            PullError::Certificate { registry, why: why.to_string() }
        }
        Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => {
            PullError::NotTls { registry }
        }
        Some(other) => PullError::Unreachable { registry, why: other.to_string() },
        None => PullError::Unreachable { registry, why: root(error).to_string() },
    }
}

/// The error of TLS in a chain of errors. One in an error of I/O is not among its sources.
fn tls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(tls) = error.downcast_ref() {
        return Some(tls);
    }
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    match inner {
        Some(inner) => tls(inner),
        None => tls(error.source()?),
    }
}

fn root<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    error.source().map_or(error, root)
}
