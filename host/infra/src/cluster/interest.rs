//! What has to be read for a cluster, besides everything now and then.

use super::{Input, aws_id, unmanaged};
use crate::observe;
use model::{Interest, LoadBalancer, Plan};

/// What has to be read for this cluster besides everything now and then.
pub(super) fn interest(input: &Input<'_>, plan: &Plan) -> Interest {
    let network = &input.aws_cluster.spec.network;
    let mut res = unmanaged::interest(input.cluster, input.aws_cluster, input.record, input.snapshot);
    res.reads.extend(&plan.awaits);
    res.ids.insert(network.vpc.id.clone());
    res.ids.extend(network.subnets.iter().flat_map(aws_id::aws_ids).cloned());
    // Where its load balancer is, also in what the spec does not list any more: AWS takes no second subnet of
    // a zone.
    let balancer =
        input.record.ids.get(&LoadBalancer::key(observe::API_SERVER)).filter(|_| !network.vpc.id.is_empty());
    let found = balancer.and_then(|id| input.snapshot.load_balancers.iter().find(|it| it.id == *id));
    res.ids.extend(found.into_iter().flat_map(|it| it.subnets.iter().cloned()));
    res.ids.retain(|it| !it.is_empty());
    res
}
