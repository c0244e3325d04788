//! Publishing an issuer: compares what lies in the bucket and in IAM with what must be there, and says what to write next.
//! It writes nothing itself, and takes public keys only.

use std::collections::BTreeMap;

use crds::names::ID_TAG;

use super::check::{Finding, Provider, Reading, Status};
use super::issuer::{Document, KeySet, PublicKey, Publication};
use super::trust::issuer_host;
use crate::Timestamp;

/// Audience of tokens for AWS, which the provider must take.
pub const AUDIENCE: &str = "sts.amazonaws.com";
/// Seconds for which a key that no longer signs is still published. API servers extend tokens that name no lifetime to a year
/// (`--service-account-extend-token-expiration`).
pub const RETIREMENT: f64 = 366.0 * 24.0 * 3600.0;

/// Reasons of findings about an issuer.
pub mod reason {
    pub const PUBLISHED: &str = "IssuerPublished";
    pub const PUBLISHING: &str = "IssuerPublishing";
    pub const FOUND: &str = "IssuerFound";
    pub const WAITING_FOR_KEY: &str = "WaitingForSigningKey";
    pub const KEY_UNUSABLE: &str = "SigningKeyUnusable";
    pub const NOT_OURS: &str = "DocumentNotOurs";
    pub const TAKEN: &str = "IssuerTaken";
    pub const PROVIDER_NOT_FOUND: &str = "OIDCProviderNotFound";
    pub const PROVIDER_MISMATCH: &str = "OIDCProviderMismatch";
    pub const ARGUMENT_MISMATCH: &str = "IssuerArgumentMismatch";
    pub const ACCESS_DENIED: &str = "AccessDenied";
    pub const READ_FAILED: &str = "ReadFailed";
    pub const WRITE_FAILED: &str = "WriteFailed";
    pub const INVALID: &str = "InvalidIssuer";
}

/// What was read of a published issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readings {
    pub discovery: Reading<String>,
    pub key_set: Reading<String>,
    pub provider: Reading<Provider>,
}

/// When keys that do not sign any more were first seen not to, by their ids. Kept on the AWSCluster.
pub type Retired = BTreeMap<String, Timestamp>;

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Put(Document),
    CreateProvider,
    /// Makes the provider take [`AUDIENCE`].
    AddAudience,
}

/// What to do, in order, and what is to be remembered before.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    pub acts: Vec<Act>,
    pub retired: Retired,
}

/// Whether the provider was made for another AWSCluster than the one with the id `own`: what lies in the bucket is that one's too.
pub fn is_of_another(provider: &Reading<Provider>, own: &str) -> bool {
    matches!(provider, Reading::Found(it) if it.tags.get(ID_TAG).is_some_and(|id| id != own))
}

/// Says what is to be written so that tokens signed by `keys`, the first of which signs, and by keys retired not long ago can be checked.
/// `own` is the id of the AWSCluster.
///
/// # Errors
/// Nothing may be written: what was read is not known, or is not what this operator publishes for this cluster.
pub fn work(
    publication: &Publication,
    own: &str,
    keys: &[PublicKey],
    readings: &Readings,
    retired: &Retired,
    now: Timestamp,
) -> Result<Work, Finding> {
    if is_of_another(&readings.provider, own) {
        let message = format!(
            "{} is the issuer of another cluster: its IAM OIDC provider has another cluster's id in tag {ID_TAG}. Name another prefix in \
             spec.serviceAccountIssuer.publish, or delete the provider if that cluster is gone",
            publication.issuer
        );
        return Err(finding(Status::False, reason::TAKEN, message));
    }
    let mut wanted = KeySet::new(keys);
    let mut retired = retired.clone();
    if let Some(text) = known(&readings.key_set, &format!("key {} of the bucket", publication.jwks_key))? {
        let published = KeySet::read(text).map_err(|error| {
            let message = format!(
                "what lies at {} is not a key set that this operator published ({error}); remove it, or name another prefix in \
                 spec.serviceAccountIssuer.publish",
                publication.jwks_key
            );
            finding(Status::False, reason::NOT_OURS, message)
        })?;
        for key in published.keys().iter().filter(|it| !wanted.contains(it.kid())) {
            retired.entry(key.kid().to_owned()).or_insert(now);
        }
        let over = |kid: &str| retired.get(kid).is_some_and(|since| now - since >= RETIREMENT);
        let kept: Vec<String> = published.keys().iter().map(|it| it.kid().to_owned()).filter(|it| !over(it)).collect();
        retired.retain(|kid, _| kept.contains(kid) && !wanted.contains(kid));
        let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
        wanted = wanted.keeping(&published.only(&kept));
    }
    let discovery = known(&readings.discovery, &format!("key {} of the bucket", publication.discovery_key))?;
    let published = known(&readings.key_set, "the key set")?;
    let mut acts = Vec::new();
    for (document, present) in publication.documents(&wanted).into_iter().zip([published, discovery]) {
        if present != Some(&document.body) {
            acts.push(Act::Put(document));
        }
    }
    match known(&readings.provider, "the IAM OIDC provider")? {
        None => acts.push(Act::CreateProvider),
        Some(provider) if issuer_host(&provider.url) != issuer_host(&publication.issuer) => {
            let message = format!("the IAM OIDC provider is of issuer {}, not of {}", provider.url, publication.issuer);
            return Err(finding(Status::False, reason::PROVIDER_MISMATCH, message));
        }
        Some(provider) if !provider.client_ids.iter().any(|it| it == AUDIENCE) => acts.push(Act::AddAudience),
        Some(_) => (),
    }
    Ok(Work { acts, retired })
}

/// Judges an issuer that somebody else publishes.
pub fn judge(issuer: &str, provider: &Reading<Provider>) -> Finding {
    match known(provider, &format!("the IAM OIDC provider of {issuer}")) {
        Err(finding) => finding,
        Ok(None) => finding(
            Status::False,
            reason::PROVIDER_NOT_FOUND,
            format!("IAM has no OIDC provider of {issuer}; create one with client id {AUDIENCE}, or set spec.serviceAccountIssuer.publish"),
        ),
        Ok(Some(provider)) if issuer_host(&provider.url) != issuer_host(issuer) => finding(
            Status::False,
            reason::PROVIDER_MISMATCH,
            format!("the IAM OIDC provider is of issuer {}, not of {issuer}", provider.url),
        ),
        Ok(Some(provider)) if !provider.client_ids.iter().any(|it| it == AUDIENCE) => finding(
            Status::False,
            reason::PROVIDER_MISMATCH,
            format!("the IAM OIDC provider of {issuer} does not list {AUDIENCE} among its client ids; add it"),
        ),
        Ok(Some(_)) => finding(Status::True, reason::FOUND, String::new()),
    }
}

fn known<'a, T>(reading: &'a Reading<T>, what: &str) -> Result<Option<&'a T>, Finding> {
    match reading {
        Reading::Found(it) => Ok(Some(it)),
        Reading::Absent => Ok(None),
        Reading::AccessDenied { permission } => {
            let message = format!("{what} cannot be read: grant {permission} to this operator");
            Err(finding(Status::Unknown, reason::ACCESS_DENIED, message))
        }
        Reading::Failed { message } => {
            Err(finding(Status::Unknown, reason::READ_FAILED, format!("{what} could not be read and will be tried again: {message}")))
        }
    }
}

/// A finding without a fix of its own.
pub fn finding(status: Status, reason: &'static str, message: String) -> Finding {
    Finding { status, reason, message, fix: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Tags;

    const FIRST: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEAyXewZJQyNnIlC6VS2fe2A1k80Qi
xNPyTBHMjH+Lwstvu61f/EN3uttwX2rAdp1givKy2huUPFhAL25JIN3pSQ==
-----END PUBLIC KEY-----
";
    const SECOND: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEc3AeT5gRz/aIQ4d/JmncBTCq/q0t
i9HdGl43ombLvqrEjj7B6SRkMW1bbvQkgmnxEzTOkEiZhpH81YvwpegTgw==
-----END PUBLIC KEY-----
";

    const OWN: &str = "our-id";

    fn publication() -> Publication {
        Publication::in_bucket("spec.serviceAccountIssuer.publish", "issuers", "default/prod", "eu-west-1").expect("a bucket")
    }

    fn keys(pem: &str) -> Vec<PublicKey> {
        PublicKey::from_pem(pem).expect("keys")
    }

    fn provider() -> Provider {
        Provider { url: "issuers.s3.eu-west-1.amazonaws.com/default/prod".into(), client_ids: vec![AUDIENCE.into()], tags: Tags::new() }
    }

    fn published(work: &Work) -> Readings {
        let body = |at: usize| match &work.acts[at] {
            Act::Put(document) => Reading::Found(document.body.clone()),
            other => panic!("not a document: {other:?}"),
        };
        Readings { key_set: body(0), discovery: body(1), provider: Reading::Found(provider()) }
    }

    fn nothing() -> Readings {
        Readings { key_set: Reading::Absent, discovery: Reading::Absent, provider: Reading::Absent }
    }

    #[test]
    fn the_key_set_comes_before_what_names_it_and_the_provider_last() {
        let work = work(&publication(), OWN, &keys(FIRST), &nothing(), &Retired::new(), 0.0).expect("work");
        let text = |it: &Act| match it {
            Act::Put(document) => document.key.clone(),
            other => format!("{other:?}"),
        };
        assert_eq!(
            work.acts.iter().map(text).collect::<Vec<_>>(),
            ["default/prod/openid/v1/jwks", "default/prod/.well-known/openid-configuration", "CreateProvider"]
        );
        let settled = super::work(&publication(), OWN, &keys(FIRST), &published(&work), &Retired::new(), 9.0).expect("work");
        assert_eq!(settled, Work { acts: vec![], retired: Retired::new() });
    }

    #[test]
    fn a_key_that_no_longer_signs_stays_until_no_token_can_be_of_it() {
        let first = work(&publication(), OWN, &keys(FIRST), &nothing(), &Retired::new(), 0.0).expect("work");
        let (old, new) = (keys(FIRST)[0].kid().to_owned(), keys(SECOND)[0].kid().to_owned());
        let rotated = work(&publication(), OWN, &keys(SECOND), &published(&first), &Retired::new(), 100.0).expect("work");
        assert_eq!(rotated.retired, Retired::from([(old.clone(), 100.0)]));
        let Act::Put(set) = &rotated.acts[0] else { panic!("the key set is written") };
        let ids: Vec<String> = KeySet::read(&set.body).expect("a set").keys().iter().map(|it| it.kid().to_owned()).collect();
        assert_eq!(ids, [new.clone(), old]);

        let mut readings = published(&first);
        readings.key_set = Reading::Found(set.body.clone());
        let later = work(&publication(), OWN, &keys(SECOND), &readings, &rotated.retired, 100.0 + RETIREMENT).expect("work");
        let Act::Put(set) = &later.acts[0] else { panic!("the key set is written") };
        let ids: Vec<String> = KeySet::read(&set.body).expect("a set").keys().iter().map(|it| it.kid().to_owned()).collect();
        assert_eq!((ids, later.retired), (vec![new], Retired::new()));
    }

    #[test]
    fn what_somebody_else_put_there_is_not_overwritten() {
        let foreign = Readings { key_set: Reading::Found("{}".into()), ..nothing() };
        let finding = work(&publication(), OWN, &keys(FIRST), &foreign, &Retired::new(), 0.0).expect_err("a finding");
        assert_eq!((finding.status, finding.reason), (Status::False, reason::NOT_OURS));
    }

    #[test]
    fn the_issuer_of_another_cluster_is_not_taken_over() {
        let of = |id: &str| {
            let tags = Tags::from([(ID_TAG.to_owned(), id.to_owned())]);
            Readings { provider: Reading::Found(Provider { tags, ..provider() }), ..nothing() }
        };
        let finding = work(&publication(), OWN, &keys(FIRST), &of("other-id"), &Retired::new(), 0.0).expect_err("a finding");
        assert_eq!((finding.status, finding.reason), (Status::False, reason::TAKEN));
        assert!(finding.message.contains("spec.serviceAccountIssuer.publish"), "{}", finding.message);
        assert!(work(&publication(), OWN, &keys(FIRST), &of(OWN), &Retired::new(), 0.0).is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_absent() {
        let denied = Readings { provider: Reading::AccessDenied { permission: "iam:GetOpenIDConnectProvider".into() }, ..nothing() };
        let finding = work(&publication(), OWN, &keys(FIRST), &denied, &Retired::new(), 0.0).expect_err("a finding");
        assert_eq!((finding.status, finding.reason), (Status::Unknown, reason::ACCESS_DENIED));
        assert!(finding.message.contains("iam:GetOpenIDConnectProvider"));
    }

    #[test]
    fn an_issuer_of_the_user_is_only_judged() {
        let found = |client_ids: &[&str]| {
            let provider = Provider {
                url: "issuer.example.com".into(),
                client_ids: client_ids.iter().map(|it| (*it).to_owned()).collect(),
                tags: Tags::new(),
            };
            judge("https://issuer.example.com", &Reading::Found(provider)).reason
        };
        assert_eq!((found(&[AUDIENCE]), found(&["other"])), (reason::FOUND, reason::PROVIDER_MISMATCH));
        assert_eq!(judge("https://issuer.example.com", &Reading::Absent).reason, reason::PROVIDER_NOT_FOUND);
    }
}
