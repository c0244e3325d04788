//! Functions that make steps, one per kind in `wit/steps/` that the host carries out.

use crate::Step;
use serde_json::{Map, Value};

/// Kind of the steps that [`apply`] makes.
pub const APPLY: &str = "k8s.apply/v1";
/// Kind of the steps that [`wait`] makes.
pub const WAIT: &str = "k8s.wait/v1";
/// Kind of the steps that [`wait_for_fields`] makes.
pub const FIELD_WAIT: &str = "k8s.wait/v2";
/// Kind of the steps that [`delete`] makes.
pub const DELETE: &str = "k8s.delete/v1";
/// Kind of the steps that [`security_group_rule`] makes.
pub const SECURITY_GROUP_RULE: &str = "aws.sg-rule/v1";
/// Kind of the steps that [`service_account_role`] makes.
pub const IAM_ROLE: &str = "aws.iam-role/v1";
/// As [`IAM_ROLE`], with [`RoleAction`]s.
pub const IAM_ROLE_WITH_TAGS: &str = "aws.iam-role/v2";
/// Kind of the steps that [`instance_roles`] makes.
pub const INSTANCE_ROLES: &str = "aws.instance-roles/v1";
/// Kind of the steps that [`efs_file_system`] makes.
pub const EFS_FILE_SYSTEM: &str = "aws.efs-file-system/v1";
/// Kind of the steps that [`certificate`] makes.
pub const CERTIFICATE: &str = "tls.certificate/v1";

/// Names an object of the workload cluster.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    /// Group and version, such as `apps/v1`; `v1` for the core group.
    pub api_version: &'a str,
    /// Such as `Deployment`.
    pub kind: &'a str,
    /// None for cluster-scoped kinds.
    pub namespace: Option<&'a str>,
    /// `metadata.name`.
    pub name: &'a str,
}

impl Object<'_> {
    fn spec(&self) -> Map<String, Value> {
        let mut spec = Map::new();
        spec.insert("apiVersion".to_owned(), self.api_version.into());
        spec.insert("kind".to_owned(), self.kind.into());
        if let Some(namespace) = self.namespace {
            spec.insert("namespace".to_owned(), namespace.into());
        }
        spec.insert("name".to_owned(), self.name.into());
        spec
    }
}

/// What [`wait`] waits for.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    /// Deployment: condition `Available` is True for the current generation.
    AvailableDeployment,
    /// DaemonSet: at least one Pod is wanted, and as many are updated and available as wanted.
    ReadyDaemonset,
    /// CustomResourceDefinition: condition `Established` is True.
    CrdEstablished,
    /// TigeraStatus: `Available` is True, `Progressing` and `Degraded` are not.
    TigerastatusAvailable,
    /// The object is there.
    Exists,
    /// The object is not there; nor need its kind be.
    Gone,
}

/// Roles of machines, by which groups are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Machines of the control plane.
    ControlPlane,
    /// All other machines.
    Node,
}

impl Role {
    /// Both roles.
    pub const ALL: [Role; 2] = [Role::ControlPlane, Role::Node];

    /// The role as the contract writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::ControlPlane => "control-plane",
            Role::Node => "node",
        }
    }
}

/// What a security-group rule lets in.
#[derive(Clone, Copy, Debug)]
pub enum Traffic {
    /// One port of TCP.
    Tcp(u16),
    /// One port of UDP.
    Udp(u16),
    /// From the first port to the last, both among them.
    TcpRange(u16, u16),
    /// From the first port to the last, both among them.
    UdpRange(u16, u16),
    /// IP in IP, protocol number 4.
    IpInIp,
    /// Every protocol and port.
    All,
}

/// These objects exist, with at least these fields.
pub fn apply(id: &str, objects: Vec<Value>) -> Step {
    step(id, APPLY, Map::from_iter([("objects".to_owned(), objects.into())]))
}

/// As [`apply`], in a plan that keeps what a later plan no longer has, all of it.
pub fn apply_and_keep(id: &str, objects: Vec<Value>) -> Step {
    step(
        id,
        APPLY,
        Map::from_iter([("objects".to_owned(), objects.into()), ("prune".to_owned(), "orphan".into())]),
    )
}

/// As [`apply`], for webhook configurations: the host fills in the CA of the certificate that step
/// `certificate` makes, wherever an object has a `clientConfig`. It must be among the steps that come before.
pub fn apply_with_ca_bundle(id: &str, objects: Vec<Value>, certificate: &str) -> Step {
    let spec = Map::from_iter([
        ("objects".to_owned(), objects.into()),
        ("caBundleFrom".to_owned(), certificate.into()),
    ]);
    step(id, APPLY, spec).after([certificate])
}

/// `object` fulfils `condition`; after `timeout` seconds without, the host reports a problem and goes on
/// waiting.
pub fn wait(id: &str, object: Object<'_>, condition: Condition, timeout: u32) -> Step {
    let condition = match condition {
        Condition::AvailableDeployment => "available-deployment",
        Condition::ReadyDaemonset => "ready-daemonset",
        Condition::CrdEstablished => "crd-established",
        Condition::TigerastatusAvailable => "tigerastatus-available",
        Condition::Exists => "exists",
        Condition::Gone => "gone",
    };
    let mut spec = object.spec();
    spec.insert("condition".to_owned(), condition.into());
    spec.insert("timeoutSeconds".to_owned(), timeout.into());
    step(id, WAIT, spec)
}

/// What a field of an object has to fulfil; see [`wait_for_fields`].
#[derive(Clone, Debug)]
pub struct FieldCondition(Map<String, Value>);

impl FieldCondition {
    fn new(path: &str, operator: &str) -> Self {
        FieldCondition(Map::from_iter([
            ("path".to_owned(), path.into()),
            ("operator".to_owned(), operator.into()),
        ]))
    }

    fn with(path: &str, operator: &str, field: &str, value: Value) -> Self {
        let mut condition = Self::new(path, operator);
        condition.0.insert(field.to_owned(), value);
        condition
    }

    /// The field is there. `path` is a JSON pointer, in which `[type=Ready]` is the first element of a list whose
    /// field `type` is `Ready`.
    pub fn exists(path: &str) -> Self {
        Self::new(path, "Exists")
    }

    /// The field is not there, or null.
    pub fn not_exists(path: &str) -> Self {
        Self::new(path, "NotExists")
    }

    /// The field is this text, number or boolean.
    pub fn equals(path: &str, value: impl Into<Value>) -> Self {
        Self::with(path, "Equals", "value", value.into())
    }

    /// The field is anything else, or is not there.
    pub fn not_equals(path: &str, value: impl Into<Value>) -> Self {
        Self::with(path, "NotEquals", "value", value.into())
    }

    /// The field is one of these texts.
    pub fn is_in(path: &str, values: &[&str]) -> Self {
        Self::with(path, "In", "value", values.into())
    }

    /// The field is a number that is not smaller than another field of the object, such as
    /// `/status/observedGeneration` and `/metadata/generation`.
    pub fn not_below(path: &str, other: &str) -> Self {
        Self::with(path, "GreaterOrEqual", "valueFrom", other.into())
    }

    /// The field is a number that is not smaller than this one.
    pub fn at_least(path: &str, value: u32) -> Self {
        Self::with(path, "GreaterOrEqual", "value", value.into())
    }
}

/// The fields of `object` fulfil all of these conditions; after `timeout` seconds the user is told that it takes
/// long.
pub fn wait_for_fields(id: &str, object: Object<'_>, conditions: Vec<FieldCondition>, timeout: u32) -> Step {
    let mut spec = object.spec();
    spec.insert("conditions".to_owned(), conditions.into_iter().map(|it| Value::Object(it.0)).collect());
    spec.insert("timeoutSeconds".to_owned(), timeout.into());
    step(id, FIELD_WAIT, spec)
}

/// `object` does not exist; done only when it is gone.
pub fn delete(id: &str, object: Object<'_>) -> Step {
    let mut spec = object.spec();
    spec.insert("wait".to_owned(), true.into());
    step(id, DELETE, spec)
}

/// Machines of role `group` accept `traffic` from machines of role `peer`.
pub fn security_group_rule(id: &str, group: Role, traffic: Traffic, peer: Role, description: &str) -> Step {
    let (protocol, ports) = match traffic {
        Traffic::Tcp(port) => ("tcp", Some((port, port))),
        Traffic::Udp(port) => ("udp", Some((port, port))),
        Traffic::TcpRange(first, last) => ("tcp", Some((first, last))),
        Traffic::UdpRange(first, last) => ("udp", Some((first, last))),
        Traffic::IpInIp => ("4", None),
        Traffic::All => ("-1", None),
    };
    let mut spec = Map::new();
    spec.insert("group".to_owned(), group.as_str().into());
    spec.insert("protocol".to_owned(), protocol.into());
    if let Some((first, last)) = ports {
        spec.insert("fromPort".to_owned(), first.into());
        spec.insert("toPort".to_owned(), last.into());
    }
    spec.insert("peer".to_owned(), peer.as_str().into());
    spec.insert("description".to_owned(), description.into());
    step(id, SECURITY_GROUP_RULE, spec)
}

/// The role may be assumed by this service account with a token of the cluster, and allows `actions`. It is
/// looked at, never changed.
pub fn service_account_role(
    id: &str,
    role_arn: &str,
    namespace: &str,
    service_account: &str,
    actions: &[&str],
) -> Step {
    let spec = Map::from_iter([
        ("roleArn".to_owned(), role_arn.into()),
        ("trust".to_owned(), "irsa".into()),
        ("namespace".to_owned(), namespace.into()),
        ("serviceAccount".to_owned(), service_account.into()),
        ("actions".to_owned(), actions.into()),
        ("mode".to_owned(), "check".into()),
    ]);
    step(id, IAM_ROLE, spec)
}

/// An IAM action, and what its requests look like to conditions of a policy.
#[derive(Clone, Debug)]
pub struct RoleAction(Map<String, Value>);

impl RoleAction {
    /// An action such as `ec2:AttachVolume`, of whose requests nothing else is known.
    pub fn new(action: &str) -> Self {
        RoleAction(Map::from_iter([("action".to_owned(), action.into())]))
    }

    /// Its requests set these tags and no others; one that is null has another value each time.
    pub fn sets(mut self, tags: &Map<String, Value>) -> Self {
        self.0.insert("tags".to_owned(), tags.clone().into());
        self
    }

    /// It allows the tags on what the call `create_action` makes.
    pub fn of(mut self, create_action: &str) -> Self {
        self.0.insert("createAction".to_owned(), create_action.into());
        self
    }

    /// It is needed only `when`, which nobody sees beforehand: the user is told that the role lacks it.
    pub fn only(mut self, when: &str) -> Self {
        self.0.insert("advice".to_owned(), when.into());
        self
    }
}

/// As [`service_account_role`], for actions under conditions on tags.
pub fn tagging_role(
    id: &str,
    role_arn: &str,
    namespace: &str,
    service_account: &str,
    actions: Vec<RoleAction>,
) -> Step {
    let mut step = service_account_role(id, role_arn, namespace, service_account, &[]);
    step.kind = IAM_ROLE_WITH_TAGS;
    step.spec["actions"] = actions.into_iter().map(|it| Value::Object(it.0)).collect();
    step
}

/// The IAM roles of all the cluster's instances allow these actions. They are looked at, never changed.
pub fn instance_roles(id: &str, actions: &[&str]) -> Step {
    step(id, INSTANCE_ROLES, Map::from_iter([("actions".to_owned(), actions.into())]))
}

/// The EFS file system is there, and can be mounted in the zones of the cluster. It is looked at, never
/// changed.
pub fn efs_file_system(id: &str, file_system: &str) -> Step {
    step(id, EFS_FILE_SYSTEM, Map::from_iter([("fileSystemId".to_owned(), file_system.into())]))
}

/// The Secret `secret` of type `kubernetes.io/tls` holds a serving certificate for these names, made and
/// renewed by the host.
pub fn certificate(id: &str, namespace: &str, secret: &str, dns_names: &[&str]) -> Step {
    let spec = Map::from_iter([
        ("namespace".to_owned(), namespace.into()),
        ("secretName".to_owned(), secret.into()),
        ("dnsNames".to_owned(), dns_names.into()),
    ]);
    step(id, CERTIFICATE, spec)
}

/// Whether `registry` can stand in front of an image name, such as `registry.example.com:5000/mirror`.
pub fn is_registry(registry: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '/');
    registry.chars().all(allowed)
        && !registry.contains("//")
        && !registry.starts_with('/')
        && !registry.ends_with('/')
        && !registry.is_empty()
}

fn step(id: &str, kind: &'static str, spec: Map<String, Value>) -> Step {
    Step { id: id.to_owned(), kind, spec: Value::Object(spec), after: Vec::new() }
}
