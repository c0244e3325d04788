//! Fields and values of CAPA's API that are not carried out here, and what to use instead. They are declared
//! so that a value in a manifest is seen and refused, and never silently dropped. Whatever equals CAPA's
//! default is accepted.

use serde_json::{Value, json};

use crate::schema::Spec;

/// A field that is refused unless its value is CAPA's default.
pub struct Refused {
    /// Path below the spec.
    path: &'static str,
    shape: Shape,
    /// CEL on the field's value (`self`): what is accepted.
    accepted: &'static str,
    /// Why, or what to use.
    why: &'static str,
}

/// What a refused field looks like.
enum Shape {
    /// It is a field of the Rust types; only some of its values are refused.
    Declared,
    Text,
    Flag,
    Number,
    /// Any object.
    Object,
    /// Texts.
    Texts,
    /// Any objects.
    Objects,
    /// Text to text.
    Map,
    /// An object with these fields, each of the OpenAPI type beside it.
    Fields(&'static [(&'static str, &'static str)]),
    /// These fields, of which only the flag `enabled` matters.
    Bastion,
}

const NEVER: &str = "false";
const NONE_SET: &str = "size(self) == 0";
const OFF: &str = "!self";
const EMPTY: &str = "self == ''";

use Shape::{Bastion, Declared, Fields, Flag, Map, Number, Object, Objects, Text, Texts};

const fn field(path: &'static str, shape: Shape, accepted: &'static str, why: &'static str) -> Refused {
    Refused { path, shape, accepted, why }
}

const EDGE: &str = "only subnets in availability zones are";
const IPV6: &str = "only IPv4 is";
/// Those of the health check that is made.
const HEALTH_CHECK: &str = "(!has(self.intervalSeconds) || self.intervalSeconds == 5) && (!has(self.timeoutSeconds) || self.timeoutSeconds == 4) \
     && (!has(self.thresholdCount) || self.thresholdCount == 2) && (!has(self.unhealthyThresholdCount) || self.unhealthyThresholdCount == 6)";
const HEALTH_CHECK_FIELDS: &[(&str, &str)] = &[
    ("intervalSeconds", "integer"),
    ("timeoutSeconds", "integer"),
    ("thresholdCount", "integer"),
    ("unhealthyThresholdCount", "integer"),
];
const DNS_NAME: &str = "!has(self.hostnameType) && !has(self.enableResourceNameDnsARecord) && !has(self.enableResourceNameDnsAAAARecord)";
const DNS_NAME_FIELDS: &[(&str, &str)] = &[
    ("hostnameType", "string"),
    ("enableResourceNameDnsARecord", "boolean"),
    ("enableResourceNameDnsAAAARecord", "boolean"),
];
const GROUP: &str = "only node, controlplane, apiserver-lb and lb are";
const IMAGE: &str =
    "use ami.id, or the image lookup: imageLookupFormat, imageLookupOrg and imageLookupBaseOS";
const NAMESPACE: &str = "run the operator with --namespace to restrict it to one namespace";
/// A selector that says nothing, which is how CAPA stores one that was not set.
const NO_SELECTOR: &str = "(!has(self.matchLabels) || size(self.matchLabels) == 0) && (!has(self.matchExpressions) || size(self.matchExpressions) == 0)";

/// Of AWSCluster and AWSClusterTemplate.
pub const CLUSTER: &[Refused] = &[
    field(
        "identityRef",
        Declared,
        "self.kind == 'AWSClusterControllerIdentity' && self.name == 'default'",
        "AWSClusterRoleIdentity and AWSClusterStaticIdentity are not; leave it out, and the operator's own AWS identity is used",
    ),
    field(
        "bastion",
        Bastion,
        "!has(self.enabled) || !self.enabled",
        "use AWS Systems Manager Session Manager to reach machines",
    ),
    field("associateOIDCProvider", Flag, OFF, "use spec.serviceAccountIssuer.publish"),
    field(
        "s3Bucket",
        Object,
        NEVER,
        "bootstrap data goes through AWS Secrets Manager, for machines that run cloud-init; an OIDC issuer is published by \
         spec.serviceAccountIssuer.publish",
    ),
    field(
        "secondaryControlPlaneLoadBalancer",
        Object,
        NEVER,
        "a cluster has one load balancer, spec.controlPlaneLoadBalancer",
    ),
    field(
        "controlPlaneLoadBalancer.loadBalancerType",
        Declared,
        "self in ['classic', 'nlb', 'disabled']",
        "only classic, nlb and disabled are",
    ),
    field(
        "controlPlaneLoadBalancer.subnets",
        Texts,
        NONE_SET,
        "the subnets follow from the scheme, one for each availability zone",
    ),
    field(
        "controlPlaneLoadBalancer.healthCheck",
        Fields(HEALTH_CHECK_FIELDS),
        HEALTH_CHECK,
        "only the protocol can be chosen, with healthCheckProtocol",
    ),
    field("controlPlaneLoadBalancer.additionalSecurityGroups", Texts, NONE_SET, "use ingressRules"),
    field(
        "controlPlaneLoadBalancer.additionalListeners",
        Objects,
        NONE_SET,
        "the load balancer serves the API alone",
    ),
    field("controlPlaneLoadBalancer.disableHostsRewrite", Flag, OFF, "it has no effect in CAPA either"),
    field(
        "controlPlaneLoadBalancer.preserveClientIP",
        Flag,
        OFF,
        "API servers see the load balancer's addresses",
    ),
    field("controlPlaneLoadBalancer.targetGroupIPType", Text, "self in ['', 'ipv4']", IPV6),
    field(
        "controlPlaneLoadBalancer.ingressRules[].sourceSecurityGroupRoles[]",
        Declared,
        "!(self in ['bastion', 'node-eks-additional'])",
        GROUP,
    ),
    field(
        "network.additionalControlPlaneIngressRules[].sourceSecurityGroupRoles[]",
        Declared,
        "!(self in ['bastion', 'node-eks-additional'])",
        GROUP,
    ),
    field(
        "network.additionalNodeIngressRules[].sourceSecurityGroupRoles[]",
        Declared,
        "!(self in ['bastion', 'node-eks-additional'])",
        GROUP,
    ),
    field(
        "network.securityGroupOverrides",
        Map,
        NONE_SET,
        "the cluster's own security groups are used; add rules to them",
    ),
    field("network.vpc.secondaryCidrBlocks", Objects, NONE_SET, "use a cidrBlock that is large enough"),
    field("network.vpc.ipamPool", Object, NEVER, "use cidrBlock"),
    field("network.vpc.ipv6", Object, NEVER, IPV6),
    field("network.vpc.carrierGatewayId", Text, EMPTY, EDGE),
    field(
        "network.vpc.emptyRoutesDefaultVPCSecurityGroup",
        Flag,
        OFF,
        "the VPC's default security group is left as AWS made it, and is used by nothing",
    ),
    field(
        "network.vpc.privateDnsHostnameTypeOnLaunch",
        Text,
        "self in ['', 'ip-name']",
        "only ip-name is, which names of Nodes follow",
    ),
    field("network.vpc.elasticIpPool", Object, NEVER, "public addresses come from Amazon's pool"),
    field(
        "network.vpc.subnetSchema",
        Text,
        "self in ['', 'PreferPrivate']",
        "only PreferPrivate is; list subnets to lay them out otherwise",
    ),
    field("network.subnets[].ipv6CidrBlock", Text, EMPTY, IPV6),
    field("network.subnets[].isIpv6", Flag, OFF, IPV6),
    field("network.subnets[].zoneType", Text, "self in ['', 'availability-zone']", EDGE),
    field("network.subnets[].parentZoneName", Text, EMPTY, EDGE),
];

/// Of AWSMachine and AWSMachineTemplate.
pub const MACHINE: &[Refused] = &[
    field("ami.eksLookupType", Text, EMPTY, "use ami.id or the image lookup"),
    field("ami.filters", Objects, NONE_SET, IMAGE),
    field("ami.ownerIDs", Texts, NONE_SET, IMAGE),
    field("cloudInit.secureSecretsBackend", Declared, "self == 'secrets-manager'", "only secrets-manager is"),
    field("ignition", Object, NEVER, "use an image that runs cloud-init"),
    field("spotMarketOptions", Object, NEVER, "only On-Demand Instances are"),
    field("marketType", Text, "self in ['', 'OnDemand']", "only OnDemand is"),
    field("capacityReservationId", Text, EMPTY, "instances use open capacity reservations that match"),
    field("capacityReservationPreference", Text, "self in ['', 'Open']", "only Open is"),
    field("tenancy", Text, "self in ['', 'default']", "only default, shared tenancy, is"),
    field("hostID", Text, EMPTY, "only shared tenancy is"),
    field("hostAffinity", Text, "self in ['', 'default']", "only shared tenancy is"),
    field("dynamicHostAllocation", Object, NEVER, "only shared tenancy is"),
    field("placementGroupName", Text, EMPTY, "instances are placed by availability zone"),
    field("placementGroupPartition", Number, "self == 0", "instances are placed by availability zone"),
    field(
        "cpuOptions",
        Fields(&[("confidentialCompute", "string"), ("nestedVirtualization", "string")]),
        "(!has(self.confidentialCompute) || self.confidentialCompute in ['', 'Disabled']) \
         && (!has(self.nestedVirtualization) || self.nestedVirtualization in ['', 'Disabled', 'disabled'])",
        "instances have the CPU options of their type",
    ),
    field("securityGroupOverrides", Map, NONE_SET, "use additionalSecurityGroups"),
    field("elasticIpPool", Object, NEVER, "public addresses come from Amazon's pool"),
    field("networkInterfaces", Texts, NONE_SET, "an instance has one network interface, made with it"),
    field("networkInterfaceType", Text, "self in ['', 'interface']", "only interface is"),
    field("assignPrimaryIPv6", Text, "self in ['', 'disabled']", IPV6),
    field(
        "privateDnsName",
        Fields(DNS_NAME_FIELDS),
        DNS_NAME,
        "names of instances are ip-name, which names of Nodes follow",
    ),
];

/// Of AWSClusterControllerIdentity.
pub const CONTROLLER_IDENTITY: &[Refused] = &[
    field("allowedNamespaces.list", Declared, NONE_SET, NAMESPACE),
    field("allowedNamespaces.selector", Declared, NO_SELECTOR, NAMESPACE),
];

/// Declares these fields in the schema and refuses their values.
pub fn refuse(spec: &mut Spec<'_>, fields: &[Refused]) {
    for refused in fields {
        let declared = match refused.shape {
            Declared => None,
            Text => Some(json!({"type": "string", "maxLength": 1024})),
            Flag => Some(json!({"type": "boolean"})),
            Number => Some(json!({"type": "integer", "format": "int64"})),
            Object => Some(any_object()),
            Texts => Some(json!({"type": "array", "items": {"type": "string"}})),
            Objects => Some(json!({"type": "array", "items": any_object()})),
            Map => Some(json!({"type": "object", "additionalProperties": {"type": "string"}})),
            Fields(fields) => Some(with_fields(fields)),
            Bastion => Some(bastion()),
        };
        if let Some(mut schema) = declared {
            schema["description"] = json!(format!("Not supported by cluster-operator: {}.", refused.why));
            spec.add(refused.path, schema);
        }
        let path = format!("{}.{} is not supported by cluster-operator", spec.path, refused.path);
        let message =
            if refused.why.is_empty() { format!("{path} yet") } else { format!("{path}: {}", refused.why) };
        spec.rule(refused.path, refused.accepted, &message);
    }
}

/// An object of which every value is refused. Its fields are kept so that a client that is strict about
/// unknown fields hears the reason, too.
fn any_object() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn with_fields(fields: &[(&str, &str)]) -> Value {
    let schema = |kind: &str| match kind {
        "integer" => json!({"type": kind, "format": "int64"}),
        "string" => json!({"type": kind, "maxLength": 1024}),
        _ => json!({"type": kind}),
    };
    let properties: serde_json::Map<String, Value> =
        fields.iter().map(|(name, kind)| ((*name).to_owned(), schema(kind))).collect();
    json!({"type": "object", "properties": properties})
}

/// It is always there, as CAPA stores it: a ClusterClass replaces `enabled` by a JSON patch, which needs
/// something to replace.
fn bastion() -> Value {
    json!({"type": "object", "default": {"enabled": false}, "properties": {
        "enabled": {"type": "boolean", "default": false, "description": "Whether there is a bastion host. Only false is supported."},
        "disableIngressRules": {"type": "boolean", "description": "Has no effect."},
        "allowedCIDRBlocks": {"type": "array", "items": {"type": "string"}, "description": "Has no effect."},
        "instanceType": {"type": "string", "description": "Has no effect."},
        "ami": {"type": "string", "description": "Has no effect."},
    }})
}
