//! The world's own network, `/etc/hosts` and `/run`: made inside the namespaces, seen nowhere else.

use std::path::Path;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

use super::World;

/// Makes loopback, the bridge with its addresses, and the private files.
pub async fn set_up(directory: &Path) -> Result<()> {
    let bridge = World::BRIDGE;
    let address = format!("{}/8", World::BRIDGE_ADDRESS);
    let metadata = format!("{}/32", World::METADATA_ADDRESS);
    run("ip", &["link", "set", "lo", "up"]).await?;
    run("ip", &["link", "add", bridge, "type", "bridge"]).await?;
    run("ip", &["address", "add", &address, "dev", bridge]).await?;
    run("ip", &["address", "add", &metadata, "dev", bridge]).await?;
    run("ip", &["link", "set", bridge, "up"]).await?;
    run("sysctl", &["-q", "-w", "net.ipv4.ip_forward=1"]).await?;
    private_files(directory).await
}

async fn private_files(directory: &Path) -> Result<()> {
    let hosts = directory.join("hosts");
    let text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";
    std::fs::write(&hosts, text).with_context(|| format!("writing {}", hosts.display()))?;
    bind(&hosts, "/etc/hosts").await?;
    // No name server can be reached from here: without one, a lookup fails at once.
    let resolver = directory.join("resolv.conf");
    std::fs::write(&resolver, "").with_context(|| format!("writing {}", resolver.display()))?;
    if Path::new("/etc/resolv.conf").exists() {
        bind(&resolver, "/etc/resolv.conf").await?;
    }
    // `/run/netns` may be missing, and an ordinary user cannot create it in the real `/run`. A world that
    // lives below `/run` must not hide itself.
    let run_directory = if directory.starts_with("/run") { "/run/netns" } else { "/run" };
    run("mount", &["-t", "tmpfs", "-o", "mode=755", "tmpfs", run_directory]).await?;
    std::fs::create_dir_all("/run/netns").context("creating /run/netns")
}

async fn bind(source: &Path, target: &str) -> Result<()> {
    run("mount", &["--bind", &source.display().to_string(), target]).await
}

/// Runs a system program to its end.
pub async fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .await
        .with_context(|| format!("starting {program}"))?;
    if !output.status.success() {
        bail!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
