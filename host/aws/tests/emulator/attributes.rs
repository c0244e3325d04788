//! Attributes of load balancers, which no sweep shows: they are read of those that are asked for.

use model::{Action, LoadBalancer, LoadBalancerAttributes, LoadBalancerKind, Outcome, Read};
use serde_json::json;

use crate::bed::{Bed, act, awaiting, snapshot, until};
use crate::cluster::*;

const READ: &str = "DescribeLoadBalancerAttributes";

/// A cluster with a load balancer, as a process sees it that was started later. The id of the load balancer.
async fn found_by_another_process(bed: &Bed, kind: LoadBalancerKind) -> (aws::Region, String) {
    let region = bed.swept().await;
    let mut ids = network(&region).await;
    balancer(&region, kind, &mut ids).await;
    let other = bed.swept().await;
    assert_eq!(snapshot(&other).load_balancers[0].attributes, None);
    (other, ids[&LoadBalancer::key("apiserver")].clone())
}

async fn confirm(region: &aws::Region, id: &str) -> Option<LoadBalancerAttributes> {
    let action = Action::Confirm { key: LoadBalancer::key("apiserver"), id: id.to_owned() };
    assert_eq!(act(region, action).await, Outcome::Done);
    snapshot(region).load_balancers[0].attributes.clone()
}

#[tokio::test]
async fn attributes_that_another_process_set_are_read_once() {
    for kind in [LoadBalancerKind::Classic, LoadBalancerKind::Network] {
        let bed = Bed::start(&[]).await;
        let (other, id) = found_by_another_process(&bed, kind).await;
        let set = load_balancer(kind, true).attributes;
        assert_eq!(confirm(&other, &id).await, set, "{kind:?}");
        let read = match kind {
            LoadBalancerKind::Classic => Read::ClassicLoadBalancers,
            _ => Read::LoadBalancers,
        };
        let before = snapshot(&other).read_at[&read];
        other.interest("test", awaiting([read]));
        let shown = until(&other, |it| it.read_at[&read] > before).await;
        assert_eq!(shown.load_balancers[0].attributes, set, "the next sweep keeps them");
        assert_eq!((bed.count(READ).await, bed.count("ModifyLoadBalancerAttributes").await), (1, 1));
    }
}

#[tokio::test]
async fn attributes_that_may_not_be_read_are_to_be_set() {
    let bed = Bed::start(&[]).await;
    let (other, id) = found_by_another_process(&bed, LoadBalancerKind::Classic).await;
    bed.faults(json!([{"kind": "access-denied", "action": READ}])).await;
    let untouched = LoadBalancerAttributes::untouched(LoadBalancerKind::Classic);
    assert_ne!(Some(untouched.clone()), load_balancer(LoadBalancerKind::Classic, true).attributes);
    assert_eq!(confirm(&other, &id).await, Some(untouched));
}

#[tokio::test]
async fn a_load_balancer_that_somebody_removed_is_absent_at_once() {
    let bed = Bed::start(&[]).await;
    let (other, id) = found_by_another_process(&bed, LoadBalancerKind::Classic).await;
    let user = bed.swept_by_user().await;
    let gone = delete(&id, load_balancer(LoadBalancerKind::Classic, true), &Default::default());
    assert_eq!(act(&user, gone).await, Outcome::Done);
    confirm(&other, &id).await;
    assert!(snapshot(&other).absent.contains_key(&id));
    until(&other, |it| it.load_balancers.is_empty()).await;
}
