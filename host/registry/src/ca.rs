//! Whom TLS trusts: the authorities of the system, and those that the administrator adds.

use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::error::PullError;

/// A TLS client that trusts the system and the bundle.
///
/// # Errors
/// When the bundle holds no certificate, or one that cannot be read.
pub fn client_config(bundle: Option<&str>) -> Result<ClientConfig, PullError> {
    let client = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| PullError::CaBundle { problem: error.to_string() })?;
    Ok(client.with_root_certificates(roots(bundle)?).with_no_client_auth())
}

fn roots(bundle: Option<&str>) -> Result<RootCertStore, PullError> {
    let wrong = |problem: String| PullError::CaBundle { problem };
    let mut roots = RootCertStore::empty();
    // A system may well have some that are of no use, or none at all; the bundle may be enough.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(bundle) = bundle {
        let mut added = 0;
        for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            let number = added + 1;
            let certificate =
                certificate.map_err(|_| wrong(format!("certificate {number} is not written as PEM")))?;
            roots
                .add(certificate)
                .map_err(|error| wrong(format!("certificate {number} is none of an authority: {error}")))?;
            added = number;
        }
        if added == 0 {
            return Err(wrong("it holds no certificate (-----BEGIN CERTIFICATE-----)".to_owned()));
        }
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundle_is_trusted_besides_the_system() {
        let system = roots(None).expect("the roots of the system").len();
        assert!(system > 0, "a machine that runs the tests has certificates");
        let mut authority = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().expect("a key");
        let bundle = authority.self_signed(&key).expect("a certificate").pem();
        assert_eq!(roots(Some(&bundle)).expect("a bundle").len(), system + 1);
    }

    #[test]
    fn a_bundle_that_holds_no_certificate_is_refused() {
        for (bundle, expected) in [
            ("", "holds no certificate"),
            ("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", "certificate 1 is"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 1 is none of an"),
        ] {
            let error = client_config(Some(bundle)).expect_err(bundle).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
