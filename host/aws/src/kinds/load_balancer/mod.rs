//! Load balancers of the Kubernetes API: Elastic Load Balancing's first version, and network load balancers.

mod attributes;
pub(crate) mod classic;
mod ids;
pub(crate) mod network;
mod tags;
pub(crate) mod target_group;

use model::{FoundLoadBalancer, Ids, Key, LoadBalancer, LoadBalancerKind, Read};

use crate::context::Context;
use crate::errors::{Failure, NOT_YET};
use crate::kind::{AwsKind, Change, Creation, Tagging};
use crate::pending_writes::changed;

const DELETE: &str = "elasticloadbalancing:DeleteLoadBalancer";

impl AwsKind for LoadBalancer {
    type Found = ();

    async fn create(&self, region: &Context, with: Creation<'_>) -> Result<(), Failure> {
        match self.kind {
            LoadBalancerKind::Classic => classic::create(region, self, with).await,
            LoadBalancerKind::Network => network::create(region, self, with).await,
            LoadBalancerKind::Application | LoadBalancerKind::Gateway => Err(unsupported()),
        }
    }

    async fn update(&self, region: &Context, observed: &Self, with: Change<'_>) -> Result<(), Failure> {
        match self.kind {
            LoadBalancerKind::Classic => classic::update(region, self, observed, with).await,
            LoadBalancerKind::Network => network::update(region, self, observed, with).await,
            LoadBalancerKind::Application | LoadBalancerKind::Gateway => Err(unsupported()),
        }
    }

    /// Also those that others made, of any kind: they are removed with the VPC that they are in.
    async fn delete(&self, region: &Context, id: &str, _: &Ids) -> Result<(), Failure> {
        let is_classic = self.kind == LoadBalancerKind::Classic;
        // AWS says that it removed also what it does not know of yet.
        if region.is_young(id) && describe_one(region, id, is_classic).await?.is_none() {
            region.doubt(read(!is_classic));
            let message = format!("{id} was made a moment ago and is not shown yet");
            return Err(Failure::local(DELETE, NOT_YET, message));
        }
        if is_classic { classic::delete(region, id).await } else { network::delete(region, id).await }
    }

    async fn tag(region: &Context, with: Tagging<'_>) -> Result<(), Failure> {
        let (id, tags) = (with.id, with.tags.clone());
        if is_arn(id) {
            network::tag(&region.api, id, &tags).await?;
        } else {
            classic::tag(&region.api, id, &tags).await?;
        }
        // No poll reads their tags, so what was read once is changed right here.
        for deleting in region.state().known.base_mut().deleting.values_mut() {
            deleting.tags.get_mut(id).into_iter().for_each(|known| known.extend(tags.clone()));
        }
        let change = move |found: &mut FoundLoadBalancer| {
            found.tags.iter_mut().for_each(|known| known.extend(tags.clone()));
        };
        region.record(read(is_arn(id)), changed(id, change));
        Ok(())
    }

    /// With its attributes, which no other call shows.
    async fn confirm(region: &Context, _: &Key, id: &str) -> Result<(), Failure> {
        let found = describe_one(region, id, !is_arn(id)).await?;
        match &found {
            Some(found) => {
                let attributes = attributes::read(&region.api, found).await?;
                region.state().known.memory_mut().attributes.insert(id.to_owned(), attributes);
            }
            // It may still be shown.
            None => region.doubt(read(is_arn(id))),
        }
        region.show(read(is_arn(id)), id, found);
        Ok(())
    }

    fn shown_by(has_arn: bool) -> Option<Read> {
        Some(read(has_arn))
    }
}

fn is_arn(id: &str) -> bool {
    id.starts_with("arn:")
}

fn read(of_second_version: bool) -> Read {
    if of_second_version { Read::LoadBalancers } else { Read::ClassicLoadBalancers }
}

async fn describe_one(
    region: &Context,
    id: &str,
    is_classic: bool,
) -> Result<Option<FoundLoadBalancer>, Failure> {
    if is_classic {
        classic::describe_one(&region.api, id).await
    } else {
        network::describe_one(&region.api, id).await
    }
}

fn unsupported() -> Failure {
    Failure::local(
        "elasticloadbalancing:CreateLoadBalancer",
        "UnsupportedOperation",
        "only classic and network load balancers are made",
    )
}
