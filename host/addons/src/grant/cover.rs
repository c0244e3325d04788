//! Whether something that a plan asks for is among what is granted.

use crds::plugin_module::{
    Grants, HostPathGrant, MachineRole, ObjectGrant, Right, RuleProtocol, SecurityGroupRuleGrant,
};

use super::tables;

/// API version, kind, namespace and name of an object.
pub(super) type At<'a> = (&'a str, &'a str, Option<&'a str>, &'a str);

/// Namespaces in which only what is named is granted: whoever may use any service account of them is
/// administrator of the cluster.
pub(super) const SYSTEM_NAMESPACES: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];
/// Labels of machines that say that they are of the control plane. Taints have the same keys.
pub(super) const CONTROL_PLANE: [&str; 2] =
    ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
/// etcd's ports on machines of the control plane.
const ETCD: (u16, u16) = (2379, 2380);

/// The group of an API version.
pub(super) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Why an object is nobody's, whatever is granted.
pub(super) fn nobodys((api_version, kind, namespace, name): At<'_>) -> Option<&'static str> {
    let group = group_of(api_version);
    let in_system = namespace == Some("kube-system") && group.is_empty();
    match kind {
        "ConfigMap"
            if in_system
                && (name.starts_with("cluster-plugin-") || name.starts_with("cluster-component-")) =>
        {
            Some("it is a record of the operator")
        }
        "Secret" if in_system && name.starts_with("bootstrap-token-") => {
            Some("whoever has it makes a machine of the cluster")
        }
        _ if tables::kind(group, kind) == Some(tables::KindVerdict::Never) => {
            Some("plugins have nothing to do with this kind")
        }
        _ => None,
    }
}

/// Whether one of these grants is for the object.
pub(super) fn covers(granted: &[ObjectGrant], at: At<'_>) -> bool {
    granted.iter().any(|it| covers_one(it, at))
}

/// Whether one of these grants is for the object although nobody reads what it says.
pub(super) fn covers_unread(granted: &[ObjectGrant], at: At<'_>) -> bool {
    granted.iter().any(|it| it.unread && covers_one(it, at))
}

fn covers_one(grant: &ObjectGrant, at: At<'_>) -> bool {
    let (api_version, kind, namespace, name) = at;
    let in_scope = match namespace {
        Some(namespace) => grant.namespaces.iter().any(|it| it == namespace),
        None => grant.namespaces.is_empty(),
    };
    let is_named = grant.names.iter().any(|it| it == name);
    grant.group == group_of(api_version)
        && grant.kinds.iter().any(|it| it == kind)
        && in_scope
        && (is_named || grant.names.is_empty() && !has_to_be_named(at))
        && nobodys(at).is_none()
}

/// Whether a grant that names nothing is not for this object.
fn has_to_be_named((api_version, kind, namespace, name): At<'_>) -> bool {
    match namespace {
        Some(namespace) => SYSTEM_NAMESPACES.contains(&namespace) || has_name_to_be_named(name),
        None => has_kind_to_be_named(group_of(api_version), kind),
    }
}

/// Whether an object of this name is granted by its name alone, wherever it is.
pub(super) fn has_name_to_be_named(name: &str) -> bool {
    ["kube-root-ca.crt", "kubernetes"].contains(&name)
}

/// Whether cluster-scoped objects of this kind are granted by name alone.
pub(super) fn has_kind_to_be_named(group: &str, kind: &str) -> bool {
    tables::kind(group, kind).is_some() || group == "k8s.io" || group.ends_with(".k8s.io")
}

/// Whether a key or another name is among these; `*` at the end of one stands for whatever follows.
pub(super) fn has_name(granted: &[String], name: &str) -> bool {
    let fits = |it: &String| match it.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => it == name,
    };
    granted.iter().any(fits)
}

/// Whether a registry is one of these or below one.
pub(super) fn has_registry(granted: &[String], registry: &str) -> bool {
    granted.iter().any(|it| it == registry) || has_image(granted, registry)
}

/// Whether an image comes from one of these registries.
pub(super) fn has_image(granted: &[String], image: &str) -> bool {
    granted.iter().any(|it| image.strip_prefix(it.as_str()).is_some_and(|rest| rest.starts_with('/')))
}

/// Whether a path of the machine may be mounted like this.
pub(super) fn covers_host_path(granted: &[HostPathGrant], path: &str, is_read_only: bool) -> bool {
    granted.iter().any(|it| is_below_path(&it.path, path) && (is_read_only || !it.read_only))
}

/// Whether a path is another or below it. None leads upwards.
pub(super) fn is_below_path(above: &str, path: &str) -> bool {
    let parts = |path: &str| -> Option<Vec<String>> {
        let parts = path.strip_prefix('/')?.split('/').filter(|it| !it.is_empty() && *it != ".");
        let parts: Vec<String> = parts.map(str::to_owned).collect();
        (!parts.iter().any(|it| it == "..")).then_some(parts)
    };
    match (parts(above), parts(path)) {
        (Some(above), Some(path)) => path.starts_with(&above),
        _ => false,
    }
}

/// A capability by its one name.
pub(super) fn capability(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    name.strip_prefix("CAP_").map_or(name.clone(), str::to_owned)
}

/// Whether a right is granted: a verb on a resource, restricted to a name or not.
pub(super) fn covers_right(
    granted: &[Right],
    namespace: &str,
    (group, resource, verb): (&str, &str, &str),
    name: Option<&str>,
) -> bool {
    let has = |all: &[String], one: &str| all.iter().any(|it| it == one);
    granted.iter().any(|it| {
        (it.namespace.is_empty() || it.namespace == namespace)
            && has(&it.groups, group)
            && has(&it.resources, resource)
            && has(&it.verbs, verb)
            && (it.names.is_empty() || name.is_some_and(|name| has(&it.names, name)))
    })
}

/// Whether traffic may be let in.
pub(super) fn covers_rule(
    granted: &[SecurityGroupRuleGrant],
    group: MachineRole,
    peer: MachineRole,
    protocol: RuleProtocol,
    ports: Option<(u16, u16)>,
) -> bool {
    granted.iter().any(|it| {
        let ports_fit = ports.is_none_or(|(from, to)| {
            let (first, last) = ports_of(it);
            first <= from && to <= last && (it.etcd || !is_etcd(group, protocol, (from, to)))
        });
        it.groups.contains(&group) && it.peers.contains(&peer) && it.protocol == protocol && ports_fit
    })
}

/// The ports that are granted.
pub(super) fn ports_of(grant: &SecurityGroupRuleGrant) -> (u16, u16) {
    (grant.from_port.unwrap_or(0), grant.to_port.unwrap_or(u16::MAX))
}

/// Whether etcd is among these ports.
pub(super) fn is_etcd(group: MachineRole, protocol: RuleProtocol, (from, to): (u16, u16)) -> bool {
    group == MachineRole::ControlPlane && protocol == RuleProtocol::Tcp && from <= ETCD.1 && ETCD.0 <= to
}

/// Whether a Secret is one that the host puts a certificate into for the plugin.
pub(super) fn covers_certificate(grants: &Grants, namespace: Option<&str>, secret: &str) -> bool {
    let fits = |it: &crds::plugin_module::CertificateGrant| {
        Some(it.namespace.as_str()) == namespace && it.secrets.iter().any(|it| it == secret)
    };
    grants.certificates.iter().any(fits) && nobodys(("v1", "Secret", namespace, secret)).is_none()
}
