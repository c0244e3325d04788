//! Grants put together: those of several denials, so that a plan passes.

use contract::Step;
use crds::plugin_module::{Grants, LimitGrants, ObjectGrant, PodGrants, Right, SecurityGroupRuleGrant};

use super::authorize;

/// Rounds after which a plan needs what nothing grants. What one denial needs can be denied by another rule,
/// as a service account that a Secret is for is an object.
const ROUNDS: usize = 8;

/// The least grants with which nothing of these steps is denied, but for what nothing grants.
pub fn needed<'a>(steps: impl IntoIterator<Item = &'a Step> + Clone) -> Grants {
    let mut res = Grants::default();
    for _ in 0..ROUNDS {
        let asked = authorize(steps.clone(), &res).into_iter().filter_map(|it| it.grant);
        let next = asked.fold(res.clone(), |all, it| merged(&all, &it));
        if next == res {
            break;
        }
        res = next;
    }
    res
}

/// All that either of two grants.
pub fn merged(one: &Grants, other: &Grants) -> Grants {
    Grants {
        steps: union(&one.steps, &other.steps),
        facts: union(&one.facts, &other.facts),
        queries: union(&one.queries, &other.queries),
        objects: objects(&one.objects, &other.objects),
        reads: objects(&one.reads, &other.reads),
        registries: union(&one.registries, &other.registries),
        pull_secrets: union(&one.pull_secrets, &other.pull_secrets),
        pods: pods(&one.pods, &other.pods),
        fields: union(&one.fields, &other.fields),
        labels: union(&one.labels, &other.labels),
        annotations: union(&one.annotations, &other.annotations),
        certificates: union(&one.certificates, &other.certificates),
        rights: rights(&one.rights, &other.rights),
        urls: union(&one.urls, &other.urls),
        roles: objects(&one.roles, &other.roles),
        webhooks: rights(&one.webhooks, &other.webhooks),
        security_group_rules: rules(&one.security_group_rules, &other.security_group_rules),
        node_roles: one.node_roles || other.node_roles,
        taken_over: union(&one.taken_over, &other.taken_over),
        limits: limits(&one.limits, &other.limits),
    }
}

fn pods(one: &PodGrants, other: &PodGrants) -> PodGrants {
    PodGrants {
        fields: union(&one.fields, &other.fields),
        host_paths: union(&one.host_paths, &other.host_paths),
        capabilities: union(&one.capabilities, &other.capabilities),
        tolerations: union(&one.tolerations, &other.tolerations),
        node_labels: union(&one.node_labels, &other.node_labels),
        control_plane: one.control_plane || other.control_plane,
        priority_classes: union(&one.priority_classes, &other.priority_classes),
        token_audiences: union(&one.token_audiences, &other.token_audiences),
    }
}

/// A limit that one of them does not have is none.
fn limits(one: &LimitGrants, other: &LimitGrants) -> LimitGrants {
    let higher = |one: Option<u64>, other: Option<u64>| Some(one?.max(other?));
    LimitGrants {
        fuel: higher(one.fuel, other.fuel),
        memory: higher(one.memory, other.memory),
        plan_size: higher(one.plan_size, other.plan_size),
    }
}

fn union<T: Clone + PartialEq>(one: &[T], other: &[T]) -> Vec<T> {
    let mut res = one.to_vec();
    for item in other {
        if !res.contains(item) {
            res.push(item.clone());
        }
    }
    res
}

/// Grants that differ in one list alone become one.
fn objects(one: &[ObjectGrant], other: &[ObjectGrant]) -> Vec<ObjectGrant> {
    let mut res = one.to_vec();
    for item in other {
        let alike = res.iter_mut().find(|it| {
            (&it.group, &it.kinds, &it.namespaces, it.unread)
                == (&item.group, &item.kinds, &item.namespaces, item.unread)
                && it.names.is_empty() == item.names.is_empty()
        });
        match alike {
            Some(alike) => alike.names = union(&alike.names, &item.names),
            None => res.push(item.clone()),
        }
    }
    res
}

fn rights(one: &[Right], other: &[Right]) -> Vec<Right> {
    let mut res = one.to_vec();
    for item in other {
        let alike = res.iter_mut().find(|it| {
            (&it.namespace, &it.groups, &it.names) == (&item.namespace, &item.groups, &item.names)
                && (it.verbs == item.verbs || it.resources == item.resources)
        });
        match alike {
            // The other list of the two is the same.
            Some(alike) => {
                alike.verbs = union(&alike.verbs, &item.verbs);
                alike.resources = union(&alike.resources, &item.resources);
            }
            None => res.push(item.clone()),
        }
    }
    res
}

fn rules(one: &[SecurityGroupRuleGrant], other: &[SecurityGroupRuleGrant]) -> Vec<SecurityGroupRuleGrant> {
    let mut res = one.to_vec();
    for item in other {
        let alike = res.iter_mut().find(|it| {
            (it.protocol, it.from_port, it.to_port, it.etcd, &it.peers)
                == (item.protocol, item.from_port, item.to_port, item.etcd, &item.peers)
        });
        match alike {
            Some(alike) => alike.groups = union(&alike.groups, &item.groups),
            None => res.push(item.clone()),
        }
    }
    res
}
