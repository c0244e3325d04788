//! Publishes an issuer: reads the public half of the signing key, the bucket and IAM, has `iam` decide, and
//! writes what was decided. Of a Secret it takes the public key alone.

use crds::cluster::IssuerBucket;
use crds::conditions::reason;
use crds::names;
use iam::issuer::{PublicKey, Publication};
use iam::publication::ownership::{Owner, Readings};
use iam::publication::place::{Place, Places};
use iam::publication::{self, AUDIENCE, Retired, Write, finding};
use kube::ResourceExt;
use model::finding::{Finding, Status};
use serde_json::json;

use super::IssuerScope;
use crate::management::Error;
use crate::system::now;

/// Publishes what the spec asks for. Where is written down before.
///
/// # Errors
/// The management API did not answer.
pub async fn publish(
    scope: IssuerScope<'_>,
    bucket: &IssuerBucket,
    provider: &str,
    places: &mut Places,
) -> Result<Finding, Error> {
    let IssuerScope { context, object, cluster, region } = scope;
    let publication = match super::publication(object, cluster, bucket) {
        Ok(publication) => publication,
        Err(message) => return Ok(finding(Status::False, reason::INVALID_ISSUER, message)),
    };
    let Some(owner) = Owner::of(object) else {
        return Ok(finding(
            Status::Unknown,
            reason::ISSUER_PUBLISHING,
            "for an id of the AWSCluster".to_owned(),
        ));
    };
    let secret = format!("{}{}", cluster.name, names::SIGNING_KEY_SECRET_SUFFIX);
    let public = context
        .management
        .secret(&cluster.sibling(&secret))
        .await?
        .and_then(|it| it.data)
        .and_then(|mut it| it.remove("tls.crt"));
    let Some(public) = public else {
        let message = format!("for Secret {secret}, which the control plane makes");
        return Ok(finding(Status::False, reason::WAITING_FOR_SIGNING_KEY, message));
    };
    let keys = match PublicKey::from_pem(&String::from_utf8_lossy(&public.0)) {
        Ok(keys) => keys,
        Err(error) => {
            return Ok(finding(
                Status::False,
                reason::SIGNING_KEY_UNUSABLE,
                format!("tls.crt of Secret {secret}: {error}"),
            ));
        }
    };
    let readings = Readings {
        key_set: region.object(&bucket.bucket, &publication.jwks_key).await,
        discovery: region.object(&bucket.bucket, &publication.discovery_key).await,
        provider: region.open_id_provider(provider).await,
    };
    let retired = retired(scope);
    let input = publication::Input {
        publication: &publication,
        owner: &owner,
        cluster: &cluster.to_string(),
        keys: &keys,
        readings: &readings,
        retired: &retired,
        now: now(),
    };
    let work = match publication::work(&input) {
        Ok(work) => work,
        Err(finding) => return Ok(finding),
    };
    let place = super::place(cluster, bucket);
    if !places.enter(&place) {
        return Ok(finding(Status::False, reason::INVALID_ISSUER, too_many(places)));
    }
    write_down(scope, &work.retired, &retired, places).await?;
    for act in &work.acts {
        if let Err(it) = execute(scope, &place, &publication, &owner, provider, act).await {
            let message = format!("{}: {}: {}", what(act), it.code, it.message);
            return Ok(finding(Status::False, reason::WRITE_FAILED, message));
        }
        tracing::info!(object = %object.object_name(), issuer = publication.issuer, "{}", what(act));
    }
    Ok(work.finding)
}

fn too_many(places: &Places) -> String {
    let count = places.all().len();
    format!(
        "bucket or prefix were changed too often: {count} issuers of this cluster are still published, \
         each for a year after it was left, and are listed in annotation {}. Go back to one of them",
        names::ISSUER_PLACES_ANNOTATION
    )
}

async fn write_down(
    scope: IssuerScope<'_>,
    retired: &Retired,
    before: &Retired,
    places: &Places,
) -> Result<(), Error> {
    if retired == before && *places == scope.places() {
        return Ok(());
    }
    let text = (!retired.is_empty()).then(|| serde_json::to_string(retired).unwrap_or_default());
    let annotations =
        json!({names::RETIRED_KEYS_ANNOTATION: text, names::ISSUER_PLACES_ANNOTATION: places.annotation()});
    scope
        .context
        .management
        .patch(scope.object, json!({"metadata": {"annotations": annotations}}))
        .await
        .map(drop)
}

async fn execute(
    scope: IssuerScope<'_>,
    place: &Place,
    publication: &Publication,
    owner: &Owner,
    provider: &str,
    act: &Write,
) -> Result<(), model::Problem> {
    let region = scope.region;
    match act {
        Write::Put { document, over } => {
            region
                .put_object(&place.bucket, document, &owner.mark(&publication.issuer), over.as_deref())
                .await
        }
        Write::CreateProvider => {
            region.create_open_id_provider(&publication.issuer, &[AUDIENCE.to_owned()], &owner.tags()).await
        }
        Write::TagProvider => region.tag_open_id_provider(provider, &owner.tags()).await,
        Write::AddAudience => region.add_client_id(provider, AUDIENCE).await,
    }
}

fn what(act: &Write) -> String {
    match act {
        Write::Put { document, .. } => format!("writing {} to the bucket", document.key),
        Write::CreateProvider => "creating the IAM OIDC provider".to_owned(),
        Write::TagProvider => "writing on the IAM OIDC provider whose it is".to_owned(),
        Write::AddAudience => "adding the audience to the IAM OIDC provider".to_owned(),
    }
}

fn retired(scope: IssuerScope<'_>) -> Retired {
    let text = scope.object.annotations().get(names::RETIRED_KEYS_ANNOTATION);
    text.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default()
}
