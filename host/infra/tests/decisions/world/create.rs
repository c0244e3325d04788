//! What the pretend AWS makes and changes, and what it refuses to.

use model::*;

use super::{MISMATCH, SLOW, World};

impl World {
    pub(super) fn id_of<'a>(&self, ids: &'a Ids, key: &Key) -> Result<&'a String, &'static str> {
        ids.get(key).ok_or("MissingParameter")
    }

    pub(super) fn attached(&self, vpc_id: &str) -> bool {
        self.truth.internet_gateways.iter().any(|it| it.vpc_id.as_deref() == Some(vpc_id))
    }

    pub(super) fn create(
        &mut self,
        is: &Resource,
        tags: &Tags,
        ids: &Ids,
        token: Option<&String>,
    ) -> Result<String, &'static str> {
        let tags = tags.clone();
        let parameters = match is {
            Resource::NatGateway(_) | Resource::RouteTable(_) => format!("{ids:?}"),
            _ => String::new(),
        };
        if let Some((made, with)) = token.and_then(|token| self.tokens.get(token)).cloned() {
            if with != parameters {
                return Err(MISMATCH);
            }
            if let Resource::NatGateway(it) = is {
                self.answer_again(&made, it, tags, ids);
            }
            return Ok(made);
        }
        let id = match is {
            Resource::Vpc(it) => self.create_vpc(it, tags),
            Resource::Subnet(it) => self.create_subnet(it, tags, ids)?,
            Resource::InternetGateway(_) => {
                let id = self.id("igw");
                self.truth.internet_gateways.push(FoundInternetGateway {
                    id: id.clone(),
                    vpc_id: None,
                    tags,
                });
                id
            }
            Resource::ElasticIp(_) => {
                let id = self.id("eipalloc");
                let public_ip = format!("198.51.100.{}", self.next % 250);
                self.truth.addresses.push(FoundAddress {
                    id: id.clone(),
                    public_ip,
                    association_id: None,
                    network_interface_id: None,
                    tags,
                });
                id
            }
            Resource::NatGateway(it) => self.create_nat_gateway(it, tags, ids)?,
            Resource::RouteTable(it) => {
                let vpc_id = self.id_of(ids, &Vpc::key(&it.vpc))?.clone();
                let id = self.id("rtb");
                let empty = FoundRouteTable {
                    id: id.clone(),
                    vpc_id,
                    main: false,
                    associations: Default::default(),
                    default_route: None,
                    internet_gateways: Default::default(),
                    tags,
                };
                self.truth.route_tables.push(empty);
                id
            }
            Resource::SecurityGroup(it) => self.create_group(it, tags, ids)?,
            Resource::LoadBalancer(it) => self.create_load_balancer(it, tags, ids)?,
            Resource::Instance(it) => self.run_instance(it, tags, ids, token)?,
            Resource::Target(it) => return self.register(it, ids),
            Resource::Secret(it) => {
                for (n, part) in it.parts.iter().enumerate() {
                    self.secrets.insert(format!("{}-{n}", it.prefix), part.0.clone());
                }
                it.prefix.clone()
            }
            Resource::SecurityGroupRules(_) | Resource::NetworkInterface(_) => return Err("InvalidAction"),
        };
        if let Some(token) = token {
            self.tokens.insert(token.clone(), (id.clone(), parameters));
        }
        Ok(id)
    }

    /// A token answers with what it made, also when that is deleted; the real leaf shows it as it is
    /// answered.
    fn answer_again(&mut self, id: &str, gateway: &NatGateway, tags: Tags, ids: &Ids) {
        let subnet = self
            .truth
            .subnets
            .iter()
            .find(|subnet| ids.get(&Subnet::key(&gateway.subnet)) == Some(&subnet.id))
            .cloned();
        let Some(subnet) = subnet.filter(|_| !self.truth.nat_gateways.iter().any(|it| it.id == id)) else {
            return;
        };
        let (id, state, subnet_id) = (id.to_owned(), State::Deleting, subnet.id);
        let deleted = FoundNatGateway {
            id: id.clone(),
            vpc_id: subnet.vpc_id,
            subnet_id,
            allocation_id: None,
            public_ips: Vec::new(),
            state,
            failure: None,
            tags,
        };
        self.truth.nat_gateways.push(deleted);
        self.pending.insert(id, SLOW);
    }

    fn create_vpc(&mut self, vpc: &Vpc, tags: Tags) -> String {
        let id = self.id("vpc");
        self.truth.vpcs.push(FoundVpc {
            id: id.clone(),
            cidr: vpc.cidr.clone(),
            state: State::Ready,
            dns_hostnames: Some(false),
            tags,
        });
        let group = FoundSecurityGroup {
            id: self.id("sg"),
            vpc_id: id.clone(),
            group_name: "default".into(),
            description: "default VPC security group".into(),
            rules: Vec::new(),
            tags: Tags::new(),
        };
        self.truth.security_groups.push(group);
        id
    }

    fn create_subnet(&mut self, subnet: &Subnet, tags: Tags, ids: &Ids) -> Result<String, &'static str> {
        let vpc_id = self.id_of(ids, &Vpc::key(&subnet.vpc))?.clone();
        if !self.truth.vpcs.iter().any(|vpc| vpc.id == vpc_id) {
            return Err("InvalidVpcID.NotFound");
        }
        if self.truth.subnets.iter().any(|other| other.vpc_id == vpc_id && other.cidr == subnet.cidr) {
            return Err("InvalidSubnet.Conflict");
        }
        let id = self.id("subnet");
        let (zone, cidr) = (subnet.zone.clone(), subnet.cidr.clone());
        self.truth.subnets.push(FoundSubnet {
            id: id.clone(),
            vpc_id,
            zone,
            cidr,
            public: false,
            state: State::Ready,
            tags,
        });
        Ok(id)
    }

    fn create_nat_gateway(
        &mut self,
        gateway: &NatGateway,
        tags: Tags,
        ids: &Ids,
    ) -> Result<String, &'static str> {
        let subnet_id = self.id_of(ids, &Subnet::key(&gateway.subnet))?.clone();
        let allocation = self.id_of(ids, &ElasticIp::key(&gateway.elastic_ip))?.clone();
        let vpc_id = self
            .truth
            .subnets
            .iter()
            .find(|it| it.id == subnet_id)
            .ok_or("InvalidSubnetID.NotFound")?
            .vpc_id
            .clone();
        if !self.attached(&vpc_id) {
            return Err("Gateway.NotAttached");
        }
        let id = self.id("nat");
        let address = self
            .truth
            .addresses
            .iter_mut()
            .find(|it| it.id == allocation)
            .ok_or("InvalidAllocationID.NotFound")?;
        if address.association_id.is_some() {
            return Err("Resource.AlreadyAssociated");
        }
        address.association_id = Some(format!("assoc-{id}"));
        let public_ips = vec![address.public_ip.clone()];
        let (state, failure, allocation_id) = (State::Creating, None, Some(allocation));
        self.truth.nat_gateways.push(FoundNatGateway {
            id: id.clone(),
            vpc_id,
            subnet_id,
            allocation_id,
            public_ips,
            state,
            failure,
            tags,
        });
        self.pending.insert(id.clone(), SLOW);
        Ok(id)
    }

    fn create_group(&mut self, group: &SecurityGroup, tags: Tags, ids: &Ids) -> Result<String, &'static str> {
        let vpc_id = self.id_of(ids, &Vpc::key(&group.vpc))?.clone();
        if self
            .truth
            .security_groups
            .iter()
            .any(|other| other.vpc_id == vpc_id && other.group_name == group.group_name)
        {
            return Err("InvalidGroup.Duplicate");
        }
        let id = self.id("sg");
        let (group_name, description, rules) =
            (group.group_name.clone(), group.description.clone(), Vec::new());
        self.truth.security_groups.push(FoundSecurityGroup {
            id: id.clone(),
            vpc_id,
            group_name,
            description,
            rules,
            tags,
        });
        Ok(id)
    }

    pub(super) fn update(&mut self, id: &str, is: &Resource, ids: &Ids) -> Result<String, &'static str> {
        match is {
            Resource::Vpc(it) => {
                let vpc =
                    self.truth.vpcs.iter_mut().find(|vpc| vpc.id == id).ok_or("InvalidVpcID.NotFound")?;
                vpc.dns_hostnames = Some(it.dns_hostnames);
            }
            Resource::Subnet(it) => {
                let subnet = self
                    .truth
                    .subnets
                    .iter_mut()
                    .find(|subnet| subnet.id == id)
                    .ok_or("InvalidSubnetID.NotFound")?;
                subnet.public = it.public;
            }
            Resource::InternetGateway(it) => {
                let vpc_id = self.id_of(ids, &Vpc::key(&it.vpc))?.clone();
                if self.attached(&vpc_id) {
                    return Err("Resource.AlreadyAssociated");
                }
                let gateway = self
                    .truth
                    .internet_gateways
                    .iter_mut()
                    .find(|it| it.id == id)
                    .ok_or("InvalidInternetGatewayID.NotFound")?;
                gateway.vpc_id = Some(vpc_id);
            }
            Resource::RouteTable(it) => self.route(id, it, ids)?,
            Resource::SecurityGroupRules(it) => self.authorize(it, ids)?,
            Resource::LoadBalancer(it) => self.configure(id, it, ids)?,
            Resource::Instance(it) => self.modify_interface(id, it, ids)?,
            _ => return Err("InvalidAction"),
        }
        Ok(id.to_owned())
    }

    fn route(&mut self, id: &str, spec: &RouteTable, ids: &Ids) -> Result<(), &'static str> {
        let target = spec.default_route.as_ref().map(|key| self.id_of(ids, key).cloned()).transpose()?;
        if let Some(gateway) = target.as_ref().filter(|it| it.starts_with("nat-")) {
            let usable =
                self.truth.nat_gateways.iter().any(|it| it.id == *gateway && it.state == State::Ready);
            if !usable {
                return Err("InvalidNatGatewayID.NotFound");
            }
        }
        let subnets = spec
            .subnets
            .iter()
            .map(|name| self.id_of(ids, &Subnet::key(name)).cloned())
            .collect::<Result<Vec<_>, _>>()?;
        let taken = |other: &FoundRouteTable| {
            other.id != id && subnets.iter().any(|it| other.associations.contains_key(it))
        };
        if self.truth.route_tables.iter().any(taken) {
            return Err("Resource.AlreadyAssociated");
        }
        let table = self
            .truth
            .route_tables
            .iter_mut()
            .find(|table| table.id == id)
            .ok_or("InvalidRouteTableID.NotFound")?;
        table.default_route = target;
        table.associations =
            subnets.into_iter().map(|subnet| (subnet.clone(), format!("rtbassoc-{subnet}"))).collect();
        Ok(())
    }

    fn authorize(&mut self, spec: &SecurityGroupRules, ids: &Ids) -> Result<(), &'static str> {
        let id = self.id_of(ids, &SecurityGroup::key(&spec.name))?.clone();
        let source = |source: &Source| -> Result<FoundSource, &'static str> {
            Ok(match source {
                Source::Cidr(range) => FoundSource::Cidr(kept_range(range)?),
                Source::PrefixList(id) => FoundSource::PrefixList(id.clone()),
                Source::GroupId(id) => FoundSource::GroupId(id.clone()),
                Source::Group(role) => {
                    FoundSource::GroupId(self.id_of(ids, &SecurityGroup::key(role))?.clone())
                }
            })
        };
        let rules = spec.rules.iter().map(|rule| -> Result<FoundRule, &'static str> {
            let (protocol, from_port, to_port) = kept_traffic(rule);
            Ok(FoundRule {
                protocol,
                from_port,
                to_port,
                source: source(&rule.source)?,
                description: rule.description.clone(),
            })
        });
        let rules: Vec<FoundRule> = rules.collect::<Result<_, _>>()?;
        let group = self
            .truth
            .security_groups
            .iter_mut()
            .find(|group| group.id == id)
            .ok_or("InvalidGroup.NotFound")?;
        if !spec.keep_unknown {
            group.rules.clear();
        }
        for rule in rules {
            if !group.rules.iter().any(|other| {
                (&other.protocol, other.from_port, &other.source)
                    == (&rule.protocol, rule.from_port, &rule.source)
            }) {
                group.rules.push(rule);
            }
        }
        Ok(())
    }
}

/// AWS drops host bits, and writes IPv6 in small letters.
fn kept_range(range: &str) -> Result<String, &'static str> {
    let range: ipnet::IpNet = range.parse().map_err(|_| "InvalidParameterValue")?;
    Ok(range.trunc().to_string())
}

/// AWS names some protocols by words, and keeps ports for these alone.
fn kept_traffic(rule: &Rule) -> (String, i32, i32) {
    let words = [("6", "tcp"), ("17", "udp"), ("1", "icmp"), ("58", "icmpv6")];
    match words.iter().find(|(number, word)| [number, word].contains(&&rule.protocol.as_str())) {
        Some((_, word)) => ((*word).into(), rule.from_port, rule.to_port),
        None => (rule.protocol.clone(), -1, -1),
    }
}
