//! Facts that plugins are told only when they ask for them: gathers each from AWS, from the workload cluster
//! and from what is known of machines. Nothing is read for nobody, and nothing is changed. What a fact looks
//! like is `plan`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use addons::{self, ObjectRef, Wanted};
use contract::{
    FactValue, FileSystemFact, InstanceTypeFact, IpPoolFact, MACHINE_SUBNETS, StorageClassFact, SubnetFact,
};
use crds::AWSMachine;
use crds::cluster_api::Machine;
use infra::machine::instance_of;
use kube::ResourceExt;
use model::ListedFileSystem;
use model::finding::Reading;
use model::{FoundInstance, InstanceType};
use tokio::time::Instant;

use super::ask::{ClusterFacts, Told};
use super::remember::Remembered;
use super::{AddOns, BLOCKED};
use crate::context::ObjectName;
use crate::controller::owner::owner;
use crate::management::Cached;
use crate::workload::WorkloadCluster;

/// Label of machines of a MachineDeployment, with its name.
const DEPLOYMENT_LABEL: &str = "cluster.x-k8s.io/deployment-name";
/// Of how many Nodes of a cluster is asked how many Pods they take.
const NODES: usize = 16;

/// What of a StorageClass plugins are told.
const CLASS: [&str; 4] = [
    "/metadata/name",
    "/metadata/annotations/storageclass.kubernetes.io~1is-default-class",
    "/provisioner",
    "/parameters",
];
/// What of an IPPool of Calico plugins are told.
const POOL: [&str; 4] =
    ["/metadata/name", "/metadata/labels/app.kubernetes.io~1managed-by", "/spec/cidr", "/spec/blockSize"];
const NO_CLUSTER: &str = "the AWSCluster is not there";
/// How long storage classes and pools are remembered: whoever waits for an add-on looks more often.
const CLASSES: Duration = Duration::from_secs(10);

/// What is remembered of what was read for facts.
pub struct Readings {
    file_systems: Remembered<Arc<Reading<Vec<ListedFileSystem>>>>,
    instance_types: Remembered<Arc<Reading<Vec<InstanceType>>>>,
    max_pods: Remembered<Option<u32>>,
    storage_classes: Remembered<FactValue>,
    ip_pools: Remembered<FactValue>,
}

impl Default for Readings {
    fn default() -> Self {
        Self {
            file_systems: Remembered::default(),
            instance_types: Remembered::default(),
            max_pods: Remembered::default(),
            storage_classes: Remembered::lasting(CLASSES),
            ip_pools: Remembered::lasting(CLASSES),
        }
    }
}

impl AddOns {
    /// What the plugins of these add-ons want to be told beside what all are, and when something that is
    /// wrong is looked at again. Before its control plane is `initialized` nothing is in a cluster.
    pub(super) async fn tell(
        &self,
        all: &[Wanted],
        world: &ClusterFacts<'_>,
        initialized: bool,
        workload: Option<&WorkloadCluster>,
        region: Option<&aws::Region>,
    ) -> (Told, Option<Instant>) {
        let (mut told, mut next) = (Told::new(), None);
        for wanted in all {
            for key in self.plugins.facts(wanted).await.iter().map(String::as_str) {
                match key {
                    SubnetFact::KEY if !told.contains_key(key) => {
                        told.insert(SubnetFact::KEY, subnets(world, region));
                    }
                    StorageClassFact::KEY if !told.contains_key(key) => {
                        told.insert(StorageClassFact::KEY, self.storage_classes(world, workload).await);
                    }
                    IpPoolFact::KEY if !told.contains_key(key) => {
                        let pools = if initialized {
                            self.ip_pools(world, workload).await
                        } else {
                            FactValue::Absent
                        };
                        told.insert(IpPoolFact::KEY, pools);
                    }
                    MACHINE_SUBNETS if !told.contains_key(key) => {
                        let fact = self
                            .instances(world, region, |instances| addons::machine_subnets_fact(instances));
                        told.insert(MACHINE_SUBNETS, fact.unwrap_or_else(FactValue::Unknown));
                    }
                    InstanceTypeFact::KEY if !told.contains_key(key) => {
                        told.insert(
                            InstanceTypeFact::KEY,
                            self.instance_types(world, workload, region).await,
                        );
                    }
                    FileSystemFact::KEY => {
                        if let Some((fact, until)) = self.file_systems(wanted, world, region).await {
                            told.insert(FileSystemFact::KEY, fact);
                            next = Some(until);
                        }
                    }
                    _ => (),
                }
            }
        }
        (told, next)
    }

    /// The file systems, for an add-on that has to find one by its tags. Good is only a list in which exactly
    /// one has them: about any other somebody is about to do something.
    async fn file_systems(
        &self,
        wanted: &Wanted,
        world: &ClusterFacts<'_>,
        region: Option<&aws::Region>,
    ) -> Option<(FactValue, Instant)> {
        let tags: model::Tags = serde_json::from_value(wanted.config.get("fileSystemTags")?.clone()).ok()?;
        let (Some(aws_cluster), Some(region)) = (world.aws_cluster, region) else {
            return Some((no_cluster(), Instant::now() + BLOCKED));
        };
        let has_one = |it: &Arc<Reading<Vec<ListedFileSystem>>>| match &**it {
            Reading::Found(all) => all.iter().filter(|it| it.has(&tags)).count() == 1,
            _ => false,
        };
        let question = format!("{} {tags:?}", aws_cluster.spec.region);
        let ask = async { Arc::new(region.file_systems().await) };
        let (reading, until) = self.readings.file_systems.answer(question, has_one, ask).await;
        Some((addons::file_systems_fact(&reading), until))
    }

    async fn storage_classes(
        &self,
        world: &ClusterFacts<'_>,
        workload: Option<&WorkloadCluster>,
    ) -> FactValue {
        let Some(workload) = workload else {
            return FactValue::Unknown("the API server of the cluster was not asked".into());
        };
        let ask = async {
            match workload.lists().all("storage.k8s.io/v1", "StorageClass", &CLASS).await {
                Ok(classes) => addons::storage_classes_fact(&classes),
                Err(error) => FactValue::Unknown(error.to_string()),
            }
        };
        let question = world.cluster.uid().unwrap_or_default();
        // Also that the API did not answer counts no longer.
        self.readings.storage_classes.answer(question, |_| true, ask).await.0
    }

    async fn ip_pools(&self, world: &ClusterFacts<'_>, workload: Option<&WorkloadCluster>) -> FactValue {
        let Some(workload) = workload else {
            return FactValue::Unknown("the API server of the cluster was not asked".into());
        };
        let ask = async {
            match workload.lists().all("crd.projectcalico.org/v1", "IPPool", &POOL).await {
                Ok(pools) => addons::ip_pools_fact(&pools),
                Err(error) => FactValue::Unknown(error.to_string()),
            }
        };
        let question = world.cluster.uid().unwrap_or_default();
        self.readings.ip_pools.answer(question, |_| true, ask).await.0
    }

    /// What `of` says of the cluster's instances, by what was read of AWS last; or why they are not known.
    /// What an AWSMachine merely names is not among them: whose it is would be told nobody but its owner.
    pub(super) fn instances<T>(
        &self,
        world: &ClusterFacts<'_>,
        region: Option<&aws::Region>,
        of: impl FnOnce(&mut dyn Iterator<Item = &FoundInstance>) -> T,
    ) -> Result<T, String> {
        let (Some(aws_cluster), Some(region)) = (world.aws_cluster, region) else {
            return Err(NO_CLUSTER.to_owned());
        };
        let snapshot = region
            .view()
            .borrow()
            .snapshot
            .clone()
            .filter(|it| it.read_at.contains_key(&model::Read::Instances));
        let snapshot = snapshot.ok_or("AWS was not read yet")?;
        let cluster =
            ObjectName::new(world.cluster.namespace().unwrap_or_default(), world.cluster.name_any());
        let management = &self.context.management;
        let machines = management.of_cluster::<AWSMachine>(&cluster);
        let instance = |aws_machine: &Arc<Cached<AWSMachine>>| {
            let machine = owner(aws_machine, "Machine").and_then(|name| management.get::<Machine>(&name));
            instance_of(
                world.cluster,
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
        world: &ClusterFacts<'_>,
        workload: Option<&WorkloadCluster>,
        region: Option<&aws::Region>,
    ) -> FactValue {
        let (Some(aws_cluster), Some(region)) = (world.aws_cluster, region) else { return no_cluster() };
        let cluster =
            ObjectName::new(world.cluster.namespace().unwrap_or_default(), world.cluster.name_any());
        let machines = self.context.management.of_cluster::<AWSMachine>(&cluster);
        let names: BTreeSet<String> = machines.iter().map(|it| it.spec.instance_type.clone()).collect();
        let question = format!("{} {names:?}", aws_cluster.spec.region);
        let ask = async { Arc::new(region.instance_types(&names).await) };
        let is_good = |it: &Arc<Reading<Vec<InstanceType>>>| matches!(**it, Reading::Found(_));
        let (reading, _) = self.readings.instance_types.answer(question, is_good, ask).await;
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
            let question = format!("{cluster} {node}");
            let object =
                ObjectRef { api_version: "v1".into(), kind: "Node".into(), namespace: None, name: node };
            let ask = async {
                workload
                    .get_only(&object, &["/status/allocatable/pods"])
                    .await
                    .ok()
                    .flatten()
                    .as_ref()
                    .and_then(addons::max_pods)
            };
            let (pods, _) = self.readings.max_pods.answer(question, Option::is_some, ask).await;
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
fn subnets(world: &ClusterFacts<'_>, region: Option<&aws::Region>) -> FactValue {
    let (Some(aws_cluster), Some(region)) = (world.aws_cluster, region) else { return no_cluster() };
    let snapshot =
        region.view().borrow().snapshot.clone().filter(|it| it.read_at.contains_key(&model::Read::Subnets));
    let Some(snapshot) = snapshot else { return FactValue::Unknown("AWS was not read yet".into()) };
    let subnets =
        aws_cluster.status.as_ref().map(|it| it.network_status.subnets.as_slice()).unwrap_or_default();
    let ids: BTreeSet<&str> = subnets.iter().map(|it| it.id.as_str()).collect();
    addons::subnets_fact(snapshot.subnets.iter().filter(|it| ids.contains(it.id.as_str())))
}
