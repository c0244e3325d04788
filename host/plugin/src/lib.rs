//! Runs add-on plugins: WebAssembly components of the world in `wit/cluster-plugin.wit`.
//!
//! A plugin only plans. It gets a [`Request`](contract::Request) and answers with data; it can reach nothing
//! but a bounded log. Each call has an instance of its own, a budget of fuel in place of time, some seconds
//! of a clock for what fuel does not count, a limit of memory and limits for the size of the answer. Whatever
//! a plugin does comes out as an answer or as a [`PluginError`] with a reason for a condition, and never
//! harms the next call.
//!
//! Whether a plan is granted is decided elsewhere; here it is only made sure that it has the form of one.

mod answer;
mod bindings;
mod built_in;
mod cache;
mod child;
mod clock;
mod compiled;
mod compiler;
mod convert;
mod digest;
mod engine;
mod error;
mod guest;
mod limits;
mod magic;
mod plugin;
mod released;
mod schema;
mod settings;
mod text;

pub use built_in::{BuiltIn, built_in};
pub use child::compile_in_child;
pub use compiler::{Compiler, CompilerLimits};
pub use engine::Engine;
pub use error::PluginError;
pub use limits::Limits;
pub use plugin::{Answer, Plugin};
pub use released::Released;
pub use schema::ConfigSchema;
