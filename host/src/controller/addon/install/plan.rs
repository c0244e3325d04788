//! Plans the add-ons of a cluster: gathers the facts that their plugins need, asks the plugins, and publishes
//! the security-group rules that all of them need.

use std::collections::BTreeMap;

use addons::kubernetes_upgrade::Support;
use addons::order::{Before, Ordered, Requirements, order};
use addons::upgrade::Component;
use addons::{DesiredAddOn, Inventory, Progress, Slot, UndoneUpgrade, UpgradeProgress};
use contract::StepSpec;
use crds::cluster_plugin::{AvailablePlugin, FailedUpgrade, PluginApproval, PluginPhase};
use iam::instance_roles;
use model::AddOnRule;
use model::condition::shorten;

use super::Installation;
use super::bounded::bounded;
use crate::controller::addon::facts::FactSources;
use crate::controller::addon::plugins::{Answer, Verdict};
use crate::rules::RequestedRules;

/// An add-on that is asked for, what is recorded of it, and what its plugin answered.
pub(super) struct PlannedAddOn {
    pub desired: DesiredAddOn,
    pub installed: Result<Option<Inventory>, String>,
    /// The answer of what serves it.
    pub answer: Answer,
    pub course: Course,
    /// What this operator brings in place of what serves it.
    pub available: Option<AvailablePlugin>,
    /// Whether what serves it supports the version of Kubernetes that the cluster is to have.
    pub support: Support,
    /// The plan that waits for approval, in place of which the answer is what was approved before.
    pub waiting: Option<Waiting>,
    /// Plans, by their [`plan_id`](addons::approval::plan_id), that are approved now: beginning one uses its
    /// approval up.
    pub uses: Vec<String>,
    /// What has to run before it is installed.
    pub before: Before,
}

/// A plan that waits for approval, and what is said of it.
pub(super) struct Waiting {
    pub plan: PluginApproval,
    pub message: String,
}

/// What plugins answered about one add-on.
pub(super) struct Asked {
    /// The answer of what serves it.
    pub answer: Answer,
    pub course: Course,
    pub available: Option<AvailablePlugin>,
}

impl Asked {
    /// It is served, and there is nothing else.
    pub(super) fn serve(answer: Answer) -> Self {
        Asked { answer, course: Course::Serve, available: None }
    }
}

/// What is to be done beside serving an add-on.
pub(super) enum Course {
    /// Nothing.
    Serve,
    /// What this operator brings answered this, and may replace what serves it.
    Upgrade(Answer),
    /// An upgrade is undone: the answer is the plan of before. What the upgrade awaited.
    Undo(String),
    /// An upgrade should be undone and cannot be: the answer is the upgrade's. Why.
    Stuck(String),
}

impl Installation<'_> {
    /// Asks the plugin of each add-on that can be installed, and publishes the rules that they need.
    pub(super) async fn plan(&mut self) -> Vec<PlannedAddOn> {
        let controller = self.controller;
        let desired = self.records.installable(addons::desired(&self.objects.plugin.spec));
        let region = self.region.as_ref();
        let sources = FactSources {
            is_initialized: self.state.initialized,
            workload: self.workload.as_deref(),
            region,
        };
        let mut served = Vec::new();
        for desired in desired {
            let installed = self.records.of(&desired.module);
            let service = self.service(&desired, &installed).await;
            served.push((desired, installed, service));
        }
        let mut keys: Vec<(&DesiredAddOn, &str)> = Vec::new();
        for (desired, _, service) in &served {
            if let Ok(service) = service {
                keys.extend(service.facts().map(|key| (desired, key)));
            }
        }
        let (requested, next) = controller.requested_facts(&keys, &self.facts, sources).await;
        self.facts.requested = requested;
        self.next = next;
        self.facts.profiles =
            controller.instances(&self.facts, region, |instances| instance_roles::profiles(instances));
        let mut before =
            order_of(served.iter().map(|(desired, _, service)| {
                (desired, service.as_ref().ok().map(|it| &it.brought().requires))
            }));
        let mut add_ons = Vec::new();
        for (desired, installed, service) in served {
            let known = installed.as_ref().ok().and_then(Option::as_ref);
            let (asked, support) = match service {
                Ok(service) => {
                    let asked = self.ask(&desired, &installed, &service).await;
                    let support = self.support(&desired, known, &service, &asked.answer.verdict).await;
                    (asked, support)
                }
                Err(verdict) => {
                    let answer = Answer { component: Component::default(), verdict };
                    let support = Support::Unknown("its plugin cannot be used now".to_owned());
                    (Asked::serve(answer), support)
                }
            };
            let Asked { answer, course, available } = asked;
            let before = known.filter(|_| matches!(course, Course::Undo(_))).map(Inventory::config_before);
            let config = before.unwrap_or(&desired.config).clone();
            let desired = DesiredAddOn { config, ..desired };
            let add_on =
                PlannedAddOn { available, support, ..PlannedAddOn::of(desired, installed, answer, course) };
            add_ons.push(self.approve(add_on).await);
        }
        for add_on in &mut add_ons {
            add_on.before = before.remove(&add_on.desired.module).unwrap_or_else(nothing);
        }
        let rules = &controller.context.rules;
        let requested = rules_of_plans(&add_ons, self.state.initialized);
        rules.set(&self.cluster_name, self.records.rules(requested, rules.get(&self.cluster_name)));
        add_ons
    }
}

impl PlannedAddOn {
    /// One for which this operator brings nothing else, and of which no plan waits.
    pub(super) fn of(
        desired: DesiredAddOn,
        installed: Result<Option<Inventory>, String>,
        answer: Answer,
        course: Course,
    ) -> Self {
        let support = Support::Supported;
        let (available, waiting, uses) = (None, None, Vec::new());
        let before = nothing();
        PlannedAddOn { desired, installed, answer, course, available, support, waiting, uses, before }
    }

    /// Whether all of it was installed at some time.
    pub(super) fn is_complete(&self) -> bool {
        matches!(&self.installed, Ok(Some(installed)) if installed.complete)
    }

    /// How far an upgrade of it is; `None` when its record is not known.
    fn upgrade_progress(&self) -> Option<UpgradeProgress> {
        let Some(installed) = self.installed.as_ref().ok()? else { return Some(UpgradeProgress::default()) };
        let stuck = match &self.course {
            Course::Stuck(why) => Some(UndoneUpgrade {
                version: installed.version.clone(),
                digest: installed.digest.clone(),
                awaited: format!("it cannot be undone: {why}"),
                is_complete: false,
            }),
            _ => None,
        };
        let failed = self.undone().or(stuck).map(|it| FailedUpgrade {
            version: bounded(&it.version),
            digest: bounded(&it.digest),
            message: shorten(&it.awaited),
        });
        let from = installed.replaced().filter(|_| failed.is_none()).map(|it| bounded(&it.version));
        Some(UpgradeProgress { from, failed })
    }

    /// What its plugin told of what is installed; `None` when its record is not known.
    fn outputs(&self) -> Option<BTreeMap<String, String>> {
        let installed = self.installed.as_ref().ok()?;
        Some(installed.as_ref().map(|it| it.outputs.clone()).unwrap_or_default())
    }

    /// The upgrade that was undone, or is being undone.
    pub(super) fn undone(&self) -> Option<UndoneUpgrade> {
        let installed = self.installed.as_ref().ok()?.as_ref()?;
        match &self.course {
            Course::Undo(awaited) if installed.replaced().is_some() => Some(UndoneUpgrade {
                version: installed.version.clone(),
                digest: installed.digest.clone(),
                awaited: awaited.clone(),
                is_complete: false,
            }),
            _ => installed.undone.clone(),
        }
    }

    pub(super) fn progress(&self, phase: PluginPhase, reason: &str, message: String) -> Progress {
        self.progress_of(&self.answer.component, phase, reason, message)
    }

    /// How the add-on fares with this component.
    pub(super) fn progress_of(
        &self,
        component: &Component,
        phase: PluginPhase,
        reason: &str,
        message: String,
    ) -> Progress {
        Progress {
            slot: self.desired.slot,
            module: self.desired.module.clone(),
            registered: self.desired.registered().map(|it| it.module),
            version: component.version.clone(),
            digest: component.digest.clone(),
            phase,
            reason: reason.to_owned(),
            message,
            available: self.available.clone(),
            upgrade: self.upgrade_progress(),
            approval: None,
            outputs: self.outputs(),
            repaired: None,
        }
    }
}

/// What comes before each add-on, by its name.
fn order_of<'a>(
    add_ons: impl Iterator<Item = (&'a DesiredAddOn, Option<&'a Requirements>)>,
) -> BTreeMap<String, Before> {
    let none = Requirements::default();
    let ordered = add_ons.map(|(desired, requires)| Ordered {
        name: &desired.module,
        slot: Some(desired.slot).filter(|slot| *slot != Slot::Other),
        after: &desired.after,
        requires: requires.unwrap_or(&none),
    });
    order(&ordered.collect::<Vec<_>>())
}

fn nothing() -> Before {
    Before::AddOns(Vec::new())
}

/// The rules of all add-ons together; `None` while one that may be installed could not be planned, so that
/// nothing of it is revoked.
fn rules_of_plans(add_ons: &[PlannedAddOn], initialized: bool) -> Option<RequestedRules> {
    let mut rules = RequestedRules::new();
    for add_on in add_ons {
        let Verdict::Plan(plan, _) = &add_on.answer.verdict else {
            // What is left as it is has its rules in its record.
            let is_left = match add_on.answer.verdict {
                Verdict::Unsupported(_) => add_on.is_complete(),
                _ => matches!(add_on.answer.verdict, Verdict::Left(..)),
            };
            if !initialized || is_left || matches!(add_on.installed, Ok(None)) {
                continue;
            }
            return None;
        };
        for step in &plan.steps {
            if let Ok(StepSpec::SecurityGroupRule(spec)) = step.typed() {
                let AddOnRule { group, rule } = addons::rule(&spec);
                rules.entry(group).or_default().insert(rule);
            }
        }
    }
    Some(rules)
}

#[cfg(test)]
mod tests {
    use contract::{AddOnPlan, Step};
    use serde_json::{Value, json};

    use super::*;

    fn add_on(verdict: Verdict, installed: Result<Option<Inventory>, String>) -> PlannedAddOn {
        let spec = json!({"clusterName": "one", "networking": {"calico": {}}});
        let desired = addons::desired(&serde_json::from_value(spec).expect("a spec")).remove(0);
        let answer = Answer { component: Component::default(), verdict };
        PlannedAddOn::of(desired, installed, answer, Course::Serve)
    }

    fn planned() -> PlannedAddOn {
        let spec = json!({"group": "node", "protocol": "udp", "fromPort": 4789, "toPort": 4789,
            "peer": "node", "description": "VXLAN"});
        let step = Step { id: "sg".into(), kind: "aws.sg-rule/v1".into(), spec, after: vec![] };
        let plan = AddOnPlan { steps: vec![step], removal: vec![], diagnostics: vec![], extra: Value::Null };
        add_on(Verdict::Plan(plan, vec![]), Ok(None))
    }

    fn refused(installed: Result<Option<Inventory>, String>) -> PlannedAddOn {
        add_on(Verdict::Refused("Unsupported".into(), "no".into()), installed)
    }

    #[test]
    fn an_add_on_that_cannot_be_installed_holds_up_no_other() {
        let rules = rules_of_plans(&[planned(), refused(Ok(None))], true).expect("the rules are known");
        assert_eq!(rules.values().flatten().count(), 1);
        assert_eq!(rules_of_plans(&[planned(), refused(Err("not asked".into()))], false), Some(rules));
    }

    #[test]
    fn rules_of_an_add_on_that_may_be_installed_stay() {
        assert_eq!(rules_of_plans(&[planned(), refused(Err("no answer".into()))], true), None);
    }

    #[test]
    fn an_add_on_that_is_too_old_for_the_version_keeps_its_rules() {
        let record = |complete: bool| {
            let value = json!({"module": "calico", "version": "1", "digest": "sha256:1", "config": {}, "planHash": "a",
                "complete": complete, "objects": [], "removal": []});
            add_on(
                Verdict::Unsupported("no".into()),
                Ok(Some(serde_json::from_value(value).expect("a record"))),
            )
        };
        let rules = rules_of_plans(&[planned(), record(true)], true).expect("the rules are known");
        assert_eq!(rules.values().flatten().count(), 1);
        assert_eq!(rules_of_plans(&[planned(), record(false)], true), None);
    }
}
