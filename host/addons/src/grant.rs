//! What a plugin may ask for. A plan is carried out with wide reach, so the whole of it is authorized before
//! its first step; whatever is not granted is denied, and what the judge does not know is not granted. This
//! holds for plugins that come with the host too.

use contract::{
    AwsFact, ClusterFact, IamRoleSpec, InstalledFact, KUBERNETES_VERSION, Protocol, Role, RoleMode,
    RoleTrust, SecurityGroupRuleSpec, Step, StepSpec, WaitCondition, WaitSpec,
};
use serde_json::Value;

use crate::ObjectRef;
use judge::Judge;

mod cover;
mod denial;
mod fields;
mod judge;
mod merge;
mod metadata;
mod narrow;
mod page;
mod pods;
mod queries;
mod rights;
mod tables;
mod take_over;
mod values;
mod webhooks;

use crds::plugin_module::{CertificateGrant, MachineRole, RuleProtocol, SecurityGroupRuleGrant};
pub use crds::plugin_module::{Grants, ObjectGrant, QueryGrant, Right, TakeOver};
pub use denial::{Denial, fragment, text};
pub use merge::{merged, needed};
pub use narrow::narrowed;
pub use page::tables as page_of_tables;
pub use queries::{Reach, is_withheld, judge, told};
pub use take_over::taken_over;

/// The API group of roles and bindings.
pub const RBAC: &str = "rbac.authorization.k8s.io";
/// Facts that every plugin is told.
const FACTS_FOR_ALL: [&str; 4] = [AwsFact::KEY, ClusterFact::KEY, InstalledFact::KEY, KUBERNETES_VERSION];

/// Authorizes all steps, those of the removal too. An empty answer grants the plan.
pub fn authorize<'a>(steps: impl IntoIterator<Item = &'a Step>, grants: &Grants) -> Vec<Denial> {
    let mut judge = Judge::new(grants);
    for step in steps {
        judge.begin_step(&step.id);
        check_step(&mut judge, step);
    }
    judge.denials()
}

/// What a plugin's descriptor requires beyond what is granted: step kinds and facts.
pub fn denied_requirements(requires: &Value, grants: &Grants) -> Vec<Denial> {
    let all = |name: &str| {
        requires.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    };
    let mut judge = Judge::new(grants);
    for kind in all("steps") {
        check_kind(&mut judge, kind);
    }
    denials_of_facts(&mut judge, all("facts"));
    judge.denials()
}

/// Facts that a plugin's descriptor requires and that it may not be told.
pub fn denied_facts(requires: &Value, grants: &Grants) -> Vec<Denial> {
    let facts = requires.get("facts").and_then(Value::as_array).into_iter().flatten();
    let mut judge = Judge::new(grants);
    denials_of_facts(&mut judge, facts.filter_map(Value::as_str));
    judge.denials()
}

fn denials_of_facts<'a>(judge: &mut Judge<'_>, facts: impl Iterator<Item = &'a str>) {
    for fact in facts.filter(|it| !FACTS_FOR_ALL.contains(it)) {
        if !judge.grants.facts.iter().any(|it| it == fact) {
            let grant = Grants { facts: vec![fact.to_owned()], ..Grants::default() };
            judge.deny("facts", format!("fact {} is not granted", denial::named(fact)), grant);
        }
    }
}

/// Whether a plugin may touch this object.
pub fn is_granted(object: &ObjectRef, grants: &Grants) -> bool {
    let at = (
        object.api_version.as_str(),
        object.kind.as_str(),
        object.namespace.as_deref(),
        object.name.as_str(),
    );
    cover::covers(&grants.objects, at)
}

fn check_step<'a>(judge: &mut Judge<'a>, step: &'a Step) {
    check_kind(judge, &step.kind);
    match step.typed() {
        Err(error) => judge.deny("steps", error.to_string(), None),
        Ok(StepSpec::Apply(spec)) => {
            for object in spec.objects {
                fields::check_object(judge, object);
            }
        }
        Ok(StepSpec::Delete(spec)) => {
            let namespace = spec.namespace.as_deref();
            // A certificate goes with what it was made for.
            if !is_certificate(judge.grants, &spec.api_version, &spec.kind, namespace, &spec.name) {
                judge.needs_object((&spec.api_version, &spec.kind, namespace, &spec.name));
            }
        }
        Ok(StepSpec::Wait(spec)) if is_for_all(&spec) => (),
        Ok(StepSpec::Wait(spec)) => {
            judge.needs_read((&spec.api_version, &spec.kind, spec.namespace.as_deref(), &spec.name));
        }
        Ok(StepSpec::FieldWait(spec)) => {
            let at = (
                spec.api_version.as_str(),
                spec.kind.as_str(),
                spec.namespace.as_deref(),
                spec.name.as_str(),
            );
            judge.needs_read(at);
            if is_withheld(&ObjectRef::at(at)) {
                let message = format!("{} is told to no plugin, not even by a wait", spec.kind);
                judge.deny("reads", message, None);
            }
        }
        Ok(StepSpec::IamRole(spec)) => check_iam_role(judge, &spec),
        Ok(StepSpec::Certificate(spec)) => {
            let at = ("v1", "Secret", Some(spec.namespace.as_str()), spec.secret_name.as_str());
            let is_granted =
                cover::covers_certificate(judge.grants, Some(&spec.namespace), &spec.secret_name);
            let (namespace, secrets) = (spec.namespace.clone(), vec![spec.secret_name.clone()]);
            let certificates = vec![CertificateGrant { namespace, secrets }];
            judge.deny_object(is_granted, at, |_| Grants { certificates, ..Grants::default() });
        }
        Ok(StepSpec::SecurityGroupRule(spec)) => check_security_group_rule(judge, &spec),
        // Roles of the cluster's instances, and file systems, are looked at, and little is said of them.
        Ok(StepSpec::InstanceRoles(_) | StepSpec::EfsFileSystem(_)) => (),
    }
}

fn check_kind(judge: &mut Judge<'_>, kind: &str) {
    if !judge.grants.steps.iter().any(|it| it == kind) {
        let grant = Grants { steps: vec![kind.to_owned()], ..Grants::default() };
        judge.deny("steps", format!("step kind {} is not granted", denial::named(kind)), grant);
    }
}

fn is_certificate(
    grants: &Grants,
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
) -> bool {
    (api_version, kind) == ("v1", "Secret") && cover::covers_certificate(grants, namespace, name)
}

/// A role is looked at for a service account that the plugin may make, or for the instances.
fn check_iam_role(judge: &mut Judge<'_>, spec: &IamRoleSpec) {
    if spec.mode == RoleMode::Ensure {
        judge.deny("iam roles", "changing IAM roles is not granted".to_owned(), None);
    }
    if spec.trust == RoleTrust::Node && !judge.grants.node_roles {
        let message = "looking at IAM roles that instances assume is not granted".to_owned();
        judge.deny("iam roles", message, Grants { node_roles: true, ..Grants::default() });
    }
    if let Some(account) = &spec.service_account {
        judge.needs_object(("v1", "ServiceAccount", spec.namespace.as_deref(), account));
    } else if spec.trust == RoleTrust::Irsa {
        judge.deny("iam roles", "an IAM role for no service account is not granted".to_owned(), None);
    }
}

fn check_security_group_rule(judge: &mut Judge<'_>, spec: &SecurityGroupRuleSpec) {
    let role = |it: Role| match it {
        Role::ControlPlane => MachineRole::ControlPlane,
        Role::Node => MachineRole::Node,
    };
    let protocol = match spec.protocol {
        Protocol::Tcp => RuleProtocol::Tcp,
        Protocol::Udp => RuleProtocol::Udp,
        Protocol::IpInIp => RuleProtocol::IpInIp,
        Protocol::All => RuleProtocol::All,
    };
    let ports = spec.from_port.zip(spec.to_port);
    let (group, peer) = (role(spec.group), role(spec.peer));
    if cover::covers_rule(&judge.grants.security_group_rules, group, peer, protocol, ports) {
        return;
    }
    let grant = SecurityGroupRuleGrant {
        groups: vec![group],
        peers: vec![peer],
        protocol,
        from_port: spec.from_port,
        to_port: spec.to_port,
        etcd: ports.is_some_and(|it| cover::is_etcd(group, protocol, it)),
    };
    let name = |it: MachineRole| match it {
        MachineRole::ControlPlane => "the control plane",
        MachineRole::Node => "nodes",
    };
    let what = match protocol {
        RuleProtocol::All => "all traffic".to_owned(),
        RuleProtocol::IpInIp => "IP in IP".to_owned(),
        RuleProtocol::Tcp | RuleProtocol::Udp => {
            let (from, to) = ports.unwrap_or((0, u16::MAX));
            let word = if protocol == RuleProtocol::Tcp { "tcp" } else { "udp" };
            let etcd = if grant.etcd { ", etcd's among them," } else { "" };
            format!("{word} ports {from} to {to}{etcd}")
        }
    };
    let message = format!("{what} from {} to {} is not granted", name(peer), name(group));
    let grants = Grants { security_group_rules: vec![grant], ..Grants::default() };
    judge.deny("security group rules", message, grants);
}

/// Whether any plugin may wait for it: for an API to be served, or for what Calico's operator says of itself.
/// Both tell nothing of what runs in the cluster, and belong to others than the plugin that waits: a grant
/// for one would let it delete it.
fn is_for_all(spec: &WaitSpec) -> bool {
    let group = cover::group_of(&spec.api_version);
    let is_open = match spec.condition {
        WaitCondition::CrdEstablished => group == "apiextensions.k8s.io",
        WaitCondition::TigerastatusAvailable => group == "operator.tigera.io",
        WaitCondition::AvailableDeployment
        | WaitCondition::ReadyDaemonset
        | WaitCondition::Exists
        | WaitCondition::Gone => false,
    };
    is_open && spec.namespace.is_none()
}

#[cfg(test)]
mod tests;
