//! Components in OCI registries: pulls one by the digest of its manifest, and verifies who signed it.
//!
//! A registry is not trusted. Whatever it answers is bounded in size and in time, is used only when it has the
//! digest that was asked for, and comes out as what was wanted or as a typed error; credentials go to the
//! registry and to the token service that it names, and nowhere else. This crate knows neither Kubernetes nor
//! plugins: a caller hands over what the administrator wrote, and gets bytes.
//!
//! Signatures are those of `cosign` with a key pair, in both forms: a payload at the tag `sha256-<hex>.sig`, and
//! bundles (v0.3) that refer to the manifest. The key is all that counts: certificates are ignored, and the
//! transparency log is not asked, so a signature is valid for as long as the key is the one configured.

mod authentication;
mod ca;
mod credentials;
mod digest;
mod error;
mod limits;
mod manifest;
mod pull;
mod repository;
mod signature;
mod source;
mod text;
mod transport;
mod verify;

pub use digest::{Digest, DigestError};
pub use error::{PullError, VerifyError};
pub use limits::Limits;
pub use pull::Pulled;
pub use repository::Repository;
pub use signature::{KeyError, PublicKey, Rejection};
pub use source::Source;
pub use verify::{Format, Verified};
