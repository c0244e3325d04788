//! Checks the objects of one add-on, one after the other, and sets back what is not as it was applied.

use std::collections::BTreeMap;
use std::time::Duration;

use addons::{Change, Compared, Decision, Drift, ObjectRef, compare, drift, without};
use crds::cluster_plugin::Drift as Setting;
use model::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use crate::controller::addon::apply::{DEFINITION, apply, dry_run};
use crate::controller::addon::memory::{DriftMemory, DriftReport, ObjectDrift};
use crate::controller::addon::options::ApplyOptions;
use crate::controller::addon::progress::StepProgress;
use crate::management::Event;
use crate::system::now;
use crate::workload::WorkloadCluster;

/// How long after something was set back it is checked again.
const REPAIRED: Duration = Duration::from_secs(30);
/// How long after it could not be.
const FAILED: Duration = Duration::from_secs(300);
/// How long after a reconciliation had no time left.
const SOON: Duration = Duration::from_secs(2);

/// How objects are checked.
pub(super) struct DriftCheck<'a> {
    pub cluster: &'a WorkloadCluster,
    pub options: &'a ApplyOptions<'a>,
    pub setting: Setting,
    /// All of them rather than those that were read anyway.
    pub is_full: bool,
    /// Whether something may be written, as it is by now.
    pub may_write: &'a (dyn Fn() -> bool + Sync),
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct DriftFindings {
    pub events: Vec<Event>,
    /// Something was applied again.
    pub is_repaired: bool,
    /// A definition or a namespace is gone: everything is to be applied again.
    pub is_base_gone: bool,
    /// When something is to be checked again.
    pub next: Option<Timestamp>,
}

impl DriftFindings {
    fn check_at(&mut self, at: Timestamp) {
        self.next = Some(self.next.map_or(at, |it| it.min(at)));
    }

    fn check_after(&mut self, delay: Duration) {
        self.check_at(now() + delay.as_secs_f64());
    }
}

impl DriftCheck<'_> {
    /// Checks what the plan applies; `marks` is what is recorded of it, and what is to be.
    pub(super) async fn all(
        &self,
        objects: &[Value],
        marks: &mut BTreeMap<ObjectRef, String>,
        memory: &mut DriftMemory,
    ) -> Result<DriftFindings, StepProgress> {
        let mut findings = DriftFindings::default();
        for object in objects {
            if Instant::now() >= self.options.until {
                findings.check_after(SOON);
                break;
            }
            let Some(reference) = ObjectRef::of(object) else { continue };
            let mark = marks.get(&reference).cloned();
            let mut state = memory.objects.remove(&reference).unwrap_or_default();
            let was_repaired = findings.is_repaired;
            let new = self.one(object, &reference, mark.as_deref(), &mut state, &mut findings).await?;
            if findings.is_repaired && !was_repaired {
                memory.repaired = Some(now());
            }
            if state != ObjectDrift::default() {
                memory.objects.insert(reference.clone(), state);
            }
            marks.extend(new.map(|it| (reference, it)));
            if findings.is_base_gone {
                memory.repaired = Some(now());
                break;
            }
        }
        Ok(findings)
    }

    /// Checks one object; what is to be recorded of it, if that is something else now.
    async fn one(
        &self,
        object: &Value,
        reference: &ObjectRef,
        mark: Option<&str>,
        state: &mut ObjectDrift,
        findings: &mut DriftFindings,
    ) -> Result<Option<String>, StepProgress> {
        let observed = match self.options.objects.observed(reference) {
            Some(observed) => observed,
            None if !self.is_full => return Ok(None),
            None => self.cluster.writers(reference).await?,
        };
        if self.options.keeps_definitions && reference.kind == DEFINITION && observed.is_some() {
            return Ok(None);
        }
        let mark = match (mark, &observed) {
            (None, Some(_)) => return self.adopt(object, reference, state, findings).await,
            (mark, _) => mark.unwrap_or_default(),
        };
        match compare(mark, observed.as_ref(), self.options.field_manager) {
            Compared::Same => {
                state.history.is_same();
                state.report = None;
                return Ok(None);
            }
            Compared::Going => {
                findings.check_after(REPAIRED);
                return Ok(None);
            }
            Compared::Different => (),
        }
        let would_be = match observed {
            Some(_) => dry_run(self.cluster, object, self.options.field_manager).await?,
            None => None,
        };
        let drift = drift(mark, observed.as_ref(), would_be.as_ref(), self.options.field_manager);
        if drift.change == Change::Scaled {
            state.report = None;
            return Ok(observed.map(|it| it.mark(self.options.field_manager)));
        }
        let report = match state.history.decide(self.setting, &drift, now()) {
            Decision::Repair => return self.repair(object, reference, &drift, state, findings).await,
            Decision::Later(at) => {
                findings.check_at(at);
                return Ok(None);
            }
            Decision::Stop => DriftReport::drifted(drift.stopped(reference)),
            Decision::Warn => DriftReport::Warned(drift.warned(reference)),
            Decision::Nothing => return Ok(None),
        };
        self.report(reference, report, state, findings);
        Ok(None)
    }

    /// An object of an earlier version's record, of which no mark is recorded: it is applied once more,
    /// as at first.
    async fn adopt(
        &self,
        object: &Value,
        reference: &ObjectRef,
        state: &mut ObjectDrift,
        findings: &mut DriftFindings,
    ) -> Result<Option<String>, StepProgress> {
        if self.is_full && (self.may_write)() {
            let applied = apply(self.cluster, object, self.options).await;
            self.outcome(reference, applied, state, findings)?;
        }
        Ok(self.options.objects.marks().remove(reference))
    }

    async fn repair(
        &self,
        object: &Value,
        reference: &ObjectRef,
        drift: &Drift,
        state: &mut ObjectDrift,
        findings: &mut DriftFindings,
    ) -> Result<Option<String>, StepProgress> {
        if !(self.may_write)() {
            return Ok(None);
        }
        state.history.repaired(drift, now());
        let event = || {
            let action = format!("Repair {reference}").chars().take(128).collect();
            let message = format!("{}, and is applied again", drift.told(reference));
            Event { warning: false, reason: "Repaired".into(), action, message }
        };
        if drift.change == Change::Gone && [DEFINITION, "Namespace"].contains(&reference.kind.as_str()) {
            findings.events.push(event());
            findings.is_base_gone = true;
            return Ok(None);
        }
        let options = ApplyOptions { force: true, is_repair: true, ..*self.options };
        let applied = apply(self.cluster, &without(object, &drift.left), &options).await;
        if self.outcome(reference, applied, state, findings)? {
            findings.events.push(event());
            findings.is_repaired = true;
            findings.check_after(REPAIRED);
        }
        Ok(self.options.objects.marks().remove(reference))
    }

    /// Takes note of how the apply of an object went; `true` when it was applied.
    fn outcome(
        &self,
        reference: &ObjectRef,
        applied: Result<(), StepProgress>,
        state: &mut ObjectDrift,
        findings: &mut DriftFindings,
    ) -> Result<bool, StepProgress> {
        match applied {
            Ok(()) | Err(StepProgress::Done) => {
                state.report = None;
                Ok(true)
            }
            Err(StepProgress::Unreachable(why)) => Err(StepProgress::Unreachable(why)),
            Err(StepProgress::Waiting(_)) => {
                findings.check_after(SOON);
                Ok(false)
            }
            Err(StepProgress::Refused(reason, why)) => {
                state.history.refused();
                findings.check_after(FAILED);
                self.report(reference, DriftReport::Failed(reason, why), state, findings);
                Ok(false)
            }
        }
    }

    /// Reports something of an object, as an event when it is new.
    fn report(
        &self,
        reference: &ObjectRef,
        report: DriftReport,
        state: &mut ObjectDrift,
        findings: &mut DriftFindings,
    ) {
        if state.report.as_ref() != Some(&report) {
            let (DriftReport::Warned(message) | DriftReport::Failed(_, message)) = report.clone();
            let action = format!("Repair {reference}").chars().take(128).collect();
            findings.events.push(Event { warning: true, reason: "NotRepaired".into(), action, message });
        }
        state.report = Some(report);
    }
}
