//! The HTTP endpoints for probes and metrics. They show nothing of any object, and no request changes
//! anything.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// Serves `/metrics` until the process ends.
///
/// # Errors
/// The address cannot be listened on.
pub async fn serve_metrics(address: SocketAddr, metrics: Metrics) -> anyhow::Result<()> {
    let text = move || async move {
        match metrics.text() {
            Ok(text) => {
                ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
                    .into_response()
            }
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    };
    serve("metrics", address, Router::new().route("/metrics", get(text))).await
}

/// Serves `/healthz` (always ok while the process runs) and `/readyz` (ok once `ready` says so) until the
/// process ends.
///
/// # Errors
/// The address cannot be listened on.
pub async fn serve_health(
    address: SocketAddr,
    ready: Arc<dyn Fn() -> bool + Send + Sync>,
) -> anyhow::Result<()> {
    let readyz = move || async move {
        if ready() {
            (StatusCode::OK, "ok")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "the management API has not been read yet")
        }
    };
    let router = Router::new().route("/healthz", get(|| async { "ok" })).route("/readyz", get(readyz));
    serve("health", address, router).await
}

async fn serve(what: &'static str, address: SocketAddr, router: Router) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("--{what}-address {address} cannot be listened on"))?;
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, what, "endpoint ended");
        }
    });
    Ok(())
}
