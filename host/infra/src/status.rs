//! The status of clusters and machines: one pure function each. Messages say what is awaited, and who has to
//! act; they are the same as long as nothing changed.

mod cluster;
pub(crate) mod machine;
mod template;

pub use cluster::{Cluster, cluster};
pub use machine::{Machine, machine};
pub use model::condition::{not_ready, paused};
pub use template::machine_template;
