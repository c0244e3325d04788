//! Mirror pods: what the API server shows of static pods.
//!
//! Pure. The annotations of the manifest are kept: `kubeadm join` reads etcd's address from one of them.

use k8s_openapi::api::core::v1::{Pod, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;

use super::static_pods::StaticPod;

/// Marks a pod as the mirror of a static pod; the value is the manifest's hash.
pub const MIRROR: &str = "kubernetes.io/config.mirror";
const NAMESPACE: &str = "kube-system";

/// The name that a static pod's mirror has on a node.
pub fn name(static_pod: &str, node: &str) -> String {
    format!("{static_pod}-{node}")
}

/// The mirror pod to create, owned by the node with that name and uid.
pub fn pod(of: &StaticPod, node: &str, uid: &str) -> Pod {
    let mut pod = of.manifest.clone();
    pod.metadata.name = Some(name(&of.manifest.name_any(), node));
    pod.metadata.namespace = Some(of.manifest.namespace().unwrap_or_else(|| NAMESPACE.to_owned()));
    for (key, value) in [
        ("kubernetes.io/config.hash", of.hash.as_str()),
        (MIRROR, &of.hash),
        ("kubernetes.io/config.source", "file"),
    ] {
        pod.annotations_mut().insert(key.to_owned(), value.to_owned());
    }
    // The NodeRestriction admission plugin takes a mirror pod only with exactly this owner.
    pod.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: None,
    }]);
    if let Some(spec) = &mut pod.spec {
        spec.node_name = Some(node.to_owned());
        let everything = Toleration {
            effect: Some("NoExecute".to_owned()),
            operator: Some("Exists".to_owned()),
            ..Toleration::default()
        };
        spec.tolerations.get_or_insert_default().push(everything);
    }
    pod.status = None;
    pod
}
