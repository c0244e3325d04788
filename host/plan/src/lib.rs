//! Decides what to do next, and does nothing.
//!
//! A driver reads the world, and this crate says what can be done right now: it compares what should exist with what was seen, and
//! names single calls, all of which may run at once. Each pass looks again and asks again, so an order of calls is never stored
//! anywhere: it follows from what each resource comes [`after`](Resource::after).
//!
//! Nothing here does I/O, reads a clock or makes random numbers: the crate depends on nothing that can, and time comes in as a value.

mod action;
pub mod addon;
pub mod contract;
pub mod grant;
mod key;
mod resource;
mod snapshot;

pub use action::*;
pub use key::*;
pub use resource::*;
pub use snapshot::*;
