//! What roles of an add-on allow, and who gets them. A role of the workload cluster outlives the plan that
//! made it, and whoever has it acts without the host: so each right in it must be granted, as Kubernetes
//! itself asks of whoever makes a role.

use std::collections::BTreeSet;

use crds::plugin_module::{Grants, Right};
use k8s_openapi::api::rbac::v1::{PolicyRule, RoleRef, Subject};
use serde::Deserialize;
use serde_json::Value;

use super::cover;
use super::denial::named;
use super::judge::{Judge, Place, object_grant};

/// The API version of roles and bindings.
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
/// Different verbs, or names, that a rule may have.
const MOST: usize = 200;
/// Denials of one rule that are listed.
const LISTED: usize = 50;

/// Rights that something needs, each verb on each resource.
pub(super) struct Needed<'a> {
    pub namespace: &'a str,
    pub groups: Vec<String>,
    pub resources: Vec<String>,
    pub verbs: Vec<String>,
    /// None for all.
    pub names: Vec<String>,
}

/// What a Role or ClusterRole allows.
pub(super) fn check_rules(judge: &mut Judge<'_>, value: &Value, place: Place<'_>) {
    let rules: Vec<PolicyRule> = match Deserialize::deserialize(value) {
        Ok(rules) => rules,
        Err(error) => return judge.deny("rights", format!("the role cannot be read: {error}"), None),
    };
    for rule in rules {
        for url in rule.non_resource_urls.into_iter().flatten() {
            if !judge.grants.urls.contains(&url) {
                let message = format!("the right to use the URL {} is not granted", named(&url));
                judge.deny("rights", message, Grants { urls: vec![url], ..Grants::default() });
            }
        }
        let [groups, resources, names] =
            [rule.api_groups, rule.resources, rule.resource_names].map(Option::unwrap_or_default);
        let namespace = place.namespace.unwrap_or_default();
        let needed = Needed { namespace, groups, resources, verbs: rule.verbs, names };
        let rights = &judge.grants.rights;
        let grant = |right| Grants { rights: vec![right], ..Grants::default() };
        check_rights(judge, rights, needed, ("rights", ""), grant);
    }
}

/// Denies each right that is in none of those granted. `rule` and `prefix` are for whoever reads it.
pub(super) fn check_rights(
    judge: &mut Judge<'_>,
    rights: &[Right],
    needed: Needed<'_>,
    (rule, prefix): (&'static str, &str),
    grant: impl Fn(Right) -> Grants,
) {
    // Each once: what is left to combine is small, however much a plan lists.
    let [groups, resources, verbs, names] = [needed.groups, needed.resources, needed.verbs, needed.names]
        .map(|all| all.into_iter().collect::<BTreeSet<String>>());
    if verbs.len() > MOST || names.len() > MOST {
        return judge.deny(rule, format!("{prefix}more than {MOST} verbs or names are not granted"), None);
    }
    let mut listed = 0;
    for (group, resource) in groups.iter().flat_map(|group| resources.iter().map(move |it| (group, it))) {
        let covers = |verb: &str, name: Option<&str>| {
            cover::covers_right(rights, needed.namespace, (group, resource, verb), name)
        };
        let is_missing = |verb: &&String| {
            !covers(verb, None) && (names.is_empty() || !names.iter().all(|name| covers(verb, Some(name))))
        };
        let missing: Vec<String> = verbs.iter().filter(is_missing).cloned().collect();
        if missing.is_empty() {
            continue;
        }
        if listed == LISTED {
            return judge.deny(rule, format!("{prefix}more rights of this rule are not granted"), None);
        }
        listed += 1;
        let of = if group.is_empty() { String::new() } else { format!(" of {}", named(group)) };
        let said = missing.iter().map(|it| named(it)).collect::<Vec<_>>().join(", ");
        let message = format!("{prefix}the right to {said} {}{of} is not granted", named(resource));
        let right = Right {
            namespace: needed.namespace.to_owned(),
            groups: vec![group.clone()],
            resources: vec![resource.clone()],
            verbs: missing,
            names: names.iter().cloned().collect(),
        };
        judge.deny(rule, message, grant(right));
    }
}

/// A role of its own, or one that it may give on.
pub(super) fn check_bound_role(judge: &mut Judge<'_>, value: &Value, place: Place<'_>) {
    let role = match RoleRef::deserialize(value) {
        Ok(role) => role,
        Err(error) => return judge.deny("bindings", format!("the binding cannot be read: {error}"), None),
    };
    let namespace = match role.kind.as_str() {
        "ClusterRole" => None,
        "Role" => place.namespace,
        other => return judge.deny("bindings", format!("binding a {} is not granted", named(other)), None),
    };
    let at = (API_VERSION, role.kind.as_str(), namespace, role.name.as_str());
    let is_granted = cover::covers(&judge.grants.roles, at) || cover::covers(&judge.grants.objects, at);
    judge.deny_object(is_granted, at, |_| Grants { roles: vec![object_grant(at)], ..Grants::default() });
}

/// Service accounts of its own.
pub(super) fn check_subjects(judge: &mut Judge<'_>, value: &Value) {
    let subjects: Vec<Subject> = match Deserialize::deserialize(value) {
        Ok(subjects) => subjects,
        Err(error) => return judge.deny("bindings", format!("the binding cannot be read: {error}"), None),
    };
    for subject in subjects {
        match (subject.kind.as_str(), subject.namespace.as_deref()) {
            ("ServiceAccount", Some(namespace)) => {
                judge.needs_object(("v1", "ServiceAccount", Some(namespace), &subject.name));
            }
            (kind, _) => {
                let (kind, name) = (named(kind), named(&subject.name));
                let message =
                    format!("binding a role to {kind} {name} is not granted; bind it to a ServiceAccount");
                judge.deny("bindings", message, None);
            }
        }
    }
}
