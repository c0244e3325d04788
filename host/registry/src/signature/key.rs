//! The public key that signatures are verified with.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};
use sha2::{Digest as _, Sha256};
use spki::der::{Decode as _, pem};
use spki::{ObjectIdentifier, SubjectPublicKeyInfoRef};

use crate::digest::Digest;

/// Bytes of a key as PEM.
const LENGTH: usize = 8 << 10;
const ELLIPTIC_CURVE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
/// `cosign` signs with it in a form (Ed25519ph) that `ring` has not got.
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// A public key: ECDSA with P-256, which is what `cosign generate-key-pair` makes, or RSA of 2048 bits or more.
#[derive(Clone)]
pub struct PublicKey {
    algorithm: &'static dyn VerificationAlgorithm,
    bits: Vec<u8>,
    der: Vec<u8>,
}

/// Why a text is no public key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No PEM.
    #[error("it is no PEM: it takes the file cosign.pub, which begins with -----BEGIN PUBLIC KEY-----")]
    Pem,
    /// PEM of something else.
    #[error("it is PEM of {label} and not of PUBLIC KEY: it takes the file cosign.pub")]
    Label {
        /// What the PEM says that it is, when that is something usual.
        label: &'static str,
    },
    /// The content is no key.
    #[error("its content is no public key")]
    Content,
    /// A key of another kind.
    #[error(
        "it is a key of another kind ({algorithm}): it takes ECDSA with P-256 or RSA (2048 to 8192 bits)"
    )]
    Algorithm {
        /// Its name, or its object identifiers.
        algorithm: String,
    },
}

impl PublicKey {
    /// Reads a key as `cosign generate-key-pair` writes it to `cosign.pub`.
    ///
    /// # Errors
    /// When it is no such key. The message holds nothing of the text, which may be a private key by mistake.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        if text.len() > LENGTH {
            return Err(KeyError::Pem);
        }
        let (label, der) = pem::decode_vec(text.trim().as_bytes()).map_err(|_| KeyError::Pem)?;
        if label != "PUBLIC KEY" {
            let label = if label.contains("PRIVATE KEY") { "a private key" } else { "something else" };
            return Err(KeyError::Label { label });
        }
        let info = SubjectPublicKeyInfoRef::from_der(&der).map_err(|_| KeyError::Content)?;
        let bits = info.subject_public_key.as_bytes().ok_or(KeyError::Content)?.to_vec();
        let curve = info.algorithm.parameters_oid().ok();
        let algorithm: &'static dyn VerificationAlgorithm = match info.algorithm.oid {
            ELLIPTIC_CURVE if curve == Some(P_256) => &ECDSA_P256_SHA256_ASN1,
            RSA => &RSA_PKCS1_2048_8192_SHA256,
            ED25519 => return Err(KeyError::Algorithm { algorithm: "Ed25519".to_owned() }),
            other => {
                let algorithm = curve.map_or_else(|| other.to_string(), |curve| format!("{other} {curve}"));
                return Err(KeyError::Algorithm { algorithm });
            }
        };
        Ok(Self { algorithm, bits, der })
    }

    /// The SHA-256 of the key: what it is known by.
    pub fn fingerprint(&self) -> Digest {
        Digest::of(&self.der)
    }

    /// What `cosign` names the key by in a bundle.
    pub fn hint(&self) -> String {
        STANDARD.encode(Sha256::digest(&self.der))
    }

    /// Whether the key made a signature of exactly these bytes.
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(self.algorithm, &self.bits).verify(message, signature).is_ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PublicKey({})", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_public_key_is_refused_and_not_shown() {
        let key = |label: &str| format!("-----BEGIN {label}-----\naHVudGVyMg==\n-----END {label}-----\n");
        for (text, expected) in [
            (String::new(), KeyError::Pem),
            ("hunter2".to_owned(), KeyError::Pem),
            ("x".repeat(1 << 20), KeyError::Pem),
            (key("ENCRYPTED SIGSTORE PRIVATE KEY"), KeyError::Label { label: "a private key" }),
            (key("CERTIFICATE"), KeyError::Label { label: "something else" }),
            (key("PUBLIC KEY"), KeyError::Content),
        ] {
            let error = PublicKey::from_pem(&text).expect_err(&text);
            assert_eq!(error, expected);
            assert!(!error.to_string().contains("aHVu"), "{error}");
        }
    }

    #[test]
    fn keys_of_other_kinds_are_refused_by_name() {
        let ed25519 = "-----BEGIN PUBLIC KEY-----\n\
            MCowBQYDK2VwAyEAe9V8Dio5XPkP7AEh+ki1hJVtr60xfpwRbJGARY+LgpQ=\n-----END PUBLIC KEY-----\n";
        let error = PublicKey::from_pem(ed25519).expect_err("another kind");
        assert_eq!(error, KeyError::Algorithm { algorithm: "Ed25519".to_owned() });
        let p_384 = "-----BEGIN PUBLIC KEY-----\n\
            MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEq0fm1LOmhaBo2sh5zEyD4K/mmeRYGm9l\n\
            I2+XqYxfeyzRIFKlxjlOJKVGXDzBJjPsPP+WVXvXl4mP9mJtFkQ2ws5G/d25kPmM\n\
            vHOVPQHDaB8yhEVOVrPI+bLGVUnfCIrC\n-----END PUBLIC KEY-----\n";
        let error = PublicKey::from_pem(p_384).expect_err("another curve");
        assert_eq!(error, KeyError::Algorithm { algorithm: "1.2.840.10045.2.1 1.3.132.0.34".to_owned() });
    }
}
