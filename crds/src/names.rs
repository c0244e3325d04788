//! Finalizers, labels, annotations and tag keys that more than one part of the operator, Cluster API or AWS
//! agree on. Names of AWS resources are made where resources are planned.

/// Finalizer of an AWSCluster; CAPA's, so that its objects can be taken over.
pub const CLUSTER_FINALIZER: &str = "awscluster.infrastructure.cluster.x-k8s.io";
/// Finalizer of an AWSMachine; CAPA's.
pub const MACHINE_FINALIZER: &str = "awsmachine.infrastructure.cluster.x-k8s.io";
/// Finalizer on ClusterPlugin and Cluster while add-ons are installed.
pub const PLUGIN_FINALIZER: &str = "plugin.cluster.kurator.dev";

/// Label: the Cluster that an object belongs to.
pub const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// Label of machines of a control plane; its value does not matter.
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
/// Label: which of several operators looks after an object.
pub const WATCH_FILTER_LABEL: &str = "cluster.x-k8s.io/watch-filter";
/// Label of a CustomResourceDefinition: the versions that follow contract v1beta2.
pub const CONTRACT_LABEL: &str = "cluster.x-k8s.io/v1beta2";
/// Label of everything that belongs to one provider of Cluster API.
pub const PROVIDER_LABEL: &str = "cluster.x-k8s.io/provider";
/// This provider's value of [`PROVIDER_LABEL`].
pub const PROVIDER: &str = "infrastructure-kurator-aws";
/// Label of CustomResourceDefinitions whose objects `clusterctl move` moves with their Cluster.
pub const CLUSTERCTL_LABEL: &str = "clusterctl.cluster.x-k8s.io";
/// Label of CustomResourceDefinitions whose objects `clusterctl move` takes along, although they belong to no
/// Cluster.
pub const MOVE_HIERARCHY_LABEL: &str = "clusterctl.cluster.x-k8s.io/move-hierarchy";

/// Label of a ClusterPlugin or of its Cluster, with the value `true`: its add-ons are upgraded before those of
/// clusters without it.
pub const UPGRADE_FIRST_LABEL: &str = "cluster.kurator.dev/upgrade-first";

/// Names of the plugins that come with the operator. No plugin of a third party is called so.
pub const BUILT_IN_PLUGINS: [&str; 6] = [
    "aws-cloud-controller-manager",
    "aws-ebs-csi",
    "aws-efs-csi",
    "aws-load-balancer-controller",
    "aws-vpc-cni",
    "calico",
];

/// Annotation: nothing is done for the object while it is there.
pub const PAUSED_ANNOTATION: &str = "cluster.x-k8s.io/paused";
/// Annotation: somebody else looks after this infrastructure.
pub const MANAGED_BY_ANNOTATION: &str = "cluster.x-k8s.io/managed-by";
/// Annotation that `clusterctl move` puts on an object before deleting it here, because it lives on
/// elsewhere.
pub const DELETE_FOR_MOVE_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
/// Annotation that keeps `clusterctl move` from moving an object.
pub const BLOCK_MOVE_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// Annotation of an AWSCluster: whether what the cluster's own controllers made in AWS is removed with the
/// cluster; CAPA's.
pub const EXTERNAL_RESOURCE_GC_ANNOTATION: &str = "aws.cluster.x-k8s.io/external-resource-gc";
/// Annotation of an AWSCluster: which of it, some of `load-balancer,target-group,security-group`; CAPA's.
pub const EXTERNAL_RESOURCE_TASKS_GC_ANNOTATION: &str = "aws.cluster.x-k8s.io/external-resource-tasks-gc";
/// Annotation: add-ons are not uninstalled before the cluster is deleted.
pub const FORCE_DELETE_ANNOTATION: &str = "cluster.kurator.dev/force-delete";
/// Annotation of an AWSCluster: whose things in AWS are to be its own from now on. The namespace/name of the
/// AWSCluster that they were made for, where it is restored under another one; or [`ADOPT_FROM_CAPA`].
pub const ADOPT_FROM_ANNOTATION: &str = "cluster.kurator.dev/adopt-from";
/// Value of [`ADOPT_FROM_ANNOTATION`]: what Cluster API Provider AWS made for a cluster of this name.
pub const ADOPT_FROM_CAPA: &str = "cluster-api-provider-aws";
/// Annotation of an AWSCluster: the one whose record it carried when it was made from a copied manifest, and
/// which was taken off.
pub const COPIED_FROM_ANNOTATION: &str = "cluster.kurator.dev/copied-from";
/// What annotations of ours begin with.
pub const ANNOTATION_PREFIX: &str = "cluster.kurator.dev/";
/// Annotation of an AWSCluster or AWSMachine: the random id that its AWS resources carry as a tag.
pub const ID_ANNOTATION: &str = "cluster.kurator.dev/id";
/// Annotation: AWS calls that were begun, with the token and the inputs resolved for each. JSON.
pub const INTENT_ANNOTATION: &str = "cluster.kurator.dev/intent";
/// Annotation of an AWSCluster: ids of published keys that sign no more, and since when. JSON.
pub const RETIRED_KEYS_ANNOTATION: &str = "cluster.kurator.dev/retired-keys";
/// Annotation of an AWSCluster: where its issuer was published, and since when it is not any more. Users can
/// write it, so it says only where to look. JSON.
pub const ISSUER_PLACES_ANNOTATION: &str = "cluster.kurator.dev/issuer-places";
/// Annotation of a Secret with a certificate of ours in a workload cluster: what is known of the certificate.
/// JSON.
pub const CERTIFICATE_ANNOTATION: &str = "cluster.kurator.dev/certificate";
/// Annotation of a Cluster of a ClusterClass: Cluster API does not begin an upgrade of Kubernetes while it is
/// there. It looks for the part before the slash only, and never at the value.
pub const UPGRADE_HOOK_ANNOTATION: &str = "before-upgrade.hook.cluster.cluster.x-k8s.io/cluster-operator";
/// Annotation of templates in a server-side dry run of the topology controller.
pub const TOPOLOGY_DRY_RUN_ANNOTATION: &str = "topology.cluster.x-k8s.io/dry-run";

/// Prefix of the tag key that names the cluster; the name follows, the value is [`OWNED`] or [`SHARED`].
pub const CLUSTER_TAG_PREFIX: &str = "sigs.k8s.io/cluster-api-provider-aws/cluster/";
/// Tag key: what a resource is for (`apiserver`, `node`, `public`, ...).
pub const ROLE_TAG: &str = "sigs.k8s.io/cluster-api-provider-aws/role";
/// Prefix of the tag key that the cloud provider and load balancer controllers read; the cluster's name
/// follows.
pub const CLOUD_PROVIDER_TAG_PREFIX: &str = "kubernetes.io/cluster/";
/// Tag key of public subnets that load balancers are put in.
pub const PUBLIC_LOAD_BALANCER_TAG: &str = "kubernetes.io/role/elb";
/// Tag key of private subnets that internal load balancers are put in.
pub const INTERNAL_LOAD_BALANCER_TAG: &str = "kubernetes.io/role/internal-elb";
/// Tag key of the name that AWS shows.
pub const NAME_TAG: &str = "Name";
/// Tag key of instances: namespace and name of the Machine.
pub const MACHINE_NAME_TAG: &str = "MachineName";
/// Tag key: the id kept in [`ID_ANNOTATION`] of the object that a resource was made for.
pub const ID_TAG: &str = "cluster.kurator.dev/id";
/// Tag key: namespace and name of the AWSCluster whose id the resource carries. An id alone proves nothing:
/// whoever copies the manifest of an AWSCluster copies its annotations.
pub const OWNER_TAG: &str = "cluster.kurator.dev/owner";
/// Tag key: the intent that a resource was made by.
pub const INTENT_TAG: &str = "cluster.kurator.dev/intent";
/// Tag value: the resource lives and dies with the cluster.
pub const OWNED: &str = "owned";
/// Tag value: the resource is used by the cluster and is not deleted with it.
pub const SHARED: &str = "shared";

/// Label of ClusterRoles whose rules this operator is given too: the right to get control planes of kinds
/// that it does not know.
pub const AGGREGATE_LABEL: &str = "cluster.kurator.dev/aggregate-to-cluster-operator";
/// Names of clusters' kubeconfig Secrets end in this; the kubeconfig is under the key `value`.
pub const KUBECONFIG_SECRET_SUFFIX: &str = "-kubeconfig";

/// Names of the Secrets with the keys that clusters sign service account tokens with end in this; the public
/// half is under `tls.crt`.
pub const SIGNING_KEY_SECRET_SUFFIX: &str = "-sa";

/// Tag key that names the cluster.
pub fn cluster_tag(cluster: &str) -> String {
    format!("{CLUSTER_TAG_PREFIX}{cluster}")
}

/// Tag key that the cloud provider and load balancer controllers read.
pub fn cloud_provider_tag(cluster: &str) -> String {
    format!("{CLOUD_PROVIDER_TAG_PREFIX}{cluster}")
}
