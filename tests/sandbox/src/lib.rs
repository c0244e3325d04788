//! The test bed: a private world on one Linux machine in which everything of Cluster API and Kubernetes is
//! real, and only EC2 and the container runtime are imitated.
//!
//! The crate `tools` finds or builds the programs; `world` is the set of namespaces they run in, `emulator`
//! speaks with the AWS emulator, `management` runs the management cluster, `operator` runs the program under
//! test, and `cloud` turns instances of the emulator into machines that boot. [`Bed`] is what tests and the
//! demo use; `certificate` makes and judges certificates for tests, `answers` is a server that answers as it
//! is told.
//!
//! It needs no root, no Docker, no virtual machine and no port of the host, and never changes anything
//! outside its cache directory.

pub mod answers;
pub mod bed;
pub mod certificate;
pub mod cloud;
pub mod control;
pub mod demo;
pub mod emulator;
pub mod kubeconfig;
pub mod management;
pub mod operator;
pub mod world;

pub use bed::{Bed, Workload};
pub use tools::{Tools, paths};
pub use world::World;
pub use world::options::{Options, Parts};
