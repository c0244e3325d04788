//! What a world is asked to be.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Which parts of the bed come up.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq, clap::ValueEnum)]
pub enum Parts {
    /// Everything.
    #[default]
    All,
    /// The emulator, the management cluster and Cluster API, but no operator.
    Management,
    /// etcd and kube-apiserver with this project's custom resources and admission policies, for tests of the
    /// API.
    ApiServer,
    /// The AWS emulator alone.
    Emulator,
}

/// Everything that can be chosen about a world.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub struct Options {
    /// Name of the world; one machine can hold several.
    pub name: String,
    pub parts: Parts,
    /// How long the emulator stays in each transitional state.
    pub delay: Duration,
    /// The operator's program; `None` takes the workspace's release build.
    pub operator: Option<PathBuf>,
    /// Further arguments of the operator's program.
    pub operator_arguments: Vec<String>,
    /// Further arguments of the emulator, such as `--fault` or `--page-size`.
    pub emulator_arguments: Vec<String>,
    /// Whether instances boot and load balancers forward. Without, the emulator's own account of them stands.
    pub boots: bool,
    /// Whether the world ends with the process that started it, however that ends.
    pub tied: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            parts: Parts::All,
            delay: Duration::from_secs(2),
            operator: None,
            operator_arguments: Vec::new(),
            emulator_arguments: Vec::new(),
            boots: true,
            tied: false,
        }
    }
}
