//! Turns what a poll of the region found into what one cluster or machine sees: AWS ids become roles, and
//! each thing gets an owner. A tag is not ownership: what counts is the random id that this operator puts on
//! everything it makes, and for what Cluster API Provider AWS made before, that it lies in the VPC that the
//! cluster names. Nothing here decides what to do about any of it.

mod group;
mod interface;
mod load_balancer;
mod machine;
mod network;
mod subnet;

use std::collections::BTreeMap;

use crds::names::{ID_TAG, OWNED, ROLE_TAG, cloud_provider_tag, cluster_tag};

use crate::claims::Claims;
use crate::cluster::adopted;
use crate::gc::{Collected, LeftoverKind};
use model::{
    Intent, Key, LoadBalancerKind, Observed, ObservedResource, Owner, Resource, Snapshot, State, Tags,
};

pub use machine::{Identity, Named, machine};
pub(crate) use machine::{is_own, looked_up};
pub(crate) use network::NETWORK;
pub(crate) use subnet::{is_public, kept_for_pods, listed_as};

/// Tag key of things whose role would not show otherwise: the name part of their key.
pub const KEY_TAG: &str = "cluster.kurator.dev/role";
/// The only role name of a VPC and an internet gateway.
pub const MAIN: &str = "main";
/// The roles of security groups.
pub const GROUP_ROLES: [&str; 4] = ["apiserver-lb", "controlplane", "lb", "node"];
/// The role of the load balancer in front of the API servers.
pub const API_SERVER: &str = "apiserver";

/// Of which cluster to see things.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Name of the Cluster.
    pub cluster: String,
    /// The random id of the AWSCluster.
    pub id: String,
    /// Namespace and name of the AWSCluster.
    pub owner: String,
    /// ClusterIdentity things it takes over.
    pub adopts: Option<String>,
    /// The VPC that the spec names or that was recorded.
    pub vpc_id: Option<String>,
    /// Whether the spec names it.
    pub vpc_given: bool,
    /// Subnets by role, as far as the spec says what they are.
    pub subnets: Vec<SubnetRole>,
    /// Names of the NAT gateways that the cluster should have, which free addresses are kept for.
    pub nat_gateways: Vec<String>,
    /// Name in AWS and kind of the API's load balancer, if it has one.
    pub load_balancer: Option<(String, LoadBalancerKind)>,
    /// Creations that are not settled.
    pub intents: BTreeMap<Key, Intent>,
    /// While deleting, whatever stands in the way is seen too.
    pub deleting: bool,
    /// Which of what controllers inside of the cluster left goes with it.
    pub collected: Collected,
}

impl Scope {
    fn claims(&self) -> Claims<'_> {
        Claims { cluster: &self.cluster, id: &self.id, owner: &self.owner, adopts: self.adopts.as_deref() }
    }
}

/// How to know a subnet that the spec lists.
#[derive(Clone, Debug, PartialEq)]
pub struct SubnetRole {
    pub name: String,
    /// Its AWS id, if the spec says so.
    pub id: Option<String>,
    pub cidr: Option<String>,
    pub zone: String,
    /// What everything is decided by: as the spec says where the network is ours to make, else as was found.
    pub public: bool,
    /// Kept for pods: neither machines nor load balancers are put in it.
    pub for_pods: bool,
    /// Not listed any more, and kept for what uses it: nothing new is put in it.
    pub unlisted: bool,
}

/// What one cluster sees.
pub fn cluster(snapshot: &Snapshot, scope: &Scope) -> Observed {
    let takes_unmarked = scope.claims().takes_unmarked(None);
    let mut observer = Observer {
        snapshot,
        scope,
        takes_unmarked,
        vpc: None,
        names: BTreeMap::new(),
        observed: Observed::new(),
    };
    observer.network();
    observer.load_balancers();
    if scope.deleting {
        observer.interfaces();
    }
    observer.observed
}

/// Who says that a resource is whose.
enum Claim {
    /// It carries our id.
    Ours,
    /// It is tagged as owned by a cluster of our name, without an id.
    Unmarked,
    /// It carries another id.
    Other(String),
    /// It says nothing.
    None,
}

/// The VPC of a cluster, once it is seen.
#[derive(Clone)]
struct ObservedVpc {
    id: String,
    /// Whether the network in it is ours to make, change and delete.
    owned: bool,
}

struct Observer<'a> {
    snapshot: &'a Snapshot,
    scope: &'a Scope,
    /// Whether what another provider made for a cluster of this name is this one's.
    takes_unmarked: bool,
    vpc: Option<ObservedVpc>,
    /// Role names by AWS id.
    names: BTreeMap<String, String>,
    observed: Observed,
}

impl Observer<'_> {
    fn claim(&self, tags: &Tags) -> Claim {
        // This says enough when somebody changed the cluster's tag.
        if self.scope.claims().marked(tags) {
            return Claim::Ours;
        }
        if !self.scope.id.is_empty() && tags.get(ID_TAG) == Some(&self.scope.id) {
            return Claim::Other("the AWSCluster that this one was copied from".to_owned());
        }
        if tags.get(&cluster_tag(&self.scope.cluster)).map(String::as_str) != Some(OWNED) {
            return Claim::None;
        }
        match tags.get(ID_TAG) {
            None => Claim::Unmarked,
            // The id is theirs, and not told: it is what shows whose something is.
            Some(_) => Claim::Other(format!("another cluster named {:?}", self.scope.cluster)),
        }
    }

    /// ClusterIdentity something in our VPC is.
    fn owner(&self, tags: &Tags) -> Owner {
        match self.claim(tags) {
            Claim::Ours => Owner::Mine,
            Claim::Unmarked if self.takes_unmarked => Owner::Mine,
            Claim::Unmarked => Owner::OtherDriver(self.another_provider()),
            Claim::Other(whose) => Owner::OtherDriver(whose),
            Claim::None => Owner::User,
        }
    }

    /// Whether a controller inside of the cluster made it, nobody is left to remove it, and it is not to
    /// stay.
    fn left_over(&self, kind: LeftoverKind, tags: &Tags) -> bool {
        if !self.scope.collected.has(kind) {
            return false;
        }
        let cluster = &self.scope.cluster;
        let by_cloud_provider = tags.get(&cloud_provider_tag(cluster)).map(String::as_str) == Some(OWNED);
        by_cloud_provider || tags.get("elbv2.k8s.aws/cluster") == Some(cluster)
    }

    fn another_provider(&self) -> String {
        format!(
            "a cluster named {:?} of another provider (to take it over, {})",
            self.scope.cluster,
            adopted::how()
        )
    }

    fn owns_network(&self) -> bool {
        self.vpc.as_ref().is_some_and(|it| it.owned)
    }

    fn in_vpc(&self, id: &str) -> bool {
        self.vpc.as_ref().is_some_and(|it| it.id == id)
    }

    /// The role name of something by its id, or the id.
    fn name(&self, id: &str) -> String {
        self.names.get(id).cloned().unwrap_or_else(|| id.to_owned())
    }

    fn put(
        &mut self,
        id: &str,
        owner: Owner,
        state: State,
        is: Resource,
        tags: Option<&Tags>,
        note: Option<String>,
    ) {
        let key = is.key();
        let mine = owner == Owner::Mine;
        let mut observed = ObservedResource {
            id: id.to_owned(),
            owner,
            state,
            is,
            tags: tags.cloned(),
            others: Vec::new(),
            note,
        };
        let key = match self.observed.get_mut(&key) {
            None => key,
            Some(other) if mine && other.owner != Owner::Mine => {
                *other = observed;
                self.names.insert(id.to_owned(), key.name);
                return;
            }
            Some(other) if mine && !self.scope.deleting => return other.others.push(id.to_owned()),
            Some(_) if !mine && !self.scope.deleting => return,
            Some(_) => {
                let key = Key::new(key.kind, format!("{}~{id}", key.name));
                observed.is = observed.is.renamed(key.name.clone());
                key
            }
        };
        self.names.insert(id.to_owned(), key.name.clone());
        self.observed.insert(key, observed);
    }
}

/// What something is for, as its tag says it.
pub(crate) fn role_of(tags: &Tags) -> Option<&str> {
    tags.get(ROLE_TAG).map(String::as_str)
}
