//! Unpublishes issuers: those that the spec named before, once no token can need them, and all of them with
//! the cluster. ClusterIdentity each document is, is read anew before it is removed; what cannot be read stays and is
//! reported.

use crds::conditions::reason;
use crds::names;
use iam::publication::finding;
use iam::publication::ownership::{Owner, Readings};
use iam::publication::place::{Place, Places};
use iam::publication::unpublish::{self, Removal};
use model::finding::{Finding, Status};
use serde_json::json;
use tokio::time::Instant;

use super::{IssuerMemory, IssuerScope, RETRY_EVERY, is_provisioned};
use crate::management::{Error, Event};
use crate::system::now;

/// What became of what was published for a cluster that is gone.
pub enum Unpublished {
    /// Nothing of it is left, but for what the event reports.
    Done(Option<Event>),
    /// Something may be left; why, and when it is tried again.
    Waits(Finding, Instant),
}

/// Unpublishes everything of a cluster that is gone. `forced`: what cannot be unpublished is left behind.
pub async fn unpublish(scope: IssuerScope<'_>, memory: &mut IssuerMemory, forced: bool) -> Unpublished {
    if let Some((found, next)) =
        memory.unpublish.clone().filter(|(_, next)| !forced && *next > Instant::now())
    {
        return Unpublished::Waits(found, next);
    }
    // Nothing can be its own without an id.
    let Some(owner) = Owner::of(scope.object) else { return Unpublished::Done(None) };
    let mut places: Vec<Place> = scope.places().all().to_vec();
    // Before places were written down, the spec alone named the place.
    places.extend(
        scope.asked().filter(|it| is_provisioned(scope.object) && !places.iter().any(|place| place.is(it))),
    );
    let (mut left, mut failed) = (Vec::new(), Vec::new());
    for place in &places {
        match unpublish_from(scope, &owner, place).await {
            Ok(message) => left.extend(message),
            Err(message) => failed.push(message),
        }
    }
    if failed.is_empty() || forced {
        left.extend(failed);
        return Unpublished::Done((!left.is_empty()).then(|| event(&left)));
    }
    let message = format!(
        "{}. The AWSCluster goes once that is done, or, with annotation {}, without it",
        failed.join("; "),
        names::FORCE_DELETE_ANNOTATION
    );
    let (found, next) =
        (finding(Status::False, reason::ISSUER_NOT_RETRACTED, message), Instant::now() + RETRY_EVERY);
    memory.unpublish = Some((found.clone(), next));
    Unpublished::Waits(found, next)
}

/// Unpublishes where the spec does not publish any more; returns what could not be removed yet, if anything.
///
/// # Errors
/// The management API did not answer.
pub async fn unpublish_former(scope: IssuerScope<'_>, places: &mut Places) -> Result<Option<String>, Error> {
    let Some(owner) = Owner::of(scope.object) else { return Ok(None) };
    let (before, asked, issuers) = (places.clone(), scope.asked(), scope.issuers());
    let is_issued = |place: &Place| {
        place.publication(&scope.object.spec.region).is_some_and(|it| issuers.contains(&it.issuer))
    };
    let is_used = |place: &Place| asked.as_ref().is_some_and(|it| it.is(place)) || is_issued(place);
    places.update(is_used, now());
    let mut failed = Vec::new();
    for place in places.over(now()) {
        match unpublish_from(scope, &owner, &place).await {
            Ok(left) => {
                left.iter().for_each(|it| {
                    scope.context.management.publish_event(scope.object, event(std::slice::from_ref(it)))
                });
                places.forget(&place);
            }
            Err(message) => failed.push(message),
        }
    }
    if *places != before {
        let annotations = json!({names::ISSUER_PLACES_ANNOTATION: places.annotation()});
        scope
            .context
            .management
            .patch(scope.object, json!({"metadata": {"annotations": annotations}}))
            .await?;
    }
    Ok((!failed.is_empty()).then(|| failed.join("; ")))
}

/// Unpublishes what lies at one place; returns what stays there although it may be of this cluster.
///
/// # Errors
/// What could not be read or removed.
async fn unpublish_from(
    scope: IssuerScope<'_>,
    owner: &Owner,
    place: &Place,
) -> Result<Option<String>, String> {
    let IssuerScope { object, region, .. } = scope;
    // Nothing was ever published where nothing can be.
    let Some(publication) = place.publication(&object.spec.region) else { return Ok(None) };
    let failed = |what: &str, why: &str| {
        format!("what was published as issuer {} is not taken back: {what}{why}", publication.issuer)
    };
    let provider = scope.provider(&publication.issuer).await.map_err(|it| failed("", &it.message))?;
    let readings = Readings {
        discovery: region.object_left(&place.bucket, &publication.discovery_key).await,
        key_set: region.object_left(&place.bucket, &publication.jwks_key).await,
        provider: region.open_id_provider(&provider).await,
    };
    let unpublication =
        unpublish::unpublish(&publication, owner, &readings).map_err(|it| failed("", &it.message))?;
    for removal in &unpublication.removals {
        let (what, reply) = match removal {
            Removal::Document { key, version } => (
                format!("s3://{}/{key}", place.bucket),
                region.delete_object(&place.bucket, key, version).await,
            ),
            Removal::Provider => (provider.clone(), region.delete_open_id_provider(&provider).await),
        };
        reply.map_err(|it| failed(&format!("{what}: "), &format!("{}: {}", it.code, it.message)))?;
        tracing::info!(object = %object.object_name(), issuer = publication.issuer, "removed {what}");
    }
    Ok(unpublication.left)
}

fn event(left: &[String]) -> Event {
    let message = format!("left behind, delete it yourself if it is yours: {}", left.join("; "));
    Event { warning: true, reason: "IssuerLeft".into(), action: "Retract".into(), message }
}
