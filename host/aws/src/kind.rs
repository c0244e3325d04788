//! What each kind of resource answers for AWS: how it is described, and how it is made, changed and removed.

use std::collections::BTreeSet;

use aws_sdk_ec2::types::Filter;
use model::{Ids, Key, Read, ResourceKind, Snapshot, Tags, Timestamp};

use crate::api::Api;
use crate::context::{Context, State};
use crate::errors::{Failure, NOT_YET};
use crate::{ID_TAG, OWNER_TAG, ec2};

/// A creation, beside the resource itself.
#[derive(Clone, Copy)]
pub(crate) struct Creation<'a> {
    pub key: &'a Key,
    pub tags: &'a Tags,
    /// Of what it refers to.
    pub ids: &'a Ids,
    /// What keeps it from being done twice, where neither a name nor a range does and AWS takes one.
    pub client_token: Option<&'a str>,
    /// When it may not be sent any more.
    pub until: Option<Timestamp>,
}

/// A change, beside what is desired and what was observed.
#[derive(Clone, Copy)]
pub(crate) struct Change<'a> {
    pub key: &'a Key,
    /// AWS's name for it.
    pub id: &'a str,
    /// For parts that are made anew.
    pub tags: &'a Tags,
    /// Of what it refers to, as observed and as desired.
    pub ids: &'a Ids,
}

/// Tags to be set, and tags to be taken away.
#[derive(Clone, Copy)]
pub(crate) struct Tagging<'a> {
    /// AWS's name for it.
    pub id: &'a str,
    /// Ids of what gets the same tags.
    pub parts: &'a BTreeSet<String>,
    pub tags: &'a Tags,
    pub untag: &'a BTreeSet<String>,
}

/// One kind of resource in AWS. What a kind does not say, it cannot: an address is never changed.
pub(crate) trait AwsKind: ResourceKind {
    /// What AWS shows of one; `()` where no Describe of EC2 shows all of them.
    type Found;
    /// What its ids begin with.
    const ID_PREFIX: &'static str = "";
    /// The filter of its Describe that takes ids.
    const ID_FILTER: &'static str = "";

    /// Those that any of the selections finds; the filters of one selection are all to be met.
    fn describe(
        _: &Api,
        _selections: Vec<Vec<Filter>>,
    ) -> impl Future<Output = Result<Vec<Self::Found>, Failure>> + Send {
        async { Ok(Vec::new()) }
    }

    /// VPCs of which each poll reads all, whoever made them.
    fn vpcs_to_read(_: &State) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// A snapshot shows all of these VPCs.
    fn set_vpcs_read(_: &mut Snapshot, _vpcs: BTreeSet<String>) {}

    async fn create(&self, _: &Context, with: Creation<'_>) -> Result<(), Failure> {
        Err(unsupported("create", with.key))
    }

    async fn update(&self, _: &Context, _observed: &Self, with: Change<'_>) -> Result<(), Failure> {
        Err(unsupported("update", with.key))
    }

    async fn delete(&self, region: &Context, id: &str, ids: &Ids) -> Result<(), Failure>;

    async fn tag(region: &Context, tagging: Tagging<'_>) -> Result<(), Failure> {
        let resources = std::iter::once(tagging.id.to_owned()).chain(tagging.parts.iter().cloned());
        ec2::tag(&region.api, resources.collect(), tagging.tags, tagging.untag).await
    }

    /// Reads one by its id: from then on the snapshot shows it, or that it is absent. What EC2 describes by
    /// filters is confirmed by them.
    async fn confirm(_: &Context, key: &Key, _id: &str) -> Result<(), Failure> {
        Err(unsupported("look for", key))
    }

    /// What shows how an action on it ended. `has_arn`: whether it is one of Elastic Load Balancing's second
    /// version.
    fn shown_by(_has_arn: bool) -> Option<Read> {
        Self::READS.first().copied()
    }
}

pub(crate) fn unsupported(verb: &str, key: &Key) -> Failure {
    Failure::local("plan", "InvalidCall", format!("there is no way to {verb} {key}"))
}

/// The AWS id of what an action refers to.
pub(crate) fn id_of<'a>(action: &'static str, ids: &'a Ids, key: &Key) -> Result<&'a str, Failure> {
    ids.get(key)
        .map(String::as_str)
        .ok_or_else(|| Failure::local(action, NOT_YET, format!("the id of {key} is not known yet")))
}

/// Whether something found was made for the same AWSCluster as what has the tags `ours`.
pub(crate) fn is_ours(found: &Tags, ours: &Tags) -> bool {
    let owner = found.get(OWNER_TAG);
    ours.get(ID_TAG).is_some_and(|id| found.get(ID_TAG) == Some(id))
        && (owner.is_none() || owner == ours.get(OWNER_TAG))
}
