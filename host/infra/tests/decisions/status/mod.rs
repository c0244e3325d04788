//! What users read in status, in typical situations. Messages stay the same from one reconciliation to the
//! next as long as nothing changed.

mod cluster;
mod machine;
mod problems;

use crate::world::World;
use crate::world::driver::Fleet;
use crds::conditions::READY;
use expect_test::Expect;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use model::{Key, Outcome, Problem};

/// The status of a cluster after a decision, with how actions ended.
fn status_of(
    fleet: &Fleet,
    world: &mut World,
    outcomes: &[(Key, Outcome)],
    problem: Option<&Problem>,
) -> crds::AWSClusterStatus {
    let snapshot = fleet.snapshot(world);
    let decision = fleet.decide_with(world, &snapshot);
    fleet.status(world.now, &snapshot, &decision, outcomes, problem)
}

fn text(conditions: &[Condition]) -> String {
    let line = |it: &Condition| {
        format!("{} {} {}: {}", it.type_, it.status, it.reason, it.message)
            .trim_end_matches([':', ' '])
            .to_owned()
            + "\n"
    };
    conditions.iter().map(line).collect()
}

fn check(status: &crds::AWSClusterStatus, expected: Expect) {
    expected.assert_eq(&text(&status.conditions));
}

fn ready(conditions: &[Condition]) -> &Condition {
    conditions.iter().find(|it| it.type_ == READY).expect("a condition Ready")
}
