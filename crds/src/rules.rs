//! Validation that OpenAPI cannot express, as CEL rules on the fields of each kind: CAPA's, and what AWS
//! would refuse later anyway. Fields that are not supported are refused by `unsupported`.

use serde_json::{Value, json};

use crate::names;
use crate::schema::Spec;

/// Fields of a running AWSMachine that can be changed.
const MUTABLE_MACHINE_FIELDS: &[&str] =
    &["providerID", "instanceID", "additionalTags", "additionalSecurityGroups", "cloudInit"];
/// Fields of its `cloudInit` that cannot.
const IMMUTABLE_CLOUD_INIT_FIELDS: &[&str] = &["insecureSkipSecretsManager", "secureSecretsBackend"];

const IPV4_CIDR: &str = "isCIDR(self) && cidr(self).ip().family() == 4";
const IPV4_CIDR_MESSAGE: &str = "must be an IPv4 CIDR block, such as 10.0.0.0/16";
const NAME_OF_LOAD_BALANCER: &str = "self.matches('^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$')";
const NAME_OF_KEY: &str = "self.matches('^([[:graph:]]([[:print:]]*[[:graph:]])?)?$')";
const NAME_OF_KEY_MESSAGE: &str =
    "must be the name of an EC2 key pair, without spaces around it, or empty for no key";
/// With so few digits that what reads it has no number too large.
const DURATION: &str = r"self.matches('^([0-9]{1,6}(\\.[0-9]{1,6})?(ms|s|m|h))+$')";
/// The partition of a region shows in how its name begins.
const PARTITION: &str = "!has(self.partition) || self.partition == '' || !has(self.region) || self.region == '' || self.partition == (\
     self.region.startsWith('cn-') ? 'aws-cn' : self.region.startsWith('us-gov-') ? 'aws-us-gov' : \
     self.region.startsWith('us-iso-') ? 'aws-iso' : self.region.startsWith('us-isob-') ? 'aws-iso-b' : \
     self.region.startsWith('eu-isoe-') ? 'aws-iso-e' : self.region.startsWith('us-isof-') ? 'aws-iso-f' : \
     self.region.startsWith('eusc-') ? 'aws-eusc' : 'aws')";
const NEW_MACHINE: &str = "cannot be changed: a machine is replaced by a new one";

/// Rules of AWSCluster and AWSClusterTemplate.
pub fn cluster(spec: &mut Spec<'_>) {
    spec.rule_about("", "partition", PARTITION, "must be the partition of the region; it need not be said");
    spec.rule("sshKeyName", NAME_OF_KEY, NAME_OF_KEY_MESSAGE);
    // Tags of VPC and subnets are what CAPA found there, too: more than a user may set.
    tags(spec, "additionalTags");
    spec.rule(
        "controlPlaneEndpoint",
        "(has(self.host) && self.host != '') == (has(self.port) && self.port != 0)",
        "host and port are set together",
    );
    spec.rule(
        "serviceAccountIssuer",
        "has(self.url) != has(self.publish)",
        "needs exactly one of url, publish",
    );
    spec.rule(
        "serviceAccountIssuer.url",
        "self.matches('^https://[a-z0-9-]+([.][a-z0-9-]+)+(/[A-Za-z0-9._-]+)*$')",
        "must be an https:// URL without port, query and last slash, such as https://issuer.example.com/prod",
    );
    network(spec);
    for path in [
        "controlPlaneLoadBalancer.ingressRules",
        "network.additionalControlPlaneIngressRules",
        "network.additionalNodeIngressRules",
    ] {
        ingress_rules(spec, path);
    }
    let load_balancer = "controlPlaneLoadBalancer";
    spec.rule(
        &format!("{load_balancer}.name"),
        NAME_OF_LOAD_BALANCER,
        "must have letters, digits and hyphens alone, and neither begin nor end with a hyphen",
    );
    spec.rule_about(
        load_balancer,
        "name",
        "!has(self.name) || self.loadBalancerType != 'nlb' || !self.name.startsWith('internal-')",
        "must not begin with internal- for a network load balancer: AWS keeps that for itself",
    );
    spec.rule(
        load_balancer,
        "self.loadBalancerType != 'disabled' || !(has(self.name) || has(self.healthCheckProtocol) || self.crossZoneLoadBalancing \
         || has(self.ingressRules) && size(self.ingressRules) > 0)",
        "a load balancer that is disabled has no other settings; its place is taken by spec.controlPlaneEndpoint, which you set",
    );
    spec.rule_about(
        load_balancer,
        "healthCheckProtocol",
        "!has(self.healthCheckProtocol) || self.loadBalancerType != 'classic' || self.healthCheckProtocol in ['TCP', 'SSL', 'HTTP', 'HTTPS']",
        "must be TCP, SSL, HTTP or HTTPS for a classic load balancer",
    );
    spec.rule_about(
        load_balancer,
        "healthCheckProtocol",
        "!has(self.healthCheckProtocol) || self.loadBalancerType != 'nlb' || self.healthCheckProtocol in ['TCP', 'HTTP', 'HTTPS']",
        "must be TCP, HTTP or HTTPS for a network load balancer",
    );
}

fn network(spec: &mut Spec<'_>) {
    let size = "cidr(self).prefixLength() >= 16 && cidr(self).prefixLength() <= 28";
    for path in ["network.vpc.cidrBlock", "network.subnets[].cidrBlock"] {
        spec.rule(path, &format!("self == '' || ({IPV4_CIDR})"), IPV4_CIDR_MESSAGE);
        spec.rule(
            path,
            &format!("!(isCIDR(self) && cidr(self).ip().family() == 4) || ({size})"),
            "must be between /16 and /28",
        );
        spec.rule(
            path,
            "!(isCIDR(self) && cidr(self).ip().family() == 4) || cidr(self).masked() == cidr(self)",
            "must be the beginning of its range: 10.0.0.0/16, not 10.0.1.0/16",
        );
    }
    spec.rule(
        "network.subnets[]",
        "self.id.matches('^subnet-[0-9a-f]{8,17}$') || (has(self.resourceID) && self.resourceID != '') || (has(self.cidrBlock) && self.cidrBlock != '' && has(self.availabilityZone) && self.availabilityZone != '')",
        "a subnet that is to be made needs cidrBlock and availabilityZone; an existing one has the id that AWS gave it, such as subnet-0123456789abcdef0",
    );
    spec.at("network.nodePortIngressRuleCidrBlocks[]")["maxLength"] = json!(43);
    spec.rule("network.nodePortIngressRuleCidrBlocks[]", IPV4_CIDR, IPV4_CIDR_MESSAGE);
}

fn ingress_rules(spec: &mut Spec<'_>, path: &str) {
    let rule = format!("{path}[]");
    let ipv4 = format!("{rule}.cidrBlocks[]");
    let ipv6 = format!("{rule}.ipv6CidrBlocks[]");
    spec.at(&ipv4)["maxLength"] = json!(43);
    spec.at(&ipv6)["maxLength"] = json!(43);
    spec.rule(&ipv4, IPV4_CIDR, IPV4_CIDR_MESSAGE);
    spec.rule(
        &ipv6,
        "isCIDR(self) && cidr(self).ip().family() == 6",
        "must be an IPv6 CIDR block, such as 2001:db8::/32",
    );
    spec.rule(
        &rule,
        "[has(self.cidrBlocks) && size(self.cidrBlocks) > 0 || has(self.ipv6CidrBlocks) && size(self.ipv6CidrBlocks) > 0, \
         has(self.sourceSecurityGroupIds) && size(self.sourceSecurityGroupIds) > 0 || has(self.sourceSecurityGroupRoles) && size(self.sourceSecurityGroupRoles) > 0, \
         has(self.natGatewaysIPsSource) && self.natGatewaysIPsSource].filter(set, set).size() <= 1",
        "a rule has one kind of source: CIDR blocks, or security groups, or the cluster's NAT gateways",
    );
    spec.rule(
        &rule,
        "!(self.protocol in ['tcp', 'udp']) || self.fromPort <= self.toPort",
        "fromPort must not be above toPort",
    );
}

/// AWS's limits on tags.
fn tags(spec: &mut Spec<'_>, path: &str) {
    sizes_of_tags(spec, path, 50);
    spec.rule(
        path,
        "self.all(key, !key.lowerAscii().startsWith('aws:'))",
        "keys that begin with aws: are reserved by AWS",
    );
    spec.rule(
        path,
        r"self.all(key, key.matches('^[\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*$') && self[key].matches('^[\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*$'))",
        "keys and values have letters, digits, spaces and _.:/=+-@ alone",
    );
}

/// How many tags there may be at most, and how long they are.
fn sizes_of_tags(spec: &mut Spec<'_>, path: &str, most: u32) {
    let tags = spec.at(path);
    tags["maxProperties"] = json!(most);
    tags["additionalProperties"]["maxLength"] = json!(256);
    spec.rule(path, "self.all(key, size(key) >= 1 && size(key) <= 128)", "a key has 1 to 128 characters");
}

/// What Kubernetes takes as labels of a node.
fn labels(spec: &mut Spec<'_>, path: &str) {
    let labels = spec.at(path);
    labels["maxProperties"] = json!(16);
    labels["additionalProperties"]["maxLength"] = json!(63);
    labels["additionalProperties"]["pattern"] = json!("^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$");
    let key = r"self.all(key, size(key) <= 317 && key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))";
    spec.rule(path, key, "keys are labels of nodes, such as topology.kubernetes.io/zone");
}

/// Rules of AWSCluster alone: what it needs, and what cannot be changed.
pub fn cluster_object(spec: &mut Spec<'_>) {
    spec.rule_about("", "region", "has(self.region) && self.region != ''", "is required, such as us-east-1");
    spec.rule("region", "self == oldSelf", "cannot be changed");
    spec.rule_about(
        "",
        "controlPlaneEndpoint",
        "!has(oldSelf.controlPlaneEndpoint) || !has(oldSelf.controlPlaneEndpoint.host) || oldSelf.controlPlaneEndpoint.host == '' \
         || (has(self.controlPlaneEndpoint) && self.controlPlaneEndpoint == oldSelf.controlPlaneEndpoint)",
        "cannot be changed once set",
    );
    let load_balancer = "controlPlaneLoadBalancer";
    unchanged(spec, load_balancer, "name", "cannot be changed");
    spec.rule(&format!("{load_balancer}.scheme"), "self == oldSelf", "cannot be changed");
    spec.rule(&format!("{load_balancer}.loadBalancerType"), "self == oldSelf", "cannot be changed");
    spec.rule_about(
        load_balancer,
        "healthCheckProtocol",
        "self.loadBalancerType == 'classic' || (has(self.healthCheckProtocol) == has(oldSelf.healthCheckProtocol) \
         && (!has(self.healthCheckProtocol) || self.healthCheckProtocol == oldSelf.healthCheckProtocol))",
        "cannot be changed for a network load balancer",
    );
    spec.rule_about(
        "network.vpc",
        "id",
        "!has(oldSelf.id) || oldSelf.id == '' || (has(self.id) && self.id == oldSelf.id)",
        "cannot be changed once set",
    );
}

/// A field that may be absent, and is neither added, nor changed, nor removed.
fn unchanged(spec: &mut Spec<'_>, parent: &str, name: &str, message: &str) {
    let rule = format!(
        "has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})"
    );
    spec.rule_about(parent, name, &rule, message);
}

/// Rules of AWSMachine and AWSMachineTemplate.
pub fn machine(spec: &mut Spec<'_>) {
    spec.rule("sshKeyName", NAME_OF_KEY, NAME_OF_KEY_MESSAGE);
    tags(spec, "additionalTags");
    for path in ["subnet", "additionalSecurityGroups[]"] {
        spec.rule(
            path,
            "(has(self.id) && self.id != '') != (has(self.filters) && size(self.filters) > 0)",
            "needs either id or filters",
        );
    }
    for path in ["rootVolume", "nonRootVolumes[]"] {
        spec.rule_about(
            path,
            "iops",
            "!has(self.type) || !(self.type in ['io1', 'io2']) || (has(self.iops) && self.iops > 0)",
            "is required for volumes of type io1 and io2",
        );
        spec.rule_about(
            path,
            "throughput",
            "!has(self.throughput) || (has(self.type) && self.type == 'gp3' && self.throughput >= 125 && self.throughput <= 2000)",
            "is for volumes of type gp3, from 125 to 2000 MiB/s",
        );
    }
    spec.rule_about(
        "nonRootVolumes[]",
        "deviceName",
        "has(self.deviceName) && self.deviceName != ''",
        "is required",
    );
}

/// Rules of AWSMachine alone: what cannot be changed, which is everything that is not known to be changeable.
pub fn machine_object(spec: &mut Spec<'_>) {
    for name in spec.fields() {
        if !MUTABLE_MACHINE_FIELDS.contains(&name.as_str()) {
            unchanged(spec, "", &name, NEW_MACHINE);
        }
    }
    for name in IMMUTABLE_CLOUD_INIT_FIELDS {
        unchanged(spec, "cloudInit", name, NEW_MACHINE);
    }
}

/// Rules of AWSMachineTemplate alone: what belongs to one machine is not in a template.
pub fn machine_template(spec: &mut Spec<'_>) {
    let message = "belongs to one machine and cannot be in a template";
    for name in ["providerID", "instanceID"] {
        spec.rule(name, "self == ''", message);
    }
    spec.rule("cloudInit.secretPrefix", "self == ''", message);
    spec.rule("cloudInit.secretCount", "self == 0", message);
}

/// Rules of AWSClusterControllerIdentity.
pub fn controller_identity(spec: &mut Spec<'_>) {
    let message = "is required: {} for every namespace; in CAPA, no namespace may use an identity without it";
    spec.rule_about("", "allowedNamespaces", "has(self.allowedNamespaces)", message);
}

fn names_of_built_in() -> String {
    names::BUILT_IN_PLUGINS.map(|name| format!("'{name}'")).join(", ")
}

/// Rules of PluginModule.
pub fn plugin_module(kind: &mut Value) {
    let mut object = Spec::new(kind, "");
    let built_in = names_of_built_in();
    let source = format!(
        "self.metadata.name in [{built_in}] ? !has(self.spec.source.oci) && !has(self.spec.source.configMap) : \
         has(self.spec.source.oci) != has(self.spec.source.configMap)"
    );
    let message = "needs exactly one of oci, configMap; neither where the name is that of a built-in plugin, which the object narrows";
    object.rule_about("", "spec.source", &source, message);
    let name =
        "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63";
    object.rule("", name, "the name of a module has up to 63 lower case letters, digits and hyphens");
    let spec = &mut Spec::new(kind, "spec");
    spec.rule_about(
        "",
        "allowedNamespaces",
        "has(self.allowedNamespaces)",
        "is required: {} for every namespace, or a selector of namespaces by their labels",
    );
    spec.rule_about(
        "",
        "verify",
        "!has(self.verify) || !has(self.verify.cosign) || has(self.source.oci)",
        "signatures are beside artifacts in a registry: use source.oci, or leave verify out",
    );
    let rules = "grants.securityGroupRules[]";
    let has_ports = "self.protocol in ['tcp', 'udp'] || !has(self.fromPort) && !has(self.toPort)";
    spec.rule(rules, has_ports, "only tcp and udp have ports");
    let is_range = "!has(self.fromPort) || !has(self.toPort) || self.fromPort <= self.toPort";
    spec.rule(rules, is_range, "fromPort is above toPort");
}

/// Rules of ClusterPlugin.
pub fn cluster_plugin(spec: &mut Spec<'_>) {
    spec.rule("clusterName", "self == oldSelf", "cannot be changed");
    spec.rule(
        "ingress.awsLoadBalancerController.ingressClass.name",
        "self == oldSelf",
        "cannot be changed: Ingresses name the class; take ingress out first, which waits until nothing uses it",
    );
    spec.rule("deletion.timeout", DURATION, "must be a duration, such as 15m or 1h30m");
    spec.rule("upgradeTimeout", DURATION, "must be a duration, such as 30m or 1h30m");
    spec.rule(
        "cloudProvider",
        "[has(self.aws), has(self.module), has(self.none)].filter(set, set).size() == 1",
        "needs exactly one of aws, module, none",
    );
    spec.rule(
        "networking",
        "[has(self.calico), has(self.amazonVPC), has(self.module)].filter(set, set).size() == 1",
        "needs exactly one of calico, amazonVPC, module",
    );
    let built_in = names_of_built_in();
    for path in ["cloudProvider.module", "networking.module", "storage.module", "ingress.module", "plugins[]"]
    {
        let message = "is the name of a built-in plugin, which is chosen by its own settings";
        spec.rule_about(path, "name", &format!("!(self.name in [{built_in}])"), message);
        if path == "plugins[]" {
            spec.rule_about(path, "module", &format!("!(self.module in [{built_in}])"), message);
        }
    }
    const SLOTS: [&str; 4] = ["cloudProvider", "networking", "storage", "ingress"];
    let modules = SLOTS.map(|slot| format!("self.?{slot}.module.name.orValue('')")).join(", ");
    let twice = format!("[{modules}].all(name, name == '' || [{modules}].exists_one(other, other == name))");
    spec.rule("", &twice, "a module can be in one slot only");
    let free = format!("!has(self.plugins) || !self.plugins.exists(plugin, plugin.name in [{modules}])");
    spec.rule_about("", "plugins", &free, "the name of a plugin cannot be that of a module in a slot");
    spec.rule(
        "networking.amazonVPC",
        "has(self.warmIPTarget) == has(self.minimumIPTarget)",
        "warmIPTarget and minimumIPTarget go together: with one alone, EC2 is asked for every single address",
    );
    spec.rule("networking.amazonVPC.excludeSNATCIDRs[]", IPV4_CIDR, IPV4_CIDR_MESSAGE);
    labels(spec, "networking.calico.controlPlaneNodeSelector");
    for add_on in [
        "cloudProvider.aws",
        "networking.amazonVPC",
        "storage.ebs",
        "storage.efs",
        "ingress.awsLoadBalancerController",
    ] {
        labels(spec, &[add_on, ".nodeSelector"].concat());
        let arguments = if add_on == "networking.amazonVPC" { ".extraEnv" } else { ".extraArgs" };
        let path = &[add_on, arguments].concat();
        spec.at(path)["maxProperties"] = json!(16);
        spec.at(path)["additionalProperties"]["maxLength"] = json!(256);
    }
    // A default is judged before the defaults of its own fields are there.
    let ordered =
        "!has(self.gidRangeStart) || !has(self.gidRangeEnd) || self.gidRangeStart < self.gidRangeEnd";
    spec.rule("storage.efs.storageClass", ordered, "gidRangeStart must be below gidRangeEnd");
    let tags = "storage.efs.fileSystemTags";
    spec.at(tags)["minProperties"] = json!(1);
    sizes_of_tags(spec, tags, 10);
    spec.rule(
        "storage.efs",
        "!(has(self.fileSystemID) && has(self.fileSystemTags))",
        "fileSystemID and fileSystemTags exclude each other: keep fileSystemID to name the file system, or fileSystemTags to have it found",
    );
}
