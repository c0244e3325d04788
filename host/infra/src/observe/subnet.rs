//! What a subnet is good for, by its tags and by the routes of its VPC: whether the internet reaches it, and
//! whether it is kept for pods. Only what was found counts here, never what a spec says of it.

use super::{SubnetRole, role_of};
use model::{FoundRouteTable, FoundSubnet, Snapshot, Tags};

/// Tag key of subnets that Cluster API Provider AWS keeps for pods when its value is [`FOR_PODS`].
const ASSOCIATION_TAG: &str = "sigs.k8s.io/cluster-api-provider-aws/association";
const FOR_PODS: &str = "secondary";
/// The role of public subnets, in the tag that says what a resource is for.
const PUBLIC: &str = "public";

/// Whether a subnet of a VPC that a user brought is public, as Cluster API Provider AWS says: by its tag, or
/// because its route table leads to an internet gateway. As long as the route tables of the VPC are not read,
/// all that is known is whether its machines get a public address.
pub(crate) fn is_public(snapshot: &Snapshot, subnet: &FoundSubnet) -> bool {
    let by_routes = || {
        if snapshot.route_tables_read.contains(&subnet.vpc_id) {
            route_table(snapshot, subnet).is_some_and(FoundRouteTable::leads_to_internet_gateway)
        } else {
            subnet.public
        }
    };
    role_of(&subnet.tags) == Some(PUBLIC) || by_routes()
}

/// The table that is associated with a subnet; where none is, the VPC's main one counts.
fn route_table<'a>(snapshot: &'a Snapshot, subnet: &FoundSubnet) -> Option<&'a FoundRouteTable> {
    let tables: Vec<&FoundRouteTable> =
        snapshot.route_tables.iter().filter(|it| it.vpc_id == subnet.vpc_id).collect();
    let associated = tables.iter().find(|it| it.associations.contains_key(&subnet.id));
    associated.or_else(|| tables.iter().find(|it| it.main)).copied()
}

/// Which of the listed subnets one is: by its id; and by its range, where what is listed has no id, or one
/// that nothing has. Its place in the list says nothing.
pub(crate) fn listed_as<'a>(
    listed: &'a [SubnetRole],
    found: &FoundSubnet,
    snapshot: &Snapshot,
) -> Option<&'a SubnetRole> {
    let is_known = |id: &String| snapshot.subnets.iter().any(|it| it.id == *id);
    let by_id = listed.iter().find(|it| it.id.as_ref() == Some(&found.id));
    let by_cidr = || {
        let mut same_range = listed.iter().filter(|it| it.cidr.as_ref() == Some(&found.cidr));
        same_range.find(|it| !it.id.as_ref().is_some_and(is_known))
    };
    by_id.or_else(by_cidr)
}

/// Whether tags keep a subnet for pods.
pub(crate) fn kept_for_pods(tags: &Tags) -> bool {
    tags.get(ASSOCIATION_TAG).map(String::as_str) == Some(FOR_PODS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::State;

    fn subnet(id: &str, maps_public_ips: bool) -> FoundSubnet {
        FoundSubnet {
            id: id.into(),
            vpc_id: "vpc-1".into(),
            zone: "us-east-1a".into(),
            cidr: "10.0.0.0/24".into(),
            public: maps_public_ips,
            state: State::Ready,
            tags: Tags::new(),
        }
    }

    fn table(vpc_id: &str, main: bool, subnets: &[&str], default_route: &str) -> FoundRouteTable {
        FoundRouteTable {
            id: format!("rtb-{default_route}"),
            vpc_id: vpc_id.into(),
            main,
            associations: subnets.iter().map(|it| ((*it).to_owned(), format!("rtbassoc-{it}"))).collect(),
            default_route: Some(default_route.to_owned()),
            internet_gateways: Default::default(),
            tags: Tags::new(),
        }
    }

    fn with_tables(tables: Vec<FoundRouteTable>) -> Snapshot {
        Snapshot {
            route_tables: tables.into(),
            route_tables_read: ["vpc-1".to_owned()].into(),
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_subnet_is_public_by_its_own_table_else_by_the_main_one() {
        let out = table("vpc-1", false, &["subnet-out"], "igw-1");
        let inside = table("vpc-1", false, &["subnet-in"], "nat-1");
        for (main, expected) in [("igw-1", true), ("nat-1", false)] {
            let tables = vec![
                table("vpc-2", true, &[], "igw-2"),
                table("vpc-1", true, &[], main),
                out.clone(),
                inside.clone(),
            ];
            let snapshot = with_tables(tables);
            let public = ["subnet-out", "subnet-in", "subnet-other"]
                .map(|it| is_public(&snapshot, &subnet(it, it == "subnet-in")));
            assert_eq!(
                public,
                [true, false, expected],
                "whether machines get a public address does not matter"
            );
        }
    }

    #[test]
    fn any_route_to_an_internet_gateway_counts() {
        let mut narrow = table("vpc-1", true, &[], "nat-1");
        assert!(!is_public(&with_tables(vec![narrow.clone()]), &subnet("subnet-1", true)));
        narrow.internet_gateways.insert("igw-1".into());
        assert!(is_public(&with_tables(vec![narrow]), &subnet("subnet-1", false)));
    }

    #[test]
    fn a_tag_makes_a_subnet_public_and_never_private() {
        let snapshot = with_tables(vec![table("vpc-1", true, &["subnet-out"], "igw-1")]);
        let tagged = |id: &str, role: &str| {
            let tags = Tags::from([(crds::names::ROLE_TAG.to_owned(), role.to_owned())]);
            is_public(&snapshot, &FoundSubnet { tags, ..subnet(id, false) })
        };
        assert!(tagged("subnet-out", "private"));
        let none = with_tables(vec![table("vpc-1", true, &[], "nat-1")]);
        let tags = Tags::from([(crds::names::ROLE_TAG.to_owned(), PUBLIC.to_owned())]);
        assert!(is_public(&none, &FoundSubnet { tags, ..subnet("subnet-1", false) }));
    }

    #[test]
    fn before_route_tables_are_read_only_machines_addresses_count() {
        let unread =
            Snapshot { route_tables: vec![table("vpc-1", true, &[], "igw-1")].into(), ..Snapshot::default() };
        assert!(
            is_public(&unread, &subnet("subnet-1", true)) && !is_public(&unread, &subnet("subnet-1", false))
        );
    }

    #[test]
    fn pods_keep_what_one_value_of_one_tag_says() {
        let tagged =
            |value: &str| kept_for_pods(&Tags::from([(ASSOCIATION_TAG.to_owned(), value.to_owned())]));
        assert!(tagged("secondary") && !tagged("primary") && !kept_for_pods(&Tags::new()));
    }
}
