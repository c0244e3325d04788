//! One module for each kind of resource, and the dispatch to them by the table of kinds.

pub(crate) mod elastic_ip;
pub(crate) mod instance;
pub(crate) mod internet_gateway;
pub(crate) mod load_balancer;
pub(crate) mod nat_gateway;
pub(crate) mod network_interface;
pub(crate) mod route_table;
pub(crate) mod secret;
pub(crate) mod security_group;
pub(crate) mod security_group_rules;
pub(crate) mod subnet;
pub(crate) mod target;
pub(crate) mod vpc;
pub(crate) mod zone;

use model::{Ids, Key, Kind, Read, Resource, for_each_kind};

use crate::context::Context;
use crate::ec2::{filter, in_vpcs, selections};
use crate::errors::Failure;
use crate::kind::{AwsKind, Change, Creation, Tagging};
use crate::pending_writes::{Found, Tagged, changed};
use crate::region_state::{Base, Merge};

/// The first where EC2 describes all of a kind, else the second.
macro_rules! if_described {
    ($Found:ident: $described:expr, else $other:expr) => {
        $described
    };
    (: $described:expr, else $other:expr) => {
        $other
    };
}

macro_rules! dispatch {
    ($(
        $(#[$doc:meta])* $Kind:ident $word:literal $event:literal
            $(=> $Found:ident $field:ident $read:ident)?,
    )*) => {
        pub(crate) async fn create(
            region: &Context,
            resource: &Resource,
            with: Creation<'_>,
        ) -> Result<(), Failure> {
            match resource { $(Resource::$Kind(it) => it.create(region, with).await,)* }
        }

        pub(crate) async fn update(
            region: &Context,
            desired: &Resource,
            observed: &Resource,
            with: Change<'_>,
        ) -> Result<(), Failure> {
            match (desired, observed) {
                $((Resource::$Kind(desired), Resource::$Kind(observed)) => {
                    desired.update(region, observed, with).await
                })*
                _ => Err(crate::kind::unsupported("update", with.key)),
            }
        }

        pub(crate) async fn delete(
            region: &Context,
            resource: &Resource,
            id: &str,
            ids: &Ids,
        ) -> Result<(), Failure> {
            match resource { $(Resource::$Kind(it) => it.delete(region, id, ids).await,)* }
        }

        /// Adds tags, and takes tags away.
        pub(crate) async fn tag(region: &Context, kind: Kind, with: Tagging<'_>) -> Result<(), Failure> {
            match kind {
                $(Kind::$Kind => {
                    model::$Kind::tag(region, with).await?;
                    $(record_tags::<model::$Found>(region, Read::$read, with);)?
                })*
            }
            Ok(())
        }

        /// Reads one by its id: from then on the snapshot shows it, or that it is absent.
        pub(crate) async fn confirm(region: &Context, key: &Key, id: &str) -> Result<(), Failure> {
            match key.kind {
                $(Kind::$Kind => if_described!(
                    $($Found)?: confirm_described::<model::$Kind>(region, id).await,
                    else model::$Kind::confirm(region, key, id).await
                ),)*
            }
        }

        /// What shows how an action on one ended.
        pub(crate) fn shown_by(kind: Kind, has_arn: bool) -> Option<Read> {
            match kind { $(Kind::$Kind => model::$Kind::shown_by(has_arn),)* }
        }

        /// The read that shows an id.
        pub(crate) fn read_of(id: &str) -> Option<Read> {
            $($(if id.starts_with(model::$Kind::ID_PREFIX) {
                return Some(Read::$read);
            })?)*
            None
        }

        /// What one Describe of EC2 finds: what clusters are made of, and what has one of these ids.
        pub(crate) async fn poll(region: &Context, read: Read, ids: &[String]) -> Result<Merge, Failure> {
            match read {
                $($(Read::$read => poll_described::<model::$Kind>(region, ids).await,)?)*
                Read::ClassicLoadBalancers => {
                    let found = load_balancer::classic::describe(&region.api).await?;
                    Ok(Box::new(move |base: &mut Base| base.classic = found))
                }
                // These are read together.
                Read::LoadBalancers | Read::TargetGroups => Ok(Box::new(|_: &mut Base| ())),
            }
        }
    };
}

for_each_kind!(dispatch);

async fn poll_described<K>(region: &Context, ids: &[String]) -> Result<Merge, Failure>
where
    K: AwsKind<Found: Found>,
{
    let vpcs = K::vpcs_to_read(&region.state());
    let mut filters = selections(K::ID_FILTER, ids);
    filters.extend(in_vpcs(&vpcs));
    let found = K::describe(&region.api, filters).await?;
    Ok(Box::new(move |base: &mut Base| {
        K::Found::set_all(&mut base.snapshot, found);
        K::set_vpcs_read(&mut base.snapshot, vpcs);
    }))
}

async fn confirm_described<K>(region: &Context, id: &str) -> Result<(), Failure>
where
    K: AwsKind<Found: Found>,
{
    let found = K::describe(&region.api, vec![vec![filter(K::ID_FILTER, [id])]]).await?;
    region.show(K::READS[0], id, found.into_iter().next());
    Ok(())
}

fn record_tags<T: Tagged>(region: &Context, read: Read, with: Tagging<'_>) {
    let (tags, untag) = (with.tags.clone(), with.untag.clone());
    let change = move |found: &mut T| {
        found.tags_mut().extend(tags.clone());
        found.tags_mut().retain(|key, _| !untag.contains(key));
    };
    region.record(read, changed(with.id, change));
}
