//! Stand-ins for what CSI drivers do on nodes, and for the EFS driver's controller with its provisioner. The
//! controller of EBS runs for real.
//!
//! As in reality the sidecars of a pod say what its driver is there for. Nothing is ever mounted.

pub mod ebs;
pub mod efs;
mod growth;
mod node;
mod provisioner;

pub use provisioner::{gone, worse};
