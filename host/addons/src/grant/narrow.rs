//! Grants that both of two give: an object of a built-in plugin's name can only narrow what that one may do.

use crds::plugin_module::{
    CertificateGrant, Grants, HostPathGrant, ObjectGrant, PodGrants, Right, SecurityGroupRuleGrant, TakeOver,
};

use super::cover;

/// What a built-in plugin may do that is narrowed by other grants: what both grant.
pub fn narrowed(built_in: &Grants, by: &Grants) -> Grants {
    Grants {
        steps: equal(&built_in.steps, &by.steps),
        facts: equal(&built_in.facts, &by.facts),
        queries: equal(&built_in.queries, &by.queries),
        objects: pairs(&built_in.objects, &by.objects, object),
        reads: reads(built_in, by),
        registries: pairs(&built_in.registries, &by.registries, registry),
        pull_secrets: equal(&built_in.pull_secrets, &by.pull_secrets),
        pods: pods(&built_in.pods, &by.pods),
        fields: equal(&built_in.fields, &by.fields),
        labels: pairs(&built_in.labels, &by.labels, pattern),
        annotations: pairs(&built_in.annotations, &by.annotations, pattern),
        certificates: pairs(&built_in.certificates, &by.certificates, certificate),
        rights: pairs(&built_in.rights, &by.rights, right),
        urls: equal(&built_in.urls, &by.urls),
        roles: roles(built_in, by),
        webhooks: pairs(&built_in.webhooks, &by.webhooks, right),
        security_group_rules: pairs(&built_in.security_group_rules, &by.security_group_rules, rule),
        node_roles: built_in.node_roles && by.node_roles,
        taken_over: pairs(&built_in.taken_over, &by.taken_over, take_over),
        limits: built_in.limits.limits_within(&by.limits),
    }
}

/// What may be read: what one lets be read and the other lets be read or written.
fn reads(one: &Grants, other: &Grants) -> Vec<ObjectGrant> {
    let mut res = pairs(&one.reads, &other.reads, object);
    res.extend(pairs(&one.reads, &other.objects, object));
    res.extend(pairs(&one.objects, &other.reads, object));
    res.extend(pairs(&one.reads, &certificates(other), object));
    res.extend(pairs(&certificates(one), &other.reads, object));
    res.extend(pairs(&one.objects, &certificates(other), object));
    res.extend(pairs(&certificates(one), &other.objects, object));
    res
}

/// Roles that may be given on: those of others, and those that one of the two lets it make.
fn roles(one: &Grants, other: &Grants) -> Vec<ObjectGrant> {
    let mut res = pairs(&one.roles, &other.roles, object);
    res.extend(pairs(&one.roles, &other.objects, object));
    res.extend(pairs(&one.objects, &other.roles, object));
    res
}

/// Secrets with certificates, as they may be read.
fn certificates(grants: &Grants) -> Vec<ObjectGrant> {
    let one = |it: &CertificateGrant| ObjectGrant {
        kinds: vec!["Secret".to_owned()],
        namespaces: vec![it.namespace.clone()],
        names: it.secrets.clone(),
        ..ObjectGrant::default()
    };
    grants.certificates.iter().map(one).collect()
}

fn pods(one: &PodGrants, other: &PodGrants) -> PodGrants {
    let capabilities: Vec<String> = other.capabilities.iter().map(|it| cover::capability(it)).collect();
    let both = one.capabilities.iter().filter(|it| capabilities.contains(&cover::capability(it)));
    PodGrants {
        fields: equal(&one.fields, &other.fields),
        host_paths: pairs(&one.host_paths, &other.host_paths, host_path),
        capabilities: both.cloned().collect(),
        tolerations: pairs(&one.tolerations, &other.tolerations, pattern),
        node_labels: pairs(&one.node_labels, &other.node_labels, pattern),
        control_plane: one.control_plane && other.control_plane,
        priority_classes: equal(&one.priority_classes, &other.priority_classes),
        token_audiences: equal(&one.token_audiences, &other.token_audiences),
    }
}

/// What is in both lists.
fn equal<T: Clone + PartialEq>(one: &[T], other: &[T]) -> Vec<T> {
    one.iter().filter(|it| other.contains(it)).cloned().collect()
}

/// What any two of both lists have in common, each once.
fn pairs<T: Clone + PartialEq>(one: &[T], other: &[T], both: impl Fn(&T, &T) -> Option<T>) -> Vec<T> {
    let mut res = Vec::new();
    for item in
        one.iter().flat_map(|one| other.iter().filter_map(|other| both(one, other)).collect::<Vec<_>>())
    {
        if !res.contains(&item) {
            res.push(item);
        }
    }
    res
}

/// What two lists have in common of which an empty one is for all; `None` when nothing.
fn or_all(one: &[String], other: &[String]) -> Option<Vec<String>> {
    match (one.is_empty(), other.is_empty()) {
        (true, _) => Some(other.to_vec()),
        (_, true) => Some(one.to_vec()),
        _ => Some(equal(one, other)).filter(|it| !it.is_empty()),
    }
}

fn object(one: &ObjectGrant, other: &ObjectGrant) -> Option<ObjectGrant> {
    let mut res = ObjectGrant {
        group: one.group.clone(),
        kinds: equal(&one.kinds, &other.kinds),
        namespaces: equal(&one.namespaces, &other.namespaces),
        names: or_all(&one.names, &other.names)?,
        unread: one.unread && other.unread,
    };
    let is_in_cluster = one.namespaces.is_empty() && other.namespaces.is_empty();
    // A grant that names nothing is not for what has to be named, and gives none of it away.
    if (one.names.is_empty() || other.names.is_empty()) && !res.names.is_empty() {
        res.namespaces.retain(|it| !cover::SYSTEM_NAMESPACES.contains(&it.as_str()));
        if is_in_cluster {
            res.kinds.retain(|it| !cover::has_kind_to_be_named(&res.group, it));
        } else {
            res.names.retain(|it| !cover::has_name_to_be_named(it));
            if res.names.is_empty() {
                return None;
            }
        }
    }
    let is_any = one.group == other.group && !res.kinds.is_empty();
    (is_any && (is_in_cluster || !res.namespaces.is_empty())).then_some(res)
}

fn registry(one: &String, other: &String) -> Option<String> {
    let is_within = |one: &String, other: &String| cover::has_registry(std::slice::from_ref(other), one);
    [(one, other), (other, one)]
        .into_iter()
        .find(|(it, above)| is_within(it, above))
        .map(|(it, _)| it.clone())
}

fn pattern(one: &String, other: &String) -> Option<String> {
    let is_within = |one: &String, other: &String| match (one.strip_suffix('*'), other.strip_suffix('*')) {
        (Some(beginning), Some(above)) => beginning.starts_with(above),
        (Some(_), None) => false,
        (None, _) => cover::has_name(std::slice::from_ref(other), one),
    };
    [(one, other), (other, one)]
        .into_iter()
        .find(|(it, above)| is_within(it, above))
        .map(|(it, _)| it.clone())
}

fn certificate(one: &CertificateGrant, other: &CertificateGrant) -> Option<CertificateGrant> {
    let secrets = equal(&one.secrets, &other.secrets);
    (one.namespace == other.namespace && !secrets.is_empty())
        .then(|| CertificateGrant { namespace: one.namespace.clone(), secrets })
}

fn right(one: &Right, other: &Right) -> Option<Right> {
    let namespace = match (one.namespace.as_str(), other.namespace.as_str()) {
        ("", other) => other,
        (one, "") => one,
        (one, other) if one == other => one,
        _ => return None,
    };
    let [groups, resources, verbs] = [
        equal(&one.groups, &other.groups),
        equal(&one.resources, &other.resources),
        equal(&one.verbs, &other.verbs),
    ];
    let names = or_all(&one.names, &other.names)?;
    (!groups.is_empty() && !resources.is_empty() && !verbs.is_empty()).then(|| Right {
        namespace: namespace.to_owned(),
        groups,
        resources,
        verbs,
        names,
    })
}

fn host_path(one: &HostPathGrant, other: &HostPathGrant) -> Option<HostPathGrant> {
    let within = [(one, other), (other, one)];
    let (lower, _) = within.into_iter().find(|(it, above)| cover::is_below_path(&above.path, &it.path))?;
    Some(HostPathGrant { path: lower.path.clone(), read_only: one.read_only || other.read_only })
}

fn rule(one: &SecurityGroupRuleGrant, other: &SecurityGroupRuleGrant) -> Option<SecurityGroupRuleGrant> {
    let (groups, peers) = (equal(&one.groups, &other.groups), equal(&one.peers, &other.peers));
    let (mine, theirs) = (cover::ports_of(one), cover::ports_of(other));
    let (from, to) = (mine.0.max(theirs.0), mine.1.min(theirs.1));
    let has_ports = [one, other].iter().any(|it| it.from_port.is_some() || it.to_port.is_some());
    let is_any = one.protocol == other.protocol && !groups.is_empty() && !peers.is_empty() && from <= to;
    is_any.then(|| SecurityGroupRuleGrant {
        groups,
        peers,
        protocol: one.protocol,
        from_port: has_ports.then_some(from),
        to_port: has_ports.then_some(to),
        etcd: one.etcd && other.etcd,
    })
}

fn take_over(one: &TakeOver, other: &TakeOver) -> Option<TakeOver> {
    let both = object(&one.object, &other.object)?;
    (one.manager == other.manager).then(|| TakeOver { object: both, manager: one.manager.clone() })
}
