//! In whose name, how and until when the steps of a plan are carried out.

use addons::grant::TakeOver;
use tokio::time::Instant;

use super::applied::AppliedObjects;
use super::certificate::Authority;
use super::check::Findings;
use super::memory::AddOnMemory;

/// In whose name, and how, objects are applied.
#[derive(Clone, Copy)]
pub struct ApplyOptions<'a> {
    pub field_manager: &'a str,
    pub force: bool,
    /// AWS was observed to have all security-group rules that the add-ons ask for.
    pub rules_are_there: bool,
    /// What was found in AWS about the steps that need something of it.
    pub findings: &'a Findings,
    /// Who vouches for the certificates of the plan; `None` when it has none.
    pub authority: Option<&'a Authority>,
    /// Since when its steps wait.
    pub memory: AddOnMemory<'a>,
    /// After this nothing more is begun: what is done by then is remembered.
    pub until: Instant,
    /// ClusterIdentity fields may be taken over.
    pub taken_over: &'a [TakeOver],
    /// Nobody vouches for the steps: only what the field manager applied is deleted.
    pub own_only: bool,
    /// What was observed and applied.
    pub objects: &'a AppliedObjects,
    /// What is applied was there before, and somebody changed it.
    pub is_repair: bool,
    /// All of it was carried out before: what is awaited was there once.
    pub was_complete: bool,
    /// CustomResourceDefinitions that are there stay as they are: a later component made them.
    pub keeps_definitions: bool,
}

/// The field manager of one plugin's objects.
pub fn field_manager(module: &str) -> String {
    format!("cluster-operator-{module}")
}
