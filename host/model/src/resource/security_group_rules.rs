//! Ingress rules of security groups. Egress stays as AWS makes it: everything is allowed.

use std::collections::BTreeSet;

use ipnet::IpNet;

use crate::{Key, Read, ResourceKind, SecurityGroup};

/// The ingress rules of one group. They are a resource of their own because groups name one another.
#[derive(Clone, Debug, PartialEq)]
pub struct SecurityGroupRules {
    /// The role of the group.
    pub name: String,
    /// Each lets one more source or range of ports in.
    pub rules: BTreeSet<Rule>,
    /// Others add rules to this group (the cloud provider to `lb`), or it is not known yet what the add-ons
    /// need: nothing is revoked.
    pub keep_unknown: bool,
}

/// One rule: one protocol, one range of ports, one source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// AWS's word: `tcp`, `udp`, `icmp`, `-1` (all), or a protocol number such as `4` (IP in IP).
    pub protocol: String,
    /// -1 for protocols without ports.
    pub from_port: i32,
    /// Last port, itself among them; -1 for protocols without ports.
    pub to_port: i32,
    /// Where the traffic comes from.
    pub source: Source,
    /// For people who look at the rule in AWS; AWS does not tell rules apart by it.
    pub description: String,
}

/// Where a rule lets traffic come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// An IPv4 or IPv6 range, as AWS keeps it: see [`Source::range`].
    Cidr(String),
    /// A group of this cluster, by role.
    Group(String),
    /// A group that the user named, or that has no role here, by id.
    GroupId(String),
    /// A managed prefix list, as seen; never wanted.
    PrefixList(String),
}

/// An ingress rule of a security group.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundRule {
    /// AWS's word or number: `tcp`, `-1` (all), `4`.
    pub protocol: String,
    /// First port, of ICMP the type; -1 where AWS names none.
    pub from_port: i32,
    /// Last port, of ICMP the code; -1 where AWS names none.
    pub to_port: i32,
    /// Where it lets traffic come from.
    pub source: FoundSource,
    /// Empty when AWS shows none.
    pub description: String,
}

/// Where a rule lets traffic come from, as AWS names it.
#[derive(Clone, Debug, PartialEq)]
pub enum FoundSource {
    /// IPv4 or IPv6 range.
    Cidr(String),
    /// `sg-...`
    GroupId(String),
    /// `pl-...`, a managed prefix list.
    PrefixList(String),
}

impl SecurityGroupRules {
    /// What has to be authorized. Two rules that differ only in their description are one rule for AWS.
    pub fn missing_from(&self, observed: &Self) -> Vec<Rule> {
        self.rules
            .iter()
            .filter(|it| !observed.rules.iter().any(|other| it.same_traffic(other)))
            .cloned()
            .collect()
    }

    /// What has to be revoked, were it not for [`keep_unknown`](Self::keep_unknown).
    pub fn extra_in(&self, observed: &Self) -> Vec<Rule> {
        observed
            .rules
            .iter()
            .filter(|it| !self.rules.iter().any(|other| it.same_traffic(other)))
            .cloned()
            .collect()
    }
}

impl ResourceKind for SecurityGroupRules {
    const READS: &'static [Read] = &[Read::SecurityGroups];
    const EVIDENCE: &'static [Read] = &[Read::Vpcs];

    fn after(&self) -> Vec<Key> {
        let mut res = vec![SecurityGroup::key(&self.name)];
        for rule in &self.rules {
            if let Source::Group(role) = &rule.source {
                let key = SecurityGroup::key(role);
                if !res.contains(&key) {
                    res.push(key);
                }
            }
        }
        res
    }

    fn satisfied_by(&self, observed: &Self) -> bool {
        self.missing_from(observed).is_empty() && (self.keep_unknown || self.extra_in(observed).is_empty())
    }

    fn details(&self) -> String {
        self.rules.iter().map(|rule| format!("\n          + {rule}")).collect()
    }

    fn changes(&self, observed: &Self) -> String {
        let extra = if self.keep_unknown { Vec::new() } else { self.extra_in(observed) };
        let missing = self.missing_from(observed).into_iter().map(|rule| format!("\n          + {rule}"));
        missing.chain(extra.into_iter().map(|rule| format!("\n          - {rule}"))).collect()
    }
}

impl Source {
    /// A range of addresses in the form that AWS keeps it in: without bits after its prefix, and IPv6 in its
    /// shortest text.
    pub fn range(text: &str) -> Source {
        Source::Cidr(canonical(text))
    }
}

impl Rule {
    /// Whether both let the same traffic in.
    pub fn same_traffic(&self, other: &Self) -> bool {
        let one = traffic(&self.protocol, self.from_port, self.to_port);
        one == traffic(&other.protocol, other.from_port, other.to_port) && self.source == other.source
    }
}

impl FoundRule {
    /// Whether both let the same traffic in, in whichever form AWS or a user wrote them.
    pub fn same_traffic(&self, other: &Self) -> bool {
        let same_source = match (&self.source, &other.source) {
            (FoundSource::Cidr(one), FoundSource::Cidr(other)) => {
                one == other || canonical(one) == canonical(other)
            }
            (one, other) => one == other,
        };
        let one = traffic(&self.protocol, self.from_port, self.to_port);
        same_source && one == traffic(&other.protocol, other.from_port, other.to_port)
    }
}

/// Whether AWS keeps ports (of ICMP: type and code) with a rule of this protocol. Of others it lets
/// everything in, whatever is said.
pub fn has_ports(protocol: &str) -> bool {
    matches!(word(protocol), "tcp" | "udp" | "icmp" | "icmpv6")
}

/// AWS answers with the words of these protocols, also where it was told the number.
fn word(protocol: &str) -> &str {
    match protocol {
        "6" => "tcp",
        "17" => "udp",
        "1" => "icmp",
        "58" => "icmpv6",
        other => other,
    }
}

fn traffic(protocol: &str, from_port: i32, to_port: i32) -> (&str, i32, i32) {
    let ports = if has_ports(protocol) { (from_port, to_port) } else { (-1, -1) };
    (word(protocol), ports.0, ports.1)
}

/// Text that is no range stays as it is: AWS says what it thinks of it.
fn canonical(range: &str) -> String {
    range.parse::<IpNet>().map_or_else(|_| range.to_owned(), |it| it.trunc().to_string())
}

/// A rule that an add-on needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddOnRule {
    /// The group that lets traffic in: `node` or `controlplane`.
    pub group: String,
    /// What it lets in.
    pub rule: Rule,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(protocol: &str, port: i32, source: Source) -> Rule {
        Rule { protocol: protocol.into(), from_port: port, to_port: port, source, description: String::new() }
    }

    #[test]
    fn a_range_is_the_one_that_aws_makes_of_it() {
        let ranges =
            ["203.0.113.5/24", "203.0.113.0/24", "2001:DB8:0::1/32", "::/0", "everybody"].map(Source::range);
        let kept = ["203.0.113.0/24", "203.0.113.0/24", "2001:db8::/32", "::/0", "everybody"]
            .map(|it| Source::Cidr(it.into()));
        assert_eq!(ranges, kept);
    }

    #[test]
    fn a_protocol_is_the_same_by_number_and_by_word() {
        let anywhere = || Source::range("::/0");
        for (number, word) in [("6", "tcp"), ("17", "udp"), ("1", "icmp"), ("58", "icmpv6")] {
            assert!(rule(number, 8, anywhere()).same_traffic(&rule(word, 8, anywhere())), "{number}");
            assert!(
                !rule(number, 8, anywhere()).same_traffic(&rule(word, 9, anywhere())),
                "{number} has ports"
            );
        }
        assert!(!rule("6", 8, anywhere()).same_traffic(&rule("udp", 8, anywhere())));
    }

    #[test]
    fn ports_of_protocols_without_ports_mean_nothing() {
        for protocol in ["-1", "4", "50"] {
            assert!(rule(protocol, 0, Source::range("10.0.0.0/8")).same_traffic(&rule(
                protocol,
                -1,
                Source::range("10.0.0.0/8")
            )));
        }
    }

    #[test]
    fn found_rules_are_compared_by_what_their_ranges_mean() {
        let found = |cidr: &str| FoundRule {
            protocol: "tcp".into(),
            from_port: 1,
            to_port: 1,
            source: FoundSource::Cidr(cidr.into()),
            description: String::new(),
        };
        assert!(found("2001:DB8::/32").same_traffic(&found("2001:db8::/32")));
        assert!(!found("2001:db8::/32").same_traffic(&found("2001:db8::/33")));
    }
}
