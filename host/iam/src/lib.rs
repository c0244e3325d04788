//! IAM roles for service accounts: checks what was read of a role, and makes the public documents of an
//! issuer.
//!
//! Policies are evaluated by the rules that AWS documents for IAM. What cannot be evaluated from plain data
//! is unknown and named, never guessed. Nothing here asks AWS, and nothing here takes, keeps or prints a
//! private key.

pub mod check;
mod condition;
mod document;
pub mod instance_roles;
pub mod issuer;
pub mod partition;
mod pattern;
pub mod permissions;
pub mod publication;
pub mod role;
pub mod trust;
