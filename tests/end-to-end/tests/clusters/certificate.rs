//! The serving certificate of a webhook, renewed before it ends by the authority that the API server trusts
//! already. Nothing here looks into the operator: the certificate is judged as a client would judge it, and
//! what the webhook must admit is admitted.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use end_to_end::add_ons::running;
use end_to_end::{Cluster, MOMENT};
use sandbox::certificate::{Serving, accept, sign};
use sandbox::{Bed, Workload};
use serde_json::{Value, json};

use super::passed;

const NAMESPACE: &str = "kube-system";
/// What the authority is called.
const MODULE: &str = "aws-load-balancer-controller";
const AUTHORITY: &str = "cluster-plugin-aws-load-balancer-controller-authority";
const SECRET: &str = "aws-load-balancer-tls";
/// What is known of a certificate, beside it.
const ANNOTATION: &str = "cluster.kurator.dev/certificate";
const CONFIGURATION: &str = "aws-load-balancer-webhook";
/// By which the API server calls the webhook.
const SERVER: &str = "aws-load-balancer-webhook-service.kube-system.svc";
const DAY: Duration = Duration::from_secs(24 * 3600);
/// What the certificate has left: enough for a pod to be given the next one.
const LEFT: Duration = Duration::from_secs(90);

/// The controller's certificate is made to end soon; says when it ends.
pub async fn an_ending_one_is_renewed(bed: &Bed, cluster: &Cluster) -> Result<SystemTime> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let trusted = bundles(&workload).await?;
    let end = SystemTime::now() + LEFT;
    let ending = put_one_that_ends(&workload, end).await?;
    for bundle in &trusted {
        accept(&ending.certificate, bundle, SERVER, SystemTime::now())
            .context("the webhook would not work to begin with")?;
        ensure!(accept(&ending.certificate, bundle, SERVER, end + DAY).is_err(), "what should end does not");
    }
    // Certificates are looked at every few minutes; a change of the object has it done at once.
    cluster
        .patch(bed, "clusterplugin", &cluster.name, r#"{"metadata":{"annotations":{"look":"again"}}}"#)
        .await?;
    let renewed = bed
        .wait_for("the certificate to be renewed before it ends", LEFT, async || {
            let secret = secret(&workload, SECRET).await?;
            let is_new = |name: &str, old: &str| secret["data"][name].as_str().is_some_and(|it| it != old);
            ensure!(
                is_new("tls.crt", &ending.certificate) && is_new("tls.key", &ending.key),
                "the Secret holds the one that ends"
            );
            Ok(secret)
        })
        .await?;
    let renewed = renewed["data"]["tls.crt"].as_str().unwrap_or_default();
    ensure!(
        bundles(&workload).await? == trusted,
        "clients were given another bundle, though only the certificate was to be renewed"
    );
    for bundle in &trusted {
        for at in [SystemTime::now(), SystemTime::now() + DAY * 300] {
            accept(renewed, bundle, SERVER, at)
                .context("the new certificate is not what the API server would accept for long")?;
        }
    }
    running(bed, cluster, 5).await?;
    passed(
        "a webhook's certificate that is about to end is replaced by one for long, which the API server's bundle vouches for",
    );
    Ok(end)
}

/// Once the old certificate has ended, what the webhook must admit is admitted. `ingress` is one that is
/// there.
pub async fn the_webhook_outlives_it(
    bed: &Bed,
    cluster: &Cluster,
    end: SystemTime,
    ingress: &str,
) -> Result<()> {
    // Nearly always over by now.
    tokio::time::sleep(end.duration_since(SystemTime::now()).unwrap_or_default()).await;
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    bed.wait_for("the webhook to admit a change of an Ingress", MOMENT, async || {
        workload
            .kubectl(&[
                "annotate",
                "ingress",
                ingress,
                "--namespace",
                "default",
                "--overwrite",
                "admitted=yes",
            ])
            .await
            .map(drop)
    })
    .await?;
    passed("the webhook answers when the certificate that was replaced has ended");
    Ok(())
}

/// Puts one into the Secret that was made nearly a year ago, by all that it says, in the name of the
/// authority that is there.
async fn put_one_that_ends(workload: &Workload<'_>, end: SystemTime) -> Result<Serving> {
    let (held, authority) = (secret(workload, SECRET).await?, secret(workload, AUTHORITY).await?);
    let known = held["metadata"]["annotations"][ANNOTATION]
        .as_str()
        .context("nothing is known of the certificate")?;
    let mut known: Value = serde_json::from_str(known).context("reading what is known of the certificate")?;
    let names: Vec<String> = known["dnsNames"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect();
    let key = authority["data"]["tls.key"].as_str().context("the authority has no key")?;
    let begin = end - DAY * 365;
    let ending = sign(MODULE, key, &names, begin, end)?;
    known["notBefore"] = begin.duration_since(UNIX_EPOCH)?.as_secs_f64().into();
    known["notAfter"] = end.duration_since(UNIX_EPOCH)?.as_secs_f64().into();
    known["digest"] = ending.digest.as_str().into();
    let patch = json!({"metadata": {"annotations": {ANNOTATION: known.to_string()}},
        "data": {"tls.crt": &ending.certificate, "tls.key": &ending.key}});
    let patch = patch.to_string();
    workload
        .kubectl(&["patch", "secret", SECRET, "--namespace", NAMESPACE, "--type", "merge", "--patch", &patch])
        .await?;
    Ok(ending)
}

async fn secret(workload: &Workload<'_>, name: &str) -> Result<Value> {
    workload.kubectl_json(&["get", "secret", name, "--namespace", NAMESPACE]).await
}

/// Who is trusted by the API server, for each webhook of the controller.
async fn bundles(workload: &Workload<'_>) -> Result<Vec<String>> {
    let mut bundles = Vec::new();
    for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        let configuration = workload.kubectl_json(&["get", kind, CONFIGURATION]).await?;
        for webhook in configuration["webhooks"].as_array().into_iter().flatten() {
            let bundle = webhook["clientConfig"]["caBundle"].as_str();
            bundles
                .push(bundle.with_context(|| format!("nobody vouches for {}", webhook["name"]))?.to_owned());
        }
    }
    ensure!(!bundles.is_empty(), "there are no webhooks");
    Ok(bundles)
}
