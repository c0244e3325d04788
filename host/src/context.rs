//! What every controller is given: the leaves it may use, and what controllers tell one another in memory.
//! It never reads or writes anything itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipnet::IpNet;
use tokio::sync::mpsc;

use crate::management::Management;
use crate::metrics::Metrics;

/// Shared by all controllers; cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub management: Management,
    pub aws: aws::Aws,
    /// Security-group rules that add-ons ask for.
    pub rules: Rules,
    pub metrics: Metrics,
    /// Value of the label `cluster.x-k8s.io/watch-filter` that objects must carry; `None`: all are looked
    /// after.
    pub watch_filter: Option<Arc<str>>,
    /// Where API servers of workload clusters may be that are no control plane endpoint.
    pub api_server_ranges: Arc<[IpNet]>,
    /// Where the components of built-in plugins are that take the place of those compiled in, if any do.
    pub built_in_plugins: Option<Arc<Path>>,
}

/// Namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    pub namespace: String,
    pub name: String,
}

impl ObjectName {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// Another object of the same namespace.
    pub fn sibling(&self, name: impl Into<String>) -> Self {
        Self::new(self.namespace.clone(), name)
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Ingress rules by the role of the security group.
pub type RequestedRules = BTreeMap<String, BTreeSet<model::Rule>>;

/// Security-group rules that the add-ons of each cluster ask for. Add-ons say, the cluster controller alone
/// carries out and says when it is done. It is in memory only: after a start nothing is known of a cluster
/// until its add-ons are planned again.
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
    /// Says what the add-ons of a Cluster need; `None`: not planned yet, so nothing may be revoked.
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

    /// Says that AWS has (or no longer has) everything that was asked for by `requested`. A newer request is
    /// not touched.
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
    pub fn forget(&self, cluster: &ObjectName) {
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
