//! The health endpoint that kubeadm waits for: `http://127.0.0.1:10248/healthz`.

use anyhow::{Context, Result};
use tokio::net::TcpListener;

/// Serves until it is cancelled.
///
/// # Errors
/// When the port is taken.
pub async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:10248").await.context("listening for health checks")?;
    let router = axum::Router::new().route("/healthz", axum::routing::get(|| async { "ok" }));
    axum::serve(listener, router).await.context("serving health checks")
}
