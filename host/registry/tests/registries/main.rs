//! Components and signatures in real registries: one that lists what refers to an artifact, and one that does not.

mod access;
mod cosign;
mod hostile;
mod pulling;
mod push;
mod servers;
mod signing;
mod verifying;
