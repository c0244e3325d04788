//! Networks that users brought: which VPC that is, what has to be read of it before anything is decided, and
//! which of its subnets count. Nothing of them is made or changed.

use crds::AWSCluster;
use crds::cluster_api::Cluster;
use crds::network::SubnetSpec;

use super::adopted::adopted_from;
use super::aws_id::aws_ids;
use super::{is_external, name};
use crate::PersistedState;
use crate::claims::Claims;
use crate::observe::{MAIN, SubnetRole, is_public, kept_for_pods};
use model::{FoundVpc, Interest, Invalid, Read, Snapshot, Vpc};

/// The VPC that the spec names, unless the cluster lives in another one already.
pub(crate) fn given<'a>(aws_cluster: &'a AWSCluster, record: &PersistedState) -> Option<&'a str> {
    let id = aws_cluster.spec.network.vpc.id.as_str();
    let elsewhere = record.ids.get(&Vpc::key(MAIN)).is_some_and(|it| it != id);
    (!id.is_empty() && !elsewhere).then_some(id)
}

/// Whether a VPC that the spec names was made for the cluster, by this operator or by Cluster API Provider
/// AWS.
fn is_owned(vpc: &FoundVpc, cluster: &Cluster, aws_cluster: &AWSCluster, record: &PersistedState) -> bool {
    let (cluster, owner) = (name::cluster_name(cluster), model::owner(aws_cluster));
    Claims { cluster: &cluster, id: &record.id, owner: &owner, adopts: adopted_from(aws_cluster) }
        .mine(&vpc.tags, None)
}

/// The VPC that a user brought. One that the spec names by its id is ours all the same where its tags say so.
fn vpc<'a>(
    cluster: &Cluster,
    aws_cluster: &'a AWSCluster,
    record: &PersistedState,
    snapshot: &Snapshot,
) -> Option<&'a str> {
    let id = given(aws_cluster, record)?;
    let owned = snapshot.vpcs.iter().any(|it| it.id == id && is_owned(it, cluster, aws_cluster, record));
    (!owned && !is_external(aws_cluster)).then_some(id)
}

/// The VPC that a user brought, as long as its route tables were not read: which of its subnets are public,
/// nobody knows before.
pub(crate) fn unread<'a>(
    cluster: &Cluster,
    aws_cluster: &'a AWSCluster,
    record: &PersistedState,
    snapshot: &Snapshot,
) -> Option<&'a str> {
    vpc(cluster, aws_cluster, record, snapshot).filter(|id| !snapshot.route_tables_read.contains(*id))
}

/// What has to be read of the VPC that a user brought.
pub(crate) fn interest(
    cluster: &Cluster,
    aws_cluster: &AWSCluster,
    record: &PersistedState,
    snapshot: &Snapshot,
) -> Interest {
    let read = |id: &str| snapshot.route_tables_read.contains(id);
    let vpc = vpc(cluster, aws_cluster, record, snapshot);
    Interest {
        reads: vpc.filter(|id| !read(id)).map(|_| Read::RouteTables).into_iter().collect(),
        route_tables_of: vpc.map(str::to_owned).into_iter().collect(),
        ..Interest::default()
    }
}

/// The subnets that the spec lists, but those that are kept for pods. What was found of them counts more than
/// what the spec says.
pub(super) fn subnets(
    specs: &[SubnetSpec],
    vpc_id: &str,
    snapshot: &Snapshot,
) -> Result<Vec<SubnetRole>, Invalid> {
    let mut res = Vec::new();
    for (n, spec) in specs.iter().enumerate() {
        let field = format!("spec.network.subnets[{n}].id");
        let id = aws_ids(spec).next().cloned();
        let id = id
            .ok_or_else(|| Invalid::new(&field, format!("{:?} is no id of a subnet of {vpc_id}", spec.id)))?;
        let found = snapshot.subnets.iter().find(|it| it.id == id);
        if let Some(found) = found.filter(|it| it.vpc_id != vpc_id) {
            return Err(Invalid::new(field, format!("{id} lies in {}, not in {vpc_id}", found.vpc_id)));
        }
        if kept_for_pods(&spec.tags) || found.is_some_and(|it| kept_for_pods(&it.tags)) {
            continue;
        }
        let zone = found.map_or_else(|| spec.availability_zone.clone(), |it| it.zone.clone());
        let public = found.map_or(spec.is_public, |it| is_public(snapshot, it));
        let (for_pods, unlisted) = (false, false);
        res.push(SubnetRole { name: id.clone(), id: Some(id), cidr: None, zone, public, for_pods, unlisted });
    }
    if !res.is_empty() {
        return Ok(res);
    }
    let missing = if specs.is_empty() {
        format!("list the subnets of {vpc_id} that the cluster may use")
    } else {
        format!("all are kept for pods by their tags; list subnets of {vpc_id} for machines too")
    };
    Err(Invalid::new("spec.network.subnets", missing))
}
