//! Names of things in AWS: exactly those of Cluster API Provider AWS, so that clusters can be taken over and
//! scripts go on working.

use blake2::Blake2bVar;
use blake2::digest::{Update, VariableOutput};
use crds::AWSCluster;
use crds::cluster_api::Cluster;

use model::LoadBalancerKind;

/// The port that API servers listen at on their machines, whatever the port of the load balancer.
pub(crate) const API_SERVER_PORT: u16 = 6443;
/// Longest name of a load balancer.
const LONGEST: usize = 32;

/// The name of the Cluster, which names and tags are made of.
pub(crate) fn cluster_name(cluster: &Cluster) -> String {
    cluster.metadata.name.clone().unwrap_or_default()
}

/// The port at which the API is reached.
pub(super) fn api_server_port(cluster: &Cluster) -> i32 {
    cluster.spec.cluster_network.api_server_port.unwrap_or(i32::from(API_SERVER_PORT))
}

/// Name of a security group. AWS takes no name that begins like an id.
pub(super) fn group(cluster: &str, role: &str) -> String {
    let prefix = if cluster.starts_with("sg-") { "@" } else { "" };
    format!("{prefix}{cluster}-{role}")
}

/// Name of the load balancer in front of the API servers.
pub(super) fn load_balancer(cluster: &str, aws_cluster: &AWSCluster, kind: LoadBalancerKind) -> String {
    if let Some(name) = aws_cluster.spec.control_plane_load_balancer.name.as_ref().filter(|it| !it.is_empty())
    {
        return name.clone();
    }
    let base = match kind {
        LoadBalancerKind::Network => {
            format!("{}-{cluster}", aws_cluster.metadata.namespace.as_deref().unwrap_or_default())
        }
        _ => cluster.to_owned(),
    };
    let name = format!("{}-apiserver", base.replace('.', "-"));
    // AWS keeps that beginning for itself.
    let reserved = kind == LoadBalancerKind::Network && name.starts_with("internal-");
    if name.len() <= LONGEST && !reserved { name } else { format!("{}-k8s", hashed(&base)) }
}

/// 28 letters and digits, one for each byte of a BLAKE2b hash of that length.
fn hashed(text: &str) -> String {
    let mut bytes = [0u8; 28];
    if let Ok(mut hash) = Blake2bVar::new(bytes.len()) {
        hash.update(text.as_bytes());
        // The length is the one that it was made with.
        let _ = hash.finalize_variable(&mut bytes);
    }
    bytes
        .iter()
        .map(|byte| char::from(b"0123456789abcdefghijklmnopqrstuvwxyz"[usize::from(byte % 36)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_hashed_to_the_longest_that_aws_takes() {
        let name = load_balancer(
            "a-cluster-with-quite-a-long-name",
            &AWSCluster::new("x", Default::default()),
            LoadBalancerKind::Classic,
        );
        assert_eq!(name.len(), LONGEST);
        assert!(name.ends_with("-k8s"));
        assert!(name.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-'));
    }

    #[test]
    fn dots_are_no_part_of_a_load_balancer_name() {
        let aws_cluster = AWSCluster::new("x", Default::default());
        assert_eq!(load_balancer("a.b", &aws_cluster, LoadBalancerKind::Classic), "a-b-apiserver");
    }

    #[test]
    fn a_network_load_balancer_has_no_name_that_aws_keeps_for_itself() {
        let mut aws_cluster = AWSCluster::new("x", Default::default());
        aws_cluster.metadata.namespace = Some("internal".into());
        let name = load_balancer("prod", &aws_cluster, LoadBalancerKind::Network);
        assert!(name.ends_with("-k8s") && name.len() == LONGEST, "{name}");
        assert_eq!(load_balancer("prod", &aws_cluster, LoadBalancerKind::Classic), "prod-apiserver");
    }

    #[test]
    fn no_group_name_begins_like_an_id() {
        assert_eq!(group("sg-prod", "node"), "@sg-prod-node");
        assert_eq!(group("prod", "node"), "prod-node");
    }
}
