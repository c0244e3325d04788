//! Signs that another cluster of the same name is in a VPC: tags and names do not tell then whose something
//! is that a controller made there.

use crds::names::{OWNED, cloud_provider_tag, cluster_tag};

use crate::claims::Claims;
use model::{FoundInstance, FoundNetworkInterface, FoundSubnet, Snapshot, Tags, is_marked};

/// Tag keys whose value is the name of a cluster: of eksctl, of EKS's node groups, and of kops.
const NAMING_TAGS: [&str; 4] = [
    "alpha.eksctl.io/cluster-name",
    "eksctl.cluster.k8s.io/v1alpha1/cluster-name",
    "eks:cluster-name",
    "KubernetesCluster",
];
/// Descriptions of the interfaces through which EKS's control plane reaches a VPC: the cluster's name
/// follows.
const EKS_INTERFACE: &str = "Amazon EKS ";

/// ClusterIdentity leftovers are looked for.
#[derive(Clone, Debug)]
pub struct ClusterIdentity {
    /// Name of the Cluster.
    pub cluster: String,
    /// The random id of the AWSCluster.
    pub id: String,
    /// Namespace and name of the AWSCluster.
    pub owner: String,
    /// Whether the VPC is the cluster's own. What another provider made in it before it was taken over is the
    /// cluster's, too.
    pub owns_vpc: bool,
}

/// What is in a VPC besides what was left.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    pub instances: Vec<FoundInstance>,
    pub subnets: Vec<FoundSubnet>,
    pub network_interfaces: Vec<FoundNetworkInterface>,
}

impl ClusterIdentity {
    /// This AWSCluster, in a VPC that was seen.
    pub fn of(snapshot: &Snapshot, vpc_id: &str, cluster: &str, id: &str, owner: &str) -> ClusterIdentity {
        let claims = Claims { cluster, id, owner, adopts: None };
        let owns_vpc = snapshot.vpcs.iter().any(|it| it.id == vpc_id && claims.marked(&it.tags));
        ClusterIdentity { cluster: cluster.to_owned(), id: id.to_owned(), owner: owner.to_owned(), owns_vpc }
    }

    /// Filters of EC2 for what may be a sign: tag keys.
    pub fn sign_tags(&self) -> Vec<String> {
        let named = [cloud_provider_tag(&self.cluster), cluster_tag(&self.cluster)];
        named.into_iter().chain(NAMING_TAGS.map(str::to_owned)).collect()
    }

    /// The first sign of another cluster of this name in this VPC, in words. That a cloud provider's tag says
    /// `shared` is none: users are asked to set it on what they bring.
    pub fn sign(&self, vpc_id: &str, found: &Neighbours) -> Option<String> {
        let lives =
            |it: &&FoundInstance| it.vpc_id.as_deref() == Some(vpc_id) && it.status.state != "terminated";
        let instances = found.instances.iter().filter(lives).map(|it| (&it.id, &it.tags));
        let subnets = found.subnets.iter().filter(|it| it.vpc_id == vpc_id).map(|it| (&it.id, &it.tags));
        let tagged = instances
            .chain(subnets)
            .find_map(|(id, tags)| Some(format!("{id} has the tag {}", self.tag(tags)?)));
        let of_eks = |it: &&FoundNetworkInterface| {
            it.vpc_id == vpc_id
                && it.description.strip_prefix(EKS_INTERFACE).is_some_and(|name| name == self.cluster)
        };
        tagged.or_else(|| {
            found
                .network_interfaces
                .iter()
                .find(of_eks)
                .map(|it| format!("{} is described as {:?}", it.id, it.description))
        })
    }

    /// The tag that says that something is of another cluster of this name.
    fn tag(&self, tags: &Tags) -> Option<String> {
        if is_marked(tags, &self.id, &self.owner) {
            return None;
        }
        let value = |key: &str| tags.get(key).map(String::as_str);
        let (made_by_capa, owned) = (cluster_tag(&self.cluster), cloud_provider_tag(&self.cluster));
        if value(&made_by_capa) == Some(OWNED) {
            return (!self.owns_vpc || tags.contains_key(crds::names::ID_TAG))
                .then(|| format!("{made_by_capa}={OWNED}"));
        }
        let naming = NAMING_TAGS.into_iter().find(|key| value(key) == Some(self.cluster.as_str()));
        let naming = naming.map(|key| format!("{key}={}", self.cluster));
        naming.or_else(|| (value(&owned) == Some(OWNED)).then(|| format!("{owned}={OWNED}")))
    }
}
