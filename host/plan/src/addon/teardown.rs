//! What to do next for the add-ons of a cluster that is being deleted: first what made AWS resources from inside the cluster, then the
//! cloud provider, and only then are the machines let go. Networking stays to the end and goes with the machines.

use crate::Timestamp;

/// Whether the workload cluster's API can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Api {
    Answers,
    /// There is no kubeconfig Secret: there never was a control plane, or it is gone.
    NoKubeconfig,
    /// Why not.
    Unreachable(String),
}

/// What is known when the question is put.
#[derive(Clone, Debug, PartialEq)]
pub struct TeardownSeen {
    /// The Cluster's deletionTimestamp.
    pub began: Timestamp,
    pub now: Timestamp,
    /// Seconds; `spec.deletion.timeout`.
    pub timeout: f64,
    /// Annotation `cluster.kurator.dev/force-delete`.
    pub forced: bool,
    pub api: Api,
    /// Services of type LoadBalancer that are still there, as namespace/name; those already being deleted too.
    pub services: Vec<String>,
    /// Of these, those that nobody has asked to be deleted.
    pub services_to_delete: Vec<String>,
    /// AWS ids of load balancers that the cluster made, by tag; `Err` when AWS could not be asked.
    pub load_balancers: Result<Vec<String>, String>,
    /// Add-ons whose removal is still to be carried out, in order.
    pub installed: Vec<String>,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Teardown {
    DeleteServices(Vec<String>),
    /// Carry out the removal of this add-on.
    Remove(String),
    /// Wait, and say this.
    Wait(String),
    /// Take the finalizers off; the machines may go. The text says what was skipped and why, if anything was.
    Release(Option<String>),
}

/// Decides the next thing to do. Services come again when users' automation makes new ones, so they are looked at first each time.
pub fn teardown(seen: &TeardownSeen) -> Teardown {
    if seen.forced {
        return Teardown::Release(Some("annotation cluster.kurator.dev/force-delete: add-ons were not removed".into()));
    }
    let is_late = seen.now >= seen.began + seen.timeout;
    match &seen.api {
        Api::NoKubeconfig => return Teardown::Release(Some("no kubeconfig Secret: add-ons were not removed".into())),
        Api::Unreachable(why) if is_late => {
            return Teardown::Release(Some(format!(
                "the API server did not answer within spec.deletion.timeout ({why}): add-ons were not removed"
            )));
        }
        Api::Unreachable(why) => return Teardown::Wait(format!("for the API server: {why}")),
        Api::Answers => (),
    }
    if !seen.services_to_delete.is_empty() {
        return Teardown::DeleteServices(seen.services_to_delete.clone());
    }
    let (waiting, left) = match &seen.load_balancers {
        _ if !seen.services.is_empty() => (true, format!("for Services of type LoadBalancer to be gone: {}", seen.services.join(", "))),
        Err(why) => (true, format!("to know whether load balancers of the cluster are left: {why}")),
        Ok(ids) if !ids.is_empty() => (true, format!("for load balancers that Services made to be gone: {}", ids.join(", "))),
        Ok(_) => (false, String::new()),
    };
    match (waiting, seen.installed.first()) {
        (true, _) if is_late => Teardown::Release(Some(format!("spec.deletion.timeout is over while waiting {left}"))),
        (true, _) => Teardown::Wait(left),
        (false, Some(_)) if is_late => Teardown::Release(Some("spec.deletion.timeout is over while removing add-ons".into())),
        (false, Some(name)) => Teardown::Remove(name.clone()),
        (false, None) => Teardown::Release(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> TeardownSeen {
        TeardownSeen {
            began: 1000.0,
            now: 1010.0,
            timeout: 900.0,
            forced: false,
            api: Api::Answers,
            services: vec![],
            services_to_delete: vec![],
            load_balancers: Ok(vec![]),
            installed: vec![],
        }
    }

    #[test]
    fn services_go_before_anything_is_removed() {
        let services = vec!["default/web".to_string()];
        let open =
            TeardownSeen { services: services.clone(), services_to_delete: services.clone(), installed: vec!["ccm".into()], ..seen() };
        assert_eq!(teardown(&open), Teardown::DeleteServices(services.clone()));
        let asked = TeardownSeen { services_to_delete: vec![], ..open };
        assert_eq!(teardown(&asked), Teardown::Wait("for Services of type LoadBalancer to be gone: default/web".into()));
        let left = TeardownSeen { services: vec![], load_balancers: Ok(vec!["a1b2".into()]), ..asked };
        assert_eq!(teardown(&left), Teardown::Wait("for load balancers that Services made to be gone: a1b2".into()));
        let clean = TeardownSeen { load_balancers: Ok(vec![]), ..left };
        assert_eq!(teardown(&clean), Teardown::Remove("ccm".into()));
        assert_eq!(teardown(&TeardownSeen { installed: vec![], ..clean }), Teardown::Release(None));
    }

    #[test]
    fn not_knowing_whether_load_balancers_are_left_is_not_their_absence() {
        let denied = TeardownSeen { load_balancers: Err("AccessDenied on tag:GetResources".into()), ..seen() };
        assert!(matches!(teardown(&denied), Teardown::Wait(why) if why.contains("AccessDenied")));
    }

    #[test]
    fn a_dead_api_server_holds_until_the_timeout_and_a_missing_kubeconfig_not_at_all() {
        let dead = TeardownSeen { api: Api::Unreachable("connection refused".into()), ..seen() };
        assert!(matches!(teardown(&dead), Teardown::Wait(_)));
        assert!(matches!(teardown(&TeardownSeen { now: 1900.0, ..dead }), Teardown::Release(Some(_))));
        assert!(matches!(teardown(&TeardownSeen { api: Api::NoKubeconfig, ..seen() }), Teardown::Release(Some(_))));
    }

    #[test]
    fn force_and_timeout_let_go() {
        let services = vec!["default/web".to_string()];
        let stuck = TeardownSeen { services, ..seen() };
        assert!(matches!(teardown(&TeardownSeen { forced: true, ..stuck.clone() }), Teardown::Release(Some(_))));
        assert!(matches!(teardown(&TeardownSeen { now: 1901.0, ..stuck }), Teardown::Release(Some(_))));
    }
}
