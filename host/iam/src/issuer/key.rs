//! Public keys of an issuer, and the set of them that it publishes (RFC 7517). A private key is refused, and
//! no part of it is kept or printed.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pkcs1::RsaPublicKeyRef;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use spki::der::asn1::BitStringRef;
use spki::der::{Decode, Encode, pem};
use spki::{ObjectIdentifier, SubjectPublicKeyInfoRef};

/// RFC 5480.
const ELLIPTIC_CURVE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P_384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");

/// Why a text gives no public keys. Nothing of the text is repeated: it may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("it holds a private key; give the public half, which Secret <cluster>-sa has at tls.crt")]
    Private,
    #[error("it holds no PEM block; a public key begins with -----BEGIN PUBLIC KEY-----")]
    Empty,
    #[error("its PEM block {number} is broken: {error}")]
    Pem { number: usize, error: String },
    #[error("its PEM block {number} is a {label}; a public key begins with -----BEGIN PUBLIC KEY-----")]
    Label { number: usize, label: String },
    #[error("its PEM block {number} is no public key: {error}")]
    Der { number: usize, error: String },
    #[error(
        "its PEM block {number} is a public key of algorithm {algorithm}; service account tokens are signed by RSA, P-256 or P-384"
    )]
    Algorithm { number: usize, algorithm: String },
}

/// Why a text is no key set.
#[derive(Debug, thiserror::Error)]
#[error("it is not a set of public keys")]
pub struct SetError(#[source] serde_json::Error);

/// A public key that tokens are checked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(Jwk);

/// A public key as key sets hold it (RFC 7518). Numbers are base64url without padding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jwk {
    #[serde(rename = "use")]
    use_: String,
    kty: String,
    kid: String,
    alg: String,
    /// Of RSA keys: the modulus and the exponent.
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    e: Option<String>,
    /// Of keys on elliptic curves: the curve and the point.
    #[serde(skip_serializing_if = "Option::is_none")]
    crv: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    y: Option<String>,
}

impl PublicKey {
    /// Reads the public keys of a PEM text, such as `tls.crt` of Secret `<cluster>-sa`, in their order.
    ///
    /// # Errors
    /// It has none, or a block that is not a public key of a kind that signs tokens. One private key refuses
    /// all.
    pub fn from_pem(text: &str) -> Result<Vec<PublicKey>, KeyError> {
        if text.contains("PRIVATE KEY-----") {
            return Err(KeyError::Private);
        }
        let mut res = Vec::new();
        let mut rest = text;
        while let Some(begin) = rest.find("-----BEGIN ") {
            rest = &rest[begin..];
            let length = rest
                .find("-----END ")
                .and_then(|end| Some(end + 9 + rest[end + 9..].find("-----")? + 5))
                .unwrap_or(rest.len());
            res.push(PublicKey::from_block(res.len() + 1, &rest[..length])?);
            rest = &rest[length..];
        }
        if res.is_empty() { Err(KeyError::Empty) } else { Ok(res) }
    }

    /// What tokens name the key by: Kubernetes takes base64url(SHA-256(SubjectPublicKeyInfo in DER)).
    pub fn kid(&self) -> &str {
        &self.0.kid
    }

    fn from_block(number: usize, block: &str) -> Result<PublicKey, KeyError> {
        let (label, der) = pem::decode_vec(block.as_bytes())
            .map_err(|error| KeyError::Pem { number, error: error.to_string() })?;
        let broken = |error: spki::der::Error| KeyError::Der { number, error: error.to_string() };
        match label {
            "PUBLIC KEY" => {
                let info = SubjectPublicKeyInfoRef::from_der(&der).map_err(broken)?;
                let bits = info.subject_public_key.as_bytes().unwrap_or_default();
                match info.algorithm.oid {
                    pkcs1::ALGORITHM_OID => rsa(bits).map_err(broken),
                    ELLIPTIC_CURVE => elliptic_curve(&info, bits).map_err(broken)?.ok_or_else(|| {
                        KeyError::Algorithm { number, algorithm: "EC of another curve or form".to_owned() }
                    }),
                    other => Err(KeyError::Algorithm { number, algorithm: other.to_string() }),
                }
            }
            "RSA PUBLIC KEY" => rsa(&der).map_err(broken),
            other => Err(KeyError::Label { number, label: other.to_owned() }),
        }
    }
}

/// Encodes anew, so that the name is that of the key and not of how it was written.
fn rsa(der: &[u8]) -> Result<PublicKey, spki::der::Error> {
    let key = RsaPublicKeyRef::from_der(der)?;
    let info = SubjectPublicKeyInfoRef {
        algorithm: pkcs1::ALGORITHM_ID,
        subject_public_key: BitStringRef::from_bytes(der)?,
    };
    let (n, e) = (Some(number(key.modulus.as_bytes())), Some(number(key.public_exponent.as_bytes())));
    Ok(public_key(
        &info.to_der()?,
        Jwk { kty: "RSA".to_owned(), alg: "RS256".to_owned(), n, e, ..Jwk::default() },
    ))
}

/// None for another curve, or a point that is compressed.
fn elliptic_curve(
    info: &SubjectPublicKeyInfoRef<'_>,
    point: &[u8],
) -> Result<Option<PublicKey>, spki::der::Error> {
    let curve = info.algorithm.parameters_oid().unwrap_or(ELLIPTIC_CURVE);
    let (algorithm, crv, length) = match curve {
        P_256 => ("ES256", "P-256", 32),
        P_384 => ("ES384", "P-384", 48),
        _ => return Ok(None),
    };
    let Some((4, numbers)) = point.split_first().map(|(form, numbers)| (*form, numbers)) else {
        return Ok(None);
    };
    if numbers.len() != 2 * length {
        return Ok(None);
    }
    let (x, y) = numbers.split_at(length);
    let (crv, x, y) = (Some(crv.to_owned()), Some(number(x)), Some(number(y)));
    Ok(Some(public_key(
        &info.to_der()?,
        Jwk { kty: "EC".to_owned(), alg: algorithm.to_owned(), crv, x, y, ..Jwk::default() },
    )))
}

fn number(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn public_key(info: &[u8], jwk: Jwk) -> PublicKey {
    PublicKey(Jwk { use_: "sig".to_owned(), kid: URL_SAFE_NO_PAD.encode(Sha256::digest(info)), ..jwk })
}

impl Jwk {
    pub fn kid(&self) -> &str {
        &self.kid
    }
}

/// The keys that an issuer publishes: the one that signs, then those that tokens may still be signed by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeySet {
    keys: Vec<Jwk>,
}

impl KeySet {
    /// A set of keys in their order, each once.
    pub fn new(keys: &[PublicKey]) -> KeySet {
        KeySet { keys: Vec::new() }.and(keys.iter().map(|it| it.0.clone()))
    }

    /// Reads a set that was published.
    ///
    /// # Errors
    /// It is no key set, or has anything that this crate does not publish, such as a member of a private key.
    pub fn read(text: &str) -> Result<KeySet, SetError> {
        serde_json::from_str(text).map_err(SetError)
    }

    /// This set, and after it the keys of an older one that it does not have: tokens signed by those stay
    /// good.
    #[must_use]
    pub fn keeping(self, older: &KeySet) -> KeySet {
        self.and(older.keys.iter().cloned())
    }

    /// This set without the keys of other names: what is left when no token can be signed by those any more.
    #[must_use]
    pub fn only(mut self, kids: &[&str]) -> KeySet {
        self.keys.retain(|it| kids.contains(&it.kid()));
        self
    }

    /// In the order of the set.
    pub fn keys(&self) -> &[Jwk] {
        &self.keys
    }

    /// Whether tokens signed by a key can be checked.
    pub fn contains(&self, kid: &str) -> bool {
        self.keys.iter().any(|it| it.kid == kid)
    }

    /// Signature algorithms, each once.
    pub fn algorithms(&self) -> Vec<&str> {
        self.keys.iter().map(|it| it.alg.as_str()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// What is published: the same bytes for the same set.
    pub fn to_json(&self) -> String {
        pretty(self)
    }

    fn and(mut self, keys: impl Iterator<Item = Jwk>) -> KeySet {
        for key in keys {
            if !self.contains(key.kid()) {
                self.keys.push(key);
            }
        }
        self
    }
}

/// JSON for people and machines. The types here have text keys and no maps that could fail.
pub(super) fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
