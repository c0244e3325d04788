//! The status of an AWSMachine.

use crds::conditions::machine::{ELB_ATTACHED, INSTANCE_READY, SECURITY_GROUPS_READY};
use crds::conditions::{PAUSED, READY, reason};
use crds::machine::AWSMachineStatus;
use crds::status::{Initialization, MachineAddress, MachineAddressType};

use crate::machine::{Decision, Input, is_control_plane};
use model::condition::{ConditionState, lacking, merge, paused, paused_state, problem, was_reported};
use model::{FoundInstance, Key, Kind, Outcome, Problem};

const DELETING: &str = "Deleting";

/// What a machine's status is made of.
pub struct Machine<'a> {
    pub input: &'a Input<'a>,
    pub decision: &'a Decision,
    /// How the actions ended, the latest for each key.
    pub outcomes: &'a [(Key, Outcome)],
    /// Why AWS cannot be read, or why the image cannot be found.
    pub problem: Option<&'a Problem>,
}

/// The whole status of a machine.
pub fn machine(facts: &Machine<'_>) -> AWSMachineStatus {
    let object = facts.input.aws_machine;
    let previous = object.status.clone().unwrap_or_default();
    let was = previous.initialization.as_ref().and_then(|it| it.provisioned).unwrap_or_default();
    // As long as AWS was not read, nothing is known, and what was said of it stays.
    let read = facts.input.unread().is_empty();
    if !read && facts.problem.is_none() && was_reported(&previous.conditions) {
        let conditions = paused(&previous.conditions, false, facts.input.now, object.metadata.generation);
        return AWSMachineStatus { conditions, ..previous };
    }
    let instance = instance_ready(facts);
    let provisioned = was || instance.status && facts.decision.record.provider_id.is_some();
    let ready = ready(facts, &instance);
    let deleting = object.metadata.deletion_timestamp.is_some();
    let mut state = vec![(INSTANCE_READY, instance.clone()), (PAUSED, paused_state(false))];
    if facts.decision.instance.is_some() && !deleting && facts.decision.failed.is_none() {
        state.push((SECURITY_GROUPS_READY, groups(facts)));
        if is_control_plane(facts.input.machine, object) {
            state.push((ELB_ATTACHED, attached(facts)));
        }
    }
    if deleting {
        state.push((DELETING, ConditionState { status: true, ..ready.clone() }));
    }
    state.push((READY, ready));
    let ours = [INSTANCE_READY, PAUSED, SECURITY_GROUPS_READY, ELB_ATTACHED, DELETING, READY];
    let found = facts.decision.instance.as_ref();
    AWSMachineStatus {
        ready: instance.status,
        initialization: provisioned.then_some(Initialization { provisioned: Some(true) }),
        addresses: found.map(addresses).filter(|it| !it.is_empty()).unwrap_or(previous.addresses),
        instance_state: found.map(|it| it.status.state.clone()).or(previous.instance_state),
        failure_domain: found
            .map(|it| it.status.zone.clone())
            .filter(|it| !it.is_empty())
            .or(previous.failure_domain),
        conditions: merge(
            &previous.conditions,
            state,
            object.metadata.generation,
            facts.input.now,
            if read { &ours } else { &[] },
        ),
    }
}

/// Why nothing can be said or done yet, whatever the instance.
fn hindered(facts: &Machine<'_>) -> Option<ConditionState<'static>> {
    let decision = facts.decision;
    if let Some((reason, message)) = &decision.failed {
        return Some(ConditionState::no(reason, message.clone()));
    }
    if let Some(invalid) = &decision.invalid {
        return Some(ConditionState::no(reason::INVALID_SPEC, invalid.to_string()));
    }
    if let Some(cause) = facts.problem {
        return Some(problem(cause));
    }
    decision.waits.as_ref().map(|it| ConditionState::no(it.reason, it.message.clone()))
}

fn instance_ready(facts: &Machine<'_>) -> ConditionState<'static> {
    let state = facts.decision.instance.as_ref().map(|it| it.status.state.as_str());
    let stands = facts.decision.instance.as_ref().map(FoundInstance::stands).unwrap_or_default();
    match (state, hindered(facts)) {
        (Some("running"), None) => ConditionState::yes(),
        // A wrong field or a failing sweep does not stop an instance that runs.
        (Some("running"), Some(_)) if facts.decision.failed.is_none() => ConditionState::yes(),
        (_, Some(status)) => status,
        (Some("pending"), None) => ConditionState::no(reason::INSTANCE_NOT_READY, stands),
        (Some("stopping" | "stopped"), None) => ConditionState::no(
            reason::INSTANCE_STOPPED,
            format!("{stands}; it is not started again: start it, or delete the Machine to replace it"),
        ),
        (Some(_), None) => ConditionState::no(reason::INSTANCE_TERMINATED, stands),
        (None, None) => lacking(&facts.decision.plan, facts.outcomes, |_| true)
            .unwrap_or_else(|| ConditionState::no(reason::INSTANCE_NOT_READY, "")),
    }
}

fn ready(facts: &Machine<'_>, instance: &ConditionState<'static>) -> ConditionState<'static> {
    let deleting = facts.input.aws_machine.metadata.deletion_timestamp.is_some();
    match (deleting, hindered(facts), lacking(&facts.decision.plan, facts.outcomes, |_| true)) {
        (_, Some(state), _) => state,
        (true, None, None) => {
            ConditionState::no(if facts.decision.finished { reason::DELETED } else { reason::DELETING }, "")
        }
        (true, None, Some(state)) if [reason::CREATING, reason::NOT_READY].contains(&state.reason) => {
            ConditionState { reason: reason::DELETING, ..state }
        }
        (_, None, Some(state)) if deleting || instance.status => state,
        (_, None, _) => instance.clone(),
    }
}

fn groups(facts: &Machine<'_>) -> ConditionState<'static> {
    lacking(&facts.decision.plan, facts.outcomes, |key| key.kind == Kind::Instance)
        .filter(|it| it.reason != reason::CREATING)
        .unwrap_or_else(ConditionState::yes)
}

fn attached(facts: &Machine<'_>) -> ConditionState<'static> {
    lacking(&facts.decision.plan, facts.outcomes, |key| key.kind == Kind::Target)
        .unwrap_or_else(ConditionState::yes)
}

fn addresses(found: &FoundInstance) -> Vec<MachineAddress> {
    let it = &found.status;
    [
        (MachineAddressType::InternalDNS, &it.private_dns_name),
        (MachineAddressType::InternalIP, &it.private_ip),
        (MachineAddressType::ExternalDNS, &it.public_dns_name),
        (MachineAddressType::ExternalIP, &it.public_ip),
    ]
    .into_iter()
    .filter_map(|(kind, address)| {
        Some(MachineAddress { kind, address: address.clone().filter(|it| !it.is_empty())? })
    })
    .collect()
}
