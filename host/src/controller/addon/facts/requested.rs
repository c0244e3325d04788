//! Facts that plugins are given only when they ask for them: read from AWS, from the workload cluster and
//! from what is known of machines. The form of a fact is decided in `addons`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use addons::versions::RunningVersions;
use addons::{self, DesiredAddOn, ObjectRef};
use contract::{
    API_SERVER_VERSION, FactValue, FileSystemFact, InstanceTypeFact, IpPoolFact, KubeletVersionsFact,
    MACHINE_SUBNETS, StorageClassFact, SubnetFact,
};
use crds::AWSMachine;
use crds::cluster_api::{KubeadmControlPlane, Machine};
use infra::machine::instance_of;
use kube::ResourceExt;
use model::ListedFileSystem;
use model::finding::Reading;
use model::{FoundInstance, InstanceType};
use tokio::time::Instant;

use super::{ClusterFacts, RequestedFacts};
use crate::controller::addon::AddOns;
use crate::controller::addon::timing::BLOCKED;
use crate::controller::addon::ttl_cache::TtlCache;
use crate::controller::owner::owner;
use crate::management::Cached;
use crate::object_name::ObjectName;
use crate::workload::WorkloadCluster;

/// Label of machines of a MachineDeployment, with its name.
const DEPLOYMENT_LABEL: &str = "cluster.x-k8s.io/deployment-name";
/// How many Nodes of a cluster are asked how many Pods they take.
const NODES: usize = 16;

/// The parts of a StorageClass that plugins are given.
const CLASS: [&str; 4] = [
    "/metadata/name",
    "/metadata/annotations/storageclass.kubernetes.io~1is-default-class",
    "/provisioner",
    "/parameters",
];
/// The parts of an IPPool of Calico that plugins are given.
const POOL: [&str; 4] =
    ["/metadata/name", "/metadata/labels/app.kubernetes.io~1managed-by", "/spec/cidr", "/spec/blockSize"];
const NO_CLUSTER: &str = "the AWSCluster is not there";
/// How long storage classes and pools are cached: while an add-on is awaited, they are asked for more often.
const OBJECTS_TTL: Duration = Duration::from_secs(10);

/// What was read for facts.
pub struct FactCache {
    file_systems: TtlCache<Arc<Reading<Vec<ListedFileSystem>>>>,
    instance_types: TtlCache<Arc<Reading<Vec<InstanceType>>>>,
    max_pods: TtlCache<Option<u32>>,
    storage_classes: TtlCache<FactValue>,
    ip_pools: TtlCache<FactValue>,
}

impl Default for FactCache {
    fn default() -> Self {
        Self {
            file_systems: TtlCache::default(),
            instance_types: TtlCache::default(),
            max_pods: TtlCache::default(),
            storage_classes: TtlCache::with_ttl(OBJECTS_TTL),
            ip_pools: TtlCache::with_ttl(OBJECTS_TTL),
        }
    }
}

/// From where facts are read.
#[derive(Clone, Copy)]
pub struct FactSources<'a> {
    /// Before that nothing is in a cluster.
    pub is_initialized: bool,
    pub workload: Option<&'a WorkloadCluster>,
    pub region: Option<&'a aws::Region>,
}

impl AddOns {
    /// The facts that the plugins of add-ons ask for by these keys, beside those that all are given, and when
    /// something that is wrong is read again.
    pub(in crate::controller::addon) async fn requested_facts(
        &self,
        all: &[(&DesiredAddOn, &str)],
        facts: &ClusterFacts<'_>,
        sources: FactSources<'_>,
    ) -> (RequestedFacts, Option<Instant>) {
        let (mut res, mut next) = (RequestedFacts::new(), None);
        for &(desired, key) in all {
            if key == FileSystemFact::KEY {
                if let Some((fact, until)) = self.file_systems(desired, facts, sources.region).await {
                    res.insert(FileSystemFact::KEY, fact);
                    next = Some(until);
                }
            } else if !res.contains_key(key) {
                res.extend(self.requested_fact(key, facts, sources).await);
            }
        }
        (res, next)
    }

    /// A fact of the whole cluster; `None` for a key that this host does not know.
    async fn requested_fact(
        &self,
        key: &str,
        facts: &ClusterFacts<'_>,
        sources: FactSources<'_>,
    ) -> Option<(&'static str, FactValue)> {
        let FactSources { is_initialized, workload, region } = sources;
        Some(match key {
            SubnetFact::KEY => (SubnetFact::KEY, subnets(facts, region)),
            StorageClassFact::KEY => (StorageClassFact::KEY, self.storage_classes(facts, workload).await),
            IpPoolFact::KEY if !is_initialized => (IpPoolFact::KEY, FactValue::Absent),
            IpPoolFact::KEY => (IpPoolFact::KEY, self.ip_pools(facts, workload).await),
            MACHINE_SUBNETS => {
                let fact = self.instances(facts, region, |instances| addons::machine_subnets_fact(instances));
                (MACHINE_SUBNETS, fact.unwrap_or_else(FactValue::Unknown))
            }
            API_SERVER_VERSION => (API_SERVER_VERSION, self.versions_of(facts).api_server_fact()),
            KubeletVersionsFact::KEY => (KubeletVersionsFact::KEY, self.versions_of(facts).kubelets_fact()),
            InstanceTypeFact::KEY => {
                (InstanceTypeFact::KEY, self.instance_types(facts, workload, region).await)
            }
            _ => return None,
        })
    }

    fn versions_of(&self, facts: &ClusterFacts<'_>) -> RunningVersions {
        self.running_versions(&facts.cluster_name(), facts.control_plane)
    }

    /// The versions of Kubernetes that a cluster's machines run.
    pub(in crate::controller::addon) fn running_versions(
        &self,
        cluster: &ObjectName,
        control_plane: Option<&KubeadmControlPlane>,
    ) -> RunningVersions {
        let machines = self.context.management.of_cluster::<Machine>(cluster);
        RunningVersions::of(control_plane, machines.iter().map(|it| &***it))
    }

    /// The file systems, for an add-on that has to find one by its tags. Good is only a list in which exactly
    /// one has them: about any other somebody is about to do something.
    async fn file_systems(
        &self,
        desired: &DesiredAddOn,
        facts: &ClusterFacts<'_>,
        region: Option<&aws::Region>,
    ) -> Option<(FactValue, Instant)> {
        let tags: model::Tags = serde_json::from_value(desired.config.get("fileSystemTags")?.clone()).ok()?;
        let (Some(aws_cluster), Some(region)) = (facts.aws_cluster, region) else {
            return Some((no_cluster(), Instant::now() + BLOCKED));
        };
        let has_one = |it: &Arc<Reading<Vec<ListedFileSystem>>>| match &**it {
            Reading::Found(all) => all.iter().filter(|it| it.has(&tags)).count() == 1,
            _ => false,
        };
        let key = format!("{} {tags:?}", aws_cluster.spec.region);
        let read = async { Arc::new(region.file_systems().await) };
        let (reading, until) = self.fact_cache.file_systems.get_or_read(key, has_one, read).await;
        Some((addons::file_systems_fact(&reading), until))
    }

    async fn storage_classes(
        &self,
        facts: &ClusterFacts<'_>,
        workload: Option<&WorkloadCluster>,
    ) -> FactValue {
        let Some(workload) = workload else {
            return FactValue::Unknown("the API server of the cluster was not asked".into());
        };
        let read = async {
            match workload.lists().all("storage.k8s.io/v1", "StorageClass", &CLASS).await {
                Ok(classes) => addons::storage_classes_fact(&classes),
                Err(error) => FactValue::Unknown(error.to_string()),
            }
        };
        let key = facts.cluster.uid().unwrap_or_default();
        // Also that the API did not answer counts no longer.
        self.fact_cache.storage_classes.get_or_read(key, |_| true, read).await.0
    }

    async fn ip_pools(&self, facts: &ClusterFacts<'_>, workload: Option<&WorkloadCluster>) -> FactValue {
        let Some(workload) = workload else {
            return FactValue::Unknown("the API server of the cluster was not asked".into());
        };
        let read = async {
            match workload.lists().all("crd.projectcalico.org/v1", "IPPool", &POOL).await {
                Ok(pools) => addons::ip_pools_fact(&pools),
                Err(error) => FactValue::Unknown(error.to_string()),
            }
        };
        let key = facts.cluster.uid().unwrap_or_default();
        self.fact_cache.ip_pools.get_or_read(key, |_| true, read).await.0
    }

    /// What `of` says of the cluster's instances, by what was read of AWS last; or why they are not known.
    /// What an AWSMachine merely names is not among them: only its owner may learn whose it is.
    pub(in crate::controller::addon) fn instances<T>(
        &self,
        facts: &ClusterFacts<'_>,
        region: Option<&aws::Region>,
        of: impl FnOnce(&mut dyn Iterator<Item = &FoundInstance>) -> T,
    ) -> Result<T, String> {
        let (Some(aws_cluster), Some(region)) = (facts.aws_cluster, region) else {
            return Err(NO_CLUSTER.to_owned());
        };
        let snapshot = region
            .view()
            .borrow()
            .snapshot
            .clone()
            .filter(|it| it.read_at.contains_key(&model::Read::Instances));
        let snapshot = snapshot.ok_or("AWS was not read yet")?;
        let cluster = facts.cluster_name();
        let management = &self.context.management;
        let machines = management.of_cluster::<AWSMachine>(&cluster);
        let instance = |aws_machine: &Arc<Cached<AWSMachine>>| {
            let machine = owner(aws_machine, "Machine").and_then(|name| management.get::<Machine>(&name));
            instance_of(
                facts.cluster,
                aws_cluster,
                machine.as_deref().map(|known| &**known),
                aws_machine,
                &snapshot,
            )
        };
        Ok(of(&mut machines.iter().filter_map(instance)))
    }

    /// The types of the cluster's instances, by its AWSMachines, and how many Pods the kubelets of some of
    /// them let in.
    async fn instance_types(
        &self,
        facts: &ClusterFacts<'_>,
        workload: Option<&WorkloadCluster>,
        region: Option<&aws::Region>,
    ) -> FactValue {
        let (Some(aws_cluster), Some(region)) = (facts.aws_cluster, region) else { return no_cluster() };
        let cluster = facts.cluster_name();
        let machines = self.context.management.of_cluster::<AWSMachine>(&cluster);
        let names: BTreeSet<String> = machines.iter().map(|it| it.spec.instance_type.clone()).collect();
        let key = format!("{} {names:?}", aws_cluster.spec.region);
        let read = async { Arc::new(region.instance_types(&names).await) };
        let is_good = |it: &Arc<Reading<Vec<InstanceType>>>| matches!(**it, Reading::Found(_));
        let (reading, _) = self.fact_cache.instance_types.get_or_read(key, is_good, read).await;
        let max_pods = match workload {
            Some(workload) => self.max_pods(&cluster, workload).await,
            None => BTreeMap::new(),
        };
        addons::instance_types_fact(&reading, &max_pods)
    }

    /// By instance type. The Nodes of a pool are alike, so one of each is asked; of several pools of a type
    /// the one that lets most in counts.
    async fn max_pods(&self, cluster: &ObjectName, workload: &WorkloadCluster) -> BTreeMap<String, u32> {
        let mut res = BTreeMap::new();
        for ((instance_type, _), node) in self.nodes(cluster).into_iter().take(NODES) {
            let key = format!("{cluster} {node}");
            let object =
                ObjectRef { api_version: "v1".into(), kind: "Node".into(), namespace: None, name: node };
            let read = async {
                workload
                    .get_only(&object, &["/status/allocatable/pods"])
                    .await
                    .ok()
                    .flatten()
                    .as_ref()
                    .and_then(addons::max_pods)
            };
            let (pods, _) = self.fact_cache.max_pods.get_or_read(key, Option::is_some, read).await;
            let most = res.entry(instance_type).or_default();
            *most = pods.unwrap_or_default().max(*most);
        }
        res.retain(|_, pods| *pods > 0);
        res
    }

    /// The Node of the newest machine that has one, by instance type and MachineDeployment.
    fn nodes(&self, cluster: &ObjectName) -> BTreeMap<(String, String), String> {
        let management = &self.context.management;
        let mut machines = management.of_cluster::<Machine>(cluster);
        machines.sort_by_key(|it| it.creation_timestamp().map(|it| it.0));
        let node = |it: &Machine| {
            let node = it.status.as_ref()?.node_ref.as_ref()?.name.clone();
            let aws_machine =
                management.get::<AWSMachine>(&cluster.sibling(&it.spec.infrastructure_ref.as_ref()?.name))?;
            let pool = it.labels().get(DEPLOYMENT_LABEL).cloned().unwrap_or_default();
            Some(((aws_machine.spec.instance_type.clone(), pool), node))
        };
        // Of the same key the last one stays.
        machines.iter().filter_map(|it| node(it)).collect()
    }
}

fn no_cluster() -> FactValue {
    FactValue::Unknown(NO_CLUSTER.into())
}

/// The cluster's subnets, by what was read of AWS last.
fn subnets(facts: &ClusterFacts<'_>, region: Option<&aws::Region>) -> FactValue {
    let (Some(aws_cluster), Some(region)) = (facts.aws_cluster, region) else { return no_cluster() };
    let snapshot =
        region.view().borrow().snapshot.clone().filter(|it| it.read_at.contains_key(&model::Read::Subnets));
    let Some(snapshot) = snapshot else { return FactValue::Unknown("AWS was not read yet".into()) };
    let subnets =
        aws_cluster.status.as_ref().map(|it| it.network_status.subnets.as_slice()).unwrap_or_default();
    let ids: BTreeSet<&str> = subnets.iter().map(|it| it.id.as_str()).collect();
    addons::subnets_fact(snapshot.subnets.iter().filter(|it| ids.contains(it.id.as_str())))
}
