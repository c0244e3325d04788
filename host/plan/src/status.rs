//! What is said about a cluster or machine on its object: one pure function each. Messages say what is awaited, and who has to act; they are
//! the same as long as nothing changed.

mod cluster;
pub(crate) mod condition;
mod machine;
mod template;

pub use cluster::{Cluster, cluster};
pub use condition::{not_ready, paused};
pub use machine::{Machine, machine};
pub use template::machine_template;
