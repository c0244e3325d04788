//! What can be done now for a cluster that is being deleted.

use std::time::Duration;

use super::interest::interest;
use super::plan_input::make_plan;
use super::{Decision, Input};
use crate::gc::Collected;
use crate::{PersistedState, observe, trusted_from};
use model::condition::timestamp;
use model::{Desired, FoundLoadBalancer, LoadBalancerKind, Observed, Owner, Plan, Read, Vpc};

/// After how long a load balancer that stands in the way is read again.
const READ_AGAIN: Duration = Duration::from_secs(30);

/// Nothing is wanted any more; but as long as machines are left, everything stays as it is.
pub(super) fn delete(input: &Input<'_>, record: PersistedState, observed: Observed) -> Decision {
    if !input.machines.is_empty() {
        let mut names = input.machines.to_vec();
        names.sort();
        let mut res = Decision::waiting(
            &record,
            Vpc::key(observe::MAIN),
            &format!("used by {}", text_of_machines(&names)),
        );
        (res.observed, res.interest) = (observed, interest(input, &Plan::default()));
        return res;
    }
    let mut interest = interest(input, &Plan::default());
    if let Err(invalid) = Collected::of(input.aws_cluster.metadata.annotations.as_ref()) {
        return Decision { record, observed, invalid: Some(invalid), interest, ..Decision::default() };
    }
    let vpc = observed.get(&Vpc::key(observe::MAIN)).filter(|it| it.owner == Owner::Mine);
    if let Some(vpc) = vpc {
        interest.deleting_vpcs.insert(vpc.id.clone());
        // One that a user put there carries no cluster's tag, and holds its subnet.
        interest.nat_gateways_of.insert(vpc.id.clone());
        if !input.snapshot.deleting_vpcs_read.contains_key(&vpc.id) {
            let res = Decision::waiting(&record, Vpc::key(observe::MAIN), "reading what is in it");
            return Decision { observed, interest, ..res };
        }
    }
    let stopped = input.aws_cluster.metadata.deletion_timestamp.as_ref().map(timestamp);
    let mut plan = make_plan(input, &Desired::new(), &observed, &record, stopped);
    await_later_reads(&mut plan, input);
    if let Some(vpc) = vpc {
        read_again(&mut plan, input, &vpc.id);
    }
    let finished = plan.actions.is_empty() && plan.waiting.is_empty() && plan.blocked.is_empty();
    interest.reads = plan.awaits.clone();
    let record = record.before(&plan, input.now, input.snapshot.since);
    Decision { plan, record, observed, interest, finished, ..Decision::default() }
}

/// Load balancers and NAT gateways of others that stand in the way go at some time, and nobody tells when.
fn read_again(plan: &mut Plan, input: &Input<'_>, vpc_id: &str) {
    let balancer = |classic: bool| {
        let of_kind = |it: &FoundLoadBalancer| (it.kind == LoadBalancerKind::Classic) == classic;
        input.snapshot.load_balancers.iter().any(|it| it.vpc_id == vpc_id && of_kind(it))
    };
    let nat_gateway = input.snapshot.nat_gateways.iter().any(|it| it.vpc_id == vpc_id);
    let kinds = [
        (Read::ClassicLoadBalancers, balancer(true)),
        (Read::LoadBalancers, balancer(false)),
        (Read::NatGateways, nat_gateway),
    ];
    for (read, is_there) in kinds.into_iter().filter(|_| !plan.blocked.is_empty()) {
        let is_old = input
            .snapshot
            .read_at
            .get(&read)
            .is_some_and(|began| input.now - began >= READ_AGAIN.as_secs_f64());
        if is_there && is_old {
            plan.awaits.insert(read);
        }
    }
}

/// What an earlier process made shortly before may not be seen yet, and then it would stay for ever.
fn await_later_reads(plan: &mut Plan, input: &Input<'_>) {
    let from = trusted_from(input.snapshot, input.record);
    let too_early: Vec<Read> =
        input.snapshot.read_at.iter().filter(|(_, began)| **began < from).map(|(read, _)| *read).collect();
    if plan.is_settled() && !too_early.is_empty() {
        plan.waiting.push((Vpc::key(observe::MAIN), "making sure that nothing is left".into()));
        plan.awaits.extend(too_early);
    }
}

fn text_of_machines(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(5).map(|it| format!("AWSMachine {it}")).collect();
    match names.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
