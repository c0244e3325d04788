//! What users make of the pretend AWS by hand.

use model::*;

use super::World;

impl World {
    /// A route table without tags: the VPC's main one or not, the subnets that it is associated with, and
    /// where its default route leads.
    pub fn route_table_of_user(
        &mut self,
        vpc_id: &str,
        main: bool,
        subnets: &[&str],
        default_route: Option<&str>,
    ) {
        let table = FoundRouteTable {
            id: self.id("rtb"),
            vpc_id: vpc_id.to_owned(),
            main,
            associations: subnets.iter().map(|it| ((*it).to_owned(), format!("rtbassoc-{it}"))).collect(),
            default_route: default_route.map(str::to_owned),
            internet_gateways: Default::default(),
            tags: Tags::new(),
        };
        self.truth.route_tables.push(table);
    }
}
