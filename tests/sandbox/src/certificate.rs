//! Serving certificates for scenarios, as Secrets and webhook configurations hold them: base64 of PEM. It
//! makes one in the name of an authority whose key is at hand, and says whether a client would accept one. It
//! keeps nothing and never talks to a cluster.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose,
};
use sha2::{Digest, Sha256};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};

/// A certificate and its key.
pub struct Serving {
    /// Base64 of PEM.
    pub certificate: String,
    /// Base64 of PEM.
    pub key: String,
    /// Hex SHA-256 of the certificate in PEM.
    pub digest: String,
}

/// Makes a certificate for a server that is called by any of `names`. `key` is the authority's, base64 of
/// PEM.
///
/// # Errors
/// When the key cannot be read or a name is none.
pub fn sign(
    authority: &str,
    key: &str,
    names: &[String],
    from: SystemTime,
    until: SystemTime,
) -> Result<Serving> {
    let mut issuer = CertificateParams::new(Vec::new()).context("describing the authority")?;
    issuer.distinguished_name = DistinguishedName::new();
    issuer.distinguished_name.push(DnType::CommonName, authority);
    issuer.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority_key = KeyPair::from_pem(&decoded(key)?).context("reading the authority's key")?;
    let issuer = Issuer::new(issuer, authority_key);
    let mut params = CertificateParams::new(names.to_vec()).context("describing a server's certificate")?;
    params.distinguished_name.push(DnType::CommonName, "server");
    params.not_before = from.into();
    params.not_after = until.into();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let own = KeyPair::generate().context("making a key")?;
    let certificate = params.signed_by(&own, &issuer).context("signing a certificate")?.pem();
    let digest = Sha256::digest(certificate.as_bytes()).iter().map(|it| format!("{it:02x}")).collect();
    Ok(Serving {
        certificate: STANDARD.encode(certificate),
        key: STANDARD.encode(own.serialize_pem()),
        digest,
    })
}

/// Asks whether a client that trusts `bundle` would accept the certificate of a server that it calls by
/// `name`, at that time.
///
/// # Errors
/// Why it would not.
pub fn accept(certificate: &str, bundle: &str, name: &str, at: SystemTime) -> Result<()> {
    let (certificate, bundle) = (decoded(certificate)?, decoded(bundle)?);
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(root.context("reading a bundle")?).context("trusting an authority")?;
    }
    let certificate =
        CertificateDer::from_pem_slice(certificate.as_bytes()).context("reading a certificate")?;
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::new(ring::default_provider()));
    let verifier = verifier.build().context("trusting a bundle")?;
    let name = ServerName::try_from(name).context("reading a server's name")?;
    let at = UnixTime::since_unix_epoch(at.duration_since(UNIX_EPOCH).context("reading a time")?);
    verifier.verify_server_cert(&certificate, &[], &name, &[], at).context("verifying a certificate")?;
    Ok(())
}

fn decoded(text: &str) -> Result<String> {
    let bytes = STANDARD.decode(text).context("reading base64")?;
    String::from_utf8(bytes).context("reading PEM")
}
