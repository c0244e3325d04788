//! Compares what is asked of a cluster's add-ons with what is installed, by reads alone: what `cluster-operator
//! diff` shows. What serves each add-on, its plan and its facts are those that it would be rolled out with.

use std::sync::Arc;

use addons::upgrade::Component;
use addons::{
    Api, Inventory, Leftover, ObjectRef, changes, changes_of_installation, changes_of_record,
    changes_of_removal, in_the_way, leftover, leftovers, plan_hash, stored,
};
use contract::{AddOnPlan, StepSpec};
use crds::cluster_api::Cluster;
use crds::cluster_plugin::{AvailablePlugin, ClusterPlugin, Drift as Setting};
use serde::Serialize;

use super::plan::{Course, PlannedAddOn};
use super::rollout::RolloutKind;
use super::{Installation, Objects};
use crate::controller::addon::AddOns;
use crate::controller::addon::certificate::Due;
use crate::controller::addon::check::{self, Findings};
use crate::controller::addon::options::field_manager;
use crate::controller::addon::plugins::{Answer, Verdict};
use crate::controller::addon::usage::Usage;
use crate::management::{Cached, Error};
use crate::workload::{WorkloadCluster, WorkloadError};

/// What would become of one add-on.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComparedAddOn {
    pub name: String,
    /// Of the component that is installed; of the one that would be where nothing is.
    pub version: String,
    pub digest: String,
    /// What would be changed, as [`changes`] says it.
    pub changes: Vec<String>,
    /// What somebody did to objects that were applied, and whether that would be set back.
    pub drift: Vec<String>,
    /// What this operator brings and would install with consent only.
    pub available: Option<AvailablePlugin>,
    /// What it waits for, what keeps it from being changed, what its plugin warns of.
    pub notes: Vec<String>,
    /// What could not be read, if anything: then the rest is not whole.
    pub error: Option<String>,
    /// Whether something of `drift` would be set back.
    #[serde(skip)]
    pub is_set_back: bool,
}

impl AddOns {
    /// Compares the add-ons that are asked for, in the order in which they are installed, and those that are
    /// installed and not asked for any more. Writes nothing.
    ///
    /// # Errors
    /// The management cluster did not answer.
    pub async fn compare(
        &self,
        plugin: Arc<Cached<ClusterPlugin>>,
        cluster: Arc<Cached<Cluster>>,
    ) -> Result<Vec<ComparedAddOn>, Error> {
        let objects = Objects::read(self, plugin, cluster);
        let mut installation = Installation::read(self, &objects).await?;
        let mut res = Vec::new();
        for add_on in installation.plan().await {
            let answer = rolled_out(&add_on);
            let findings = installation.findings(&add_on, answer).await;
            res.push(installation.compare(&add_on, answer, &findings).await);
        }
        res.extend(installation.compare_unwanted().await);
        Ok(res)
    }
}

/// What is rolled out of an add-on: with consent, what it is upgraded to.
fn rolled_out(add_on: &PlannedAddOn) -> &Answer {
    match &add_on.course {
        Course::Upgrade(new) if matches!(new.verdict, Verdict::Plan(..)) => new,
        _ => &add_on.answer,
    }
}

impl Installation<'_> {
    async fn compare(&self, add_on: &PlannedAddOn, answer: &Answer, findings: &Findings) -> ComparedAddOn {
        let component = &answer.component;
        let known = add_on.installed.as_ref().ok().and_then(Option::as_ref);
        let mut res = ComparedAddOn {
            name: add_on.desired.module.to_owned(),
            version: known.map_or(&component.version, |it| &it.version).clone(),
            digest: known.map_or(&component.digest, |it| &it.digest).clone(),
            available: add_on.available.clone().filter(|it| it.digest != component.digest),
            ..ComparedAddOn::default()
        };
        if let Err(why) = &add_on.installed {
            res.error = Some(self.unreadable(why));
            return res;
        }
        let plan = match &answer.verdict {
            Verdict::Plan(plan, warnings) => {
                res.notes.extend(warnings.iter().cloned());
                plan
            }
            Verdict::Left(_, message) | Verdict::Unsupported(message) => {
                return ComparedAddOn { notes: vec![message.clone()], ..res };
            }
            Verdict::Pending(message) => {
                return ComparedAddOn { notes: vec![format!("waits {message}")], ..res };
            }
            Verdict::Refused(reason, message) => {
                return ComparedAddOn { notes: vec![format!("{reason}: {message}")], ..res };
            }
        };
        let held = plan.steps.iter().filter_map(|step| check::refusal(findings, &step.id));
        res.notes.extend(held.map(|(reason, message)| format!("{reason}: {message}")));
        res.notes.extend(check::warnings(findings));
        let waits = addons::waits_for(add_on.desired.stage, &self.state);
        res.notes.extend(waits.map(|what| format!("waits {what}")));
        match (known, self.workload.as_deref()) {
            (None, _) => res.changes = changes_of_installation(plan),
            (Some(installed), Some(workload)) => {
                let module = add_on.desired.module.as_str();
                let compared =
                    self.compare_installed((module, component), plan, installed, workload, &mut res).await;
                if let Err(error) = compared {
                    res.error = Some(self.unreadable(&error.to_string()));
                }
            }
            (Some(_), None) => res.error = Some(self.unreadable("it was not asked")),
        }
        res
    }

    async fn compare_installed(
        &self,
        (module, component): (&str, &Component),
        plan: &AddOnPlan,
        installed: &Inventory,
        workload: &WorkloadCluster,
        res: &mut ComparedAddOn,
    ) -> Result<(), WorkloadError> {
        let due = Due::of(workload, module, plan).await?;
        // Where the authority is made anew, another bundle goes into the plan.
        let hash = due.bundle.as_ref().map(|bundle| plan_hash(plan, bundle)).unwrap_or_default();
        let kind = RolloutKind::of(Some(installed), &component.digest, &hash);
        if kind == RolloutKind::Repair {
            res.changes = due.changes;
            return self.compare_objects(plan, installed, workload, res).await;
        }
        if installed.digest != component.digest {
            let of = |version: &str, digest: &str| format!("{version} ({digest})");
            let (old, new) =
                (of(&installed.version, &installed.digest), of(&component.version, &component.digest));
            res.changes.push(format!("~ component: {old} -> {new}"));
        }
        match stored_plan(workload, installed).await? {
            Some(before) => res.changes.extend(changes(installed, &before, plan)),
            None => res.changes.extend(changes_of_record(installed, plan)),
        }
        res.changes.extend(due.changes);
        if res.changes.is_empty() {
            res.changes.push("~ everything is applied once more; nothing of it changes".to_owned());
        }
        match kind {
            RolloutKind::Install => {
                res.notes.push("its record in the cluster was not written by this operator".to_owned());
            }
            RolloutKind::Resume => res.notes.push("it is being carried out, and is not whole yet".to_owned()),
            RolloutKind::Upgrade | RolloutKind::Repair => (),
        }
        Ok(())
    }

    /// Objects that are not as they were applied.
    async fn compare_objects(
        &self,
        plan: &AddOnPlan,
        installed: &Inventory,
        workload: &WorkloadCluster,
        res: &mut ComparedAddOn,
    ) -> Result<(), WorkloadError> {
        let setting = self.objects.plugin.spec.drift;
        if setting == Setting::Off {
            return Ok(());
        }
        let (manager, marks) = (field_manager(&installed.module), installed.marked());
        for step in &plan.steps {
            let Ok(StepSpec::Apply(spec)) = step.typed() else { continue };
            for object in spec.objects.iter() {
                let Some(reference) = ObjectRef::of(object) else { continue };
                let observed = workload.writers(&reference).await?;
                let mark = marks.get(&reference).map(String::as_str);
                let Some(told) = addons::drifted(object, &reference, mark, observed.as_ref(), &manager)
                else {
                    continue;
                };
                if setting == Setting::Correct {
                    res.is_set_back = true;
                    res.drift.push(format!("{told}: applied again"));
                } else {
                    res.drift.push(format!("{told}: left, since spec.drift is {setting:?}"));
                }
            }
        }
        Ok(())
    }

    /// What is asked for and cannot be, and what is installed and not asked for.
    async fn compare_unwanted(&self) -> Vec<ComparedAddOn> {
        let desired = addons::desired(&self.objects.plugin.spec);
        let (Some(workload), Some(installed)) = (self.workload.as_deref(), self.records.all()) else {
            return Vec::new();
        };
        let held_back = desired.iter().filter_map(|it| {
            let why = in_the_way(it, installed)?;
            Some(ComparedAddOn { name: it.module.to_owned(), notes: vec![why], ..ComparedAddOn::default() })
        });
        let mut res: Vec<ComparedAddOn> = held_back.collect();
        let mut usage = Usage::default();
        for (slot, record) in leftovers(installed, &desired) {
            let mut compared = ComparedAddOn {
                name: record.module.clone(),
                version: record.version.clone(),
                digest: record.digest.clone(),
                ..ComparedAddOn::default()
            };
            match usage.of(workload, slot, record).await {
                Err(error) => compared.error = Some(self.unreadable(&error.to_string())),
                Ok(users) => match leftover(record, slot, Some(&desired), &users) {
                    Leftover::Keep(why) | Leftover::InUse(why) => compared.notes.push(why),
                    Leftover::Remove => match addons::removal(record) {
                        Ok(removal) => compared.changes = changes_of_removal(record, &removal.steps),
                        Err(denial) => compared.notes.push(denial.message),
                    },
                },
            }
            res.push(compared);
        }
        res
    }

    /// Why what is installed is not known.
    fn unreadable(&self, why: &str) -> String {
        match &self.api {
            Api::Unreachable(why) => format!("the workload cluster: {why}"),
            Api::NoKubeconfig => "the workload cluster: its kubeconfig Secret is not there".to_owned(),
            Api::Answers => {
                format!("the workload cluster: {}", why.trim_start_matches("for the API server: "))
            }
        }
    }
}

/// The plan that was carried out last, if it is stored: that of the component before, while another one's is being
/// carried out.
async fn stored_plan(
    workload: &WorkloadCluster,
    installed: &Inventory,
) -> Result<Option<AddOnPlan>, WorkloadError> {
    let own = installed.stored_plan.as_deref().map(|plan| (installed.digest.as_str(), plan));
    let before =
        installed.previous.as_ref().and_then(|it| Some((it.digest.as_str(), it.stored_plan.as_deref()?)));
    let Some((digest, plan)) = own.or(before) else { return Ok(None) };
    Ok(stored::plan(&workload.stored(&installed.module, digest).await?, plan))
}
