//! Leadership among the replicas of a controller, by a Lease, as the real ones have it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, ObjectMeta, PostParams};

use super::stand_in::StandIn;

/// Seconds after which a leader that is silent has lost the lease. A pod that ends leaves it behind.
const DURATION: i32 = 10;
const INTERVAL: Duration = Duration::from_secs(3);

/// Does `work` as long as this replica leads; one that waits for its turn is ready.
///
/// # Errors
/// Those of the work, and the loss of the lease.
pub async fn lead(stand_in: &StandIn, name: &str, work: impl Future<Output = Result<()>>) -> Result<()> {
    while !attempt(stand_in, name).await? {
        stand_in.ready();
        tokio::time::sleep(INTERVAL).await;
    }
    stand_in.log(&format!("leads by lease {name}"));
    let keep = async {
        let mut failures = 0;
        loop {
            tokio::time::sleep(INTERVAL).await;
            match attempt(stand_in, name).await {
                Ok(true) => failures = 0,
                Ok(false) => return anyhow::anyhow!("lost lease {name}"),
                // One request may fail without the lease running out.
                Err(error) if failures >= 2 => return error,
                Err(_) => failures += 1,
            }
        }
    };
    tokio::select! {
        result = work => result,
        error = keep => Err(error),
    }
}

/// Takes the lease if it is free, renews it if it is ours; whether it is ours now.
async fn attempt(stand_in: &StandIn, name: &str) -> Result<bool> {
    let leases: Api<Lease> =
        Api::namespaced(stand_in.client.clone(), &stand_in.pod.namespace().unwrap_or_default());
    let identity = stand_in.pod.name_any();
    let now = Timestamp::now();
    let spec = |acquired: Option<MicroTime>| LeaseSpec {
        holder_identity: Some(identity.clone()),
        lease_duration_seconds: Some(DURATION),
        acquire_time: acquired.or(Some(MicroTime(now))),
        renew_time: Some(MicroTime(now)),
        ..LeaseSpec::default()
    };
    let context = || format!("taking lease {name}");
    let Some(mut lease) = leases.get_opt(name).await.with_context(context)? else {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let lease = Lease { metadata, spec: Some(spec(None)) };
        return won(leases.create(&PostParams::default(), &lease).await).with_context(context);
    };
    let held = lease.spec.unwrap_or_default();
    let ours = held.holder_identity.as_deref() == Some(&identity);
    let ends = held
        .renew_time
        .map_or(0, |time| time.0.as_second() + i64::from(held.lease_duration_seconds.unwrap_or(DURATION)));
    if !ours && ends > now.as_second() && held.holder_identity.is_some_and(|holder| !holder.is_empty()) {
        return Ok(false);
    }
    lease.spec = Some(spec(held.acquire_time.filter(|_| ours)));
    lease.metadata.managed_fields = None;
    ensure!(lease.metadata.resource_version.is_some(), "lease {name} has no version");
    won(leases.replace(name, &PostParams::default(), &lease).await).with_context(context)
}

/// Another replica that was faster is no error.
fn won(result: kube::Result<Lease>) -> kube::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(false),
        Err(error) => Err(error),
    }
}
