//! Upgrades of Kubernetes: asks each add-on whether it supports the version that is wanted, and holds the upgrade of
//! a Cluster of a ClusterClass until all do. What follows is decided in `addons::kubernetes_upgrade`.

use std::sync::Arc;

use addons::kubernetes_upgrade::{Readiness, Support, has_hold};
use addons::{DesiredAddOn, Inventory, Progress, upgrade};
use crds::AWSCluster;
use crds::cluster_api::Cluster;
use crds::cluster_plugin::PluginPhase;
use crds::conditions::reason;
use crds::names::UPGRADE_HOOK_ANNOTATION;
use serde_json::json;

use super::Installation;
use super::plan::PlannedAddOn;
use super::service::Service;
use crate::controller::addon::AddOns;
use crate::controller::addon::plugins::{LoadedPlugin, Verdict};
use crate::controller::reconcile::is_ours;
use crate::management::{Cached, Error};

impl Installation<'_> {
    /// Whether an add-on supports the version of Kubernetes that the cluster is to have. `now` is what its plugin
    /// answered for the one that runs.
    pub(super) async fn support(
        &self,
        desired: &DesiredAddOn,
        installed: Option<&Inventory>,
        service: &Service,
        now: &Verdict,
    ) -> Support {
        let answer = match (service.serving(), self.upgrade.wanted()) {
            (_, None) => support(now),
            (Some(serving), Some(version)) => {
                support(&self.ask_for(serving, desired, installed, Some(&version)).await)
            }
            (None, Some(version)) => match now {
                Verdict::Left(..) => Support::Unsupported {
                    why: format!(
                        "it is left as it is, so that nobody can tell whether it supports Kubernetes {version}"
                    ),
                    upgrade: None,
                },
                _ => support(now),
            },
        };
        match answer {
            Support::Unsupported { why, .. } => {
                Support::Unsupported { why, upgrade: self.upgrade_for(desired, installed, service).await }
            }
            answer => answer,
        }
    }

    /// How an add-on is upgraded to what this operator brings, if that is another component and supports the version
    /// that is wanted.
    async fn upgrade_for(
        &self,
        desired: &DesiredAddOn,
        installed: Option<&Inventory>,
        service: &Service,
    ) -> Option<String> {
        let (installed, brought) = (installed?, service.brought());
        if installed.digest == brought.component.digest {
            return None;
        }
        let wanted = self.upgrade.wanted();
        let verdict = self.ask_for(brought, desired, Some(installed), wanted.as_deref()).await;
        let is_pinned = desired.version.is_some();
        (support(&verdict) == Support::Supported)
            .then(|| upgrade::how_to(&desired.module, installed, &brought.component, is_pinned))
    }

    /// What a plugin answers for a version of Kubernetes; without one, for what runs.
    async fn ask_for(
        &self,
        plugin: &LoadedPlugin,
        desired: &DesiredAddOn,
        installed: Option<&Inventory>,
        version: Option<&str>,
    ) -> Verdict {
        self.controller.plugins.ask_for(plugin, desired, &self.facts, Ok(installed), version).await
    }

    /// What is said of the version that the cluster is to have.
    pub(super) fn readiness(&self, add_ons: &[PlannedAddOn]) -> Readiness {
        let said: Vec<_> = add_ons.iter().map(|it| (it.desired.module.as_str(), &it.support)).collect();
        self.upgrade.readiness(&said)
    }

    /// Holds upgrades of a Cluster of a ClusterClass, or lets the one begin that its add-ons are ready for.
    pub(super) async fn hold(&self, readiness: &Readiness, has_add_ons: bool) -> Result<(), Error> {
        let is_held = self.upgrade.is_held(readiness, has_add_ons);
        self.controller.set_hold(&self.objects.cluster, is_held).await
    }
}

impl AddOns {
    /// Keeps Cluster API from beginning upgrades of a Cluster, or does so no longer.
    pub(in crate::controller::addon) async fn set_hold(
        &self,
        cluster: &Arc<Cached<Cluster>>,
        is_held: bool,
    ) -> Result<(), Error> {
        let management = &self.context.management;
        let infrastructure = management.of_cluster::<AWSCluster>(&cluster.object_name());
        if has_hold(cluster) == is_held
            || management.is_paused(cluster)
            || !infrastructure.iter().any(|it| is_ours(&self.context, it))
        {
            return Ok(());
        }
        let value = if is_held { json!("KubernetesUpgradeReady") } else { json!(null) };
        let patch = json!({"metadata": {"annotations": {UPGRADE_HOOK_ANNOTATION: value}}});
        management.patch(cluster, patch).await.map(drop)
    }
}

/// What an answer says of the version that it was given for.
fn support(verdict: &Verdict) -> Support {
    match verdict {
        Verdict::Plan(..) => Support::Supported,
        Verdict::Unsupported(why) => Support::Unsupported { why: why.clone(), upgrade: None },
        Verdict::Pending(why) | Verdict::Left(_, why) => Support::Unknown(why.clone()),
        Verdict::Refused(reason, why) => Support::Unknown(format!("{reason}: {why}")),
    }
}

/// How an add-on fares whose plugin knows nothing for the cluster's version of Kubernetes. What is installed goes on
/// running.
pub(super) fn unsupported(add_on: &PlannedAddOn, message: &str) -> Progress {
    if !add_on.is_complete() {
        return add_on.progress(PluginPhase::Failed, reason::UNSUPPORTED, message.to_owned());
    }
    let upgrade = match &add_on.support {
        Support::Unsupported { upgrade: Some(how), .. } => format!("; {how}"),
        _ => String::new(),
    };
    let message = format!(
        "{message}; what is installed stays as it is and runs, and is not changed or repaired until then{upgrade}"
    );
    add_on.progress(PluginPhase::Running, reason::UNSUPPORTED_KUBERNETES_VERSION, message)
}

#[cfg(test)]
mod tests {
    use addons::upgrade::Component;

    use super::*;
    use crate::controller::addon::install::plan::Course;
    use crate::controller::addon::plugins::Answer;

    fn add_on(complete: bool, support: Support) -> PlannedAddOn {
        let spec = json!({"clusterName": "one", "cloudProvider": {"aws": {}}});
        let desired = addons::desired(&serde_json::from_value(spec).expect("a spec")).remove(0);
        let record = json!({"module": desired.module, "version": "1", "digest": "sha256:1", "config": {}, "planHash": "a",
            "complete": complete, "objects": [], "removal": []});
        let verdict = Verdict::Unsupported("nothing is known for v1.37.0".into());
        let component = Component { version: "1".into(), digest: "sha256:1".into() };
        let installed = Ok(Some(serde_json::from_value(record).expect("a record")));
        let answer = Answer { component, verdict };
        PlannedAddOn { support, ..PlannedAddOn::of(desired, installed, answer, Course::Serve) }
    }

    #[test]
    fn what_no_longer_supports_the_version_goes_on_running_and_says_so() {
        let old = |upgrade: Option<&str>| Support::Unsupported {
            why: "old".into(),
            upgrade: upgrade.map(str::to_owned),
        };
        let said = |complete: bool, support: Support| {
            let Progress { phase, reason, message, .. } =
                unsupported(&add_on(complete, support), "nothing is known");
            format!("{phase:?} {reason}: {message}")
        };
        let stays = "Running UnsupportedKubernetesVersion: nothing is known; what is installed stays as it is and \
                     runs, and is not changed or repaired until then";
        assert_eq!(said(true, old(None)), stays);
        assert_eq!(said(true, old(Some("upgrade it"))), format!("{stays}; upgrade it"));
        assert_eq!(said(false, old(None)), "Failed Unsupported: nothing is known");
    }
}
