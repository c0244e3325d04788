//! The private `/etc/hosts` files: in the world the load balancers, in a VPC its machines as well.
//!
//! There is no other name resolution in the bed. The files are bind-mounted, so they are changed in place.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context, Result};

use crate::emulator::State;

/// First line of a machine's hosts file.
const LOCAL: &str = "127.0.0.1 localhost\n";

/// `base` and a line for each load balancer.
pub fn world(base: &str, load_balancers: &[(String, Ipv4Addr)]) -> String {
    load_balancers.iter().fold(base.to_owned(), |text, (name, address)| text + &format!("{address} {name}\n"))
}

/// The hosts file of the machines in `vpc`.
pub fn vpc(state: &State, vpc: &str, load_balancers: &[(String, Ipv4Addr)]) -> String {
    let instances = state.instances.iter().filter(|instance| instance.vpc_id.as_deref() == Some(vpc));
    let alive = instances.filter(|instance| matches!(instance.state.as_str(), "pending" | "running"));
    let lines = alive.filter_map(|instance| {
        Some(format!("{} {}\n", instance.private_ip.as_deref()?, instance.private_dns_name.as_deref()?))
    });
    world(LOCAL, load_balancers) + &lines.collect::<String>()
}

/// Makes `content` the content of the file at `path`, which keeps its inode. A reader never finds it empty.
pub fn write(path: &Path, content: &str) -> Result<()> {
    if std::fs::read_to_string(path).is_ok_and(|current| current == content) {
        return Ok(());
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .with_context(|| format!("opening {}", path.display()))?;
    let write = |file: &mut std::fs::File| {
        file.write_all(content.as_bytes())?;
        file.set_len(content.len() as u64)
    };
    write(&mut file).with_context(|| format!("writing {}", path.display()))
}
