//! The world: one set of Linux namespaces in which everything of the bed lives and with which it dies.
//!
//! [`launch`] and [`enter`] are for processes outside, [`inside`] is what runs in it. Nothing outlives the
//! world's first process, since that is the first of a process id namespace.

pub mod enter;
pub mod inside;
pub mod launch;
pub mod network;
pub mod options;
pub mod process;
pub mod relay;
pub mod state;

use std::path::PathBuf;

use crate::emulator;
use tools::Tools;

/// What everything inside the world needs to know about it.
#[derive(Clone, Debug)]
pub struct World {
    /// The directory of this world: `logs/`, `machines/`, `management/`, `hosts`.
    pub directory: PathBuf,
    pub tools: Tools,
    pub emulator: emulator::Client,
}

impl World {
    /// The bridge that stands for the network of all VPCs.
    pub const BRIDGE: &str = "vpc";
    /// The bridge's own address, with prefix length 8; the emulator listens on it.
    pub const BRIDGE_ADDRESS: &str = "10.255.255.254";
    /// Address of the instance metadata service, also on the bridge.
    pub const METADATA_ADDRESS: &str = "169.254.169.254";

    /// Log file of the process `name`.
    pub fn log(&self, name: &str) -> PathBuf {
        self.directory.join("logs").join(format!("{name}.log"))
    }

    /// The file that is `/etc/hosts` inside the world; change it in place, since it is bind-mounted.
    pub fn hosts(&self) -> PathBuf {
        self.directory.join("hosts")
    }

    /// Files of the management cluster.
    pub fn management(&self) -> PathBuf {
        self.directory.join("management")
    }
}
