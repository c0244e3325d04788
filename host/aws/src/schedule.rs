//! When what is read next. Pure: time comes in as a value, and nothing is read here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{Part, Read, Timestamp};

/// Everything is read this often.
const SLOW: Duration = Duration::from_secs(300);
/// What somebody awaits is read at least this often...
const AWAITED: Duration = Duration::from_secs(10);
/// ...but never more often than this, which is also how soon after a write that something follows from.
const SOON: Duration = Duration::from_secs(2);
/// After this long, nothing that was written puts a read off.
const LONG: Duration = Duration::from_secs(60);
/// Zones hardly ever change.
const ZONES: Duration = Duration::from_secs(3600);
/// How long a read rests after it failed once; doubled each time.
const REST: Duration = Duration::from_secs(5);
const LONGEST_REST: Duration = Duration::from_secs(60);
/// Of a moment that does not come.
const NEVER: Timestamp = Timestamp::INFINITY;

/// A moment that comes so long after another.
fn after(moment: Timestamp, wait: Duration) -> Timestamp {
    moment + wait.as_secs_f64()
}

/// One thing that can be read by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    Kind(Read),
    /// Network interfaces, groups and load balancers' tags of VPCs that are being deleted.
    DeletingVpcs,
    Zones,
}

impl Task {
    /// What reads a part.
    pub fn of(part: &Part) -> Task {
        match part {
            Part::Kind(read) => Task::Kind(*read),
            Part::Zones => Task::Zones,
            Part::DeletingVpc(_) => Task::DeletingVpcs,
        }
    }
}

/// What is awaited, by anybody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Awaited {
    /// Somebody uses this region at all.
    pub used: bool,
    pub tasks: BTreeSet<Task>,
}

/// What is due now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// Everything is read: also what only the slow poll reads.
    pub slow: bool,
    pub tasks: BTreeSet<Task>,
}

impl Due {
    pub fn reads(&self, read: Read) -> bool {
        self.tasks.contains(&Task::Kind(read))
    }
}

#[derive(Default)]
pub(crate) struct Schedule {
    /// When the latest read of everything began.
    slow: Option<Timestamp>,
    /// When the latest read of each that ended well began.
    began: BTreeMap<Task, Timestamp>,
    written: BTreeMap<Task, Written>,
    running: BTreeSet<Task>,
    /// Those that failed when they were read last.
    resting: BTreeMap<Task, Rest>,
}

struct Rest {
    failures: u32,
    until: Timestamp,
}

/// Writes from which something follows.
struct Written {
    /// The first since the latest read.
    unread: Option<Timestamp>,
    last: Timestamp,
    /// To be read once even if nobody awaits it.
    owed: bool,
}

impl Schedule {
    /// Something is on its way because of a write at `at`. `owed`: it is read even if nobody says that he
    /// awaits it.
    pub fn wrote(&mut self, task: Task, at: Timestamp, owed: bool) {
        let written = self.written.entry(task).or_insert(Written { unread: None, last: at, owed: false });
        written.unread.get_or_insert(at);
        written.last = written.last.max(at);
        written.owed |= owed;
    }

    /// More is to be shown by this read than was asked for when it began last: it is read at once, also when
    /// nobody awaits it.
    pub fn request(&mut self, task: Task, now: Timestamp) {
        // One that is on its way shows nothing of it.
        let at = if self.is_running(task) { now } else { now - LONG.as_secs_f64() };
        self.wrote(task, at, true);
    }

    /// What was read counts no more: everything is due as soon as somebody uses the region again.
    pub fn begin_anew(&mut self) {
        self.slow = None;
        self.began.retain(|it, _| *it == Task::Zones);
    }

    /// These reads begin. Each ends with [`read`](Self::read) or [`failed`](Self::failed), and is not due
    /// before.
    pub fn start(&mut self, due: &Due, now: Timestamp) {
        if due.slow {
            self.slow = Some(now);
        }
        self.running.extend(&due.tasks);
    }

    /// This read began and ended well.
    pub fn read(&mut self, task: Task, began: Timestamp) {
        self.running.remove(&task);
        self.resting.remove(&task);
        self.began.insert(task, began);
        if let Some(written) = self.written.get_mut(&task) {
            if written.unread.is_some_and(|at| at < began) {
                written.unread = (written.last >= began).then_some(written.last);
            }
            written.owed &= written.unread.is_some();
        }
    }

    /// This read failed: it rests for a while, and it alone.
    pub fn failed(&mut self, task: Task, now: Timestamp) {
        self.running.remove(&task);
        let failures = self.resting.get(&task).map_or(0, |it| it.failures);
        let until = after(now, (REST * 2u32.pow(failures.min(10))).min(LONGEST_REST));
        self.resting.insert(task, Rest { failures: failures + 1, until });
    }

    /// What to read now.
    pub fn due(&self, now: Timestamp, awaited: &Awaited) -> Due {
        let slow = self.slow_at(awaited) <= now;
        let rests = |it: &Task| self.is_running(*it) || self.resting.get(it).is_some_and(|it| now < it.until);
        let all = Read::ALL
            .iter()
            .map(|it| Task::Kind(*it))
            .chain([Task::DeletingVpcs, Task::Zones])
            .filter(|it| !rests(it));
        let tasks = all
            .filter(|it: &Task| (slow && matches!(it, Task::Kind(_))) || self.at(*it, awaited) <= now)
            .collect();
        Due { slow, tasks }
    }

    /// When something is due next; infinite when nobody awaits anything.
    pub fn next(&self, awaited: &Awaited) -> Timestamp {
        let all = Read::ALL.iter().map(|it| Task::Kind(*it)).chain([Task::DeletingVpcs, Task::Zones]);
        all.map(|it| self.at(it, awaited)).fold(self.slow_at(awaited), Timestamp::min)
    }

    /// Load balancers and target groups are read together.
    fn is_running(&self, task: Task) -> bool {
        let together = [Read::LoadBalancers, Read::TargetGroups].map(Task::Kind);
        self.running.contains(&task)
            || (together.contains(&task) && together.iter().any(|it| self.running.contains(it)))
    }

    fn slow_at(&self, awaited: &Awaited) -> Timestamp {
        if awaited.used { self.slow.map_or(0.0, |began| after(began, SLOW)) } else { NEVER }
    }

    fn at(&self, task: Task, awaited: &Awaited) -> Timestamp {
        if !awaited.used || self.is_running(task) {
            return NEVER;
        }
        if let Some(rest) = self.resting.get(&task) {
            let is_awaited = task != Task::DeletingVpcs || awaited.tasks.contains(&task);
            return if is_awaited { rest.until } else { NEVER };
        }
        let began = self.began.get(&task).copied();
        if task == Task::Zones {
            return began.map_or(0.0, |began| after(began, ZONES));
        }
        let written = self.written.get(&task);
        if !awaited.tasks.contains(&task) && !written.is_some_and(|it| it.owed) {
            return NEVER;
        }
        let Some(began) = began else { return 0.0 };
        match written {
            Some(Written { unread: Some(at), .. }) => after(at.max(began), SOON),
            // Soon after a write it is likely to change soon; the longer it takes, the less often it is
            // read.
            Some(written) => began + (began - written.last).clamp(SOON.as_secs_f64(), AWAITED.as_secs_f64()),
            None => after(began, AWAITED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAT: Task = Task::Kind(Read::NatGateways);
    const VPCS: Task = Task::Kind(Read::Vpcs);

    fn awaiting(tasks: &[Task]) -> Awaited {
        Awaited { used: true, tasks: tasks.iter().copied().collect() }
    }

    /// Reads at every moment that it is due, until `end`.
    fn run(schedule: &mut Schedule, awaited: &Awaited, end: Timestamp) -> Vec<(Timestamp, Due)> {
        let mut res = Vec::new();
        loop {
            let at = schedule.next(awaited);
            if at > end {
                return res;
            }
            let due = schedule.due(at, awaited);
            all_read(schedule, &due, at);
            res.push((at, due));
        }
    }

    fn all_read(schedule: &mut Schedule, due: &Due, at: Timestamp) {
        schedule.start(due, at);
        due.tasks.iter().for_each(|it| schedule.read(*it, at));
    }

    fn polled() -> Schedule {
        let mut schedule = Schedule::default();
        let due = schedule.due(1000.0, &awaiting(&[]));
        assert!(due.slow && due.tasks.len() == Read::ALL.len() + 1, "{due:?}");
        all_read(&mut schedule, &due, 1000.0);
        schedule
    }

    #[test]
    fn nothing_is_read_before_somebody_uses_the_region() {
        assert_eq!(Schedule::default().next(&Awaited::default()), NEVER);
        assert_eq!(Schedule::default().due(1000.0, &Awaited::default()), Due::default());
    }

    #[test]
    fn settled_is_read_every_five_minutes() {
        let reads = run(&mut polled(), &awaiting(&[]), 1600.0);
        assert_eq!(reads.iter().map(|it| it.0).collect::<Vec<_>>(), [1300.0, 1600.0]);
        assert!(reads.iter().all(|it| it.1.slow && it.1.tasks.len() == Read::ALL.len()));
    }

    #[test]
    fn awaited_is_read_alone_every_ten_seconds() {
        let reads = run(&mut polled(), &awaiting(&[NAT]), 1030.0);
        assert_eq!(reads.iter().map(|it| it.0).collect::<Vec<_>>(), [1010.0, 1020.0, 1030.0]);
        assert!(reads.iter().all(|it| !it.1.slow && it.1.tasks == [NAT].into()));
    }

    #[test]
    fn awaited_is_read_soon_after_a_write_and_then_less_and_less_often() {
        let mut schedule = polled();
        schedule.wrote(NAT, 1009.0, false);
        let reads = run(&mut schedule, &awaiting(&[NAT]), 1050.0);
        assert_eq!(
            reads.iter().map(|it| it.0).collect::<Vec<_>>(),
            [1011.0, 1013.0, 1017.0, 1025.0, 1035.0, 1045.0]
        );
    }

    #[test]
    fn steady_writes_do_not_put_off_reads() {
        let mut schedule = polled();
        let mut reads = 0;
        for second in 0..20 {
            let now = 1000.0 + f64::from(second);
            schedule.wrote(NAT, now, false);
            let due = schedule.due(now, &awaiting(&[NAT]));
            if !due.tasks.is_empty() {
                reads += 1;
                all_read(&mut schedule, &due, now);
            }
        }
        assert!((6..=10).contains(&reads), "{reads}");
    }

    #[test]
    fn an_unknown_outcome_is_looked_at_once_although_nobody_awaits_it() {
        let mut schedule = polled();
        schedule.wrote(NAT, 1100.0, true);
        let reads = run(&mut schedule, &awaiting(&[]), 1250.0);
        assert_eq!(reads.iter().map(|it| it.0).collect::<Vec<_>>(), [1102.0]);
    }

    #[test]
    fn what_is_requested_is_read_once_and_again_after_a_read_without_it() {
        let mut schedule = polled();
        schedule.request(NAT, 1100.0);
        let reads = run(&mut schedule, &awaiting(&[]), 1250.0);
        assert_eq!(reads.iter().map(|it| it.1.tasks.clone()).collect::<Vec<_>>(), [BTreeSet::from([NAT])]);
        assert!(reads[0].0 <= 1100.0, "{reads:?}");
        let running = Due { slow: false, tasks: [VPCS].into() };
        schedule.start(&running, 1260.0);
        schedule.request(VPCS, 1261.0);
        schedule.read(VPCS, 1260.0);
        let reads = run(&mut schedule, &awaiting(&[]), 1290.0);
        assert_eq!(reads.iter().map(|it| it.0).collect::<Vec<_>>(), [1263.0]);
    }

    #[test]
    fn failed_reads_rest_longer_and_longer_but_no_longer_than_a_minute() {
        let mut schedule = polled();
        let awaited = awaiting(&[]);
        let mut rests = Vec::new();
        for _ in 0..6 {
            schedule.failed(NAT, 1000.0);
            rests.push(schedule.next(&awaited) - 1000.0);
        }
        assert_eq!(rests, [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]);
    }

    #[test]
    fn one_that_fails_keeps_no_other_back_and_is_tried_again_alone() {
        let mut schedule = Schedule::default();
        let awaited = awaiting(&[VPCS, NAT]);
        let due = schedule.due(1000.0, &awaited);
        schedule.start(&due, 1000.0);
        due.tasks.iter().filter(|it| **it != NAT).for_each(|it| schedule.read(*it, 1000.0));
        schedule.failed(NAT, 1001.0);
        let again = |tasks: &[Task]| Due { slow: false, tasks: tasks.iter().copied().collect() };
        assert_eq!((schedule.next(&awaited), schedule.due(1006.0, &awaited)), (1006.0, again(&[NAT])));
        schedule.start(&again(&[NAT]), 1006.0);
        schedule.failed(NAT, 1006.0);
        assert_eq!((schedule.next(&awaited), schedule.due(1010.0, &awaited)), (1010.0, again(&[VPCS])));
        let slow = schedule.due(1300.0, &awaited);
        assert!(slow.slow && slow.tasks.len() == Read::ALL.len());
    }

    #[test]
    fn what_is_on_its_way_is_not_read_twice_and_keeps_no_other_back() {
        let mut schedule = polled();
        let awaited = awaiting(&[VPCS, NAT, Task::Kind(Read::LoadBalancers), Task::Kind(Read::TargetGroups)]);
        let hanging = Due { slow: false, tasks: [NAT, Task::Kind(Read::TargetGroups)].into() };
        schedule.start(&hanging, 1005.0);
        let reads = run(&mut schedule, &awaited, 1030.0);
        assert!(reads.len() == 3 && reads.iter().all(|it| it.1.tasks == [VPCS].into()), "{reads:?}");
        let slow = run(&mut schedule, &awaiting(&[]), 1300.0).remove(0).1;
        assert!(
            slow.slow && slow.tasks.len() == Read::ALL.len() - 3,
            "load balancers and target groups are read together: {slow:?}"
        );
    }
}
