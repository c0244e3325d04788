//! What the pretend AWS shows: reads may be behind, or fail.

use std::collections::{BTreeMap, BTreeSet};

use model::*;

use super::{Hindrance, Mishap, World};

/// The lists of a snapshot that a read may be behind with.
macro_rules! kinds {
    ($then:ident) => {
        $then!(vpcs subnets internet_gateways nat_gateways addresses route_tables security_groups instances load_balancers network_interfaces)
    };
}

impl World {
    /// What AWS answers to a read, which may be behind.
    pub fn read(&self) -> Snapshot {
        let mut res = self.truth.clone();
        let lag = self.faults.lag;
        let earlier = |behind: usize| {
            let at = self.past.len().saturating_sub(behind);
            self.past.get(at).filter(|_| behind > 0).unwrap_or(&self.truth)
        };
        macro_rules! read {
            ($($field:ident)*) => {
                for (random, copy) in self.swings.into_iter().zip([$(|to: &mut Snapshot, from: &Snapshot| to.$field = from.$field.clone()),*]) {
                    let behind = if self.faults.swing { random as usize % (lag + 1) } else { lag };
                    copy(&mut res, earlier(if behind > 0 { behind + 1 } else { 0 }));
                }
            };
        }
        kinds!(read);
        if let Some(Mishap { read, hindrance: Hindrance::IsBehind(rounds), .. }) =
            self.mishap.as_ref().filter(|it| it.lasts())
        {
            copy(&mut res, earlier(*rounds), *read);
        }
        res
    }

    /// The kind of which no read succeeds now.
    fn failing(&self) -> Option<Read> {
        let mishap = self.mishap.as_ref().filter(|it| it.lasts() && it.hindrance == Hindrance::Fails);
        mishap.map(|it| it.read)
    }

    /// What a process that did not crash sees: a read that may be behind, with what was shown lately and its
    /// own writes over it.
    pub fn snapshot(&mut self, deleting: &BTreeSet<String>, asked: &BTreeMap<String, Timestamp>) -> Snapshot {
        let mut res = self.read();
        let failing = self.failing();
        if let Some(read) = failing {
            copy(&mut res, &self.latest, read);
        }
        for read in Read::ALL.into_iter().filter(|it| Some(*it) != failing) {
            copy(&mut self.latest, &res, read);
            self.latest.read_at.insert(read, self.now);
        }
        self.keep_shown(&mut res);
        // What was written is believed until a read can show it.
        let since = self.latest.read_at.values().copied().fold(self.now, f64::min) - 30.0;
        let recent: BTreeSet<String> =
            self.pending_writes.iter().filter(|(_, at)| *at > since).map(|(id, _)| id.clone()).collect();
        overlay(&mut res, &self.truth, &recent);
        res.since = self.truth.since;
        res.read_at = self.latest.read_at.clone();
        res.network_interfaces.retain(|it| deleting.contains(&it.vpc_id));
        res.deleting_vpcs_read = deleting.iter().map(|id| (id.clone(), self.now)).collect();
        // Tags of load balancers, and groups without tags, are only read where something is being deleted.
        for balancer in res.load_balancers.iter_mut().filter(|it| !deleting.contains(&it.vpc_id)) {
            balancer.tags = None;
        }
        res.security_groups.retain(|it| deleting.contains(&it.vpc_id) || !it.tags.is_empty());
        res.subnets.retain(|it| !self.unlisted.contains(&it.id));
        res.security_groups.retain(|it| !self.unlisted.contains(&it.id));
        res.absent = asked.clone();
        res
    }

    /// What was shown for the first time lately is not hidden by a read that is behind. Load balancers are,
    /// as the operator does not keep them.
    fn keep_shown(&mut self, res: &mut Snapshot) {
        let (shown, first, now) = (&self.shown, &mut self.first_shown, self.now);
        macro_rules! keep {
            ($($field:ident)*) => {$(
                if stringify!($field) != "load_balancers" {
                    let there: BTreeSet<String> = res.$field.iter().map(|it| it.id.clone()).collect();
                    let is_fresh = |id: &String| first.get(id).is_some_and(|at| now - at < 30.0);
                    let hidden = shown.$field.iter().filter(|it| !there.contains(&it.id) && is_fresh(&it.id));
                    res.$field.extend(hidden.cloned());
                    for it in res.$field.iter() {
                        first.entry(it.id.clone()).or_insert(now);
                    }
                }
            )*};
        }
        kinds!(keep);
        self.shown = res.clone();
    }
}

/// Shows of one kind what another snapshot shows.
fn copy(to: &mut Snapshot, from: &Snapshot, read: Read) {
    match read {
        Read::Vpcs => to.vpcs = from.vpcs.clone(),
        Read::Subnets => to.subnets = from.subnets.clone(),
        Read::InternetGateways => to.internet_gateways = from.internet_gateways.clone(),
        Read::NatGateways => to.nat_gateways = from.nat_gateways.clone(),
        Read::Addresses => to.addresses = from.addresses.clone(),
        Read::RouteTables => to.route_tables = from.route_tables.clone(),
        Read::SecurityGroups => to.security_groups = from.security_groups.clone(),
        Read::Instances => to.instances = from.instances.clone(),
        Read::ClassicLoadBalancers | Read::LoadBalancers | Read::TargetGroups => {
            let is_of = |it: &&FoundLoadBalancer| {
                (it.kind == LoadBalancerKind::Classic) == (read == Read::ClassicLoadBalancers)
            };
            let others = to.load_balancers.iter().filter(|it| !is_of(it));
            to.load_balancers = others.chain(from.load_balancers.iter().filter(is_of)).cloned().collect();
        }
    }
}

/// Puts what was touched as it is now over what a read showed.
fn overlay(res: &mut Snapshot, truth: &Snapshot, touched: &BTreeSet<String>) {
    macro_rules! over {
        ($($field:ident)*) => {$(
            res.$field.retain(|it| !touched.contains(&it.id));
            res.$field.extend(truth.$field.iter().filter(|it| touched.contains(&it.id)).cloned());
            res.$field.sort_by(|a, b| a.id.cmp(&b.id));
        )*};
    }
    kinds!(over);
}
