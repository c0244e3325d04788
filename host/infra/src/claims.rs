//! Whether something in a cluster's VPC is the cluster's, by its tags. A tag is not ownership: what counts is
//! the random id that this operator puts on everything it makes.

use crds::names::{ADOPT_FROM_CAPA, ID_TAG, OWNED, cluster_tag};
use model::Tags;

/// Who a cluster is, as tags say it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claims<'a> {
    /// Name of the Cluster.
    pub cluster: &'a str,
    /// The random id of the AWSCluster.
    pub id: &'a str,
    /// Namespace and name of the AWSCluster.
    pub owner: &'a str,
    /// ClusterIdentity things it takes over.
    pub adopts: Option<&'a str>,
}

impl Claims<'_> {
    /// Whether something carries the cluster's id, and its owner's name or that of who it takes over from.
    pub fn marked(&self, tags: &Tags) -> bool {
        model::is_marked(tags, self.id, self.owner)
            || self.adopts.is_some_and(|from| model::is_marked(tags, self.id, from))
    }

    /// Whether another provider made something for a cluster of this name.
    pub fn unmarked(&self, tags: &Tags) -> bool {
        tags.get(&cluster_tag(self.cluster)).map(String::as_str) == Some(OWNED) && !tags.contains_key(ID_TAG)
    }

    /// Whether what another provider made in this VPC is the cluster's: it takes it over, or has done so.
    pub fn takes_unmarked(&self, vpc: Option<&Tags>) -> bool {
        self.adopts == Some(ADOPT_FROM_CAPA) || vpc.is_some_and(|tags| self.marked(tags))
    }

    /// Whether something in this VPC is the cluster's.
    pub fn mine(&self, tags: &Tags, vpc: Option<&Tags>) -> bool {
        self.marked(tags) || self.unmarked(tags) && self.takes_unmarked(vpc)
    }
}
