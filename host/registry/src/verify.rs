//! Finds what `cosign` stored about a manifest, and verifies it: bundles that refer to the manifest, by the
//! registry's own list or by the tag that takes its place, and payloads at the tag of the older form.
//!
//! One signature that counts is enough; what else lies there, readable or not, changes nothing.

use std::collections::BTreeSet;

use tokio::time::timeout;

use crate::digest::Digest;
use crate::error::{PullError, VerifyError};
use crate::manifest::{Descriptor, INDEX, Index, MANIFEST, Manifest};
use crate::repository::Repository;
use crate::signature::{BUNDLE, LAYER, PublicKey, Rejection, check_bundle, check_simple};

/// Annotation of a payload that holds its signature.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// Annotation of a payload that was signed with a certificate.
const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
/// What some registries say that an artifact is, in place of its own word: the type of its configuration.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// A signature that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Of what was signed: the manifest.
    pub digest: Digest,
    /// The form of the signature.
    pub format: Format,
    /// The SHA-256 of the key that made it.
    pub key: Digest,
}

/// The forms that signatures have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A bundle that refers to the manifest: what `cosign` makes today.
    Bundle,
    /// A payload at the tag `sha256-<hex>.sig`: what `cosign` made before version 3.
    SimpleSigning,
}

/// What a search has come to so far.
struct Search<'a> {
    repository: &'a Repository,
    digest: &'a Digest,
    key: &'a PublicKey,
    /// Artifacts and payloads that may be signatures, looked at or not: each costs requests.
    found: usize,
    /// Those that turned out to be signatures, and do not count.
    rejected: usize,
    rejection: Option<Rejection>,
    trouble: Option<PullError>,
    seen: BTreeSet<String>,
}

impl Repository {
    /// Verifies that the key signed the manifest of this digest, as `cosign sign --key` does. The transparency log is
    /// not asked.
    ///
    /// # Errors
    /// When no signature counts, for whatever reason.
    pub async fn verify_cosign(&self, digest: &Digest, key: &PublicKey) -> Result<Verified, VerifyError> {
        let overall = self.limits.overall;
        timeout(overall, Search::new(self, digest, key).run()).await.unwrap_or_else(|_| {
            let error = PullError::Unreachable {
                registry: self.name.host().to_owned(),
                why: format!("it took longer than {} seconds", overall.as_secs_f32()),
            };
            Err(VerifyError::Pull { digest: digest.clone(), error })
        })
    }
}

impl<'a> Search<'a> {
    fn new(repository: &'a Repository, digest: &'a Digest, key: &'a PublicKey) -> Self {
        let seen = BTreeSet::new();
        Self { repository, digest, key, found: 0, rejected: 0, rejection: None, trouble: None, seen }
    }

    async fn run(mut self) -> Result<Verified, VerifyError> {
        let artifact_type = BUNDLE.replace('+', "%2B");
        let referrers = format!("referrers/{}?artifactType={artifact_type}", self.digest);
        let tag = format!("manifests/sha256-{}", self.digest.hex());
        for path in [&referrers, &tag] {
            if self.bundles(path).await {
                return Ok(self.verified(Format::Bundle));
            }
        }
        if self.payloads(&format!("{tag}.sig")).await {
            return Ok(self.verified(Format::SimpleSigning));
        }
        Err(self.failure())
    }

    fn verified(&self, format: Format) -> Verified {
        Verified { digest: self.digest.clone(), format, key: self.key.fingerprint() }
    }

    fn failure(self) -> VerifyError {
        let (digest, limit) = (self.digest.clone(), self.repository.limits.signatures);
        match (self.trouble, self.rejection) {
            // Whether another signature counts is not known while some could not be read.
            (Some(error), rejection) if error.is_transient() || rejection.is_none() => {
                VerifyError::Pull { digest, error }
            }
            _ if self.found > limit => VerifyError::TooMany { digest, found: self.found, limit },
            (_, Some(rejection)) => VerifyError::Rejected { digest, rejected: self.rejected, rejection },
            (_, None) => VerifyError::Missing { digest, repository: self.repository.name.to_string() },
        }
    }

    /// Whether a bundle of a list counts.
    async fn bundles(&mut self, path: &str) -> bool {
        let Some(bytes) = self.list(path, INDEX).await else { return false };
        let Ok(index) = serde_json::from_slice::<Index>(&bytes) else {
            self.reject("the list of signatures cannot be read");
            return false;
        };
        for descriptor in index.manifests.iter().filter(|descriptor| may_be_bundle(descriptor)) {
            if self.seen.insert(descriptor.digest.clone()) && self.bundle(descriptor).await {
                return true;
            }
        }
        false
    }

    /// Whether the bundle of an artifact counts.
    async fn bundle(&mut self, artifact: &Descriptor) -> bool {
        if !self.is_next() {
            return false;
        }
        let Ok(digest) = artifact.digest.parse::<Digest>() else {
            return self.reject("the list of signatures names no digest");
        };
        let bytes = self.repository.manifest(&digest, MANIFEST).await;
        let Some(bytes) = self.came(bytes) else { return false };
        let Ok(manifest) = serde_json::from_slice::<Manifest>(&bytes) else {
            return self.reject("its manifest cannot be read");
        };
        if manifest.artifact_type.as_deref() != Some(BUNDLE) {
            return false; // something else that refers to the component
        }
        let [layer] = manifest.layers.as_slice() else {
            return self.reject("its manifest has not got exactly one layer");
        };
        let Some(bundle) = self.blob(layer).await else { return false };
        self.judge(check_bundle(&bundle, self.key, self.digest))
    }

    /// Whether a payload of the older form counts.
    async fn payloads(&mut self, path: &str) -> bool {
        let Some(bytes) = self.list(path, MANIFEST).await else { return false };
        let Ok(manifest) = serde_json::from_slice::<Manifest>(&bytes) else {
            return self.reject("the manifest of signatures cannot be read");
        };
        for layer in manifest.layers.iter().filter(|layer| layer.media_type == LAYER) {
            if self.is_next() && self.payload(layer).await {
                return true;
            }
        }
        false
    }

    async fn payload(&mut self, layer: &Descriptor) -> bool {
        if layer.annotations.contains_key(CERTIFICATE) {
            return self.judge(Err(Rejection::Keyless));
        }
        let Some(signature) = layer.annotations.get(SIGNATURE) else {
            return self.reject("the payload has no signature");
        };
        let Some(payload) = self.blob(layer).await else { return false };
        self.judge(check_simple(&payload, signature, self.key, self.digest))
    }

    /// Counts what may be a signature. Whether it is looked at.
    fn is_next(&mut self) -> bool {
        self.found += 1;
        self.found <= self.repository.limits.signatures
    }

    /// What a path lists; nothing where the registry has not got it, or does not know such paths.
    async fn list(&mut self, path: &str, accept: &str) -> Option<Vec<u8>> {
        match self.repository.lookup(path, accept).await {
            Ok(bytes) => Some(bytes),
            Err(PullError::NotFound { .. } | PullError::Answer { .. }) => None,
            Err(error) => {
                self.trouble(error);
                None
            }
        }
    }

    async fn blob(&mut self, layer: &Descriptor) -> Option<Vec<u8>> {
        let Ok(digest) = layer.digest.parse::<Digest>() else {
            self.reject("its manifest names no digest");
            return None;
        };
        let limit = self.repository.limits.signature;
        let bytes = self.repository.blob(&digest, layer.size, "the signature", limit).await;
        self.came(bytes)
    }

    /// What came; else why it did not is kept, as trouble with the registry or as the fault of this signature.
    fn came(&mut self, bytes: Result<Vec<u8>, PullError>) -> Option<Vec<u8>> {
        match bytes {
            Ok(bytes) => return Some(bytes),
            Err(PullError::DigestMismatch { .. }) => {
                self.judge(Err(Rejection::Tampered));
            }
            Err(
                error @ (PullError::NotFound { .. } | PullError::TooLarge { .. } | PullError::Answer { .. }),
            ) => {
                self.reject(&error.to_string());
            }
            Err(error) => self.trouble(error),
        }
        None
    }

    /// Keeps the first trouble, and one that may pass before any other.
    fn trouble(&mut self, error: PullError) {
        if self.trouble.as_ref().is_none_or(|kept| error.is_transient() && !kept.is_transient()) {
            self.trouble = Some(error);
        }
    }

    fn reject(&mut self, why: &str) -> bool {
        self.judge(Err(Rejection::Malformed { why: why.to_owned() }))
    }

    /// Whether the signature counts; why not is kept of the one that comes closest.
    fn judge(&mut self, checked: Result<(), Rejection>) -> bool {
        let Err(rejection) = checked else { return true };
        tracing::debug!(digest = %self.digest, %rejection, "a signature does not count");
        self.rejected += 1;
        self.rejection = self.rejection.take().max(Some(rejection));
        false
    }
}

/// Whether an entry of a list may be a bundle: its own manifest says whether it is one.
fn may_be_bundle(descriptor: &Descriptor) -> bool {
    matches!(descriptor.artifact_type.as_deref(), None | Some("" | BUNDLE | EMPTY))
}
