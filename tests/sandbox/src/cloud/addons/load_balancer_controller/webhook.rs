//! The controller's webhook endpoint: it admits everything and changes nothing.
//!
//! It serves with exactly the certificate that was mounted, and with a new one as soon as that is there.
//! Replicas on one machine share the port, since pods have no network of their own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use crate::cloud::addons::stand_in::StandIn;

/// The real one's default for `--webhook-cert-dir`.
const DIRECTORY: &str = "/tmp/k8s-webhook-server/serving-certs";
const PORT: u16 = 9443;
/// A review is as large as the objects in it.
const LARGEST: usize = 8 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);

/// The endpoint, listening.
pub struct Webhook<'a> {
    stand_in: &'a StandIn,
    listener: TcpListener,
    directory: PathBuf,
}

impl<'a> Webhook<'a> {
    /// Listens with the certificate of the mounted Secret.
    ///
    /// # Errors
    /// When there is no certificate with its key.
    pub fn open(stand_in: &'a StandIn) -> Result<Self> {
        let directory = stand_in.volumes.path(stand_in.flag("webhook-cert-dir").unwrap_or(DIRECTORY));
        let socket = TcpSocket::new_v4().context("making a socket")?;
        socket
            .set_reuseaddr(true)
            .and_then(|()| socket.set_reuseport(true))
            .context("sharing the webhook's port")?;
        socket.bind(([0, 0, 0, 0], PORT).into()).with_context(|| format!("binding port {PORT}"))?;
        let listener = socket.listen(128).with_context(|| format!("listening on port {PORT}"))?;
        let webhook = Self { stand_in, listener, directory };
        webhook.acceptor()?;
        Ok(webhook)
    }

    /// Answers until it is cancelled.
    ///
    /// # Errors
    /// When the certificate is gone or broken.
    pub async fn serve(&self) -> Result<()> {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (stream, _) = accepted.context("accepting a connection")?;
                    // Read each time: calls are few, and a new certificate counts at once.
                    let acceptor = self.acceptor()?;
                    connections.spawn(async move {
                        match tokio::time::timeout(TIMEOUT, answer(acceptor, stream)).await {
                            Ok(Ok(())) => {}
                            Ok(Err(error)) => tracing::debug!("answering a webhook: {error:#}"),
                            Err(_) => tracing::debug!("answering a webhook took too long"),
                        }
                    });
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    fn acceptor(&self) -> Result<TlsAcceptor> {
        let file = |name: &str| {
            self.directory.join(self.stand_in.flag(&format!("webhook-{name}-file")).unwrap_or(match name {
                "cert" => "tls.crt",
                _ => "tls.key",
            }))
        };
        let (certificate, key) = (file("cert"), file("key"));
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&certificate)
            .and_then(Iterator::collect)
            .with_context(|| format!("reading {}", certificate.display()))?;
        let key = PrivateKeyDer::from_pem_file(&key).with_context(|| format!("reading {}", key.display()))?;
        let configuration = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .context("choosing versions of TLS")?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .context("using the webhook's certificate")?;
        Ok(TlsAcceptor::from(Arc::new(configuration)))
    }
}

/// Answers one request after another on a connection, in HTTP/1.1.
async fn answer(acceptor: TlsAcceptor, stream: TcpStream) -> Result<()> {
    let mut stream = BufReader::new(acceptor.accept(stream).await.context("shaking hands")?);
    while let Some((path, body)) = read(&mut stream).await? {
        let (status, answer) = match path.as_str() {
            "/readyz" | "/healthz" => ("200 OK", Some("ok".to_owned())),
            _ => ("200 OK", review(&body).map(|answer| answer.to_string())),
        };
        let (status, answer) = answer.map_or(("400 Bad Request", String::new()), |answer| (status, answer));
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        stream.write_all(head.as_bytes()).await.context("answering")?;
        stream.write_all(answer.as_bytes()).await.context("answering")?;
        stream.flush().await.context("answering")?;
    }
    Ok(())
}

/// Path and body of the next request; none when the caller is done.
async fn read(stream: &mut BufReader<TlsStream<TcpStream>>) -> Result<Option<(String, Vec<u8>)>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await.context("reading a request")? == 0 {
        return Ok(None);
    }
    let target = line.split(' ').nth(1).context("a request has no path")?;
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.context("reading a header")?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().context("reading the length of a request")?;
        }
    }
    anyhow::ensure!(length <= LARGEST, "a request of {length} bytes is too large");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.context("reading the body of a request")?;
    Ok(Some((path, body)))
}

/// The answer to an AdmissionReview, in its own version: allowed, without a patch.
fn review(body: &[u8]) -> Option<Value> {
    let review: Value = serde_json::from_slice(body).ok()?;
    let uid = review["request"]["uid"].as_str()?;
    Some(json!({
        "apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": {"uid": uid, "allowed": true},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_is_allowed_in_its_own_version() {
        let asked = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "object": {}}});
        let answer = review(asked.to_string().as_bytes()).expect("an answer");
        assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
        assert_eq!(answer["response"], json!({"uid": "u", "allowed": true}));
        assert!(review(b"{}").is_none());
        assert!(review(b"words").is_none());
    }
}
