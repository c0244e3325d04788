//! Reads a region, over and over: what the schedule says is due, all of it at once. Of each kind all pages
//! are shown or none, and what fails or hangs keeps back nothing else.

mod read;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use model::{Part, Read, Timestamp};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::context::Context;
use crate::kinds;
use crate::now;
use crate::schedule::{Due, Task};
use read::{Ended, deleting_vpcs, load_balancers, zones};

/// How long reads that began together wait for one another, so that they are shown together.
const PATIENCE: Duration = Duration::from_secs(3);

type Readings = FuturesUnordered<Pin<Box<dyn Future<Output = Ended> + Send>>>;

/// Polls until the region is dropped.
pub(crate) async fn run(region: Weak<Context>, wake: Arc<Notify>) {
    // What takes longer than the others that began with it.
    let mut late = Readings::new();
    loop {
        let Some(context) = region.upgrade() else { return };
        let (due, next) = {
            let mut state = context.state();
            let (awaited, now) = (state.awaited(), now());
            let due = state.schedule.due(now, &awaited);
            state.schedule.start(&due, now);
            (due, state.schedule.next(&awaited))
        };
        if !due.tasks.is_empty() {
            let mut together = start(&context, due);
            let ended = gather(&mut together, &mut late).await;
            late.extend(together);
            settle(&context, ended);
            continue;
        }
        drop(context);
        // A region that nobody uses any more is looked at now and then, to end with it.
        let wait = Duration::from_secs_f64((next - now()).clamp(0.001, 60.0));
        tokio::select! {
            Some(ended) = late.next() => {
                if let Some(context) = region.upgrade() {
                    settle(&context, vec![ended]);
                }
            }
            () = wake.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// What ended before patience did.
async fn gather(together: &mut Readings, late: &mut Readings) -> Vec<Ended> {
    let end = Instant::now() + PATIENCE;
    let mut res = Vec::new();
    while !together.is_empty() {
        tokio::select! {
            Some(ended) = together.next() => res.push(ended),
            Some(ended) = late.next() => res.push(ended),
            () = tokio::time::sleep_until(end) => break,
        }
    }
    res
}

/// Puts together what is known now, and shows it.
fn settle(context: &Context, all: Vec<Ended>) {
    if all.is_empty() {
        return;
    }
    let mut state = context.state();
    let mut kinds: Vec<(Timestamp, Read)> = Vec::new();
    for Ended { began, merges, read, failed } in all {
        merges.into_iter().for_each(|it| it(state.known.base_mut()));
        let tried: BTreeSet<Task> = read.iter().copied().chain(failed.iter().map(|it| it.0)).collect();
        state.problems.retain(|part, _| !tried.contains(&Task::of(part)));
        for (_, part, failure) in failed {
            tracing::warn!(code = failure.code, error = %failure, "read failed");
            state.problems.insert(part, failure.problem());
        }
        for task in tried {
            if read.contains(&task) {
                state.schedule.read(task, began);
            } else {
                state.schedule.failed(task, now());
            }
        }
        kinds.extend(
            read.into_iter()
                .filter_map(|it| if let Task::Kind(read) = it { Some((began, read)) } else { None }),
        );
    }
    kinds.sort_by(|one, other| one.0.total_cmp(&other.0));
    for together in kinds.chunk_by(|one, other| one.0 == other.0) {
        let reads: Vec<Read> = together.iter().map(|it| it.1).collect();
        state.known.settle(&reads, together[0].0);
    }
    let deleting = state.deleting_vpcs();
    state.known.base_mut().deleting.retain(|vpc, _| deleting.contains(vpc));
    state
        .problems
        .retain(|part, _| if let Part::DeletingVpc(vpc) = part { deleting.contains(vpc) } else { true });
    drop(state);
    context.publish();
}

fn start(context: &Arc<Context>, due: Due) -> Readings {
    let began = now();
    let (ids, deleting) = {
        let state = context.state();
        (state.ids(), state.deleting_vpcs())
    };
    let readings = Readings::new();
    for task in due.tasks.iter().copied() {
        let context = context.clone();
        match task {
            // These two need one another.
            Task::Kind(Read::LoadBalancers | Read::TargetGroups) => {}
            Task::Kind(read) => {
                let ids: Vec<String> =
                    ids.iter().filter(|it| kinds::read_of(it) == Some(read)).cloned().collect();
                readings.push(Box::pin(async move {
                    Ended::of(began, task, Part::Kind(read), kinds::poll(&context, read, &ids).await)
                }));
            }
            Task::DeletingVpcs => {
                let vpcs = deleting.clone();
                readings.push(Box::pin(async move { deleting_vpcs(&context, vpcs, began).await }));
            }
            Task::Zones => readings
                .push(Box::pin(async move { Ended::of(began, task, Part::Zones, zones(&context).await) })),
        }
    }
    if due.reads(Read::LoadBalancers) || due.reads(Read::TargetGroups) {
        let context = context.clone();
        readings.push(Box::pin(async move { load_balancers(&context, &due, began).await }));
    }
    readings
}
