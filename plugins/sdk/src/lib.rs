//! What the author of an add-on plugin in Rust depends on: implement [`Plugin`], and [`export!`] it.
//!
//! The contract (`wit/cluster-plugin.wit`) speaks in JSON text; here a plugin sees its own configuration as
//! its own type, facts as types, and builds steps with functions that know their schemas. Answers are
//! deterministic as long as the plugin is: JSON objects are sorted by key.
//!
//! Nothing here does I/O. The one thing that leaves a plugin besides its answer is a line in the host's log
//! ([`log()`]); a panic leaves one too.

#![deny(missing_docs)]

mod adapter;
mod bindings;
pub mod csi;
pub mod facts;
pub mod identity;
mod log;
pub mod objects;
pub mod queries;
pub mod settings;
pub mod steps;
mod types;
pub mod versions;

#[doc(hidden)]
pub use adapter::Adapter;
#[doc(hidden)]
pub use bindings::__export_component;
pub use bindings::kurator::cluster_plugin::types::{Diagnostic, Operation, Severity};
pub use log::{Level, log};
pub use types::{Descriptor, Fact, FactValue, Need, Plan, Request, Requires, Step, Stop};

#[doc(hidden)]
pub mod __bindings {
    pub use crate::bindings::*;
}

/// An add-on plugin. Every call happens in a fresh instance, so there is no state to keep.
pub trait Plugin {
    /// The configuration. Its JSON Schema is part of [`Descriptor`].
    type Config: serde::de::DeserializeOwned;

    /// Says what this is.
    fn describe() -> Descriptor;

    /// Finds what the schema cannot say about the configuration. Empty when all is well.
    fn validate(request: &Request<Self::Config>) -> Vec<Diagnostic>;

    /// Says what shall be.
    ///
    /// # Errors
    /// [`Stop`] says why there is no plan, or not yet.
    fn plan(request: &Request<Self::Config>) -> Result<Plan, Stop>;
}

/// Makes a crate of type `cdylib` the component of a [`Plugin`]. Does nothing when the crate is not compiled
/// to Wasm, so that the plugin can be tested as a plain library.
#[macro_export]
macro_rules! export {
    ($plugin:ty) => {
        #[cfg(target_arch = "wasm32")]
        mod component {
            type Component = $crate::Adapter<$plugin>;
            $crate::__export_component!(Component with_types_in $crate::__bindings);
        }
    };
}
