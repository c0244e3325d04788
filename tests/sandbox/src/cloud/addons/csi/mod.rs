//! Stand-ins for the CSI drivers of EBS and EFS, with what their sidecars do: a provisioner and an attacher in the
//! controller, a registrar on every node.
//!
//! As in reality the sidecars of a pod say what its driver is there for. Nothing is ever mounted.

mod attacher;
pub mod ebs;
pub mod efs;
mod node;
mod provisioner;

pub use provisioner::{gone, worse};
