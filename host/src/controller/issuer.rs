//! The issuer of a cluster's service account tokens: when it is checked, and what is reported of it. What is
//! published and unpublished is decided by `iam`.

mod publish;
mod unpublish;

use crds::conditions::reason;
use std::time::Duration;

use crds::cluster::{IssuerBucket, ServiceAccountIssuer};
use crds::cluster_api::KubeadmControlPlane;
use crds::{AWSCluster, names};
use iam::issuer::{self, Publication};
use iam::publication::place::{Place, Places};
use iam::publication::{self, finding};
use iam::{partition, trust};
use kube::ResourceExt;
use model::finding::{Finding, Status};
use tokio::time::Instant;

use crate::context::Context;
use crate::management::{Cached, Error};
use crate::object_name::ObjectName;

pub use unpublish::{Unpublished, unpublish};

/// How long what was found is good.
const RECHECK_EVERY: Duration = Duration::from_secs(30 * 60);
/// How soon to try again when something is awaited or refused.
const RETRY_EVERY: Duration = Duration::from_secs(60);
/// How soon to look for a signing key, which the control plane makes before its first machine.
const KEY_RETRY_EVERY: Duration = Duration::from_secs(10);
const FIELD: &str = "spec.serviceAccountIssuer";

/// What was found at the last check.
#[derive(Default)]
pub struct IssuerMemory {
    last: Option<LastRead>,
    /// Why it could not be unpublished at the last try, and when it is tried again.
    unpublish: Option<(Finding, Instant)>,
}

struct LastRead {
    asked: Option<ServiceAccountIssuer>,
    found: Option<Finding>,
    next: Instant,
}

/// An AWSCluster, and where what is published for it lies.
#[derive(Clone, Copy)]
pub struct IssuerScope<'a> {
    pub context: &'a Context,
    pub object: &'a Cached<AWSCluster>,
    /// The name of the Cluster.
    pub cluster: &'a ObjectName,
    pub region: &'a aws::Region,
}

impl IssuerMemory {
    /// When to check again; `None` when there is no issuer to check.
    pub fn next(&self) -> Option<Instant> {
        self.last.as_ref().map(|it| it.next)
    }
}

/// The issuer that an AWSCluster names; `None` when it names none.
///
/// # Errors
/// A text that cannot be an issuer, with the field.
pub fn named(object: &AWSCluster, cluster: &ObjectName) -> Result<Option<String>, String> {
    let Some(asked) = &object.spec.service_account_issuer else { return Ok(None) };
    match (&asked.url, &asked.publish) {
        (Some(url), _) => issuer::check_url(&format!("{FIELD}.url"), url)
            .map(|()| Some(url.clone()))
            .map_err(|it| it.to_string()),
        (None, Some(bucket)) => Ok(Some(publication(object, cluster, bucket)?.issuer)),
        (None, None) => Ok(None),
    }
}

fn place(cluster: &ObjectName, bucket: &IssuerBucket) -> Place {
    let prefix = bucket.prefix.clone().unwrap_or_else(|| cluster.to_string());
    Place::new(&bucket.bucket, &prefix)
}

fn publication(
    object: &AWSCluster,
    cluster: &ObjectName,
    bucket: &IssuerBucket,
) -> Result<Publication, String> {
    let Place { bucket, prefix, .. } = place(cluster, bucket);
    Publication::in_bucket(&format!("{FIELD}.publish"), &bucket, &prefix, &object.spec.region)
        .map_err(|it| it.to_string())
}

fn is_provisioned(object: &AWSCluster) -> bool {
    let initialization = object.status.as_ref().and_then(|it| it.initialization.as_ref());
    initialization.and_then(|it| it.provisioned) == Some(true)
}

impl IssuerScope<'_> {
    /// Where the spec has the issuer published.
    fn asked(&self) -> Option<Place> {
        let bucket = self.object.spec.service_account_issuer.as_ref()?.publish.as_ref()?;
        Some(place(self.cluster, bucket))
    }

    /// Where it was published, as far as somebody wrote it down.
    fn places(&self) -> Places {
        Places::of(self.object.annotations().get(names::ISSUER_PLACES_ANNOTATION).map(String::as_str))
    }

    /// The ARN that the IAM OIDC provider of an issuer has.
    async fn provider(&self, issuer: &str) -> Result<String, Finding> {
        let unknown = |it: model::Problem| {
            let message = format!("the AWS account is not known: {}: {}", it.code, it.message);
            finding(Status::Unknown, reason::READ_FAILED, message)
        };
        let account = self.region.account().await.map_err(unknown)?;
        Ok(trust::provider_arn(partition::of_region(&self.object.spec.region), &account, issuer))
    }

    /// The issuers whose tokens the API servers issue or take, by the control plane's arguments.
    fn issuers(&self) -> Vec<String> {
        let control_planes = self.context.management.of_cluster::<KubeadmControlPlane>(self.cluster);
        let of = |spec: &crds::cluster_api::KubeadmControlPlaneSpec| -> Vec<String> {
            spec.service_account_issuers().into_iter().map(str::to_owned).collect()
        };
        control_planes.first().map(|it| of(&it.spec)).unwrap_or_default()
    }
}

/// Checks the issuer if it is time to, and returns what is found; `None` when there is nothing to report.
///
/// # Errors
/// The management API did not answer.
pub async fn reconcile(scope: IssuerScope<'_>, memory: &mut IssuerMemory) -> Result<Option<Finding>, Error> {
    let asked = scope.object.spec.service_account_issuer.clone();
    let has_any = asked.is_some() || !scope.places().all().is_empty();
    // No signing key is made before the infrastructure is there, and nothing of an issuer may hold that up.
    if !has_any || !is_provisioned(scope.object) || scope.object.is_deleting() {
        memory.last = None;
        return Ok(None);
    }
    let is_due = memory.last.as_ref().is_none_or(|it| it.asked != asked || it.next <= Instant::now());
    if is_due {
        let found = read(scope, asked.as_ref()).await?;
        let after = match found.as_ref().map(|it| (it.status, it.reason)) {
            Some((_, reason::WAITING_FOR_SIGNING_KEY)) => KEY_RETRY_EVERY,
            None | Some((Status::True, _)) => RECHECK_EVERY,
            _ => RETRY_EVERY,
        };
        memory.last = Some(LastRead { asked, found, next: Instant::now() + after });
    }
    let found = memory.last.as_ref().and_then(|it| it.found.clone());
    Ok(found.map(|it| if it.status == Status::False { it } else { with_argument(scope, it) }))
}

/// What is wrong with the API servers' argument comes first: without it no token is of this issuer.
fn with_argument(scope: IssuerScope<'_>, found: Finding) -> Finding {
    let control_planes = scope.context.management.of_cluster::<KubeadmControlPlane>(scope.cluster);
    let (Some(control_plane), Ok(Some(issuer))) =
        (control_planes.first(), named(scope.object, scope.cluster))
    else {
        return found;
    };
    match issuer::check_argument(&issuer, &control_plane.spec.service_account_issuers()) {
        Ok(()) => found,
        Err(error) => finding(Status::False, reason::ISSUER_ARGUMENT_MISMATCH, error.to_string()),
    }
}

/// The issuer as it is, and those that it was before.
async fn read(
    scope: IssuerScope<'_>,
    asked: Option<&ServiceAccountIssuer>,
) -> Result<Option<Finding>, Error> {
    let mut places = scope.places();
    let found = match asked {
        Some(asked) => Some(current(scope, asked, &mut places).await?),
        None => None,
    };
    let left = unpublish::unpublish_former(scope, &mut places).await?;
    Ok(match (found, left) {
        (None, Some(message)) => Some(finding(Status::Unknown, reason::ISSUER_NOT_RETRACTED, message)),
        (Some(found), Some(message)) if found.status == Status::True => Some(Finding { message, ..found }),
        (found, _) => found,
    })
}

async fn current(
    scope: IssuerScope<'_>,
    asked: &ServiceAccountIssuer,
    places: &mut Places,
) -> Result<Finding, Error> {
    let issuer = match named(scope.object, scope.cluster) {
        Ok(Some(issuer)) => issuer,
        Ok(None) => {
            return Ok(finding(
                Status::False,
                reason::INVALID_ISSUER,
                format!("{FIELD} needs exactly one of url, publish"),
            ));
        }
        Err(message) => return Ok(finding(Status::False, reason::INVALID_ISSUER, message)),
    };
    let provider = match scope.provider(&issuer).await {
        Ok(provider) => provider,
        Err(finding) => return Ok(finding),
    };
    match &asked.publish {
        None => Ok(publication::check_provider(&issuer, &scope.region.open_id_provider(&provider).await)),
        Some(bucket) => publish::publish(scope, bucket, &provider, places).await,
    }
}
