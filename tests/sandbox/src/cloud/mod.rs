//! Everything below the EC2 API: machines, metadata, load balancers and firewall.

use std::sync::Arc;

use crate::World;

/// Follows the emulator and acts out what it says exists; never returns unless it fails.
pub async fn run(_world: Arc<World>) -> anyhow::Result<()> {
    std::future::pending().await
}

/// The kubelet stand-in.
pub mod kubelet {
    /// Runs as the first process of a machine.
    pub fn main(_arguments: Vec<String>) -> anyhow::Result<()> {
        anyhow::bail!("no kubelet yet")
    }
}
