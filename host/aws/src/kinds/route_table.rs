//! Route tables: the table first, its default route and associations by updates. Other routes are left alone.

use std::collections::BTreeSet;

use crate::api::Api;
use crate::context::{Context, State};
use crate::ec2::{distinct, pages, tag_specification, tags};
use crate::errors::{Failure, gone_is_done};
use crate::kind::{AwsKind, Change, Creation, id_of};
use crate::pending_writes::{changed, gone, made};
use aws_sdk_ec2::types::{Filter, ResourceType, Route, RouteTable as AwsRouteTable};
use model::{FoundRouteTable, Ids, Key, Kind, Read, RouteTable, Snapshot, Subnet, Vpc};
const DEFAULT: &str = "0.0.0.0/0";

impl AwsKind for RouteTable {
    type Found = FoundRouteTable;
    const ID_PREFIX: &'static str = "rtb-";
    const ID_FILTER: &'static str = "route-table-id";

    async fn describe(api: &Api, selections: Vec<Vec<Filter>>) -> Result<Vec<Self::Found>, Failure> {
        let mut res = Vec::new();
        for filters in selections {
            let page = pages!(
                api,
                "ec2:DescribeRouteTables",
                describe_route_tables.set_filters(filters),
                100,
                route_tables
            );
            res.extend(page.into_iter().filter_map(found));
        }
        Ok(distinct(res, |it| &it.id))
    }

    fn vpcs_to_read(state: &State) -> BTreeSet<String> {
        state.route_tables_of()
    }

    fn set_vpcs_read(snapshot: &mut Snapshot, vpcs: BTreeSet<String>) {
        snapshot.route_tables_read = vpcs;
    }

    /// One attempt with its token: whether another is made is decided anew.
    async fn create(&self, region: &Context, with: Creation<'_>) -> Result<(), Failure> {
        const ACTION: &str = "ec2:CreateRouteTable";
        let call = region
            .api
            .ec2_once
            .create_route_table()
            .vpc_id(id_of(ACTION, with.ids, &Vpc::key(&self.vpc))?)
            .set_client_token(with.client_token.map(str::to_owned))
            .tag_specifications(tag_specification(ResourceType::RouteTable, with.tags));
        let answer = region.api.write_until(with.until, ACTION, call.send()).await?;
        let mut new = answer.route_table.and_then(found).ok_or_else(|| Failure::incomplete(ACTION))?;
        new.tags.extend(with.tags.clone());
        region.record(Read::RouteTables, made(new));
        Ok(())
    }

    /// Sets the default route and associates subnets, all at once.
    async fn update(&self, region: &Context, observed: &Self, with: Change<'_>) -> Result<(), Failure> {
        let route = async {
            match &self.default_route {
                Some(to) if observed.default_route.as_ref() != Some(to) => {
                    route(region, with.id, to, observed.default_route.is_some(), with.ids).await
                }
                _ => Ok(()),
            }
        };
        let associations =
            self.subnets.difference(&observed.subnets).map(|it| associate(region, with.id, it, with.ids));
        let (route, associations) = futures::join!(route, futures::future::join_all(associations));
        route?;
        associations.into_iter().collect()
    }

    /// Takes the table off its subnets, then removes it.
    async fn delete(&self, region: &Context, id: &str, _: &Ids) -> Result<(), Failure> {
        let shown = region.snapshot();
        let associations = shown
            .route_tables
            .iter()
            .find(|it| it.id == id)
            .map(|it| it.associations.clone())
            .unwrap_or_default();
        let all = associations.values().map(|association| async move {
            let call = region.api.ec2.disassociate_route_table().association_id(association);
            gone_is_done(region.api.write("ec2:DisassociateRouteTable", call.send()).await.map(drop))
        });
        futures::future::join_all(all).await.into_iter().collect::<Result<(), Failure>>()?;
        region.record(Read::RouteTables, changed::<FoundRouteTable>(id, |it| it.associations.clear()));
        let call = region.api.ec2.delete_route_table().route_table_id(id);
        region.gone_is_done(id, region.api.write("ec2:DeleteRouteTable", call.send()).await.map(drop))?;
        region.record(Read::RouteTables, gone::<FoundRouteTable>(id));
        Ok(())
    }
}

fn found(table: AwsRouteTable) -> Option<FoundRouteTable> {
    let associations = table.associations.unwrap_or_default();
    let is_default = |it: &Route| it.destination_cidr_block.as_deref() == Some(DEFAULT);
    let (default, others): (Vec<Route>, Vec<Route>) =
        table.routes.unwrap_or_default().into_iter().partition(is_default);
    Some(FoundRouteTable {
        id: table.route_table_id?,
        vpc_id: table.vpc_id.unwrap_or_default(),
        main: associations.iter().any(|it| it.main == Some(true)),
        associations: associations
            .into_iter()
            .filter_map(|it| Some((it.subnet_id?, it.route_table_association_id?)))
            .collect(),
        default_route: default.into_iter().next().and_then(|it| {
            it.gateway_id
                .or(it.nat_gateway_id)
                .or(it.transit_gateway_id)
                .or(it.network_interface_id)
                .or(it.vpc_peering_connection_id)
        }),
        internet_gateways: others
            .into_iter()
            .filter_map(|it| it.gateway_id)
            .filter(|it| it.starts_with("igw-"))
            .collect(),
        tags: tags(table.tags),
    })
}

async fn route(region: &Context, table: &str, to: &Key, exists: bool, ids: &Ids) -> Result<(), Failure> {
    const CREATE: &str = "ec2:CreateRoute";
    const REPLACE: &str = "ec2:ReplaceRoute";
    let target = id_of(CREATE, ids, to)?.to_owned();
    let gateway = (to.kind != Kind::NatGateway).then(|| target.clone());
    let nat_gateway = (to.kind == Kind::NatGateway).then(|| target.clone());
    let mut exists = exists;
    if !exists {
        let call = region.api.ec2.create_route().route_table_id(table).destination_cidr_block(DEFAULT);
        let call = call.set_gateway_id(gateway.clone()).set_nat_gateway_id(nat_gateway.clone());
        match region.api.write(CREATE, call.send()).await {
            Err(failure) if failure.is("RouteAlreadyExists") => exists = true,
            other => drop(other?),
        }
    }
    if exists {
        let call = region.api.ec2.replace_route().route_table_id(table).destination_cidr_block(DEFAULT);
        region
            .api
            .write(REPLACE, call.set_gateway_id(gateway).set_nat_gateway_id(nat_gateway).send())
            .await?;
    }
    region.record(
        Read::RouteTables,
        changed::<FoundRouteTable>(table, move |it| it.default_route = Some(target.clone())),
    );
    Ok(())
}

async fn associate(region: &Context, table: &str, subnet: &str, ids: &Ids) -> Result<(), Failure> {
    const ASSOCIATE: &str = "ec2:AssociateRouteTable";
    const REPLACE: &str = "ec2:ReplaceRouteTableAssociation";
    let subnet = id_of(ASSOCIATE, ids, &Subnet::key(subnet))?.to_owned();
    let call = region.api.ec2.associate_route_table().route_table_id(table).subnet_id(&subnet);
    let association = match region.api.write(ASSOCIATE, call.send()).await {
        Ok(answer) => answer.association_id,
        Err(failure) if failure.is("Resource.AlreadyAssociated") => {
            let shown = region.snapshot();
            let other =
                shown.route_tables.iter().find(|it| it.associations.contains_key(&subnet)).ok_or(failure)?;
            region.doubt(Read::RouteTables);
            let call = region.api.ec2.replace_route_table_association().route_table_id(table);
            let call = call.association_id(&other.associations[&subnet]);
            let association = region.api.write(REPLACE, call.send()).await?.new_association_id;
            let taken = subnet.clone();
            region.record(
                Read::RouteTables,
                changed(&other.id, move |it: &mut FoundRouteTable| drop(it.associations.remove(&taken))),
            );
            association
        }
        Err(failure) => return Err(failure),
    };
    let association = association.ok_or_else(|| Failure::incomplete(ASSOCIATE))?;
    let change =
        move |it: &mut FoundRouteTable| drop(it.associations.insert(subnet.clone(), association.clone()));
    region.record(Read::RouteTables, changed(table, change));
    Ok(())
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::RouteTableAssociation;

    use super::*;

    #[test]
    fn what_a_table_leads_to_and_what_it_is_of_is_kept() {
        let to = |range: &str, gateway: &str| {
            Route::builder().destination_cidr_block(range).gateway_id(gateway).build()
        };
        let ipv6 = Route::builder().destination_ipv6_cidr_block("::/0").gateway_id("igw-2").build();
        let association = RouteTableAssociation::builder().route_table_association_id("rtbassoc-1");
        let table = AwsRouteTable::builder()
            .route_table_id("rtb-1")
            .vpc_id("vpc-1")
            .routes(to("10.0.0.0/16", "local"))
            .routes(to("198.51.100.0/24", "igw-1"))
            .routes(to("203.0.113.0/24", "vgw-1"))
            .routes(ipv6)
            .routes(Route::builder().destination_cidr_block(DEFAULT).nat_gateway_id("nat-1").build());
        let of_subnet =
            found(table.clone().associations(association.clone().subnet_id("subnet-1").build()).build())
                .expect("a table");
        assert_eq!(of_subnet.default_route.as_deref(), Some("nat-1"));
        assert_eq!(of_subnet.internet_gateways, ["igw-1", "igw-2"].map(str::to_owned).into());
        assert_eq!(
            (of_subnet.main, of_subnet.associations),
            (false, [("subnet-1".to_owned(), "rtbassoc-1".to_owned())].into())
        );
        let main = found(table.associations(association.main(true).build()).build()).expect("a table");
        assert!(main.main && main.associations.is_empty());
    }
}
