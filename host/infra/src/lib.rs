//! Decides what to do next for clusters and machines, and does nothing.
//!
//! A driver reads the world, and this crate says what can be done right now: it compares what should exist
//! with what was observed, and names single calls, all of which may run at once. Each reconciliation reads
//! and decides again, so an order of calls is never stored anywhere: it follows from what each resource comes
//! [`after`](model::Resource::after).
//!
//! Nothing here does I/O, reads a clock or makes random numbers: the crate depends on nothing that can, and
//! time comes in as a value.

mod claims;
pub mod cluster;
mod decide;
pub mod gc;
pub mod machine;
pub mod observe;
pub mod pause;
mod persisted_state;
pub mod status;
mod token;

pub use decide::{PlanInput, SEND_WITHIN, TOKEN_AGE, is_gone, plan};
pub(crate) use decide::{proven_from, trusted_from};
pub use persisted_state::{
    CREATED_ANNOTATION, PersistedState, RECORDED_ANNOTATION, Settled, ZONES_ANNOTATION,
};
