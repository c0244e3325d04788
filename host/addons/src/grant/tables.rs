//! The tables by which objects are judged, as they are read: each kind and each field has a verdict.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Fields and what they mean to the judge, one a line.
pub(super) const FIELDS_TEXT: &str = include_str!("fields.txt");
/// Kinds and what they mean to the judge, one a line.
pub(super) const KINDS_TEXT: &str = include_str!("kinds.txt");

/// What a kind means to the judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KindVerdict {
    /// Its fields are judged: those of this type.
    See(&'static str),
    /// Nobody reads it.
    Unread,
    /// It is nobody's.
    Never,
    /// By the rule for Calico's Installation.
    Installation,
}

/// What a field means to the judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldVerdict {
    pub verdict: Verdict,
    /// The type of what is in it, where that is judged field by field.
    pub see: Option<&'static str>,
}

/// What a field that is set needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Harmless,
    /// Nothing, and nor does what is in it.
    HarmlessWhole,
    /// Nothing grants it.
    Never,
    /// This name among the fields of Pods.
    PodField(&'static str),
    /// This name among the fields of other objects.
    Field(&'static str),
    /// The object of this kind that it names.
    Reference(&'static str),
    /// What a rule says.
    Rule(Rule),
}

macro_rules! rules {
    ($($name:ident $text:literal $needs:literal,)*) => {
        /// The rules that judge values of fields.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Rule { $(#[doc = $needs] $name,)* }

        impl Rule {
            fn parse(text: &str) -> Option<Rule> {
                match text { $($text => Some(Rule::$name),)* _ => None }
            }

            /// What a field needs that it judges, for readers.
            pub fn needs(self) -> &'static str {
                match self { $(Rule::$name => $needs,)* }
            }
        }
    };
}

rules! {
    Annotations "annotations" "`annotations`, for those of Kubernetes' domains; those of the operator are nobody's",
    AskedAbout "asked-about" "`webhooks`",
    AskedService "asked-service" "the Service that is asked, in `objects`; who is outside of the cluster is not asked",
    BoundRole "bound-role" "the role, in `objects` or `roles`",
    Capabilities "capabilities" "`pods.capabilities`",
    ClusterIp "cluster-ip" "`fields: [Service.clusterIP]`, unless it is `None`",
    FailurePolicy "failure-policy" "`fields: [Webhook.failurePolicy]`, unless it is `Ignore`",
    HostPath "host-path" "`pods.hostPaths`",
    Image "image" "`registries`",
    Labels "labels" "`labels`, for those of Kubernetes' domains; those of the operator and of the cluster's DNS are nobody's",
    MountPropagation "mount-propagation" "`pods.fields: [mountPropagation]` for `Bidirectional`",
    NodeLabels "node-labels" "`pods.nodeLabels`, or `pods.controlPlane`",
    NodeRequirements "node-requirements" "`pods.nodeLabels`, or `pods.controlPlane`, unless it keeps away from the control plane",
    Owners "owners" "the owner, in `objects`",
    PriorityClass "priority-class" "`pods.priorityClasses`",
    ProcMount "proc-mount" "`pods.fields: [procMount]`, unless it is `Default`",
    Profile "profile" "`pods.fields: [seccompProfile]` or `[appArmorProfile]`, unless it is `RuntimeDefault`",
    PullSecrets "pull-secrets" "`pullSecrets`, or the Secret in `objects` or `reads`",
    Reinvocation "reinvocation" "`fields: [Webhook.reinvocationPolicy]`, unless it is `Never`",
    Rights "rights" "`rights` and `urls`",
    Scheduler "scheduler" "`pods.fields: [schedulerName]`, unless it is `default-scheduler`",
    Secret "secret" "the Secret that it names, in `objects` or `reads`",
    SecretType "secret-type" "`fields: [Secret.serviceAccountToken]` and the service account in `objects` for a token; other types of Kubernetes but those for files, keys and passwords are nobody's",
    ServiceAccount "service-account" "the ServiceAccount in `objects`; `default` where none is named",
    ServiceType "service-type" "`fields: [Service.type.NodePort]` or `[Service.type.LoadBalancer]`; `ExternalName` is nobody's",
    StorageParameters "storage-parameters" "`fields: [StorageClass.secretParameters]` where one names a Secret",
    Subjects "subjects" "the ServiceAccounts in `objects`; users and groups are nobody's",
    TokenAudience "token-audience" "`pods.tokenAudiences`, unless it is for the API server by leaving it out",
    Tolerations "tolerations" "`pods.tolerations`, and `pods.controlPlane` for taints of the control plane",
    WebhookTimeout "webhook-timeout" "`fields: [Webhook.timeoutSeconds]` above 10 seconds",
}

static FIELDS: LazyLock<BTreeMap<&'static str, BTreeMap<&'static str, FieldVerdict>>> = LazyLock::new(|| {
    let mut res: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for (name, text) in lines(FIELDS_TEXT) {
        if let (Some((of, field)), Some(verdict)) = (name.split_once('.'), field_verdict(text)) {
            res.entry(of).or_default().insert(field, verdict);
        }
    }
    res
});

static KINDS: LazyLock<BTreeMap<(&'static str, &'static str), KindVerdict>> = LazyLock::new(|| {
    let one = |(name, text)| Some((group_and_kind(name), kind_verdict(text)?));
    lines(KINDS_TEXT).filter_map(one).collect()
});

/// What is in a table: names, and what is said of each.
pub(super) fn lines(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let said = table.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    said.filter_map(|line| line.split_once("  ")).map(|(name, text)| (name.trim(), text.trim()))
}

/// Of a name in the table of kinds.
pub(super) fn group_and_kind(name: &'static str) -> (&'static str, &'static str) {
    name.split_once('/').unwrap_or(("", name))
}

/// What is said of a kind, if it can be understood.
pub(super) fn kind_verdict(text: &'static str) -> Option<KindVerdict> {
    match text {
        "unread" => Some(KindVerdict::Unread),
        "never" => Some(KindVerdict::Never),
        "rule installation" => Some(KindVerdict::Installation),
        _ => text.strip_prefix("see ").map(KindVerdict::See),
    }
}

/// What is said of a field, if it can be understood.
pub(super) fn field_verdict(text: &'static str) -> Option<FieldVerdict> {
    let (first, see) = match text.split_once(", ") {
        Some((first, rest)) => (first, Some(rest.strip_prefix("see ")?)),
        None => (text, None),
    };
    let verdict = match first.split_once(' ') {
        None if first == "harmless" => Verdict::Harmless,
        None if first == "never" => Verdict::Never,
        Some(("harmless", "with all in it")) => Verdict::HarmlessWhole,
        Some(("see", of)) => return Some(FieldVerdict { verdict: Verdict::Harmless, see: Some(of) }),
        Some(("pods.fields", name)) => Verdict::PodField(name),
        Some(("fields", name)) => Verdict::Field(name),
        Some(("reference", kind)) => Verdict::Reference(kind),
        Some(("rule", name)) => Verdict::Rule(Rule::parse(name)?),
        _ => return None,
    };
    Some(FieldVerdict { verdict, see })
}

/// The verdict on a field of a type; `None` where the table does not know it.
pub(super) fn field(of: &str, name: &str) -> Option<FieldVerdict> {
    FIELDS.get(of)?.get(name).copied()
}

/// Whether a type has a field of this name.
pub(super) fn is_field(of: &str, name: &str) -> bool {
    field(of, name).is_some()
}

/// The verdict on a kind; `None` for custom resources.
pub(super) fn kind(group: &str, kind: &str) -> Option<KindVerdict> {
    KINDS.iter().find(|(known, _)| **known == (group, kind)).map(|(_, verdict)| *verdict)
}
