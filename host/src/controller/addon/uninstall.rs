//! Takes out of a cluster that lives what its ClusterPlugin does not ask for any more, and keeps what must
//! not go. What may leave is `addons`'s to say; here the cluster is asked, and removals are carried out.

use std::collections::BTreeSet;

use addons::{
    Inventory, Leftover, Progress, Slot, Standing, Wanted, can_leave, in_the_way, leftover, leftovers,
    rules_of_installed, slot_of, used_by_ingress_controller, used_by_storage,
};
use crds::cluster_plugin::{ClusterPlugin, PluginPhase, PluginStatus};
use crds::conditions::reason;

use super::execute::StepProgress;
use super::{AddOns, seen};

use crate::context::{RequestedRules, requested_rules};
use crate::management::{Cached, Error};
use crate::workload::{Lists, WorkloadCluster, WorkloadError};

/// What the records in a workload cluster say is installed there.
pub(super) enum Records {
    Known(Vec<Inventory>),
    /// Why they could not be read: nothing may be concluded, and nothing installed or removed.
    Unknown(String),
}

impl Records {
    pub(super) fn all(&self) -> Option<&[Inventory]> {
        match self {
            Records::Known(all) => Some(all),
            Records::Unknown(_) => None,
        }
    }

    pub(super) fn unknown(&self) -> Option<&str> {
        match self {
            Records::Known(_) => None,
            Records::Unknown(why) => Some(why),
        }
    }

    /// The add-ons that can be installed: a network that would replace another cannot.
    pub(super) fn installable(&self, wanted: Vec<Wanted>) -> Vec<Wanted> {
        let installed = self.all().unwrap_or_default();
        wanted.into_iter().filter(|it| in_the_way(it, installed).is_none()).collect()
    }

    /// The rules that everything installed needs; `None` when that is not known.
    pub(super) fn rules_of_all(&self) -> Option<RequestedRules> {
        self.all().map(|all| add_on_rules(all.iter()))
    }

    /// What is asked for and what is installed, together: rules go after the objects that need them. While it
    /// is not known what is installed, nothing is taken from what was asked for `before`.
    pub(super) fn rules(
        &self,
        requested: Option<RequestedRules>,
        before: Option<RequestedRules>,
    ) -> Option<RequestedRules> {
        let mut res = requested?;
        for (group, rules) in self.rules_of_all().or(before)? {
            res.entry(group).or_default().extend(rules);
        }
        Some(res)
    }
}

impl AddOns {
    /// Reads what is installed. Before a control plane is `initialized`, nothing can be.
    pub(super) async fn records(
        &self,
        object: &Cached<ClusterPlugin>,
        workload: Option<&WorkloadCluster>,
        initialized: bool,
    ) -> Result<Records, Error> {
        let workload = match workload {
            _ if !initialized => return Ok(Records::Known(Vec::new())),
            None => return Ok(Records::Unknown("the API server of the cluster does not answer".into())),
            Some(workload) => workload,
        };
        Ok(match workload.inventories().await {
            Ok((all, broken)) => {
                let all = self.judged(&object.object_name(), all).await?;
                broken.first().map_or(Records::Known(all), |it| Records::Unknown(it.to_string()))
            }
            Err(error) => Records::Unknown(format!("for the API server: {error}")),
        })
    }

    /// Goes on removing what is installed and not `wanted`, or everything when the ClusterPlugin is being
    /// deleted (`None`), and says how each fares; what is gone is not said any more. What is wanted and
    /// cannot be installed beside what stays is said too.
    pub(super) async fn uninstall(
        &self,
        object: &Cached<ClusterPlugin>,
        workload: Option<&WorkloadCluster>,
        records: &Records,
        wanted: Option<&[Wanted]>,
    ) -> Vec<Progress> {
        let list = wanted.unwrap_or_default();
        let (Some(workload), Records::Known(installed)) = (workload, records) else {
            return remembered(object, list, records);
        };
        let held_back = list
            .iter()
            .filter_map(|it| Some(progress(object, it.slot, it.module, kept(in_the_way(it, installed)?))));
        let mut res: Vec<Progress> = held_back.collect();
        let mut asked = Users::default();
        for (slot, inventory) in leftovers(installed, list) {
            let users = match asked.of(workload, slot, &inventory.module).await {
                Ok(users) => users,
                Err(error) => {
                    let state = (PluginPhase::Deleting, reason::UNREACHABLE, error.to_string());
                    res.push(progress(object, slot, &inventory.module, state));
                    continue;
                }
            };
            let state = match leftover(&inventory.module, slot, wanted, &users) {
                // Nobody has to act about what stays when the ClusterPlugin goes.
                Leftover::Keep(why) if wanted.is_none() => (PluginPhase::Running, reason::KEPT, why),
                Leftover::Keep(why) => kept(why),
                Leftover::InUse(what) => (PluginPhase::Failed, reason::IN_USE, what),
                Leftover::Remove => match self.take_out(object, workload, inventory).await {
                    StepProgress::Out => continue,
                    StepProgress::Waiting(it) if it.late => {
                        (PluginPhase::Deleting, reason::WAIT_TIMED_OUT, it.what)
                    }
                    StepProgress::Waiting(it) => (PluginPhase::Deleting, reason::DELETING, it.what),
                    StepProgress::Unreachable(what) => (PluginPhase::Deleting, reason::UNREACHABLE, what),
                    StepProgress::Refused(reason, what) => (PluginPhase::Failed, reason, what),
                },
            };
            res.push(progress(object, slot, &inventory.module, state));
        }
        res
    }

    async fn take_out(
        &self,
        object: &Cached<ClusterPlugin>,
        workload: &WorkloadCluster,
        inventory: &Inventory,
    ) -> StepProgress {
        // From here on it is not whole: should it be asked for again, all of it is applied again. A record
        // that somebody else may have written counts for nothing then.
        if inventory.complete && inventory.standing == Standing::Proven {
            let begun = Inventory { complete: false, plan_hash: String::new(), ..inventory.clone() };
            if let Err(carried) = self.write_record(&object.object_name(), workload, &begun).await {
                return carried;
            }
            tracing::info!(cluster_plugin = %object.object_name(), module = inventory.module, "uninstalling");
        }
        self.set_done(&object.object_name(), &inventory.module, "", BTreeSet::new());
        self.remove(workload, object, &inventory.module).await
    }
}

/// What uses add-ons that may leave, asked at most once for each slot.
#[derive(Default)]
struct Users<'a> {
    storage: Option<addons::StorageSeen>,
    exposure: Option<addons::ExposureSeen>,
    lists: Option<Lists<'a>>,
}

impl<'a> Users<'a> {
    async fn of(
        &mut self,
        workload: &'a WorkloadCluster,
        slot: Slot,
        module: &str,
    ) -> Result<Vec<String>, WorkloadError> {
        let lists = self.lists.get_or_insert_with(|| workload.lists());
        match slot {
            Slot::Storage => {
                let seen = match self.storage.take() {
                    Some(seen) => seen,
                    None => seen::storage(lists).await?,
                };
                Ok(used_by_storage(module, self.storage.insert(seen)))
            }
            Slot::Ingress => {
                let seen = match self.exposure.take() {
                    Some(seen) => seen,
                    None => seen::exposure(lists).await?,
                };
                Ok(used_by_ingress_controller(self.exposure.insert(seen))
                    .iter()
                    .map(ToString::to_string)
                    .collect())
            }
            Slot::CloudProvider | Slot::Networking => Ok(Vec::new()),
        }
    }
}

fn kept(why: String) -> (PluginPhase, &'static str, String) {
    (PluginPhase::Failed, reason::KEPT, why)
}

fn progress(
    object: &Cached<ClusterPlugin>,
    slot: Slot,
    module: &str,
    (phase, reason, message): (PluginPhase, &str, String),
) -> Progress {
    let before = object.status.as_ref().and_then(|it| it.plugins.iter().find(|it| it.name == module));
    Progress {
        slot,
        module: module.to_owned(),
        version: before.map(|it| it.version.clone()).unwrap_or_default(),
        digest: before.map(|it| it.digest.clone()).unwrap_or_default(),
        phase,
        reason: reason.to_owned(),
        message,
        repaired: None,
    }
}

/// While the cluster cannot be asked: what was there when it last could be, and is not wanted.
fn remembered(object: &Cached<ClusterPlugin>, wanted: &[Wanted], records: &Records) -> Vec<Progress> {
    let why = records.unknown().unwrap_or("the API server of the cluster was not asked");
    let known = object.status.iter().flat_map(|it| &it.plugins).filter(|it| it.phase != PluginPhase::Pending);
    let left = known.filter(|known| !wanted.iter().any(|it| it.module == known.name));
    let one = |it: &PluginStatus| {
        let slot = slot_of(&it.name)?;
        let state = match can_leave(slot) {
            true => (PluginPhase::Deleting, reason::UNREACHABLE, format!("for the API server: {why}")),
            false => kept(it.waiting_for.clone()),
        };
        Some(progress(object, slot, &it.name, state))
    };
    left.filter_map(one).collect()
}

/// Rules of these add-ons, by the role of the group.
pub(super) fn add_on_rules<'a>(installed: impl Iterator<Item = &'a Inventory>) -> RequestedRules {
    requested_rules(rules_of_installed(installed))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn installed(module: &str, port: u16) -> Inventory {
        let rule = json!({"group": "node", "protocol": "tcp", "fromPort": port, "toPort": port, "peer": "node", "description": module});
        let record = json!({"module": module, "version": "1", "digest": "", "config": {}, "planHash": "", "complete": true, "objects": [],
            "rules": [rule], "removal": []});
        Inventory { standing: Standing::Proven, ..serde_json::from_value(record).expect("a record") }
    }

    fn ports(rules: Option<RequestedRules>) -> Option<Vec<i32>> {
        Some(rules?.into_values().flatten().map(|it| it.from_port).collect())
    }

    fn asked(port: u16) -> Option<RequestedRules> {
        Records::Known(vec![installed("calico", port)]).rules_of_all()
    }

    #[test]
    fn rules_of_what_is_installed_stay_though_nobody_asks_for_it() {
        let records =
            Records::Known(vec![installed("calico", 179), installed("aws-load-balancer-controller", 9443)]);
        assert_eq!(ports(records.rules(Some(RequestedRules::new()), None)), Some(vec![179, 9443]));
        assert_eq!(ports(records.rules(asked(5473), asked(1))), Some(vec![179, 5473, 9443]));
        assert_eq!(records.rules(None, asked(1)), None);
    }

    #[test]
    fn a_record_that_somebody_else_may_have_written_opens_nothing() {
        for standing in [Standing::Unknown, Standing::Foreign] {
            let records = Records::Known(vec![Inventory { standing, ..installed("calico", 1) }]);
            assert_eq!(ports(records.rules(asked(179), None)), Some(vec![179]));
        }
    }

    #[test]
    fn no_rule_is_given_up_while_it_is_not_known_what_is_installed() {
        let unknown = Records::Unknown("connection refused".into());
        assert_eq!(ports(unknown.rules(asked(5473), asked(179))), Some(vec![179, 5473]));
        assert_eq!(unknown.rules(asked(5473), None), None);
    }

    #[test]
    fn a_network_that_would_replace_another_is_held_back_alone() {
        let spec = json!({"clusterName": "one", "networking": {"amazonVPC": {}}, "storage": {"ebs": {}}});
        let wanted = addons::wanted(&serde_json::from_value(spec).expect("a spec"));
        let names = |records: Records| {
            records.installable(wanted.clone()).iter().map(|it| it.module).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            names(Records::Known(vec![installed("calico", 179)])),
            "aws-cloud-controller-manager aws-ebs-csi"
        );
        assert_eq!(names(Records::Known(vec![])), "aws-cloud-controller-manager aws-vpc-cni aws-ebs-csi");
    }
}
