//! Serving certificates for webhooks: makes the authority of an add-on and what it signs, and keeps both in
//! Secrets of the workload cluster. When something is made is decided in `addons::certificate`. No key
//! reaches a plugin, a log, an event or a status.

use addons::ObjectRef;
use addons::certificate::{
    AUTHORITY_LIFETIME, CLOCK_SKEW, LIFETIME, Record, authority_must_be_made, must_be_made,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::{AddOnPlan, CertificateSpec, StepSpec};
use crds::names::CERTIFICATE_ANNOTATION;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::system::now;
use crate::workload::{WorkloadCluster, WorkloadError, authority_object};

/// Bytes of anything in a Secret that this program wrote, many times over.
const LONGEST: usize = 64 << 10;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    #[error("a certificate cannot be made: {0}")]
    Write(#[from] serde_json::Error),
}

/// Who vouches for the webhooks of one add-on.
pub struct Authority {
    name: DistinguishedName,
    key: KeyPair,
    digest: String,
    /// PEM of this authority, and of the one before it as long as that may still be needed.
    bundle: String,
}

impl Authority {
    /// What clients are given: base64 of PEM.
    pub fn bundle(&self) -> String {
        STANDARD.encode(&self.bundle)
    }

    /// The authority of an add-on; made if there is none, or if it ends before what it would sign. `force`: a
    /// Secret that somebody else made in its place is taken over.
    ///
    /// # Errors
    /// The cluster's API did not answer or refused, or the Secret is somebody else's.
    pub async fn of(
        cluster: &WorkloadCluster,
        module: &str,
        manager: &str,
        force: bool,
    ) -> Result<Authority, CertificateError> {
        let secret = authority_object(module);
        let (stored, ours) = read(cluster, &secret).await?;
        if let Some(stored) = &stored
            && !authority_must_be_made(Some((&stored.record, &digest(&stored.certificate))), now())
            && let Ok(key) = KeyPair::from_pem(&stored.key)
        {
            let digest = stored.record.digest.clone();
            return Ok(Authority { name: common_name(module), key, digest, bundle: stored.bundle.clone() });
        }
        let key = KeyPair::generate()?;
        let mut params = params(AUTHORITY_LIFETIME);
        params.distinguished_name = common_name(module);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key)?.pem();
        // Who is still served by what the one before signed must trust it until that was made again.
        let bundle = stored
            .map_or_else(|| certificate.clone(), |stored| format!("{certificate}{}", stored.certificate));
        let digest = digest(&certificate);
        let record = record(AUTHORITY_LIFETIME, Vec::new(), &digest, &digest);
        cluster
            .apply(&object(&secret, &certificate, &key, &bundle, &record)?, manager, force || ours)
            .await?;
        Ok(Authority { name: common_name(module), key, digest, bundle })
    }

    /// Sees to it that the Secret holds a certificate of this authority that is good for some time. `force`:
    /// a Secret that somebody else made in its place is taken over.
    ///
    /// # Errors
    /// The cluster's API did not answer or refused, or the Secret is somebody else's.
    pub async fn certify(
        &self,
        cluster: &WorkloadCluster,
        spec: &CertificateSpec,
        manager: &str,
        force: bool,
    ) -> Result<(), CertificateError> {
        let secret = secret(&spec.namespace, &spec.secret_name);
        let (stored, ours) = read(cluster, &secret).await?;
        let observed = stored.as_ref().map(|it| (&it.record, digest(&it.certificate)));
        let observed = observed.as_ref().map(|(record, digest)| (*record, digest.as_str()));
        let Some(why) = must_be_made(observed, &spec.dns_names, &self.digest, now()) else { return Ok(()) };
        let key = KeyPair::generate()?;
        let mut params = params(LIFETIME);
        params.distinguished_name =
            common_name(spec.dns_names.first().map_or(spec.secret_name.as_str(), String::as_str));
        for name in &spec.dns_names {
            params.subject_alt_names.push(rcgen::SanType::DnsName(name.as_str().try_into()?));
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer())?.pem();
        let record = record(LIFETIME, spec.dns_names.clone(), &digest(&certificate), &self.digest);
        cluster
            .apply(&object(&secret, &certificate, &key, &self.bundle, &record)?, manager, force || ours)
            .await?;
        tracing::info!(secret = %secret, why, "made a certificate");
        Ok(())
    }

    fn issuer(&self) -> Issuer<'_, &KeyPair> {
        let mut params = CertificateParams::default();
        params.distinguished_name = self.name.clone();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        Issuer::new(params, &self.key)
    }
}

/// What is due of the certificates of a plan: nothing is made here.
pub struct Due {
    /// What clients are given; `None` when the authority is to be made anew.
    pub bundle: Option<String>,
    /// What would be made and why, a line each.
    pub changes: Vec<String>,
}

impl Due {
    /// # Errors
    /// The cluster's API did not answer.
    pub async fn of(cluster: &WorkloadCluster, module: &str, plan: &AddOnPlan) -> Result<Due, WorkloadError> {
        let typed = plan.steps.iter().filter_map(|step| step.typed().ok());
        let specs: Vec<CertificateSpec> = typed
            .filter_map(|step| match step {
                StepSpec::Certificate(spec) => Some(spec),
                _ => None,
            })
            .collect();
        if specs.is_empty() {
            return Ok(Due { bundle: Some(String::new()), changes: Vec::new() });
        }
        let object = authority_object(module);
        let stored = read(cluster, &object).await?.0.filter(|stored| {
            let observed = Some((&stored.record, digest(&stored.certificate)));
            let observed = observed.as_ref().map(|(record, digest)| (*record, digest.as_str()));
            !authority_must_be_made(observed, now()) && KeyPair::from_pem(&stored.key).is_ok()
        });
        let Some(authority) = stored else {
            let changes = vec![format!("~ certificate authority in {object}: made anew")];
            return Ok(Due { bundle: None, changes });
        };
        let mut changes = Vec::new();
        for spec in specs {
            let object = secret(&spec.namespace, &spec.secret_name);
            let stored = read(cluster, &object).await?.0;
            let observed = stored.as_ref().map(|it| (&it.record, digest(&it.certificate)));
            let observed = observed.as_ref().map(|(record, digest)| (*record, digest.as_str()));
            let why = must_be_made(observed, &spec.dns_names, &authority.record.digest, now());
            changes.extend(why.map(|why| format!("~ certificate in {object}: made anew, {why}")));
        }
        Ok(Due { bundle: Some(STANDARD.encode(&authority.bundle)), changes })
    }
}

/// A Secret of ours as it is in the cluster.
struct StoredCertificate {
    record: Record,
    certificate: String,
    key: String,
    bundle: String,
}

impl StoredCertificate {
    /// `None` for anything that this program did not write so.
    fn read(secret: &Value) -> Option<StoredCertificate> {
        let annotation = annotation(secret).filter(|it| it.len() <= LONGEST)?;
        let short = |it: &&str| it.len() <= LONGEST;
        let text = |key: &str| {
            String::from_utf8(STANDARD.decode(secret["data"][key].as_str().filter(short)?).ok()?).ok()
        };
        Some(StoredCertificate {
            record: serde_json::from_str(annotation).ok()?,
            certificate: text("tls.crt")?,
            key: text("tls.key")?,
            bundle: text("ca.crt")?,
        })
    }
}

/// What a Secret holds, and whether this program made it, whoever has changed it since.
async fn read(
    cluster: &WorkloadCluster,
    secret: &ObjectRef,
) -> Result<(Option<StoredCertificate>, bool), WorkloadError> {
    let live = cluster.get_only(secret, &["/metadata/annotations", "/data"]).await?;
    Ok((
        live.as_ref().and_then(StoredCertificate::read),
        live.as_ref().is_some_and(|it| annotation(it).is_some()),
    ))
}

fn annotation(secret: &Value) -> Option<&str> {
    secret["metadata"]["annotations"][CERTIFICATE_ANNOTATION].as_str()
}

fn secret(namespace: &str, name: &str) -> ObjectRef {
    ObjectRef {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    }
}

fn object(
    secret: &ObjectRef,
    certificate: &str,
    key: &KeyPair,
    bundle: &str,
    record: &Record,
) -> Result<Value, serde_json::Error> {
    let annotation = serde_json::to_string(record)?;
    let text = |it: &str| STANDARD.encode(it);
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {
            "name": secret.name, "namespace": secret.namespace,
            "annotations": {CERTIFICATE_ANNOTATION: annotation},
        },
        "data": {"tls.crt": text(certificate), "tls.key": text(&key.serialize_pem()), "ca.crt": text(bundle)},
    }))
}

fn params(lifetime: std::time::Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    let begin = std::time::SystemTime::now() - CLOCK_SKEW;
    params.not_before = begin.into();
    params.not_after = (begin + CLOCK_SKEW + lifetime).into();
    params
}

fn record(lifetime: std::time::Duration, dns_names: Vec<String>, digest: &str, authority: &str) -> Record {
    let now = now();
    Record {
        not_before: now,
        not_after: now + lifetime.as_secs_f64(),
        dns_names,
        digest: digest.to_owned(),
        authority: authority.to_owned(),
    }
}

fn common_name(name: &str) -> DistinguishedName {
    let mut res = DistinguishedName::new();
    // 64 characters is what X.509 takes.
    res.push(DnType::CommonName, name.chars().take(64).collect::<String>());
    res
}

fn digest(certificate: &str) -> String {
    Sha256::digest(certificate.as_bytes()).iter().map(|it| format!("{it:02x}")).collect()
}
