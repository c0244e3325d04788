//! Condition types and reasons. Those of infrastructure are CAPA's words where CAPA has one.

/// Words with their documentation, from which `docs/conditions.md` is made.
macro_rules! words {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal;)*) => {
        $($(#[doc = $doc])+ pub const $name: &str = $text;)*
        /// All of them, each with what it means.
        pub const ALL: &[(&str, &str)] = &[$(($text, concat!($($doc),+))),*];
    };
}

/// Everything is as it should be.
pub const READY: &str = "Ready";
/// Nothing is done, because the object or its Cluster is paused.
pub const PAUSED: &str = "Paused";

/// Condition types of AWSCluster besides `Ready` and `Paused`.
pub mod cluster {
    words! {
        /// The VPC and its attributes.
        VPC_READY = "VpcReady";
        /// The subnets.
        SUBNETS_READY = "SubnetsReady";
        /// The internet gateway.
        INTERNET_GATEWAY_READY = "InternetGatewayReady";
        /// The NAT gateways and their addresses.
        NAT_GATEWAYS_READY = "NatGatewaysReady";
        /// The route tables.
        ROUTE_TABLES_READY = "RouteTablesReady";
        /// The security groups and their rules.
        CLUSTER_SECURITY_GROUPS_READY = "ClusterSecurityGroupsReady";
        /// The load balancer of the API.
        LOAD_BALANCER_READY = "LoadBalancerReady";
        /// The issuer of service account tokens is published, and API servers use it.
        SERVICE_ACCOUNT_ISSUER_READY = "ServiceAccountIssuerReady";
    }
}

/// Condition types of AWSMachine besides `Ready` and `Paused`.
pub mod machine {
    words! {
        /// The instance runs.
        INSTANCE_READY = "InstanceReady";
        /// The instance has its security groups.
        SECURITY_GROUPS_READY = "SecurityGroupsReady";
        /// The instance is a target of the API's load balancer (control plane machines only).
        ELB_ATTACHED = "ELBAttached";
    }
}

/// Condition types of ClusterPlugin besides `Ready` and `Paused`.
pub mod cluster_plugin {
    words! {
        /// The cloud provider works.
        CLOUD_PROVIDER_READY = "CloudProviderReady";
        /// Pods can talk to each other.
        NETWORKING_READY = "NetworkingReady";
        /// Volumes can be made.
        STORAGE_READY = "StorageReady";
        /// Ingresses are served.
        INGRESS_READY = "IngressReady";
        /// The plugins of third parties beside the slots run.
        PLUGINS_READY = "PluginsReady";
        /// Something is being installed, changed or removed.
        PROGRESSING = "Progressing";
        /// The add-ons support the Kubernetes version that the cluster is to have. It says so before an upgrade, and is no part
        /// of `Ready`.
        KUBERNETES_UPGRADE_READY = "KubernetesUpgradeReady";
    }
}

/// Reasons. What exactly is awaited, and who has to act, is in the message. They are API: none is ever
/// renamed.
pub mod reason {
    words! {
        /// It is as it should be.
        READY = "Ready";
        /// It is not as it should be yet; nobody has to act.
        NOT_READY = "NotReady";
        /// It is being made.
        CREATING = "Creating";
        /// It is being changed.
        UPDATING = "Updating";
        /// It is being deleted.
        DELETING = "Deleting";
        /// It is deleted.
        DELETED = "Deleted";
        /// The object or its Cluster is paused.
        PAUSED = "Paused";
        /// The object or its Cluster is not paused.
        NOT_PAUSED = "NotPaused";
        /// Nothing of that kind was asked for.
        NOT_REQUESTED = "NotRequested";
        /// Something stands in the way; the message names it and who can move it.
        BLOCKED = "Blocked";
        /// A resource is there that is not ours and has the place of ours.
        NOT_OWNED = "NotOwned";
        /// A resource that was recorded is gone.
        LOST = "Lost";
        /// A field was changed that AWS cannot change.
        IMMUTABLE = "Immutable";
        /// Two resources have the place of one.
        AMBIGUOUS = "Ambiguous";
        /// The spec cannot be carried out.
        INVALID_SPEC = "InvalidSpec";
        /// AWS refused a call for want of permission.
        ACCESS_DENIED = "AccessDenied";
        /// There are no usable AWS credentials.
        CREDENTIALS_UNAVAILABLE = "CredentialsUnavailable";
        /// A quota of the AWS account is reached.
        QUOTA_EXCEEDED = "QuotaExceeded";
        /// AWS has no capacity for the instance type in the zone.
        INSUFFICIENT_CAPACITY = "InsufficientCapacity";
        /// AWS asks for fewer calls.
        THROTTLED = "Throttled";
        /// AWS or an API server does not answer.
        UNREACHABLE = "Unreachable";
        /// AWS refused a call for another reason.
        AWS_ERROR = "AWSError";
        /// The Cluster that owns the object is not there yet.
        WAITING_FOR_CLUSTER = "WaitingForCluster";
        /// The Machine that owns the object is not there yet.
        WAITING_FOR_MACHINE = "WaitingForMachine";
        /// The infrastructure of the cluster is not provisioned yet.
        WAITING_FOR_CLUSTER_INFRASTRUCTURE = "WaitingForClusterInfrastructure";
        /// Bootstrap data is not there yet.
        WAITING_FOR_BOOTSTRAP_DATA = "WaitingForBootstrapData";
        /// The control plane is not initialized, or not ready, yet.
        WAITING_FOR_CONTROL_PLANE = "WaitingForControlPlane";
        /// Machines of the cluster are still there.
        WAITING_FOR_MACHINES = "WaitingForMachines";
        /// Add-ons are still being removed.
        WAITING_FOR_PLUGINS = "WaitingForPlugins";
        /// The load balancer has no host name yet.
        WAIT_FOR_DNS_NAME = "WaitForDNSName";
        /// The load balancer's host name does not resolve yet.
        WAIT_FOR_DNS_NAME_RESOLVE = "WaitForDNSNameResolve";
        /// The instance is starting.
        INSTANCE_NOT_READY = "InstanceNotReady";
        /// The instance is stopped or stopping.
        INSTANCE_STOPPED = "InstanceStopped";
        /// The instance is terminated or being terminated.
        INSTANCE_TERMINATED = "InstanceTerminated";
        /// The instance that was recorded is not there.
        INSTANCE_NOT_FOUND = "InstanceNotFound";
        /// Another ClusterPlugin is for the same cluster.
        DUPLICATE = "Duplicate";
        /// The plugin said that its configuration is wrong.
        INVALID_CONFIGURATION = "InvalidConfiguration";
        /// The plugin said that this cluster is not supported.
        UNSUPPORTED = "Unsupported";
        /// Another manager owns a field, and `conflicts` is Refuse.
        CONFLICT = "Conflict";
        /// Somebody changed what an add-on applied, and it is not set back: `drift` is Warn, or they did so
        /// again and again.
        DRIFT = "Drift";
        /// This operator brings another version, or another build, of the add-on than the one that is
        /// installed, which stays until somebody consents to the upgrade.
        UPGRADE_AVAILABLE = "UpgradeAvailable";
        /// An upgrade of the add-on was not whole within `spec.upgradeTimeout`, and what was installed before was
        /// put back. It is tried again when somebody asks for it by its digest.
        UPGRADE_UNDONE = "UpgradeUndone";
        /// `spec.approval` is Manual, and a plan of the add-on waits until somebody approves of it by its digest.
        APPROVAL_REQUIRED = "ApprovalRequired";
        /// The version of the add-on that is asked for is neither installed nor brought by this operator.
        VERSION_NOT_AVAILABLE = "VersionNotAvailable";
        /// The installed version of an add-on does not support the Kubernetes version that the cluster is to have, and
        /// what this operator brings does: upgrade the add-on first.
        UPGRADE_ADD_ON_FIRST = "UpgradeAddOnFirst";
        /// An add-on does not support the Kubernetes version of the cluster, or the one that it is to have, and nothing
        /// that this operator brings does.
        UNSUPPORTED_KUBERNETES_VERSION = "UnsupportedKubernetesVersion";
        /// An add-on that nobody asks for any more stays, because the cluster would not work without it.
        KEPT = "Kept";
        /// An add-on that nobody asks for any more stays as long as something uses it.
        IN_USE = "InUse";
        /// The time to remove add-ons is over; the rest goes with the machines.
        DELETION_TIMED_OUT = "DeletionTimedOut";
        /// What is awaited takes longer than it should; it is awaited nevertheless.
        WAIT_TIMED_OUT = "WaitTimedOut";
        /// The role can be assumed, and allows what is needed.
        ROLE_READY = "RoleReady";
        /// The ARN is not that of a role, or is of another partition.
        INVALID_ROLE_ARN = "InvalidRoleARN";
        /// There is no such role, or an instance profile has none.
        ROLE_NOT_FOUND = "RoleNotFound";
        /// The role is in an account whose roles cannot be read; it is used unchecked.
        ROLE_IN_OTHER_ACCOUNT = "RoleInOtherAccount";
        /// The trust policy does not let those assume the role who have to.
        TRUST_POLICY_DENIES = "TrustPolicyDenies";
        /// The trust policy has something that cannot be judged, such as a condition on what only AWS knows.
        TRUST_POLICY_UNCLEAR = "TrustPolicyUnclear";
        /// IAM has no OIDC provider for the cluster's issuer.
        PROVIDER_NOT_FOUND = "OIDCProviderNotFound";
        /// The OIDC provider is of another issuer, or does not list the audience of the tokens among its
        /// client ids.
        PROVIDER_MISMATCH = "OIDCProviderMismatch";
        /// Policies do not allow all actions that are needed.
        PERMISSIONS_MISSING = "PermissionsMissing";
        /// A policy could not be judged, so the role may allow more or less than it seems to.
        POLICY_UNCLEAR = "PolicyUnclear";
        /// A read failed, or what is read changed meanwhile; it is read again.
        READ_FAILED = "ReadFailed";
        /// The file system can be mounted in every zone of the cluster.
        FILE_SYSTEM_READY = "FileSystemReady";
        /// The file system does not exist in the cluster's region.
        FILE_SYSTEM_NOT_FOUND = "FileSystemNotFound";
        /// The file system is being made or deleted.
        FILE_SYSTEM_NOT_AVAILABLE = "FileSystemNotAvailable";
        /// The file system has mount targets, but in another VPC than the cluster's.
        FILE_SYSTEM_IN_OTHER_VPC = "FileSystemInOtherVPC";
        /// A zone of the cluster has no mount target of the file system: make one.
        MOUNT_TARGETS_MISSING = "MountTargetsMissing";
        /// Mount targets of the file system are being made.
        MOUNT_TARGETS_CREATING = "MountTargetsCreating";
        /// The issuer's documents are public, IAM trusts it, and API servers use it.
        ISSUER_PUBLISHED = "IssuerPublished";
        /// The issuer's documents are being written.
        ISSUER_PUBLISHING = "IssuerPublishing";
        /// The issuer is one that a user publishes, and it is as it should be.
        ISSUER_FOUND = "IssuerFound";
        /// The key that signs service account tokens is not there yet.
        WAITING_FOR_SIGNING_KEY = "WaitingForSigningKey";
        /// The key that signs service account tokens is none that AWS takes.
        SIGNING_KEY_UNUSABLE = "SigningKeyUnusable";
        /// A document that another cluster or somebody else wrote has the place of the issuer's.
        DOCUMENT_NOT_OURS = "DocumentNotOurs";
        /// Another cluster publishes this issuer.
        ISSUER_TAKEN = "IssuerTaken";
        /// API servers have another issuer than the AWSCluster names.
        ISSUER_ARGUMENT_MISMATCH = "IssuerArgumentMismatch";
        /// A document or provider could not be written.
        WRITE_FAILED = "WriteFailed";
        /// The issuer that the AWSCluster names cannot be one.
        INVALID_ISSUER = "InvalidIssuer";
        /// What was published could not be taken away yet.
        ISSUER_NOT_RETRACTED = "IssuerNotRetracted";
        /// It is not known which issuer signs service account tokens; the message says what to set.
        ISSUER_UNKNOWN = "IssuerUnknown";
        /// The record of an add-on in the cluster is not the one that was written; its removal does nothing
        /// that is not granted.
        RECORD_DENIED = "RecordDenied";
        /// What would have to be recorded of an add-on in its cluster is larger than a record may be; nothing of it was
        /// applied.
        RECORD_TOO_LARGE = "RecordTooLarge";
        /// What add-ons need of one another leads back to where it begins; the message names them.
        CIRCULAR_REQUIREMENTS = "CircularRequirements";
        /// An add-on needs another one, or a capability, that nobody asks for.
        REQUIREMENT_MISSING = "RequirementMissing";
        /// The add-on waits until another one runs that it needs.
        WAITING_FOR_ADD_ON = "WaitingForAddOn";
        /// No plugin of this name comes with the operator.
        PLUGIN_MISSING = "PluginMissing";
        /// There is no PluginModule of this name, or it is being deleted. An administrator registers it.
        MODULE_NOT_FOUND = "ModuleNotFound";
        /// The PluginModule may not be used in this namespace: its `allowedNamespaces` say in which.
        MODULE_NOT_ALLOWED = "ModuleNotAllowed";
        /// The component of the PluginModule cannot be used; its status says why.
        MODULE_NOT_READY = "ModuleNotReady";
        /// The plugin asks for more than it is granted: an administrator grants it, or names another component.
        PENDING_APPROVAL = "PendingApproval";
        /// The component is not where the PluginModule says.
        COMPONENT_NOT_FOUND = "ComponentNotFound";
        /// The component is another one than the digest says.
        DIGEST_MISMATCH = "DigestMismatch";
        /// The component could not be read; it is tried again.
        PULL_FAILED = "PullFailed";
        /// The registry refuses the credentials, or wants some.
        REGISTRY_DENIED = "RegistryDenied";
        /// There is no valid signature by the key of the PluginModule.
        SIGNATURE_INVALID = "SignatureInvalid";
        /// The plugin asks for facts that this host does not answer.
        NEEDS_DENIED = "NeedsDenied";
        /// What the plugin asks for is no question: of no form that a query has, under the key of a fact, or two under
        /// one key.
        NEEDS_INVALID = "NeedsInvalid";
        /// The plugin asks again for what it was just told.
        NEEDS_REPEATED = "NeedsRepeated";
        /// The plugin still asks for more after five answers.
        NEEDS_UNRESOLVED = "NeedsUnresolved";
        /// The plan asks for something that was not granted; the message names the step.
        PLAN_DENIED = "PlanDenied";
        /// The plan contradicts itself.
        PLAN_INVALID = "PlanInvalid";
        /// The plugin says that it has a defect.
        PLUGIN_FAILED = "PluginFailed";
        /// The API server of the cluster refused an object of the add-on.
        APPLY_REFUSED = "ApplyRefused";
        /// A serving certificate could not be made or written.
        CERTIFICATE_FAILED = "CertificateFailed";
        /// The plugin is no WebAssembly component.
        INVALID_COMPONENT = "InvalidComponent";
        /// The plugin is larger than a component may be.
        COMPONENT_TOO_LARGE = "ComponentTooLarge";
        /// The plugin imports something that plugins are not given.
        IMPORTS_REFUSED = "ImportsRefused";
        /// The plugin is of a version of the contract that this host does not speak.
        CONTRACT_UNSUPPORTED = "ContractUnsupported";
        /// The plugin trapped.
        PLUGIN_TRAPPED = "PluginTrapped";
        /// The plugin used up its stack.
        PLUGIN_STACK_OVERFLOW = "PluginStackOverflow";
        /// The plugin used up its instructions.
        PLUGIN_OUT_OF_FUEL = "PluginOutOfFuel";
        /// The plugin took too long by the clock; it is tried again.
        PLUGIN_RAN_TOO_LONG = "PluginRanTooLong";
        /// The plugin used up its memory.
        PLUGIN_OUT_OF_MEMORY = "PluginOutOfMemory";
        /// The plugin wrote more into the log than it may.
        PLUGIN_LOG_FLOOD = "PluginLogFlood";
        /// The plan is larger than is taken.
        PLAN_TOO_LARGE = "PlanTooLarge";
        /// The plan has more values than are taken.
        PLAN_TOO_MANY_VALUES = "PlanTooManyValues";
        /// The plugin's answer has not the shape that the contract says.
        PLUGIN_MALFORMED_ANSWER = "PluginMalformedAnswer";
        /// A text of the plugin's answer is no JSON.
        PLUGIN_INVALID_JSON = "PluginInvalidJSON";
        /// The plan is none: a step twice, a circle, a field that is not known.
        INVALID_PLAN = "InvalidPlan";
        /// The plugin described itself differently when it was asked again.
        PLUGIN_INCONSISTENT = "PluginInconsistent";
        /// Compiling the plugin needs more memory than it may.
        PLUGIN_COMPILER_OUT_OF_MEMORY = "PluginCompilerOutOfMemory";
        /// Compiling the plugin took longer than it may; it is tried again.
        PLUGIN_COMPILER_RAN_TOO_LONG = "PluginCompilerRanTooLong";
        /// The compiler crashed on the plugin; it is tried again.
        PLUGIN_COMPILER_CRASHED = "PluginCompilerCrashed";
        /// What the compiler made of the plugin cannot be read; it is tried again.
        PLUGIN_COMPILER_ANSWER_UNREADABLE = "PluginCompilerAnswerUnreadable";
        /// The plugin is larger than it may be once it is compiled.
        PLUGIN_CODE_TOO_LARGE = "PluginCodeTooLarge";
        /// The schema of the plugin's configuration could take too much to read or to check by; the message says what.
        CONFIG_SCHEMA_REFUSED = "ConfigSchemaRefused";
        /// The schema of the plugin's configuration is none.
        INVALID_CONFIG_SCHEMA = "InvalidConfigSchema";
        /// The host could not run the plugin; it is tried again.
        PLUGIN_HOST_FAILED = "PluginHostFailed";
    }
}

/// The page `docs/conditions.md`.
pub fn page() -> String {
    let rows = |words: &[(&str, &str)]| {
        words.iter().map(|(word, doc)| format!("| `{word}` |{doc} |\n")).collect::<String>()
    };
    let mut res = String::from(
        "# Conditions\n\n\
         What the conditions of each object are about, and why they are as they are. Types and reasons are API: none is ever renamed. The message of a\n\
         condition names what exactly is awaited, and who has to act.\n\n\
         Every object has `Ready`, which is the sum of the others, and `Paused`.\n",
    );
    for (kind, types) in
        [("AWSCluster", cluster::ALL), ("AWSMachine", machine::ALL), ("ClusterPlugin", cluster_plugin::ALL)]
    {
        res += &format!("\n## Types of {kind}\n\n| type | what it is about |\n|---|---|\n{}", rows(types));
    }
    res + "\n## Reasons\n\n| reason | what it means |\n|---|---|\n" + &rows(reason::ALL)
}
