//! The add-ons of a previewed cluster: what the plugins of its ClusterPlugin would have applied and allowed.
//! It only prints, and asks no workload cluster.

use addons::upgrade::Component;
use addons::{self, Stage};
use contract::{FactValue, FileSystemFact, InstanceTypeFact, StorageClassFact, SubnetFact};
use crds::cluster::{SubnetStatus, VPCStatus};
use crds::cluster_api::{Cluster, KubeadmControlPlane};
use crds::conditions::reason;
use crds::{AWSCluster, ClusterPlugin};
use infra::cluster::Decision;
use kube::ResourceExt;
use model::Resource;
use serde_json::Value;

use super::objects::of_kind;
use crate::controller::addon::facts::ClusterFacts;
use crate::controller::addon::plugins::{Answer, Plugins, Verdict};
use crate::controller::addon::queries::Queries;
use crate::metrics::PluginCalls;

/// Facts that plugins have to ask for.
const ASKED_FOR: [&str; 4] =
    [SubnetFact::KEY, StorageClassFact::KEY, FileSystemFact::KEY, InstanceTypeFact::KEY];

/// Why facts are not known.
const ASKS_NOBODY: &str = "a preview asks no cluster, and AWS for no add-on";
/// Stands for the id of a VPC that is made later.
const LATER: &str = "<VPC>";

/// Prints what each add-on of the cluster would be.
pub async fn print(
    cluster: &Cluster,
    aws_cluster: &AWSCluster,
    objects: &[Value],
    decision: &Decision,
) -> anyhow::Result<()> {
    let all: Vec<ClusterPlugin> = of_kind(objects, "ClusterPlugin", "cluster.kurator.dev")?;
    let Some(plugin) = all.iter().find(|it| it.spec.cluster_name == cluster.name_any()) else {
        return Ok(());
    };
    let control_planes: Vec<KubeadmControlPlane> =
        of_kind(objects, "KubeadmControlPlane", "controlplane.cluster.x-k8s.io")?;
    let named = cluster.spec.control_plane_ref.as_ref().map(|it| it.name.as_str());
    let control_plane = control_planes.iter().find(|it| Some(it.name_any().as_str()) == named);
    let aws_cluster = with_network(aws_cluster, decision);
    let plugins = Plugins::load(PluginCalls::default(), None, None)?;
    let requested = ASKED_FOR.map(|it| (it, FactValue::Unknown(ASKS_NOBODY.into()))).into();
    let world = ClusterFacts {
        cluster,
        control_plane,
        aws_cluster: Some(&aws_cluster),
        requested,
        profiles: Err(ASKS_NOBODY.to_owned()),
        queries: Queries::unanswered(ASKS_NOBODY),
    };
    for desired in addons::desired(&plugin.spec) {
        let answer = match plugins.brought(&desired).await {
            Ok(plugin) => plugins.ask(&plugin, &desired, &world, Ok(None)).await,
            Err(verdict) => Answer { component: Component::default(), verdict },
        };
        let when = match desired.stage {
            Stage::Initialized => "when the control plane is initialized",
            Stage::Ready => "when a control plane machine is Ready",
        };
        println!("later   add-on/{} {}, {when}", desired.module, answer.component.version);
        match answer.verdict {
            Verdict::Plan(plan, warnings) => {
                print!("{}", addons::outline(&plan));
                warnings.iter().for_each(|it| println!("  warning {it}"));
            }
            Verdict::Left(_, message) => println!("  stays   {message}"),
            Verdict::Pending(message) => println!("  waits   {message}"),
            Verdict::Unsupported(message) => println!("  refused {}: {message}", reason::UNSUPPORTED),
            Verdict::Refused(reason, message) => println!("  refused {reason}: {message}"),
        }
    }
    Ok(())
}

/// The AWSCluster as it will be once its network is there.
fn with_network(aws_cluster: &AWSCluster, decision: &Decision) -> AWSCluster {
    let mut res = aws_cluster.clone();
    let network = &mut res.status.get_or_insert_default().network_status;
    if network.vpc.is_none() {
        let given = Some(aws_cluster.spec.network.vpc.id.clone()).filter(|it| !it.is_empty());
        network.vpc =
            Some(VPCStatus { id: given.unwrap_or_else(|| LATER.to_owned()), ..VPCStatus::default() });
    }
    if network.subnets.is_empty() {
        let zones = decision.desired.values().filter_map(|it| match &it.is {
            Resource::Subnet(it) => Some(it.zone.clone()),
            _ => None,
        });
        network.subnets = zones
            .map(|availability_zone| SubnetStatus { availability_zone, ..SubnetStatus::default() })
            .collect();
    }
    res
}
