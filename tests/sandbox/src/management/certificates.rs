//! The certificates of the management cluster, made anew for every world.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// A certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate.
    pub certificate: String,
}

/// A certificate and its key, both as PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new()).context("describing the authority")?;
        params.distinguished_name.push(DnType::CommonName, "sandbox");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().context("making the authority's key")?;
        let certificate = params.self_signed(&key).context("signing the authority's certificate")?.pem();
        Ok(Self { issuer: Issuer::new(params, key), certificate })
    }

    /// A certificate for a server that is called by any of `names`, which may be addresses.
    pub fn server(&self, names: &[&str]) -> Result<Pair> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).context("describing a server's certificate")?;
        params.distinguished_name.push(DnType::CommonName, "server");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// A certificate for a client; Kubernetes reads user and group from it.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Pair> {
        let mut params = CertificateParams::new(Vec::new()).context("describing a client's certificate")?;
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Result<Pair> {
        let key = KeyPair::generate().context("making a key")?;
        let certificate = params.signed_by(&key, &self.issuer).context("signing a certificate")?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }
}

impl Pair {
    /// A key pair that signs tokens: `certificate` holds the bare public key.
    pub fn signer() -> Result<Self> {
        let key = KeyPair::generate().context("making a key")?;
        Ok(Self { certificate: key.public_key_pem(), key: key.serialize_pem() })
    }

    /// Writes `NAME.crt` and `NAME.key` into a directory.
    pub fn write(&self, directory: &Path, name: &str) -> Result<()> {
        write(directory, &format!("{name}.crt"), &self.certificate)?;
        write(directory, &format!("{name}.key"), &self.key)?;
        Ok(())
    }
}

/// Writes a file and returns its path.
pub fn write(directory: &Path, name: &str, text: &str) -> Result<PathBuf> {
    std::fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))?;
    let path = directory.join(name);
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}
