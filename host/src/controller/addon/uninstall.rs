//! Uninstalls add-ons by the removals that were recorded when they were installed. From a cluster that lives
//! on, what its ClusterPlugin does not ask for any more is uninstalled, and what must not go is kept: that is
//! decided in `addons`.

#[cfg(test)]
mod tampering;

use std::collections::BTreeSet;

use addons::{
    DesiredAddOn, Inventory, Leftover, Progress, Slot, Standing, built_in, can_be_uninstalled, in_the_way,
    leftover, leftovers,
};
use contract::Operation;
use crds::cluster_plugin::{ClusterPlugin, PluginPhase, PluginStatus};
use crds::conditions::reason;
use tokio::time::Instant;

use super::AddOns;
use super::applied::AppliedObjects;
use super::check::Findings;
use super::execute::execute;
use super::memory::AddOnMemory;
use super::options::{ApplyOptions, field_manager};
use super::progress::StepProgress;
use super::records::Records;
use super::timing::BUDGET;
use super::usage::Usage;
use crate::management::Cached;
use crate::workload::WorkloadCluster;

impl AddOns {
    /// Goes on uninstalling what is not `wanted`, or everything when the ClusterPlugin is being deleted
    /// (`None`), and reports how each fares; what is gone is not reported any more. What is wanted and cannot
    /// be installed beside what stays is reported too.
    pub(super) async fn uninstall_unwanted(
        &self,
        object: &Cached<ClusterPlugin>,
        workload: Option<&WorkloadCluster>,
        records: &Records,
        desired: Option<&[DesiredAddOn]>,
    ) -> Vec<Progress> {
        let list = desired.unwrap_or_default();
        let (Some(workload), Records::Known(installed)) = (workload, records) else {
            return last_known(object, list, records);
        };
        let held_back = list
            .iter()
            .filter_map(|it| Some(progress(object, it.slot, &it.module, kept(in_the_way(it, installed)?))));
        let mut res: Vec<Progress> = held_back.collect();
        let mut usage = Usage::default();
        for (slot, inventory) in leftovers(installed, list) {
            let users = match usage.of(workload, slot, inventory).await {
                Ok(users) => users,
                Err(error) => {
                    let state = (PluginPhase::Deleting, reason::UNREACHABLE, error.to_string());
                    res.push(progress(object, slot, &inventory.module, state));
                    continue;
                }
            };
            let state = match leftover(inventory, slot, desired, &users) {
                // Nobody has to act about what stays when the ClusterPlugin goes.
                Leftover::Keep(why) if desired.is_none() => (PluginPhase::Running, reason::KEPT, why),
                Leftover::Keep(why) => kept(why),
                Leftover::InUse(what) => (PluginPhase::Failed, reason::IN_USE, what),
                Leftover::Remove => match self.begin_uninstall(object, workload, inventory).await {
                    StepProgress::Done => continue,
                    StepProgress::Waiting(it) if it.is_overdue => {
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

    /// Uninstalls one add-on of a cluster that lives on.
    async fn begin_uninstall(
        &self,
        object: &Cached<ClusterPlugin>,
        workload: &WorkloadCluster,
        inventory: &Inventory,
    ) -> StepProgress {
        let name = object.object_name();
        // From here on it is not complete: should it be asked for again, all of it is applied again. A record
        // that somebody else may have written counts for nothing then.
        if inventory.complete && inventory.standing == Standing::Proven {
            let begun = Inventory { complete: false, plan_hash: String::new(), ..inventory.clone() };
            if let Err(progress) = self.write_record(&name, workload, &begun).await {
                return progress;
            }
            tracing::info!(cluster_plugin = %name, module = inventory.module, "uninstalling");
        }
        self.memories.of(&name, &inventory.module).clear_completed_steps();
        self.uninstall(workload, object, &inventory.module, Operation::Uninstall).await
    }

    /// Carries out what uninstalls an add-on, by what its plugin says now or by what was recorded when it was
    /// installed, then removes its record.
    pub(super) async fn uninstall(
        &self,
        workload: &WorkloadCluster,
        object: &Cached<ClusterPlugin>,
        module: &str,
        operation: Operation,
    ) -> StepProgress {
        let name = object.object_name();
        let record = match self.record(&name, workload, module).await {
            Ok(Some(record)) => record,
            Ok(None) => return StepProgress::Done,
            Err(progress) => return progress,
        };
        let record = self.with_removal_of_plugin(object, workload, record, operation).await;
        let memory = self.memories.of(&name, module);
        match execute_removal(workload, &record, memory).await {
            StepProgress::Done => {
                memory.removed();
                self.remove_record(&name, workload, module).await.into()
            }
            other => other,
        }
    }
}

/// Carries out the removal of an add-on as its record has it, as far as that may be believed.
async fn execute_removal(
    workload: &WorkloadCluster,
    record: &Inventory,
    memory: AddOnMemory<'_>,
) -> StepProgress {
    let module = record.module.as_str();
    let removal = match addons::removal(record) {
        Ok(removal) => removal,
        Err(denial) => {
            let message = format!(
                "the record of {module} in the cluster, step {:?} of its removal: {}",
                denial.step, denial.message
            );
            return StepProgress::Refused(reason::RECORD_DENIED, message);
        }
    };
    let options = ApplyOptions {
        field_manager: &field_manager(module),
        // Nothing is applied.
        force: false,
        rules_are_there: true,
        findings: &Findings::new(),
        authority: None,
        memory,
        until: Instant::now() + BUDGET,
        taken_over: &[],
        own_only: removal.own_only,
        objects: &AppliedObjects::default(),
        is_repair: false,
        was_complete: false,
        keeps_definitions: false,
    };
    execute(workload, &removal.steps, &mut BTreeSet::new(), &options).await
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
        registered: before.and_then(|it| it.module.clone()),
        version: before.map(|it| it.version.clone()).unwrap_or_default(),
        digest: before.map(|it| it.digest.clone()).unwrap_or_default(),
        phase,
        reason: reason.to_owned(),
        message,
        available: None,
        upgrade: None,
        approval: None,
        outputs: None,
        repaired: None,
    }
}

/// While the cluster cannot be asked: what was there when it last could be, and is not wanted.
fn last_known(object: &Cached<ClusterPlugin>, desired: &[DesiredAddOn], records: &Records) -> Vec<Progress> {
    let why = records.unknown().unwrap_or("the API server of the cluster was not asked");
    let known = object.status.iter().flat_map(|it| &it.plugins).filter(|it| it.phase != PluginPhase::Pending);
    let left = known.filter(|known| !desired.iter().any(|it| it.module == known.name));
    let one = |plugin: &PluginStatus| {
        let slot = slot_of(plugin)?;
        let state = if can_be_uninstalled(slot) {
            (PluginPhase::Deleting, reason::UNREACHABLE, format!("for the API server: {why}"))
        } else {
            kept(plugin.waiting_for.clone())
        };
        Some(progress(object, slot, &plugin.name, state))
    };
    left.filter_map(one).collect()
}

/// What an add-on is for, as far as the status tells: of a module in a slot, only the record does.
fn slot_of(plugin: &PluginStatus) -> Option<Slot> {
    let built_in = built_in::find(&plugin.name).map(|add_on| add_on.slot);
    built_in.or_else(|| plugin.module.is_some().then_some(Slot::Other))
}

/// The same progress of every add-on that is asked for or was there when the cluster was last read.
pub(super) fn uniform_progress(
    object: &Cached<ClusterPlugin>,
    phase: PluginPhase,
    message: &str,
) -> Vec<Progress> {
    let known = object.status.clone().unwrap_or_default().plugins;
    let asked: Vec<(Slot, String)> =
        addons::desired(&object.spec).into_iter().map(|it| (it.slot, it.module.to_owned())).collect();
    let others = known.iter().filter(|it| !asked.iter().any(|(_, module)| *module == it.name));
    let others: Vec<_> = others.filter_map(|it| Some((slot_of(it)?, it.name.clone()))).collect();
    let of = |(slot, module): (Slot, String)| {
        let before = known.iter().find(|known| known.name == module);
        Progress {
            slot,
            version: before.map(|it| it.version.clone()).unwrap_or_default(),
            digest: before.map(|it| it.digest.clone()).unwrap_or_default(),
            module,
            registered: before.and_then(|it| it.module.clone()),
            phase,
            reason: reason::DELETING.to_owned(),
            message: message.to_owned(),
            available: None,
            upgrade: None,
            approval: None,
            outputs: None,
            repaired: None,
        }
    };
    asked.into_iter().chain(others).map(of).collect()
}
