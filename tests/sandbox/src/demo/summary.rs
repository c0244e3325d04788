//! The table at the end: how long each phase took, what was asked of AWS, and what exists.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::bed::Bed;
use crate::emulator::Call;

/// The operator's access key id; see `operator`.
const OPERATOR: &str = "operator";

/// How long a phase took.
pub struct Elapsed {
    title: String,
    time: Duration,
}

impl Elapsed {
    pub fn since(title: &str, started: Instant) -> Self {
        Self { title: title.to_owned(), time: started.elapsed() }
    }
}

/// How much of the calls is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    ByAction,
    Total,
}

/// Prints the table.
pub async fn print(bed: &Bed, elapsed: &[Elapsed], told: Calls) -> Result<()> {
    println!("\n{:<44} {:>8}", "PHASE", "SECONDS");
    for phase in elapsed {
        println!("{:<44} {:>8.1}", phase.title, phase.time.as_secs_f64());
    }
    println!("{:<44} {:>8.1}", "all", elapsed.iter().map(|phase| phase.time.as_secs_f64()).sum::<f64>());
    let calls = bed.emulator().calls(0).await?.calls;
    println!("\n{:<44} {:>8} {:>8}", "AWS CALLS SO FAR", "READS", "WRITES");
    for (what, (reads, writes)) in
        count(&calls).into_iter().filter(|(what, _)| told == Calls::ByAction || !what.starts_with(' '))
    {
        println!("{what:<44} {reads:>8} {writes:>8}");
    }
    let account = bed.emulator().account().await?;
    println!("\n{:<44} {:>8}", "IN THE AWS ACCOUNT", "COUNT");
    for (kind, ids) in account.iter().filter(|(_, ids)| !ids.is_empty()) {
        println!("{kind:<44} {:>8}", ids.len());
    }
    if account.values().all(Vec::is_empty) {
        println!("nothing");
    }
    Ok(())
}

/// Reads and writes: of the operator by action, of everybody else together.
fn count(calls: &[Call]) -> Vec<(String, (usize, usize))> {
    let mut actions: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let (mut own, mut others) = ((0, 0), (0, 0));
    for call in calls {
        if call.caller.as_deref() == Some(OPERATOR) {
            add(&mut own, call);
            add(actions.entry(format!("  {} {}", call.service, call.action)).or_default(), call);
        } else {
            add(&mut others, call);
        }
    }
    let mut rows: Vec<_> = actions.into_iter().collect();
    rows.push(("cluster-operator".to_owned(), own));
    rows.push(("cloud provider, machines and others".to_owned(), others));
    rows
}

fn add((reads, writes): &mut (usize, usize), call: &Call) {
    *if call.write { writes } else { reads } += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_action_for_the_operator_alone() {
        let call = |caller: &str, action: &str, write| Call {
            sequence: 1,
            time: 0.0,
            service: "ec2".to_owned(),
            action: action.to_owned(),
            status: Some(200),
            code: None,
            write,
            caller: Some(caller.to_owned()),
            region: None,
            resources: Vec::new(),
            fault: None,
        };
        let calls = [
            call("operator", "CreateVpc", true),
            call("operator", "DescribeVpcs", false),
            call("else", "DescribeVpcs", false),
        ];
        let expected = [
            ("  ec2 CreateVpc", (0, 1)),
            ("  ec2 DescribeVpcs", (1, 0)),
            ("cluster-operator", (1, 1)),
            ("cloud provider, machines and others", (1, 0)),
        ];
        assert_eq!(count(&calls), expected.map(|(name, numbers)| (name.to_owned(), numbers)));
    }
}
