//! Leader election by a Lease: of several copies one works, the others wait. Whoever cannot renew the lease
//! in time ends, and the process with it.

use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::Instant;

/// How long a lease lasts that is not renewed. The times are those of Cluster API's managers.
const DURATION: Duration = Duration::from_secs(15);
const RENEW_EVERY: Duration = Duration::from_secs(5);
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
const RETRY_EVERY: Duration = Duration::from_secs(2);
const NAME: &str = "cluster-operator";

/// A lease that this process holds.
pub struct Held {
    api: Api<Lease>,
    identity: String,
    lease: Lease,
}

/// Waits until this process holds the lease.
///
/// # Errors
/// The API refuses to show or to write the lease, for example for want of permission. One that does not
/// answer is asked again.
pub async fn acquire(client: Client, namespace: &str, identity: &str) -> anyhow::Result<Held> {
    let api: Api<Lease> = Api::namespaced(client, namespace);
    let mut observed = ObservedLease::default();
    let mut logged = String::new();
    loop {
        let reply = tokio::time::timeout(RENEW_DEADLINE, attempt(&api, identity, &mut observed)).await;
        match reply.unwrap_or_else(|elapsed| Err(kube::Error::Service(elapsed.into()))) {
            Ok(Some(lease)) => return Ok(Held { api, identity: identity.to_owned(), lease }),
            Ok(None) => {
                let holder = observed.holder().to_owned();
                if holder != logged {
                    tracing::info!(holder, "waiting for the lease");
                    logged = holder;
                }
            }
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {}
            Err(error @ kube::Error::Api(_)) => {
                return Err(error).with_context(|| format!("cannot get the Lease {namespace}/{NAME}"));
            }
            Err(error) => tracing::warn!(%error, "cannot ask for the lease, trying again"),
        }
        tokio::time::sleep(RETRY_EVERY).await;
    }
}

async fn attempt(
    api: &Api<Lease>,
    identity: &str,
    observed: &mut ObservedLease,
) -> Result<Option<Lease>, kube::Error> {
    let parameters = PostParams::default();
    let Some(lease) = api.get_opt(NAME).await? else {
        let metadata = ObjectMeta { name: Some(NAME.into()), ..ObjectMeta::default() };
        return api
            .create(&parameters, &Lease { metadata, spec: Some(spec(identity, None)) })
            .await
            .map(Some);
    };
    if !observed.is_free(&lease, identity, Instant::now()) {
        return Ok(None);
    }
    // With the version that was read: of two that try, one is refused.
    let spec = Some(spec(identity, lease.spec.as_ref()));
    api.replace(NAME, &parameters, &Lease { spec, ..lease }).await.map(Some)
}

fn spec(identity: &str, before: Option<&LeaseSpec>) -> LeaseSpec {
    let now = Some(MicroTime(Timestamp::now()));
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
        acquire_time: now.clone(),
        renew_time: now,
        lease_transitions: Some(before.and_then(|it| it.lease_transitions).map_or(0, |count| count + 1)),
        ..LeaseSpec::default()
    }
}

impl Held {
    /// Renews the lease until it is lost.
    pub async fn renew_until_lost(&mut self) {
        let mut renewed = Instant::now();
        while renewed.elapsed() < RENEW_DEADLINE {
            tokio::time::sleep(if renewed.elapsed() < RENEW_EVERY { RENEW_EVERY } else { RETRY_EVERY }).await;
            match self.renew().await {
                Ok(()) => renewed = Instant::now(),
                Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => return,
                Err(error) => tracing::warn!(%error, "cannot renew the lease, trying again"),
            }
        }
    }

    async fn renew(&mut self) -> Result<(), kube::Error> {
        let mut lease = self.lease.clone();
        if let Some(spec) = &mut lease.spec {
            spec.renew_time = Some(MicroTime(Timestamp::now()));
        }
        let reply =
            tokio::time::timeout(RETRY_EVERY, self.api.replace(NAME, &PostParams::default(), &lease)).await;
        self.lease = reply.map_err(|elapsed| kube::Error::Service(elapsed.into()))??;
        Ok(())
    }

    /// Gives the lease back, so that another copy need not wait for it to run out.
    pub async fn release(mut self) {
        if let Some(spec) = &mut self.lease.spec {
            spec.holder_identity = None;
            spec.lease_duration_seconds = Some(1);
        }
        let reply =
            tokio::time::timeout(RETRY_EVERY, self.api.replace(NAME, &PostParams::default(), &self.lease))
                .await;
        match reply {
            Ok(Ok(_)) => tracing::info!(identity = self.identity, "released the lease"),
            _ => tracing::warn!("could not release the lease; it runs out by itself"),
        }
    }
}

/// What is known of a lease of somebody else. It has run out when nobody was seen to renew it for its
/// duration: by this process's clock, since clocks differ.
#[derive(Default)]
struct ObservedLease {
    lease: Option<(Lease, Instant)>,
}

impl ObservedLease {
    fn is_free(&mut self, lease: &Lease, identity: &str, now: Instant) -> bool {
        let spec = lease.spec.clone().unwrap_or_default();
        // One's own, from before a crash: an identity is never that of two at a time.
        if spec.holder_identity.is_none_or(|it| it.is_empty() || it == identity) {
            return true;
        }
        let duration = Duration::from_secs(
            spec.lease_duration_seconds.and_then(|it| u64::try_from(it).ok()).unwrap_or(DURATION.as_secs()),
        );
        match &self.lease {
            Some((before, since)) if before.spec == lease.spec => now.duration_since(*since) > duration,
            _ => {
                self.lease = Some((lease.clone(), now));
                false
            }
        }
    }

    fn holder(&self) -> &str {
        self.lease
            .as_ref()
            .and_then(|(it, _)| it.spec.as_ref()?.holder_identity.as_deref())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: Option<&str>, renewed: i64) -> Lease {
        let spec = LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            lease_duration_seconds: Some(15),
            renew_time: Timestamp::from_second(renewed).ok().map(MicroTime),
            ..LeaseSpec::default()
        };
        Lease { metadata: ObjectMeta::default(), spec: Some(spec) }
    }

    #[test]
    fn a_lease_is_free_when_nobody_renewed_it_for_its_duration() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut observed = ObservedLease::default();
        assert!(
            !observed.is_free(&lease(Some("other"), 0), "own", at(0)),
            "an old time in it says nothing: clocks differ"
        );
        assert!(!observed.is_free(&lease(Some("other"), 10), "own", at(10)));
        assert!(!observed.is_free(&lease(Some("other"), 10), "own", at(25)));
        assert!(observed.is_free(&lease(Some("other"), 10), "own", at(26)));
    }

    #[test]
    fn a_lease_that_was_given_back_is_free_at_once() {
        assert!(ObservedLease::default().is_free(&lease(None, 0), "own", Instant::now()));
        assert!(ObservedLease::default().is_free(&lease(Some(""), 0), "own", Instant::now()));
    }

    #[test]
    fn a_lease_of_ones_own_from_before_a_crash_is_free_at_once() {
        assert!(ObservedLease::default().is_free(&lease(Some("own"), 0), "own", Instant::now()));
    }
}
