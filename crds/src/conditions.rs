//! Condition types and reasons. Those of infrastructure are CAPA's words where CAPA has one.
//! It never decides which holds; that is computed from what is planned and seen.

/// Everything is as it should be.
pub const READY: &str = "Ready";
/// Nothing is done, because the object or its Cluster is paused.
pub const PAUSED: &str = "Paused";

/// Condition types of AWSCluster besides `Ready` and `Paused`.
pub mod cluster {
    /// The VPC and its attributes.
    pub const VPC_READY: &str = "VpcReady";
    /// The subnets.
    pub const SUBNETS_READY: &str = "SubnetsReady";
    /// The internet gateway.
    pub const INTERNET_GATEWAY_READY: &str = "InternetGatewayReady";
    /// The NAT gateways and their addresses.
    pub const NAT_GATEWAYS_READY: &str = "NatGatewaysReady";
    /// The route tables.
    pub const ROUTE_TABLES_READY: &str = "RouteTablesReady";
    /// The security groups and their rules.
    pub const CLUSTER_SECURITY_GROUPS_READY: &str = "ClusterSecurityGroupsReady";
    /// The load balancer of the API.
    pub const LOAD_BALANCER_READY: &str = "LoadBalancerReady";
    /// The issuer of service account tokens is published, and API servers use it.
    pub const SERVICE_ACCOUNT_ISSUER_READY: &str = "ServiceAccountIssuerReady";
}

/// Condition types of AWSMachine besides `Ready` and `Paused`.
pub mod machine {
    /// The instance runs.
    pub const INSTANCE_READY: &str = "InstanceReady";
    /// The instance has its security groups.
    pub const SECURITY_GROUPS_READY: &str = "SecurityGroupsReady";
    /// The instance is a target of the API's load balancer (control plane machines only).
    pub const ELB_ATTACHED: &str = "ELBAttached";
}

/// Condition types of ClusterPlugin besides `Ready` and `Paused`.
pub mod cluster_plugin {
    /// The cloud provider works.
    pub const CLOUD_PROVIDER_READY: &str = "CloudProviderReady";
    /// Pods can talk to each other.
    pub const NETWORKING_READY: &str = "NetworkingReady";
    /// Volumes can be made.
    pub const STORAGE_READY: &str = "StorageReady";
    /// Ingresses are served.
    pub const INGRESS_READY: &str = "IngressReady";
    /// Something is being installed, changed or removed.
    pub const PROGRESSING: &str = "Progressing";
}

/// Reasons. What exactly is awaited, and who has to act, is in the message.
pub mod reason {
    /// It is as it should be.
    pub const READY: &str = "Ready";
    /// It is not as it should be yet; nobody has to act.
    pub const NOT_READY: &str = "NotReady";
    /// It is being made.
    pub const CREATING: &str = "Creating";
    /// It is being changed.
    pub const UPDATING: &str = "Updating";
    /// It is being deleted.
    pub const DELETING: &str = "Deleting";
    /// It is deleted.
    pub const DELETED: &str = "Deleted";
    /// The object or its Cluster is paused.
    pub const PAUSED: &str = "Paused";
    /// The object or its Cluster is not paused.
    pub const NOT_PAUSED: &str = "NotPaused";
    /// Nothing of that kind was asked for.
    pub const NOT_REQUESTED: &str = "NotRequested";

    /// Something stands in the way; the message names it and who can move it.
    pub const BLOCKED: &str = "Blocked";
    /// A resource is there that is not ours and has the place of ours.
    pub const NOT_OWNED: &str = "NotOwned";
    /// A resource that was recorded is gone.
    pub const LOST: &str = "Lost";
    /// A field was changed that AWS cannot change.
    pub const IMMUTABLE: &str = "Immutable";
    /// Two resources have the place of one.
    pub const AMBIGUOUS: &str = "Ambiguous";
    /// The spec cannot be carried out.
    pub const INVALID_SPEC: &str = "InvalidSpec";

    /// AWS refused a call for want of permission.
    pub const ACCESS_DENIED: &str = "AccessDenied";
    /// There are no usable AWS credentials.
    pub const CREDENTIALS_UNAVAILABLE: &str = "CredentialsUnavailable";
    /// A quota of the AWS account is reached.
    pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
    /// AWS has no capacity for the instance type in the zone.
    pub const INSUFFICIENT_CAPACITY: &str = "InsufficientCapacity";
    /// AWS asks for fewer calls.
    pub const THROTTLED: &str = "Throttled";
    /// AWS or an API server does not answer.
    pub const UNREACHABLE: &str = "Unreachable";
    /// AWS refused a call for another reason.
    pub const AWS_ERROR: &str = "AWSError";

    /// The Cluster that owns the object is not there yet.
    pub const WAITING_FOR_CLUSTER: &str = "WaitingForCluster";
    /// The Machine that owns the object is not there yet.
    pub const WAITING_FOR_MACHINE: &str = "WaitingForMachine";
    /// The infrastructure of the cluster is not provisioned yet.
    pub const WAITING_FOR_CLUSTER_INFRASTRUCTURE: &str = "WaitingForClusterInfrastructure";
    /// Bootstrap data is not there yet.
    pub const WAITING_FOR_BOOTSTRAP_DATA: &str = "WaitingForBootstrapData";
    /// The control plane is not initialized, or not ready, yet.
    pub const WAITING_FOR_CONTROL_PLANE: &str = "WaitingForControlPlane";
    /// Machines of the cluster are still there.
    pub const WAITING_FOR_MACHINES: &str = "WaitingForMachines";
    /// Add-ons are still being removed.
    pub const WAITING_FOR_PLUGINS: &str = "WaitingForPlugins";
    /// The load balancer has no host name yet.
    pub const WAIT_FOR_DNS_NAME: &str = "WaitForDNSName";
    /// The load balancer's host name does not resolve yet.
    pub const WAIT_FOR_DNS_NAME_RESOLVE: &str = "WaitForDNSNameResolve";

    /// The instance is starting.
    pub const INSTANCE_NOT_READY: &str = "InstanceNotReady";
    /// The instance is stopped or stopping.
    pub const INSTANCE_STOPPED: &str = "InstanceStopped";
    /// The instance is terminated or being terminated.
    pub const INSTANCE_TERMINATED: &str = "InstanceTerminated";
    /// The instance that was recorded is not there.
    pub const INSTANCE_NOT_FOUND: &str = "InstanceNotFound";

    /// Another ClusterPlugin is for the same cluster.
    pub const DUPLICATE: &str = "Duplicate";
    /// The plugin said that its configuration is wrong.
    pub const INVALID_CONFIGURATION: &str = "InvalidConfiguration";
    /// The plugin said that this cluster is not supported.
    pub const UNSUPPORTED: &str = "Unsupported";
    /// Another manager owns a field, and `conflicts` is Refuse.
    pub const CONFLICT: &str = "Conflict";
    /// Somebody changed what an add-on applied, and it is not set back: `drift` is Warn, or they did so again and again.
    pub const DRIFT: &str = "Drift";
    /// This operator brings a newer version of the add-on than the one that is installed, which stays.
    pub const UPGRADE_AVAILABLE: &str = "UpgradeAvailable";
    /// The plan asks for something that was not granted.
    pub const NOT_GRANTED: &str = "NotGranted";
    /// The plugin trapped or returned nonsense.
    pub const PLUGIN_FAILED: &str = "PluginFailed";
    /// The plugin used up its instructions.
    pub const OUT_OF_FUEL: &str = "OutOfFuel";
    /// The plugin used up its memory.
    pub const OUT_OF_MEMORY: &str = "OutOfMemory";
    /// The plugin returned more than is taken.
    pub const OUTPUT_TOO_LARGE: &str = "OutputTooLarge";
    /// An add-on that nobody asks for any more stays, because the cluster would not work without it.
    pub const KEPT: &str = "Kept";
    /// An add-on that nobody asks for any more stays as long as something uses it.
    pub const IN_USE: &str = "InUse";
    /// The time to remove add-ons is over; the rest goes with the machines.
    pub const DELETION_TIMED_OUT: &str = "DeletionTimedOut";
    /// What is awaited takes longer than it should; it is awaited nevertheless.
    pub const WAIT_TIMED_OUT: &str = "WaitTimedOut";
}
