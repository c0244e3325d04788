//! The issuer of a cluster's service account tokens: reads the public half of the signing key, the bucket and IAM, has `plan::iam` decide,
//! and writes what it says. Of a Secret it takes the public key alone.

use std::time::Duration;

use crds::cluster::{IssuerBucket, ServiceAccountIssuer};
use crds::cluster_api::KubeadmControlPlane;
use crds::{AWSCluster, names};
use kube::ResourceExt;
use plan::iam::check::{Finding, Provider, Reading, Status};
use plan::iam::issuer::{self, KeySet, PublicKey, Publication};
use plan::iam::publication::{self, AUDIENCE, Act, Readings, Retired, finding, reason};
use plan::iam::{partition, trust};
use serde_json::json;
use tokio::time::Instant;

use super::now;
use crate::context::{Context, ObjectName};
use crate::management::{Error, Known, Note};

/// How long what was found is good.
const GOOD: Duration = Duration::from_secs(30 * 60);
/// How soon to look again when something is awaited or refused.
const SOON: Duration = Duration::from_secs(60);
/// How soon to look for a signing key, which the control plane makes before its first machine.
const KEY: Duration = Duration::from_secs(10);
const FIELD: &str = "spec.serviceAccountIssuer";

/// What was found at the last look.
#[derive(Default)]
pub struct Remembered {
    last: Option<Look>,
}

struct Look {
    asked: ServiceAccountIssuer,
    found: Finding,
    again: Instant,
}

impl Remembered {
    /// When to look again; `None` when no issuer was asked for.
    pub fn next(&self) -> Option<Instant> {
        self.last.as_ref().map(|it| it.again)
    }
}

/// The issuer that an AWSCluster names; `None` when it names none.
///
/// # Errors
/// A text that cannot be an issuer, with the field.
pub fn named(object: &AWSCluster, cluster: &ObjectName) -> Result<Option<String>, String> {
    let Some(asked) = &object.spec.service_account_issuer else { return Ok(None) };
    match (&asked.url, &asked.publish) {
        (Some(url), _) => issuer::check_url(&format!("{FIELD}.url"), url).map(|()| Some(url.clone())).map_err(|it| it.to_string()),
        (None, Some(bucket)) => Ok(Some(publication(object, cluster, bucket)?.issuer)),
        (None, None) => Ok(None),
    }
}

fn publication(object: &AWSCluster, cluster: &ObjectName, bucket: &IssuerBucket) -> Result<Publication, String> {
    let prefix = bucket.prefix.clone().unwrap_or_else(|| format!("{}/{}", cluster.namespace, cluster.name));
    Publication::in_bucket(&format!("{FIELD}.publish"), &bucket.bucket, &prefix, &object.spec.region).map_err(|it| it.to_string())
}

/// Looks at the issuer if it is time to, and says what is found; `None` when none was asked for.
///
/// # Errors
/// The management API did not answer.
pub async fn look(
    context: &Context,
    object: &Known<AWSCluster>,
    cluster: &ObjectName,
    region: &aws::Region,
    memory: &mut Remembered,
) -> Result<Option<Finding>, Error> {
    // No signing key is made before the infrastructure is there, and nothing of an issuer may hold that up.
    let provisioned = object.status.as_ref().and_then(|it| it.initialization.as_ref()).and_then(|it| it.provisioned) == Some(true);
    let Some(asked) = object.spec.service_account_issuer.clone().filter(|_| provisioned && !object.is_deleting()) else {
        memory.last = None;
        return Ok(None);
    };
    let is_due = memory.last.as_ref().is_none_or(|it| it.asked != asked || it.again <= Instant::now());
    if is_due {
        let found = read(context, object, cluster, region, &asked).await?;
        let after = match (found.status, found.reason) {
            (_, reason::WAITING_FOR_KEY) => KEY,
            (Status::True, _) => GOOD,
            _ => SOON,
        };
        memory.last = Some(Look { asked, found, again: Instant::now() + after });
    }
    let found = memory.last.as_ref().map(|it| it.found.clone());
    Ok(found.map(|it| if it.status == Status::False { it } else { with_argument(context, object, cluster, it) }))
}

/// What is wrong with the API servers' argument comes first: without it no token is of this issuer.
fn with_argument(context: &Context, object: &AWSCluster, cluster: &ObjectName, found: Finding) -> Finding {
    let control_planes = context.management.of_cluster::<KubeadmControlPlane>(cluster);
    let (Some(control_plane), Ok(Some(issuer))) = (control_planes.first(), named(object, cluster)) else { return found };
    match issuer::check_argument(&issuer, &control_plane.spec.service_account_issuers()) {
        Ok(()) => found,
        Err(error) => finding(Status::False, reason::ARGUMENT_MISMATCH, error.to_string()),
    }
}

async fn read(
    context: &Context,
    object: &Known<AWSCluster>,
    cluster: &ObjectName,
    region: &aws::Region,
    asked: &ServiceAccountIssuer,
) -> Result<Finding, Error> {
    let issuer = match named(object, cluster) {
        Ok(Some(issuer)) => issuer,
        Ok(None) => return Ok(finding(Status::False, reason::INVALID, format!("{FIELD} needs exactly one of url, publish"))),
        Err(message) => return Ok(finding(Status::False, reason::INVALID, message)),
    };
    let account = match region.account().await {
        Ok(account) => account,
        Err(it) => {
            let message = format!("the AWS account is not known: {}: {}", it.code, it.message);
            return Ok(finding(Status::Unknown, reason::READ_FAILED, message));
        }
    };
    let provider = trust::provider_arn(partition::of_region(&object.spec.region), &account, &issuer);
    match &asked.publish {
        None => Ok(publication::judge(&issuer, &region.open_id_provider(&provider).await)),
        Some(bucket) => publish(context, object, cluster, region, bucket, &provider).await,
    }
}

async fn publish(
    context: &Context,
    object: &Known<AWSCluster>,
    cluster: &ObjectName,
    region: &aws::Region,
    bucket: &IssuerBucket,
    provider: &str,
) -> Result<Finding, Error> {
    let publication = match publication(object, cluster, bucket) {
        Ok(publication) => publication,
        Err(message) => return Ok(finding(Status::False, reason::INVALID, message)),
    };
    let secret = format!("{}{}", cluster.name, names::SIGNING_KEY_SECRET_SUFFIX);
    let public = context.management.secret(&cluster.sibling(&secret)).await?.and_then(|it| it.data).and_then(|mut it| it.remove("tls.crt"));
    let Some(public) = public else {
        let message = format!("for Secret {secret}, which the control plane makes");
        return Ok(finding(Status::False, reason::WAITING_FOR_KEY, message));
    };
    let keys = match PublicKey::from_pem(&String::from_utf8_lossy(&public.0)) {
        Ok(keys) => keys,
        Err(error) => return Ok(finding(Status::False, reason::KEY_UNUSABLE, format!("tls.crt of Secret {secret}: {error}"))),
    };
    let readings = Readings {
        key_set: region.object(&bucket.bucket, &publication.jwks_key).await,
        discovery: region.object(&bucket.bucket, &publication.discovery_key).await,
        provider: region.open_id_provider(provider).await,
    };
    let retired = retired(object);
    let work = match publication::work(&publication, own_id(object), &keys, &readings, &retired, now()) {
        Ok(work) => work,
        Err(finding) => return Ok(finding),
    };
    if work.retired != retired {
        let text = serde_json::to_string(&work.retired).unwrap_or_default();
        let annotations = json!({names::RETIRED_KEYS_ANNOTATION: (!work.retired.is_empty()).then_some(text)});
        context.management.patch(object, json!({"metadata": {"annotations": annotations}})).await?;
    }
    for act in &work.acts {
        if let Err(it) = carry_out(region, object, bucket, &publication, provider, act).await {
            let message = format!("{}: {}: {}", what(act), it.code, it.message);
            return Ok(finding(Status::False, reason::WRITE_FAILED, message));
        }
        tracing::info!(object = %object.object_name(), issuer = publication.issuer, "{}", what(act));
    }
    Ok(finding(Status::True, reason::PUBLISHED, String::new()))
}

/// Takes back what was published for a cluster that is gone. What could not be is said, and holds nothing up.
pub async fn retract(object: &Known<AWSCluster>, cluster: &ObjectName, region: &aws::Region) -> Option<Note> {
    let bucket = object.spec.service_account_issuer.as_ref()?.publish.as_ref()?;
    let publication = publication(object, cluster, bucket).ok()?;
    let mut left = Vec::new();
    match region.account().await {
        Ok(account) => {
            let arn = trust::provider_arn(partition::of_region(&object.spec.region), &account, &publication.issuer);
            let provider = region.open_id_provider(&arn).await;
            match provider {
                Reading::Found(_) if publication::is_of_another(&provider, own_id(object)) => return None,
                Reading::Found(_) if is_ours(object, &provider) => {
                    let said = region.delete_open_id_provider(&arn).await;
                    left.extend(said.err().map(|it| format!("{arn}: {}: {}", it.code, it.message)));
                }
                Reading::Found(_) | Reading::Absent => (),
                Reading::AccessDenied { permission } => left.push(format!("{arn}, for want of {permission}")),
                Reading::Failed { message } => left.push(format!("{arn}: {message}")),
            }
        }
        Err(it) => left.push(format!("IAM OIDC provider: {}: {}", it.code, it.message)),
    }
    // The key set is written first, so without one of ours nothing there is ours.
    match region.object(&bucket.bucket, &publication.jwks_key).await {
        Reading::Found(text) if KeySet::read(&text).is_ok() => {
            for key in [&publication.discovery_key, &publication.jwks_key] {
                let said = region.delete_object(&bucket.bucket, key).await;
                left.extend(said.err().map(|it| format!("s3://{}/{key}: {}: {}", bucket.bucket, it.code, it.message)));
            }
        }
        Reading::Found(_) | Reading::Absent => (),
        Reading::AccessDenied { permission } => left.push(format!("documents in bucket {}, for want of {permission}", bucket.bucket)),
        Reading::Failed { message } => left.push(format!("documents in bucket {}: {message}", bucket.bucket)),
    }
    let message = format!("left behind, delete it yourself: {}", left.join("; "));
    (!left.is_empty()).then(|| Note { warning: true, reason: "IssuerLeft".into(), action: "Retract".into(), message })
}

/// The id that tags of what is made for this object carry; empty as long as it has none.
fn own_id(object: &AWSCluster) -> &str {
    object.annotations().get(names::ID_ANNOTATION).map(String::as_str).unwrap_or_default()
}

/// Whether this operator made the provider for this object.
fn is_ours(object: &AWSCluster, provider: &Reading<Provider>) -> bool {
    matches!(provider, Reading::Found(it) if it.tags.get(names::ID_TAG).is_some_and(|id| id == own_id(object)))
}

async fn carry_out(
    region: &aws::Region,
    object: &AWSCluster,
    bucket: &IssuerBucket,
    publication: &Publication,
    provider: &str,
    act: &Act,
) -> Result<(), plan::Problem> {
    match act {
        Act::Put(document) => region.put_object(&bucket.bucket, &document.key, &document.body, issuer::CONTENT_TYPE).await,
        Act::CreateProvider => {
            let id = object.annotations().get(names::ID_ANNOTATION).cloned();
            let tags = id.map(|id| (names::ID_TAG.to_owned(), id)).into_iter().collect();
            region.create_open_id_provider(&publication.issuer, &[AUDIENCE.to_owned()], &tags).await
        }
        Act::AddAudience => region.add_client_id(provider, AUDIENCE).await,
    }
}

fn what(act: &Act) -> String {
    match act {
        Act::Put(document) => format!("writing {} to the bucket", document.key),
        Act::CreateProvider => "creating the IAM OIDC provider".to_owned(),
        Act::AddAudience => "adding the audience to the IAM OIDC provider".to_owned(),
    }
}

fn retired(object: &Known<AWSCluster>) -> Retired {
    let text = object.annotations().get(names::RETIRED_KEYS_ANNOTATION);
    text.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default()
}
