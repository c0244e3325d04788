//! Upgrades of add-ons in all clusters: which are under way, and whether one more may begin. What this process
//! begins counts at once; what an earlier one began is known by the statuses until each is looked at.
//! [`addons::fleet`] decides.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use addons::DesiredAddOn;
use addons::consent;
use addons::fleet::{DESPITE_FAILURES_ANNOTATION, Fleet, Member, MemberState};
use addons::upgrade::{Component, Consent, UPGRADE_ANNOTATION, consents};
use crds::ClusterPlugin;
use crds::cluster_api::Cluster;
use crds::cluster_plugin::{PluginPhase, PluginStatus, UpgradePolicy};
use crds::conditions::reason;
use crds::names::UPGRADE_FIRST_LABEL;
use kube::ResourceExt;
use model::Timestamp;

use super::AddOns;
use crate::object_name::ObjectName;

/// How long an upgrade that has to wait for other clusters waits before it asks again.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(30);

/// How long others wait for an upgrade, whatever its own cluster gives it.
const LONGEST: Duration = Duration::from_secs(3600);

/// Whether others wait for an upgrade that was begun so long ago.
pub(super) fn is_awaited(since: Timestamp, now: Timestamp) -> bool {
    now - since < LONGEST.as_secs_f64()
}

/// The upgrades of all clusters.
pub(super) struct FleetUpgrades {
    /// In how many clusters add-ons may be upgraded at once.
    limit: usize,
    attempts: Mutex<Attempts>,
}

/// What this process knows of upgrades, whatever the statuses say.
type Attempts = BTreeMap<Upgrade, Attempt>;

/// One add-on of one cluster, and the component that it is upgraded to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Upgrade {
    cluster: ObjectName,
    module: String,
    digest: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Attempt {
    UnderWay {
        is_awaited: bool,
    },
    /// Until the status says so too.
    Failed(String),
}

/// The upgrade of an add-on, as it was found when the add-on was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FoundUpgrade {
    /// There is none under way: it is whole, or none was begun.
    None,
    /// To the component of this digest.
    UnderWay { digest: String },
    /// It was undone, is being undone, or should be and cannot. Why.
    Failed { digest: String, why: String },
}

/// An upgrade that may begin. Unless it is kept, it was not begun.
#[must_use]
pub(super) struct Reservation<'a> {
    fleet: &'a FleetUpgrades,
    /// What was known of it before; nothing once it is kept.
    before: Option<(Upgrade, Option<Attempt>)>,
}

/// A ClusterPlugin, as far as it may be upgraded now.
struct Seen<'a> {
    name: ObjectName,
    plugin: &'a ClusterPlugin,
    is_first: bool,
    is_paused: bool,
}

impl AddOns {
    /// Lets an upgrade to what this operator brings begin in a cluster where it is consented to.
    ///
    /// # Errors
    /// It has to wait. Why, after "the upgrade waits".
    pub(super) fn reserve_upgrade(
        &self,
        cluster: &ObjectName,
        module: &str,
        brought: &Component,
    ) -> Result<Reservation<'_>, String> {
        let management = &self.context.management;
        let plugins: Vec<_> = management.list::<ClusterPlugin>();
        let seen = plugins.iter().filter(|it| !it.is_deleting()).map(|it| {
            let name = it.object_name();
            let cluster = management.get::<Cluster>(&name.sibling(&it.spec.cluster_name));
            let is_labelled = |labels: &BTreeMap<String, String>| {
                labels.get(UPGRADE_FIRST_LABEL).is_some_and(|it| it == "true")
            };
            Seen {
                is_first: is_labelled(it.labels()) || cluster.is_some_and(|it| is_labelled(it.labels())),
                is_paused: management.is_paused(it),
                plugin: it,
                name,
            }
        });
        self.fleet.reserve(seen.collect(), cluster, module, brought)
    }
}

impl FleetUpgrades {
    pub(super) fn new(limit: usize) -> FleetUpgrades {
        FleetUpgrades { limit, attempts: Mutex::default() }
    }

    /// An add-on was looked at, in a cluster that answers, and advanced as far as it came.
    pub(super) fn looked_at(&self, cluster: &ObjectName, module: &str, found: FoundUpgrade) {
        let mut attempts = self.attempts();
        attempts.retain(|upgrade, _| upgrade.cluster != *cluster || upgrade.module != module);
        let (digest, attempt) = match found {
            FoundUpgrade::None => return,
            FoundUpgrade::UnderWay { digest } => (digest, Attempt::UnderWay { is_awaited: true }),
            FoundUpgrade::Failed { digest, why } => (digest, Attempt::Failed(why)),
        };
        attempts.insert(Upgrade { cluster: cluster.clone(), module: module.to_owned(), digest }, attempt);
    }

    /// The API server of a cluster does not answer, or its upgrade takes too long: nobody waits for it.
    pub(super) fn stop_awaiting(&self, cluster: &ObjectName) {
        let mut attempts = self.attempts();
        for (_, attempt) in attempts.iter_mut().filter(|(upgrade, _)| upgrade.cluster == *cluster) {
            if let Attempt::UnderWay { is_awaited } = attempt {
                *is_awaited = false;
            }
        }
    }

    /// The ClusterPlugin is gone. What comes back under its name is another one.
    pub(super) fn evict(&self, cluster: &ObjectName) {
        self.attempts().retain(|upgrade, _| upgrade.cluster != *cluster);
    }

    fn reserve(
        &self,
        seen: Vec<Seen<'_>>,
        cluster: &ObjectName,
        module: &str,
        brought: &Component,
    ) -> Result<Reservation<'_>, String> {
        let mut attempts = self.attempts();
        attempts.retain(|upgrade, attempt| {
            let plugin = seen.iter().find(|it| it.name == upgrade.cluster).map(|it| it.plugin);
            plugin.is_some_and(|it| !is_said(it, upgrade, attempt))
        });
        let upgraded_now = seen.iter().filter(|it| it.is_upgraded_now(&attempts));
        let fleet = Fleet {
            upgrading: upgraded_now.map(|it| it.name.to_string()).collect(),
            members: seen.iter().filter_map(|it| it.member(module, brought, &attempts)).collect(),
            limit: self.limit,
            entry: format!("{module}@{}", brought.digest),
        };
        let plugin = seen.iter().find(|it| it.name == *cluster).map(|it| it.plugin);
        let annotation = plugin.and_then(|it| it.annotations().get(DESPITE_FAILURES_ANNOTATION));
        let mut entries = consent::entries(annotation.map(String::as_str));
        let despite_failures = entries.any(|it| it == (module, brought.digest.as_str()));
        fleet.may_begin(&cluster.to_string(), despite_failures)?;
        let upgrade =
            Upgrade { cluster: cluster.clone(), module: module.to_owned(), digest: brought.digest.clone() };
        let before = attempts.insert(upgrade.clone(), Attempt::UnderWay { is_awaited: true });
        Ok(Reservation { fleet: self, before: Some((upgrade, before)) })
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation<'_> {
    /// It was begun: it counts until it ends.
    pub(super) fn keep(mut self) {
        self.before = None;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let Some((upgrade, before)) = self.before.take() else { return };
        let mut attempts = self.fleet.attempts();
        match before {
            Some(before) => drop(attempts.insert(upgrade, before)),
            None => drop(attempts.remove(&upgrade)),
        }
    }
}

impl Seen<'_> {
    /// The cluster as it counts for an upgrade of an add-on.
    fn member(&self, module: &str, brought: &Component, attempts: &Attempts) -> Option<Member> {
        let desired = addons::desired(&self.plugin.spec).into_iter().find(|it| it.module == module)?;
        let state = self.state(&desired, brought, attempts)?;
        let can_act = !self.is_paused || matches!(state, MemberState::Failed(_));
        can_act.then(|| Member { name: self.name.to_string(), is_first: self.is_first, state })
    }

    fn state(&self, desired: &DesiredAddOn, brought: &Component, attempts: &Attempts) -> Option<MemberState> {
        let module = desired.module.as_str();
        let upgrade =
            Upgrade { cluster: self.name.clone(), module: module.to_owned(), digest: brought.digest.clone() };
        // Whoever pins another version does not want this one any more.
        let is_given_up = desired.version.as_ref().is_some_and(|pin| *pin != brought.version);
        match attempts.get(&upgrade) {
            Some(Attempt::UnderWay { is_awaited }) => return is_awaited.then_some(MemberState::Upgrading),
            Some(Attempt::Failed(why)) => {
                return (!is_given_up).then(|| MemberState::Failed(why.clone()));
            }
            None => (),
        }
        let status = plugin_status(self.plugin, module)?;
        if let Some(failed) = status.failed_upgrade.as_ref().filter(|it| it.digest == brought.digest) {
            return (!is_given_up).then(|| MemberState::Failed(failed.message.clone()));
        }
        if status.digest == brought.digest {
            let is_under_way = status.upgrading_from.is_some() && self.answered();
            return is_under_way.then_some(MemberState::Upgrading);
        }
        let is_available = status.available.as_ref().is_some_and(|it| it.digest == brought.digest);
        let is_wanted = is_available && consents(&status.version, brought, &consent(self.plugin, desired));
        is_wanted.then_some(MemberState::Waiting)
    }

    /// Whether any add-on of it is upgraded now.
    fn is_upgraded_now(&self, attempts: &Attempts) -> bool {
        let own = || attempts.iter().filter(|(upgrade, _)| upgrade.cluster == self.name);
        let is_known = |it: &PluginStatus| own().any(|(upgrade, _)| upgrade.module == it.name);
        let mut of_others = self.plugin.status.iter().flat_map(|it| &it.plugins);
        let is_said = of_others.any(|it| it.upgrading_from.is_some() && !is_known(it)) && self.answered();
        let is_known_now = own().any(|(_, attempt)| *attempt == Attempt::UnderWay { is_awaited: true });
        !self.is_paused && (is_known_now || is_said)
    }

    /// Whether its API server answered when it was last looked at.
    fn answered(&self) -> bool {
        let mut conditions = self.plugin.status.iter().flat_map(|it| &it.conditions);
        !conditions.any(|it| it.status == "False" && it.reason == reason::UNREACHABLE)
    }
}

/// Whether the status says by now what this process remembers of an upgrade that failed, or that it was made after
/// all.
fn is_said(plugin: &ClusterPlugin, upgrade: &Upgrade, attempt: &Attempt) -> bool {
    let Some(status) = plugin_status(plugin, &upgrade.module) else { return false };
    let is_failed = status.failed_upgrade.as_ref().is_some_and(|it| it.digest == upgrade.digest);
    let is_whole = status.digest == upgrade.digest
        && status.phase == PluginPhase::Running
        && status.upgrading_from.is_none();
    matches!(attempt, Attempt::Failed(_)) && (is_failed || is_whole)
}

fn plugin_status<'a>(plugin: &'a ClusterPlugin, module: &str) -> Option<&'a PluginStatus> {
    plugin.status.as_ref()?.plugins.iter().find(|it| it.name == module)
}

/// What a user says about upgrades of one add-on.
pub(super) fn consent(plugin: &ClusterPlugin, desired: &DesiredAddOn) -> Consent {
    let annotation = plugin.annotations().get(UPGRADE_ANNOTATION).map(String::as_str);
    let entries = consent::entries(annotation).filter(|(module, _)| *module == desired.module);
    Consent {
        automatic: plugin.spec.upgrade_policy == UpgradePolicy::Automatic,
        pin: desired.version.clone(),
        digest: entries.last().map(|(_, digest)| digest.to_owned()),
    }
}
