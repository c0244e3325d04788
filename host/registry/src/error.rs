//! What can go wrong, each with what to do about it. No message holds a credential, a query of a URL or the body
//! of an answer.

use crate::digest::Digest;
use crate::signature::Rejection;
use crate::text::shown;

/// Why a component was not pulled.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The repository is not written as it has to be.
    #[error("{} {problem}; write it as registry.example.com/path", shown(.repository))]
    Repository {
        /// As the administrator wrote it.
        repository: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The pull secret cannot be read.
    #[error("the pull secret cannot be used: {problem}")]
    PullSecret {
        /// What is wrong with it.
        problem: String,
    },
    /// The bundle of certificates cannot be read.
    #[error("the CA bundle cannot be used: {problem}")]
    CaBundle {
        /// What is wrong with it.
        problem: String,
    },
    /// The registry lets nobody, or not this user, read there.
    #[error("{registry} does not let {} read {repository}: {}", who(*.with_credentials), remedy(*.with_credentials))]
    Unauthorized {
        /// The registry, or its token service.
        registry: String,
        /// What was to be read.
        repository: String,
        /// Whether the pull secret has an entry that was used.
        with_credentials: bool,
    },
    /// The registry has not got it.
    #[error("{repository} has no {what}: check the repository and the digest, and that it was pushed there")]
    NotFound {
        /// Where it was looked for.
        repository: String,
        /// What was looked for.
        what: String,
    },
    /// Nothing can be said until the registry answers.
    #[error("{registry} cannot be reached now ({why}); it is tried again")]
    Unreachable {
        /// The registry, or the host that it sent us to.
        registry: String,
        /// In the words of the system or of HTTP.
        why: String,
    },
    /// TLS failed because of who the registry says that it is.
    #[error(
        "{registry} has a certificate that is not trusted ({why}): put the certificate of the authority that \
         issued it into the CA bundle"
    )]
    Certificate {
        /// The registry, or the host that it sent us to.
        registry: String,
        /// In the words of TLS.
        why: String,
    },
    /// What answers does not speak TLS.
    #[error("{registry} answers without TLS: give it TLS, or say that plain HTTP is meant")]
    NotTls {
        /// The registry, or the host that it sent us to.
        registry: String,
    },
    /// The registry sends us where we do not go.
    #[error("{registry} redirects to {why}")]
    Redirect {
        /// The registry.
        registry: String,
        /// Where to, and why not.
        why: String,
    },
    /// Other bytes than those that were asked for.
    #[error(
        "{what} has the digest {actual} and not {expected}: the registry or something on the way changed it; it \
         is not used"
    )]
    DigestMismatch {
        /// What was read.
        what: &'static str,
        /// What was asked for.
        expected: Digest,
        /// What came.
        actual: Digest,
    },
    /// More than is taken.
    #[error("{what} is larger than {limit} bytes, which is the most that is taken")]
    TooLarge {
        /// What was read.
        what: &'static str,
        /// Its bound.
        limit: u64,
    },
    /// An artifact of another kind.
    #[error(
        "it is no component but {found}: it takes a manifest application/vnd.oci.image.manifest.v1+json with \
         the configuration application/vnd.wasm.config.v0+json and one layer application/wasm"
    )]
    NotAComponent {
        /// The media types that were found.
        found: String,
    },
    /// The registry does not speak the protocol.
    #[error("{registry} answers with what is no {what}: {why}")]
    Answer {
        /// The registry, or its token service.
        registry: String,
        /// What was expected.
        what: &'static str,
        /// What came.
        why: String,
    },
}

impl PullError {
    /// Whether the same request may succeed later, with nothing changed by anybody.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}

fn who(with_credentials: bool) -> &'static str {
    if with_credentials { "the user of the pull secret" } else { "everybody" }
}

fn remedy(with_credentials: bool) -> &'static str {
    if with_credentials {
        "check that its password is right and that it may pull from there"
    } else {
        "name a pull secret that has an entry for it, or make it public"
    }
}

/// Why no signature counts.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// Signatures could not be read.
    #[error("signatures of {digest} could not be read: {error}")]
    Pull {
        /// What should be signed.
        digest: Digest,
        /// Why they could not be read.
        error: PullError,
    },
    /// There is none.
    #[error(
        "{digest} is not signed: neither a bundle refers to it nor is there a tag sha256-<hex>.sig in {repository}; \
         sign it with `cosign sign --key`"
    )]
    Missing {
        /// What should be signed.
        digest: Digest,
        /// Where signatures were looked for.
        repository: String,
    },
    /// There are some, and none of them counts.
    #[error("none of {rejected} signatures of {digest} counts; of the one that comes closest: {rejection}")]
    Rejected {
        /// What should be signed.
        digest: Digest,
        /// How many there are.
        rejected: usize,
        /// Why the one that comes closest does not count.
        rejection: Rejection,
    },
    /// There are more than are looked at, and none of those counts.
    #[error(
        "{found} artifacts may be signatures of {digest}, none of the first {limit} counts and no more are looked at: \
         remove those that are not needed"
    )]
    TooMany {
        /// What should be signed.
        digest: Digest,
        /// How many there are.
        found: usize,
        /// How many are looked at.
        limit: usize,
    },
}
