//! A machine: a set of namespaces plugged into its VPC, with a root of its own, whose first process is the
//! kubelet stand-in.
//!
//! Killing that process kills everything on the machine. What happens inside is `root` (mounts), `boot` and
//! `kubelet`.

pub mod root;

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tokio::process::{Child, Command};

use super::network::Namespace;
use super::vpc::Vpc;
use crate::World;
use crate::emulator::{self, Instance};

/// What a machine's first process is told, in a file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Specification {
    /// Instance id.
    pub instance: String,
    /// Private DNS name.
    pub hostname: String,
    /// Private IPv4 address.
    pub address: String,
    /// Directory that becomes the machine's root.
    pub root: PathBuf,
    /// Becomes `/etc/hosts`.
    pub hosts: PathBuf,
    /// Becomes `/var/log/machine`.
    pub logs: PathBuf,
    /// The programs of Kubernetes.
    pub programs: PathBuf,
    /// cloud-init, unpacked.
    pub cloud_init: PathBuf,
    /// Directories that keep their path: the Python environment that has `aws`, and what it is based on.
    pub kept: Vec<PathBuf>,
}

/// A machine that was started.
#[derive(Debug)]
pub struct Machine {
    network: Namespace,
    directory: PathBuf,
    /// The process whose end ends the machine.
    first: Child,
    /// The firewall script that is loaded.
    rules: String,
    ended: bool,
}

impl Machine {
    /// Starts the machine of a running instance, with nothing admitted to it yet.
    ///
    /// # Errors
    /// When the instance has no address or a namespace cannot be made; what was made is removed again.
    pub async fn boot(
        world: &World,
        vpc: &Vpc,
        instance: &Instance,
        kept: &[PathBuf],
        rules: String,
    ) -> Result<Self> {
        let address = instance.private_ip.clone().context("the instance has no private address")?;
        let network = Namespace::create(&instance.id).await?;
        match Self::start(world, vpc, instance, kept, &network, address, &rules).await {
            Ok((directory, first)) => Ok(Self { network, directory, first, rules, ended: false }),
            Err(error) => {
                network.delete().await?;
                Err(error)
            }
        }
    }

    async fn start(
        world: &World,
        vpc: &Vpc,
        instance: &Instance,
        kept: &[PathBuf],
        network: &Namespace,
        address: String,
        rules: &str,
    ) -> Result<(PathBuf, Child)> {
        plug(vpc, &instance.id, &address).await?;
        network.nft(rules).await?;
        let directory = world.directory.join("machines").join(&instance.id);
        let specification = Specification {
            instance: instance.id.clone(),
            hostname: hostname(instance, &address),
            address,
            root: directory.join("root"),
            hosts: vpc.hosts.clone(),
            logs: world.directory.join("logs"),
            programs: world.tools.bin.clone(),
            cloud_init: cloud_init(world),
            kept: kept.to_vec(),
        };
        std::fs::create_dir_all(&specification.root)
            .with_context(|| format!("creating {}", specification.root.display()))?;
        let file = directory.join("machine.json");
        let text =
            serde_json::to_vec_pretty(&specification).context("encoding the machine's specification")?;
        std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        let log = world.log(&format!("machine-{}-kubelet", instance.id));
        Ok((directory, spawn(network, &file, &log)?))
    }

    /// Loads the firewall script if it differs from the one that is loaded.
    pub async fn filter(&mut self, rules: String) -> Result<()> {
        if self.rules != rules {
            self.network.nft(&rules).await?;
            self.rules = rules;
        }
        Ok(())
    }

    /// Says in the log when the machine ended by itself, which it should not; it stays down, like a crashed
    /// one.
    pub fn watch(&mut self, instance: &str) {
        if let (false, Ok(Some(status))) = (self.ended, self.first.try_wait()) {
            tracing::error!(instance, %status, "the machine's first process ended");
            self.ended = true;
        }
    }

    /// Kills everything on the machine and removes its disk and its network.
    pub async fn kill(mut self) -> Result<()> {
        self.first.kill().await.context("killing the first process")?;
        self.network.delete().await?;
        // What was killed lets go of its mounts a moment later.
        let mut result = Ok(());
        for _ in 0..20 {
            result = std::fs::remove_dir_all(&self.directory);
            if result.is_ok() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        result.with_context(|| format!("removing {}", self.directory.display()))
    }
}

/// Copy of cloud-init that an image for Cluster API has; see [`super::image`].
pub fn cloud_init(world: &World) -> PathBuf {
    world.directory.join("cloud-init")
}

fn hostname(instance: &Instance, address: &str) -> String {
    match &instance.private_dns_name {
        Some(name) if !name.is_empty() => name.clone(),
        _ => format!("ip-{}.ec2.internal", address.replace('.', "-")),
    }
}

/// Connects the machine's `eth0` with the bridge of its VPC.
async fn plug(vpc: &Vpc, instance: &str, address: &str) -> Result<()> {
    // Names of network devices have at most 15 bytes; the last digits of an instance id are as random as the
    // first.
    let port: String = instance.chars().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect();
    let (bridge, gateway) = (World::BRIDGE, World::BRIDGE_ADDRESS);
    vpc.network.ip(&format!("link add v{port} type veth peer name eth0 netns {instance}\nlink set v{port} master {bridge} up\n")).await?;
    let mut batch = format!("address add {address}/32 dev eth0\nlink set eth0 up\n");
    for cidr in &vpc.cidrs {
        batch += &format!("route add {cidr} dev eth0 scope link src {address}\n");
    }
    batch += &format!("route add default via {gateway} dev eth0 onlink\n");
    Namespace::named(instance).ip(&batch).await
}

fn spawn(network: &Namespace, specification: &Path, log: &Path) -> Result<Child> {
    let open = || -> std::io::Result<(File, File)> {
        let file = OpenOptions::new().create(true).append(true).open(log)?;
        Ok((file.try_clone()?, file))
    };
    let (output, errors) = open().with_context(|| format!("opening {}", log.display()))?;
    let network = network.path().context("a machine has a network namespace of its own")?;
    let program = std::env::current_exe().context("finding this program")?;
    Command::new("nsenter")
        .arg(format!("--net={}", network.display()))
        .args(["unshare", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child=KILL", "--"])
        .arg(program)
        .args(["kubelet".as_ref(), specification.as_os_str()])
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        // By it AWS's SDK finds where to assume roles.
        .env("AWS_ENDPOINT_URL", emulator::ENDPOINT)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .kill_on_drop(true)
        .spawn()
        .context("starting the machine's first process")
}
