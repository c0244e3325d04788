//! The crate against the AWS emulator, which is as strict as AWS: each test has an emulator process of its
//! own.

mod administrator;
mod attributes;
mod bed;
mod cluster;
mod documents;
mod faults;
mod kinds;
mod leftovers;
mod lookup;
mod machines;
mod policies;
mod rights;
mod roles;
mod sweep;
