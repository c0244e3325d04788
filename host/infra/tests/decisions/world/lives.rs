//! What a machine that lives needs of the network, and which calls would take it away.

use std::collections::BTreeSet;

use model::*;

use super::World;

/// Ports that nodes and control plane reach one another at, whatever the network add-on.
const CORE_PORTS: [i32; 4] = [2379, 2380, 6443, 10250];

impl World {
    fn lives_in(&self, subnet: &str) -> Option<&str> {
        let lives = |it: &&FoundInstance| ["pending", "running"].contains(&it.status.state.as_str());
        let mut all = self.truth.instances.iter().filter(lives);
        all.find(|it| it.subnet_id.as_deref() == Some(subnet)).map(|it| it.id.as_str())
    }

    /// A machine that reaches something by this table.
    fn routed_by(&self, table: &FoundRouteTable) -> Option<&str> {
        table.associations.keys().find_map(|it| self.lives_in(it))
    }

    /// Says it where a call would take something from a machine that lives.
    pub(super) fn watch(&mut self, action: &Action) {
        let cut = match action {
            Action::Delete { id, is, .. } => match is {
                Resource::Subnet(_) => self.lives_in(id).map(str::to_owned),
                Resource::RouteTable(_) => {
                    self.table(id).and_then(|it| self.routed_by(it)).map(str::to_owned)
                }
                Resource::NatGateway(_) => {
                    let works =
                        self.truth.nat_gateways.iter().any(|it| it.id == *id && it.state == State::Ready);
                    let mut tables = self
                        .truth
                        .route_tables
                        .iter()
                        .filter(|it| works && it.default_route.as_ref() == Some(id));
                    tables.find_map(|it| self.routed_by(it)).map(str::to_owned)
                }
                Resource::LoadBalancer(_)
                | Resource::Vpc(_)
                | Resource::InternetGateway(_)
                | Resource::SecurityGroup(_) => self
                    .truth
                    .instances
                    .iter()
                    .find(|it| it.status.state == "running")
                    .map(|it| it.id.clone()),
                _ => None,
            },
            Action::Update { id, is: Resource::RouteTable(is), ids, .. } => {
                self.table(id).and_then(|table| {
                    let now = table.default_route.as_ref().filter(|it| self.is_usable(it))?;
                    let then = is.default_route.as_ref().and_then(|key| ids.get(key))?;
                    self.routed_by(table).filter(|_| now != then).map(str::to_owned)
                })
            }
            Action::Update { id, is: Resource::LoadBalancer(is), ids, .. } => {
                let off: BTreeSet<&String> =
                    is.leaving.iter().filter_map(|it| ids.get(&Subnet::key(it))).collect();
                let zones: BTreeSet<&String> =
                    self.truth.subnets.iter().filter(|it| off.contains(&it.id)).map(|it| &it.zone).collect();
                let balancer = self.truth.load_balancers.iter().find(|it| it.id == *id);
                let mut there = self.truth.subnets.iter().filter(|it| zones.contains(&it.zone));
                balancer.and_then(|_| there.find_map(|it| self.lives_in(&it.id))).map(str::to_owned)
            }
            Action::Update { id, is: Resource::SecurityGroupRules(is), ids, .. } => {
                let group = ids.get(&SecurityGroup::key(&is.name)).unwrap_or(id);
                let group = self.truth.security_groups.iter().find(|it| it.id == *group);
                let core = |it: &&FoundRule| {
                    CORE_PORTS.contains(&it.from_port) && matches!(it.source, FoundSource::GroupId(_))
                };
                let kept = |it: &FoundRule| {
                    is.keep_unknown || is.rules.iter().any(|rule| rule.from_port == it.from_port)
                };
                let lost = group.is_some_and(|it| it.rules.iter().filter(core).any(|it| !kept(it)));
                self.truth.instances.iter().find(|_| lost).map(|it| it.id.clone())
            }
            _ => None,
        };
        self.cut_off.extend(cut.map(|instance| format!("{action} takes something from {instance}")));
    }

    fn table(&self, id: &str) -> Option<&FoundRouteTable> {
        self.truth.route_tables.iter().find(|it| it.id == id)
    }

    fn is_usable(&self, gateway: &str) -> bool {
        self.truth
            .nat_gateways
            .iter()
            .any(|it| it.id == gateway && matches!(it.state, State::Creating | State::Ready))
            || self.truth.internet_gateways.iter().any(|it| it.id == gateway)
    }
}
