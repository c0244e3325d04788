//! Lives of an add-on under a user who changes what is wanted and approves of this and that, under drift,
//! reconciliations that are cut off anywhere, and memory that is lost: what is written is a part of what was
//! approved, each approval is used once, and what is approved in the end is there in the end.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Xorshift: the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 as usize % bound
    }
}

/// How many lives are tried: `APPROVED_LIVES`.
fn lives() -> u64 {
    let chosen = std::env::var("APPROVED_LIVES").unwrap_or_else(|_| "100".into());
    chosen.parse().expect("a number")
}

/// A reconciliation was cut off: by an error, or because the operator was killed.
struct CutOff;

/// A cluster with one add-on, whoever looks after it, and whoever may approve.
#[derive(Default)]
struct World {
    /// Which component and which plan of it.
    wanted: (usize, usize),
    annotation: String,
    /// What is shown as waiting: its digest and plan.
    shown: Option<(String, String)>,
    record: Option<Inventory>,
    stored: Option<AddOnPlan>,
    /// The plan that wrote the object of each step.
    objects: BTreeMap<usize, String>,
    /// Steps that this process knows to be carried out, of the plan with this hash.
    memory: (String, BTreeSet<usize>),
    /// Approvals that somebody gave, and of what.
    given: BTreeMap<String, String>,
    used: BTreeSet<String>,
    /// The plan whose approval was used last.
    approved: Option<String>,
    /// Writes until the reconciliation is cut off.
    left: usize,
}

impl World {
    fn wanted(&self) -> (String, AddOnPlan) {
        (format!("sha256:{}", self.wanted.0), plan(&self.wanted.1.to_string()))
    }

    fn writes(&mut self) -> Result<(), CutOff> {
        self.left = self.left.checked_sub(1).ok_or(CutOff)?;
        Ok(())
    }

    /// One reconciliation, in the order of the controller.
    fn look(&mut self) -> Result<(), CutOff> {
        let (installed, annotation) = (self.record.clone(), self.annotation.clone());
        let (component, plan) = self.wanted();
        let installed = installed.as_ref();
        let approvals =
            Approvals { subject: SUBJECT, installed, stored: None, annotation: Some(&annotation) };
        let mut decision = approvals.decide(&component, &plan);
        let stored = self.stored.clone().filter(|_| installed.is_some_and(|it| it.stored_plan.is_some()));
        let approvals = Approvals { stored: stored.as_ref(), ..approvals };
        if let Decision::Waits(_) = decision {
            decision = approvals.decide(&component, &plan);
        }
        if let Some(used) = installed.and_then(|it| SUBJECT.used(it)) {
            let unused = consent::without(&annotation, SUBJECT.module, &used);
            if unused != annotation {
                self.writes()?;
                self.annotation = unused;
            }
        }
        match decision {
            Decision::Waits(digest) => {
                self.shown = Some((digest, plan_id(&component, &plan)));
                match (approvals.is_stored_approved(), installed, &stored) {
                    (true, Some(record), Some(kept)) => self.roll_out(&record.digest, kept, false),
                    _ => Ok(()),
                }
            }
            decision => {
                self.shown = None;
                self.roll_out(&component, &plan, decision == Decision::ApprovedNow)
            }
        }
    }

    fn roll_out(&mut self, component: &str, plan: &AddOnPlan, uses: bool) -> Result<(), CutOff> {
        let (before, hash, id) = (self.record.clone(), plan_hash(plan, ""), plan_id(component, plan));
        let is_same = before.as_ref().is_some_and(|it| it.plan_hash == hash && it.digest == component);
        let is_new = !is_same || uses;
        let is_repair = !is_new && before.as_ref().is_some_and(|it| it.complete);
        let begun = Inventory {
            complete: false,
            approved: Some(recorded(before.as_ref(), id.clone(), uses)),
            stored_plan: before.as_ref().and_then(|it| it.stored_plan.clone()),
            ..record(component, plan)
        };
        if is_new {
            self.writes()?;
            if uses {
                let digest = SUBJECT.used(&begun).expect("an approval is used");
                assert_eq!(self.given.get(&digest), Some(&id), "nobody approved of that");
                assert!(self.used.insert(digest), "an approval is used twice");
                self.approved = Some(id.clone());
            }
            self.record = Some(begun.clone());
            self.memory = Default::default();
        }
        if self.memory.0 != hash {
            self.memory = (hash, BTreeSet::new());
        }
        for place in 0..STEPS {
            let is_there = self.objects.get(&place) == Some(&id);
            let is_done = if is_repair { is_there } else { self.memory.1.contains(&place) };
            if !is_done {
                self.writes()?;
                assert_eq!(self.approved.as_ref(), Some(&id), "it is written without approval");
                self.objects.insert(place, id.clone());
                self.memory.1.insert(place);
            }
        }
        if !is_repair {
            self.writes()?;
            self.stored = Some(plan.clone());
            self.writes()?;
            self.record = Some(Inventory { complete: true, stored_plan: Some("there".into()), ..begun });
        }
        Ok(())
    }

    fn approve(&mut self) {
        if let Some((digest, plan)) = self.shown.clone() {
            self.annotation = format!("{},{}@{digest}", self.annotation, SUBJECT.module);
            self.given.insert(digest, plan);
        }
    }

    /// What people and the world do.
    fn event(&mut self, random: &mut Random) {
        match random.below(8) {
            0 => self.wanted.1 = random.below(4),
            1 => self.wanted.0 = random.below(2),
            2 | 3 => self.approve(),
            // Somebody puts in what was good once.
            4 => {
                let all: Vec<&String> = self.given.keys().collect();
                let one = all.get(random.below(all.len().max(1))).map(|it| it.as_str()).unwrap_or_default();
                self.annotation = format!("{}@{one}, aws-ebs-csi@{one},", SUBJECT.module);
            }
            5 => self.annotation.clear(),
            6 => drop(self.objects.remove(&random.below(STEPS))),
            _ => self.memory = Default::default(),
        }
    }
}

#[test]
fn whatever_happens_only_what_was_approved_is_written_each_once() {
    let (mut approvals, mut waiting) = (0, 0);
    for seed in 1..=lives() {
        let (mut world, mut random) = (World::default(), Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        for _ in 0..60 {
            world.event(&mut random);
            world.left = random.below(9);
            let _ = world.look();
            waiting += usize::from(world.shown.is_some());
        }
        approvals += world.used.len();
        // Nothing is in the way any more, somebody approves of what is shown, and drift is set back.
        for _ in 0..4 {
            world.left = 100;
            assert!(world.look().is_ok(), "seed {seed}");
            world.approve();
        }
        let (component, plan) = world.wanted();
        let id = plan_id(&component, &plan);
        let is_whole = (0..STEPS).all(|place| world.objects.get(&place) == Some(&id));
        assert!(is_whole && world.shown.is_none(), "seed {seed}: what was approved is not there");
        let record = world.record.as_ref().filter(|it| it.complete).expect("it is recorded");
        let used = SUBJECT.used(record).expect("an approval was used");
        let stays = consent::entries(Some(&world.annotation)).any(|it| it == (SUBJECT.module, used.as_str()));
        assert!(!stays, "seed {seed}: an approval that was used stays");
    }
    let lives = lives() as usize;
    assert!(approvals > 3 * lives && waiting > 10 * lives, "{approvals} approvals, {waiting} waited");
}
