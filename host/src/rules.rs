//! Security-group rules that add-ons ask for: what the add-on controller requests and the cluster
//! controller authorizes, in memory only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::AddOnRule;
use tokio::sync::mpsc;

use crate::object_name::ObjectName;

/// Ingress rules by the role of the security group.
pub type RequestedRules = BTreeMap<String, BTreeSet<model::Rule>>;

/// Groups a list of rules by the role of their security group.
pub fn requested_rules(rules: impl IntoIterator<Item = AddOnRule>) -> RequestedRules {
    let mut res = RequestedRules::new();
    for AddOnRule { group, rule } in rules {
        res.entry(group).or_default().insert(rule);
    }
    res
}

/// Lists rules that are grouped.
pub fn add_on_rules(requested: &RequestedRules) -> Vec<AddOnRule> {
    let of_group = |(group, rules): (&String, &BTreeSet<model::Rule>)| -> Vec<AddOnRule> {
        rules.iter().map(|rule| AddOnRule { group: group.clone(), rule: rule.clone() }).collect()
    };
    requested.iter().flat_map(of_group).collect()
}

/// Security-group rules that the add-ons of each cluster ask for. Add-ons request them; the cluster
/// controller alone authorizes them in AWS, and records when that is done. It is in memory only: after a
/// start nothing is known of a cluster until its add-ons are planned again.
#[derive(Clone, Default)]
pub struct Rules(Arc<Mutex<RulesState>>);

#[derive(Default)]
struct RulesState {
    clusters: HashMap<ObjectName, Entry>,
    subscribers: Vec<mpsc::UnboundedSender<ObjectName>>,
}

#[derive(Default, PartialEq)]
struct Entry {
    requested: Option<RequestedRules>,
    done: bool,
}

impl Rules {
    /// Records what the add-ons of a Cluster need; `None`: not planned yet, so nothing may be revoked.
    pub fn set(&self, cluster: &ObjectName, requested: Option<RequestedRules>) {
        let mut state = self.lock();
        let entry = state.clusters.entry(cluster.clone()).or_default();
        if entry.requested != requested {
            *entry = Entry { requested, done: false };
            state.notify(cluster);
        }
    }

    /// What the add-ons of a Cluster need; `None`: not planned yet.
    pub fn get(&self, cluster: &ObjectName) -> Option<RequestedRules> {
        self.lock().clusters.get(cluster).and_then(|it| it.requested.clone())
    }

    /// Whether AWS was seen to have everything that is asked for now.
    pub fn is_done(&self, cluster: &ObjectName) -> bool {
        self.lock().clusters.get(cluster).is_some_and(|it| it.done)
    }

    /// Records that AWS has (or no longer has) everything that was asked for by `requested`. A newer request
    /// is not touched.
    pub fn set_done(&self, cluster: &ObjectName, requested: Option<&RequestedRules>, done: bool) {
        let mut state = self.lock();
        if let Some(entry) = state.clusters.get_mut(cluster)
            && entry.requested.as_ref() == requested
            && entry.done != done
        {
            entry.done = done;
            state.notify(cluster);
        }
    }

    /// Drops what is known of a Cluster that is gone.
    pub fn remove(&self, cluster: &ObjectName) {
        self.lock().clusters.remove(cluster);
    }

    /// Names of Clusters whose rules changed, or were carried out.
    pub fn changes(&self) -> mpsc::UnboundedReceiver<ObjectName> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.lock().subscribers.push(sender);
        receiver
    }

    fn lock(&self) -> MutexGuard<'_, RulesState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RulesState {
    fn notify(&mut self, cluster: &ObjectName) {
        self.subscribers.retain(|it| it.send(cluster.clone()).is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules_for(ports: &[i32]) -> RequestedRules {
        let source = || model::Source::Group("node".into());
        let rule = |port: &i32| model::Rule {
            protocol: "tcp".into(),
            from_port: *port,
            to_port: *port,
            source: source(),
            description: String::new(),
        };
        RequestedRules::from([("node".to_owned(), ports.iter().map(rule).collect())])
    }

    #[test]
    fn a_new_request_is_not_done_and_an_old_answer_does_not_make_it_so() {
        let rules = Rules::default();
        let cluster = ObjectName::new("default", "prod");
        let mut changes = rules.changes();
        rules.set(&cluster, Some(rules_for(&[179])));
        rules.set_done(&cluster, Some(&rules_for(&[179])), true);
        assert!(rules.is_done(&cluster));

        rules.set(&cluster, Some(rules_for(&[179, 5473])));
        assert!(!rules.is_done(&cluster));
        rules.set_done(&cluster, Some(&rules_for(&[179])), true);
        assert!(!rules.is_done(&cluster));
        assert_eq!(rules.get(&cluster), Some(rules_for(&[179, 5473])));

        let mut count = 0;
        while changes.try_recv().is_ok() {
            count += 1;
        }
        assert_eq!(count, 3);
    }
}
