//! Whether a plan may be carried out where somebody has to approve of it first: the plan that the record of the
//! add-on names may, and any other waits until an annotation names its digest. Each approval is good for one
//! use, because the digest is over a serial, too, which the record counts. Nothing here reads or writes.

use contract::AddOnPlan;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Approved, Inventory, Standing, consent, plan_hash};

/// Annotation of a ClusterPlugin with which somebody approves of plans, such as `calico@sha256:...`; several
/// are separated by commas. An entry is removed when it was used.
pub const APPROVE_ANNOTATION: &str = "cluster.kurator.dev/approve";

/// Whose plans are approved of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    /// Of the ClusterPlugin.
    pub namespace: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
    /// Name of the plugin.
    pub module: &'a str,
}

/// What decides whether a plan of an add-on may be carried out.
#[derive(Clone, Copy, Debug)]
pub struct Approvals<'a> {
    pub subject: Subject<'a>,
    /// Its record.
    pub installed: Option<&'a Inventory>,
    /// The plan that is stored with the component that the record names, where that was read.
    pub stored: Option<&'a AddOnPlan>,
    /// [`APPROVE_ANNOTATION`].
    pub annotation: Option<&'a str>,
}

/// Whether a plan may be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It was approved before.
    Approved,
    /// It is approved now, which is used up by recording it.
    ApprovedNow,
    /// It waits for an approval that names this digest.
    Waits(String),
}

/// What becomes of an add-on while a plan of it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meanwhile {
    /// Nothing is installed.
    Absent,
    /// What was approved goes on being served.
    Kept,
    /// What was approved is not known any more, or was never whole.
    Left,
}

/// Hex SHA-256 of a component and of all that its plan writes and removes. The bundle of an authority is no
/// part of it: a bundle that is renewed needs no other approval.
pub fn plan_id(component: &str, plan: &AddOnPlan) -> String {
    hex(&json!({"component": component, "steps": plan.steps, "removal": plan.removal}))
}

/// What is recorded of a plan when it is begun.
pub fn recorded(installed: Option<&Inventory>, plan: String, uses_approval: bool) -> Approved {
    Approved { plan, serial: serial(installed) + u64::from(uses_approval) }
}

impl Approvals<'_> {
    /// Whether this plan of this component may be carried out.
    pub fn decide(&self, component: &str, plan: &AddOnPlan) -> Decision {
        let id = plan_id(component, plan);
        if self.approved().as_ref() == Some(&id) || self.is_of_before(component, plan) {
            return Decision::Approved;
        }
        let digest = self.subject.digest(&id, serial(self.installed));
        if consent::entries(self.annotation).any(|entry| entry == (self.subject.module, digest.as_str())) {
            return Decision::ApprovedNow;
        }
        Decision::Waits(digest)
    }

    /// Whether the stored plan was approved, so that it is carried out while another one waits.
    pub fn is_stored_approved(&self) -> bool {
        let stored = self.stored.zip(self.installed).map(|(plan, it)| plan_id(&it.digest, plan));
        stored.is_some() && stored == self.approved()
    }

    /// The plan that was approved of last, unless it is being uninstalled. What was carried out before anybody
    /// recorded that counts.
    fn approved(&self) -> Option<String> {
        let installed = proven(self.installed).filter(|it| !it.plan_hash.is_empty())?;
        match &installed.approved {
            Some(approved) => Some(approved.plan.clone()),
            None => self.stored.filter(|_| installed.complete).map(|plan| plan_id(&installed.digest, plan)),
        }
    }

    /// The same of a plan that is known by its hash alone.
    fn is_of_before(&self, component: &str, plan: &AddOnPlan) -> bool {
        proven(self.installed).is_some_and(|it| {
            it.approved.is_none() && it.digest == component && it.plan_hash == plan_hash(plan, "")
        })
    }
}

impl Subject<'_> {
    /// The digest of the approval that a record says was used last: its entry can be removed.
    pub fn used(&self, installed: &Inventory) -> Option<String> {
        let approved = proven(Some(installed))?.approved.as_ref()?;
        Some(self.digest(&approved.plan, approved.serial.checked_sub(1)?))
    }

    /// What is said of a plan that waits for the approval with this digest.
    pub fn waiting(&self, digest: &str, meanwhile: Meanwhile) -> String {
        let Subject { namespace, name, module, .. } = self;
        let what = match meanwhile {
            Meanwhile::Absent => "the plan waits for approval",
            Meanwhile::Kept => "a changed plan waits for approval, and what was approved is kept meanwhile",
            Meanwhile::Left => {
                "a changed plan waits for approval, and the plan that was approved is not stored, so what is \
                 there is left as it is and not repaired meanwhile"
            }
        };
        format!(
            "{what}; status.plugins[].approval has what it changes: to approve, kubectl annotate --overwrite \
             -n {namespace} clusterplugin {name} {APPROVE_ANNOTATION}={module}@{digest}"
        )
    }

    fn digest(&self, plan: &str, serial: u64) -> String {
        let Subject { namespace, name, uid, module } = self;
        let of = json!({"namespace": namespace, "name": name, "uid": uid, "module": module, "plan": plan,
            "serial": serial});
        format!("sha256:{}", hex(&of))
    }
}

fn serial(installed: Option<&Inventory>) -> u64 {
    proven(installed).and_then(|it| it.approved.as_ref()).map_or(0, |approved| approved.serial)
}

/// A record that somebody else may have written says nothing.
fn proven(installed: Option<&Inventory>) -> Option<&Inventory> {
    installed.filter(|it| it.standing == Standing::Proven)
}

/// Fields of a value are in the order of their names.
fn hex(value: &serde_json::Value) -> String {
    Sha256::digest(value.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
