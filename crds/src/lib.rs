//! The API of cluster-operator: its custom resources, the names it shares with Cluster API and AWS, and typed
//! views of the Cluster API objects it reads. It prints its CustomResourceDefinitions; it never talks to an
//! API server or to AWS.
//!
//! Spec fields, defaults and validation of the `AWS*` kinds are those of Cluster API Provider AWS (CAPA,
//! v1beta2), so that manifests written for it apply unchanged. The Cluster API contract is v1beta2.

#![allow(clippy::duplicated_attributes, reason = "several printer columns have the same type")]

pub mod cluster;
pub mod cluster_api;
pub mod cluster_plugin;
pub mod conditions;
mod definition;
pub mod identity;
pub mod ingress;
pub mod instance;
mod lenient;
pub mod load_balancer;
pub mod machine;
pub mod metadata;
pub mod names;
pub mod network;
pub mod plugin_module;
mod rules;
mod schema;
pub mod status;
mod unsupported;

pub use cluster::{AWSCluster, AWSClusterSpec, AWSClusterStatus, AWSClusterTemplate, AWSClusterTemplateSpec};
pub use cluster_plugin::{ClusterPlugin, ClusterPluginSpec, ClusterPluginStatus};
pub use definition::{definitions, yaml};
pub use identity::{AWSClusterControllerIdentity, AWSClusterControllerIdentitySpec};
pub use machine::{AWSMachine, AWSMachineSpec, AWSMachineStatus, AWSMachineTemplate, AWSMachineTemplateSpec};
pub use metadata::{Tags, TemplateMetadata};
pub use plugin_module::{PluginModule, PluginModuleSpec, PluginModuleStatus};
