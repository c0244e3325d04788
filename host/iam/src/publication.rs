//! Publishing an issuer: compares what lies in the bucket and in IAM with what must be there, and says what
//! to write next. It writes nothing itself, and takes public keys only.

pub mod ownership;
pub mod place;
pub mod unpublish;

use std::collections::BTreeMap;
use std::time::Duration;

use crds::conditions::reason;
use crds::names::{ID_ANNOTATION, ID_TAG, OWNER_TAG};

use self::ownership::{DocumentOwner, Object, Owner, Possession, Readings};
use super::check::Provider;
use super::issuer::{Document, KeySet, PublicKey, Publication};
use super::trust::issuer_host;
use model::Timestamp;
use model::finding::{Finding, Reading, Status};

/// Audience of tokens for AWS, which the provider must take.
pub const AUDIENCE: &str = "sts.amazonaws.com";
/// For how long a key that no longer signs, or an issuer that no longer issues, is still published. API
/// servers extend tokens that name no lifetime to a year (`--service-account-extend-token-expiration`).
pub const RETIREMENT: Duration = Duration::from_hours(366 * 24);

/// When keys that do not sign any more were first seen not to, by their ids. Kept on the AWSCluster.
pub type Retired = BTreeMap<String, Timestamp>;

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Over the version that was read, or where nothing lay, and nowhere else.
    Put {
        document: Document,
        over: Option<String>,
    },
    CreateProvider,
    /// Says on the provider whose it is.
    TagProvider,
    /// Makes the provider take [`AUDIENCE`].
    AddAudience,
}

/// What to do, in order, what is to be remembered before, and what is to be said after.
#[derive(Clone, Debug, PartialEq)]
pub struct Publishing {
    pub acts: Vec<Write>,
    pub retired: Retired,
    pub finding: Finding,
}

/// What the publication of an issuer is decided from.
pub struct Input<'a> {
    pub publication: &'a Publication,
    pub owner: &'a Owner,
    /// Namespace and name of the Cluster, which end the prefix of what is published anew.
    pub cluster: &'a str,
    /// The first of them signs.
    pub keys: &'a [PublicKey],
    pub readings: &'a Readings,
    pub retired: &'a Retired,
    pub now: Timestamp,
}

/// Says what is to be written so that tokens signed by the keys, and by keys retired not long ago, can be
/// checked.
///
/// # Errors
/// Nothing may be written: what was read is not known, or is not what this operator publishes for this
/// cluster.
pub fn work(input: &Input<'_>) -> Result<Publishing, Finding> {
    let Input { publication, owner, readings, now, .. } = *input;
    allowed(input)?;
    let mut desired = KeySet::new(input.keys);
    let mut retired = input.retired.clone();
    if let Some(object) = known(&readings.key_set, "the key set")? {
        let published = KeySet::read(&object.body).map_err(|_| not_ours(publication))?;
        for key in published.keys().iter().filter(|it| !desired.contains(it.kid())) {
            retired.entry(key.kid().to_owned()).or_insert(now);
        }
        let over = |kid: &str| retired.get(kid).is_some_and(|since| now - since >= RETIREMENT.as_secs_f64());
        let kept: Vec<String> =
            published.keys().iter().map(|it| it.kid().to_owned()).filter(|it| !over(it)).collect();
        retired.retain(|kid, _| kept.contains(kid) && !desired.contains(kid));
        let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
        desired = desired.keeping(&published.only(&kept));
    }
    let present =
        [known(&readings.key_set, "the key set")?, known(&readings.discovery, "the discovery document")?];
    let is_as_wanted = |it: &Object, document: &Document| {
        it.body == document.body && owner.of_object(&publication.issuer, it) == DocumentOwner::Ours
    };
    let mut acts = Vec::new();
    for (document, present) in publication.documents(&desired).into_iter().zip(present) {
        if present.is_none_or(|it| !is_as_wanted(it, &document)) {
            acts.push(Write::Put { document, over: present.map(|it| it.version.clone()) });
        }
    }
    let mut finding = finding(Status::True, reason::ISSUER_PUBLISHED, String::new());
    match known(&readings.provider, "the IAM OIDC provider")? {
        None => acts.push(Write::CreateProvider),
        Some(provider) if issuer_host(&provider.url) != issuer_host(&publication.issuer) => {
            let message =
                format!("the IAM OIDC provider is of issuer {}, not of {}", provider.url, publication.issuer);
            return Err(self::finding(Status::False, reason::PROVIDER_MISMATCH, message));
        }
        Some(provider) if owner.of_provider(provider) == DocumentOwner::Ours => {
            if !provider.tags.contains_key(OWNER_TAG) {
                acts.push(Write::TagProvider);
            }
            if !takes_audience(provider) {
                acts.push(Write::AddAudience);
            }
        }
        // Somebody made it, and looks after it.
        Some(_) => {
            let judged = check_provider(&publication.issuer, &readings.provider);
            if judged.status != Status::True {
                finding = judged;
            }
        }
    }
    Ok(Publishing { acts, retired, finding })
}

/// Whether anything may be written there.
fn allowed(input: &Input<'_>) -> Result<(), Finding> {
    let Input { publication, cluster, .. } = *input;
    let at_home = publication.ends_with(cluster);
    match input.owner.possession(publication, input.readings)? {
        Possession::Ours => Ok(()),
        Possession::Another => {
            let message = format!(
                "{} is the issuer of another cluster: what is published there has another owner. Name another prefix in \
                 spec.serviceAccountIssuer.publish, or delete its IAM OIDC provider and its documents if that cluster is gone",
                publication.issuer
            );
            Err(finding(Status::False, reason::ISSUER_TAKEN, message))
        }
        Possession::Free if at_home => Ok(()),
        Possession::Free => {
            let message = format!(
                "the prefix in spec.serviceAccountIssuer.publish has to be {cluster}, or to end in /{cluster}: no other cluster's can. \
                 What was published with another prefix stays, as long as its IAM OIDC provider or its documents say whose they are"
            );
            Err(finding(Status::False, reason::INVALID_ISSUER, message))
        }
        // They were written before documents said whose they are, and the provider was never made, or by
        // somebody else. Nobody else may publish under our name, and none but our own documents are of our
        // key.
        Possession::Unmarked if at_home && holds(&input.readings.key_set, input.keys) => Ok(()),
        Possession::Unmarked | Possession::Foreign => Err(not_ours(publication)),
    }
}

/// Whether a key set that was published has the key that signs.
fn holds(key_set: &Reading<Object>, keys: &[PublicKey]) -> bool {
    let Reading::Found(object) = key_set else { return false };
    let published = KeySet::read(&object.body);
    published.is_ok_and(|published| keys.first().is_some_and(|it| published.contains(it.kid())))
}

/// Nothing of a document is repeated: it is somebody else's.
fn not_ours(publication: &Publication) -> Finding {
    let Publication { jwks_key, discovery_key, .. } = publication;
    let message = format!(
        "what lies at {jwks_key} and {discovery_key} does not say that this operator published it for this cluster; remove both, give the IAM \
         OIDC provider of the issuer the tag {ID_TAG} with the value of the AWSCluster's annotation {ID_ANNOTATION}, or name another prefix \
         in spec.serviceAccountIssuer.publish"
    );
    finding(Status::False, reason::DOCUMENT_NOT_OURS, message)
}

fn takes_audience(provider: &Provider) -> bool {
    provider.client_ids.iter().any(|it| it == AUDIENCE)
}

/// Judges an issuer that somebody else publishes.
pub fn check_provider(issuer: &str, provider: &Reading<Provider>) -> Finding {
    match known(provider, &format!("the IAM OIDC provider of {issuer}")) {
        Err(finding) => finding,
        Ok(None) => finding(
            Status::False,
            reason::PROVIDER_NOT_FOUND,
            format!(
                "IAM has no OIDC provider of {issuer}; create one with client id {AUDIENCE}, or set spec.serviceAccountIssuer.publish"
            ),
        ),
        Ok(Some(provider)) if issuer_host(&provider.url) != issuer_host(issuer) => finding(
            Status::False,
            reason::PROVIDER_MISMATCH,
            format!("the IAM OIDC provider is of issuer {}, not of {issuer}", provider.url),
        ),
        Ok(Some(provider)) if !takes_audience(provider) => finding(
            Status::False,
            reason::PROVIDER_MISMATCH,
            format!(
                "the IAM OIDC provider of {issuer} does not list {AUDIENCE} among its client ids; add it"
            ),
        ),
        Ok(Some(_)) => finding(Status::True, reason::ISSUER_FOUND, String::new()),
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
        Reading::Failed { message } => Err(finding(
            Status::Unknown,
            reason::READ_FAILED,
            format!("{what} could not be read and will be tried again: {message}"),
        )),
    }
}

/// A finding without a fix of its own.
pub fn finding(status: Status, reason: &'static str, message: String) -> Finding {
    Finding { status, reason, message, fix: None, allowed: Vec::new() }
}

#[cfg(test)]
mod tests;
