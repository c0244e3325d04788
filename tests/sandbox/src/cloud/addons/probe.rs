//! Probes of a CSI driver: what a kubelet asks the sidecar `livenessprobe`, and what that asks the driver at
//! its socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::body::Bytes;
use axum::http::{HeaderMap, Request};
use k8s_openapi::api::core::v1::{Container, Pod, Probe};
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use crate::cloud::container::flag;

/// An empty message of gRPC: not compressed, no bytes.
const EMPTY: [u8; 5] = [0; 5];
const STATUS: &str = "grpc-status";
/// How long the sidecar waits for the driver's answer unless it is told.
const SIDECAR: Duration = Duration::from_secs(1);

/// The probes of a container.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    pub readiness: Option<Check>,
    pub liveness: Option<Check>,
}

/// One probe.
#[derive(Clone, Debug)]
pub struct Check {
    /// The driver's socket.
    pub socket: PathBuf,
    pub delay: Duration,
    pub period: Duration,
    pub timeout: Duration,
    /// How often it fails in a row before something follows.
    pub failures: u32,
}

impl Probes {
    /// Those of a container of the pod that the pod's `livenessprobe` answers; `path` turns a path inside it
    /// into the machine's.
    pub fn of(pod: &Pod, container: &Container, path: impl Fn(&str) -> PathBuf) -> Self {
        let sidecar = pod.spec.iter().flat_map(|spec| &spec.containers);
        let mut sidecar = sidecar.filter(|container| {
            container.image.as_deref().is_some_and(|image| image.contains("/livenessprobe"))
        });
        let address = sidecar
            .next()
            .and_then(|sidecar| Some((flag(sidecar, "csi-address")?, flag(sidecar, "probe-timeout"))));
        let Some((address, limit)) = address else { return Self::default() };
        let socket = path(address.trim_start_matches("unix:").trim_start_matches("//"));
        let limit = limit.and_then(seconds).unwrap_or(SIDECAR);
        let check = |probe: &Option<Probe>| {
            let probe = probe.as_ref().filter(|probe| probe.http_get.is_some())?;
            let seconds = |given: Option<i32>, otherwise: u64| {
                Duration::from_secs(
                    given
                        .and_then(|given| u64::try_from(given).ok())
                        .filter(|given| *given > 0)
                        .unwrap_or(otherwise),
                )
            };
            Some(Check {
                socket: socket.clone(),
                delay: seconds(probe.initial_delay_seconds, 0),
                period: seconds(probe.period_seconds, 10),
                timeout: seconds(probe.timeout_seconds, 1).min(limit),
                failures: probe.failure_threshold.and_then(|given| u32::try_from(given).ok()).unwrap_or(3),
            })
        };
        Self { readiness: check(&container.readiness_probe), liveness: check(&container.liveness_probe) }
    }
}

impl Check {
    /// Whether the driver says that it is healthy, in time.
    pub async fn passes(&self) -> bool {
        let error = match tokio::time::timeout(self.timeout, ask(&self.socket)).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => format!("{error:#}"),
            Err(_) => format!("no answer within {:?}", self.timeout),
        };
        tracing::info!(socket = %self.socket.display(), "a probe failed: {error}");
        false
    }
}

/// Calls `Probe` of the driver's identity service.
async fn ask(socket: &Path) -> Result<()> {
    let stream = UnixStream::connect(socket).await.context("connecting")?;
    let (client, connection) = h2::client::handshake(stream).await.context("greeting")?;
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let request =
        Request::post("http://localhost/csi.v1.Identity/Probe").header("content-type", "application/grpc");
    let request = request.header("te", "trailers").body(()).context("making the request")?;
    let mut client = client.ready().await.context("greeting")?;
    let (response, mut sender) = client.send_request(request, false).context("sending the request")?;
    sender.send_data(Bytes::from_static(&EMPTY), true).context("sending the message")?;
    let (head, mut body) = response.await.context("reading the answer")?.into_parts();
    while let Some(chunk) = body.data().await {
        let length = chunk.context("reading the answer")?.len();
        body.flow_control().release_capacity(length).context("reading the answer")?;
    }
    // An answer that is an error has no trailers: what they would say is in its head.
    let trailers = body.trailers().await.context("reading the answer")?;
    let said = trailers.as_ref().filter(|trailers| trailers.contains_key(STATUS)).unwrap_or(&head.headers);
    ensure!(text(said, STATUS) == "0", "{}", text(said, "grpc-message"));
    Ok(())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// A duration as Go writes it, of one unit, such as `60s`.
fn seconds(text: &str) -> Option<Duration> {
    let split = text.find(|character: char| character.is_ascii_alphabetic())?;
    let number: u64 = text[..split].parse().ok()?;
    match &text[split..] {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number * 60)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_probe_waits_as_long_as_both_the_kubelet_and_the_sidecar_do() {
        let probe = json!({"httpGet": {"path": "/healthz", "port": "healthz"}, "timeoutSeconds": 60, "failureThreshold": 10});
        let of = |arguments: &[&str]| {
            let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [
                {"name": "driver", "image": "r/driver:v1", "livenessProbe": probe},
                {"name": "l", "image": "r/livenessprobe:v2", "args": arguments}]}});
            let pod: Pod = serde_json::from_value(pod).expect("a pod");
            Probes::of(&pod, &pod.spec.as_ref().expect("a spec").containers[0], |path| {
                PathBuf::from("/m").join(&path[1..])
            })
        };
        let short = of(&["--csi-address=/csi/csi.sock"]);
        assert!(short.readiness.is_none());
        let short = short.liveness.expect("a probe");
        assert_eq!(
            (short.timeout, short.failures, short.socket),
            (SIDECAR, 10, PathBuf::from("/m/csi/csi.sock"))
        );
        let long =
            of(&["--csi-address=unix:///csi/csi.sock", "--probe-timeout=60s"]).liveness.expect("a probe");
        assert_eq!((long.timeout, long.socket), (Duration::from_secs(60), PathBuf::from("/m/csi/csi.sock")));
        assert!(of(&[]).liveness.is_none());
    }
}
