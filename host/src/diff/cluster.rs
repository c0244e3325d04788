//! Compares one cluster with what it is asked to be: its infrastructure with AWS, its add-ons with the workload
//! cluster. It reads, and has the same code decide that decides for `run`.

use std::sync::Arc;

use crds::cluster_api::{Cluster, KubeadmControlPlane};
use crds::{AWSCluster, AWSMachine, ClusterPlugin};
use infra::PersistedState;
use infra::cluster::{Decision, Input};
use kube::ResourceExt;
use model::finding::Reading;
use model::{Action, Interest, Resource, Snapshot};
use serde_json::Value;

use super::file::File;
use super::progress::Progress;
use super::report::{AwsChange, Report};
use crate::context::Context;
use crate::controller::addon::AddOns;
use crate::controller::cluster::requested;
use crate::management::{Cached, Management, Watched};
use crate::object_name::ObjectName;
use crate::preview::{machines, whole};
use crate::rules::add_on_rules;
use crate::system::{now, random};

/// How often AWS is read for what the reads before showed to be of interest.
const ROUNDS: usize = 3;

/// One namespace of a management cluster, and what clusters in it are compared by.
pub struct Comparison<'a> {
    pub context: Context,
    pub add_ons: AddOns,
    pub file: &'a File,
    pub progress: &'a Progress,
}

impl Comparison<'_> {
    /// Compares a cluster. What cannot be read is in the report.
    pub async fn of(&self, cluster: Arc<Cached<Cluster>>) -> Report {
        let name = cluster.object_name();
        let mut report =
            Report { cluster: name.name.clone(), namespace: name.namespace.clone(), ..Report::default() };
        report.errors.extend(self.unreadable());
        let management = &self.context.management;
        let aws_cluster = management.of_cluster::<AWSCluster>(&name).into_iter().next();
        self.note_state(&cluster, aws_cluster.as_ref(), &mut report);
        let Some(aws_cluster) = aws_cluster else {
            report.notes.push("no AWSCluster belongs to it: nothing of it is managed here".to_owned());
            return report;
        };
        // Facts that plugins ask for are of what was read here.
        let snapshot = match self.snapshot(&cluster, &aws_cluster).await {
            Ok(snapshot) => Some(snapshot),
            Err(error) => {
                report.errors.push(format!("AWS: {error:#}"));
                None
            }
        };
        self.compare_add_ons(&cluster, &mut report).await;
        if let Some(snapshot) = snapshot {
            match self.aws(&cluster, &aws_cluster, snapshot, &mut report.notes).await {
                Ok(changes) => report.add_aws(changes),
                Err(error) => report.errors.push(format!("AWS: {error:#}")),
            }
        }
        report
    }

    /// Why nothing is done now, or not all.
    fn note_state(
        &self,
        cluster: &Arc<Cached<Cluster>>,
        aws_cluster: Option<&Arc<Cached<AWSCluster>>>,
        report: &mut Report,
    ) {
        let (management, name) = (&self.context.management, cluster.object_name());
        let plugins = management.of_cluster::<ClusterPlugin>(&name);
        let mut paused = Vec::new();
        if management.is_paused(cluster) {
            paused.push(format!("Cluster {}", name.name));
        } else {
            let infrastructure = aws_cluster.filter(|it| management.is_paused(it));
            paused.extend(infrastructure.map(|it| format!("AWSCluster {}", it.name_any())));
            let plugins = plugins.iter().filter(|it| management.is_paused(it));
            paused.extend(plugins.map(|it| format!("ClusterPlugin {}", it.name_any())));
        }
        let note = |it: String| {
            format!("{it} is paused: nothing of it is changed before its pause ends, and then this")
        };
        report.notes.extend(paused.into_iter().map(note));
        if plugins.len() > 1 {
            let names: Vec<String> = plugins.iter().map(|it| it.name_any()).collect();
            let first = self.add_ons.plugin_of(&name).map(|it| it.name_any()).unwrap_or_default();
            report.notes.push(format!("of the ClusterPlugins {} only {first} counts", names.join(", ")));
        }
        if cluster.is_deleting() {
            report.notes.push("it is being deleted, and its add-ons go with it".to_owned());
        }
    }

    async fn compare_add_ons(&self, cluster: &Arc<Cached<Cluster>>, report: &mut Report) {
        let name = cluster.object_name();
        let Some(plugin) = self.add_ons.plugin_of(&name) else { return };
        if cluster.is_deleting() {
            return;
        }
        if plugin.is_deleting() {
            let note = format!(
                "ClusterPlugin {} is being deleted: add-ons go or stay by its spec.deletion",
                plugin.name_any()
            );
            return report.notes.push(note);
        }
        self.progress.say(format!("asking the workload cluster and the plugins of {name}"));
        match self.add_ons.compare(plugin, cluster.clone()).await {
            Ok(compared) => report.add_add_ons(compared),
            Err(error) => report.errors.push(format!("{:#}", error.told())),
        }
    }

    /// Everything of AWS that the decision about a cluster wants to have read.
    async fn snapshot(
        &self,
        cluster: &Cluster,
        aws_cluster: &Cached<AWSCluster>,
    ) -> anyhow::Result<Arc<Snapshot>> {
        let region = &aws_cluster.spec.region;
        anyhow::ensure!(!region.is_empty(), "AWSCluster {}: spec.region is missing", aws_cluster.name_any());
        self.progress.say(format!("reading {region}"));
        let wanted = self.decide(cluster, aws_cluster, &Snapshot::default())?.interest;
        whole(&self.context.aws, region, wanted).await
    }

    async fn aws(
        &self,
        cluster: &Cached<Cluster>,
        aws_cluster: &Cached<AWSCluster>,
        snapshot: Arc<Snapshot>,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<Vec<AwsChange>> {
        if infra::cluster::is_external(aws_cluster) {
            notes.push(format!("somebody else looks after AWSCluster {}", aws_cluster.name_any()));
            return Ok(Vec::new());
        }
        let all = self.context.management.list::<AWSCluster>();
        let copied = infra::cluster::copied_from(aws_cluster, all.iter().map(|it| &***it), Some(&snapshot));
        if let Some(original) = copied {
            let detail = format!("its id is a copy of that of AWSCluster {original}: nothing is made for it");
            return Ok(vec![change("blocked", aws_cluster.name_any(), detail)]);
        }
        let region = &aws_cluster.spec.region;
        let mut decision = self.decide(cluster, aws_cluster, &snapshot)?;
        let (mut known, mut snapshot) = (Interest::default(), snapshot);
        for _ in 1..ROUNDS {
            if decision.interest == known {
                break;
            }
            known = decision.interest.clone();
            snapshot = whole(&self.context.aws, region, known.clone()).await?;
            decision = self.decide(cluster, aws_cluster, &snapshot)?;
        }
        if let Some(complete) = self.with_attributes(region, &decision, &snapshot, notes).await? {
            decision = self.decide(cluster, aws_cluster, &complete)?;
        }
        let mut res = changes_of(&decision);
        let is_new = cluster.uid().is_none();
        if is_new && decision.invalid.is_none() {
            let made = machines::machines(cluster, &self.objects_of(cluster))?;
            res.extend(made.into_iter().map(|(resource, detail)| change("later", resource, detail)));
        }
        Ok(res)
    }

    /// The snapshot with the attributes of load balancers, which the operator reads first too, since no poll shows
    /// them; `None` where nothing depends on them.
    async fn with_attributes(
        &self,
        region: &str,
        decision: &Decision,
        snapshot: &Snapshot,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<Option<Snapshot>> {
        let unknown = decision.plan.actions.iter().filter_map(|action| {
            let Action::Confirm { key, id } = action else { return None };
            match &decision.desired.get(key)?.is {
                Resource::LoadBalancer(is) => Some((id, is.attributes.clone()?)),
                _ => None,
            }
        });
        let mut res = None;
        for (id, wanted) in unknown {
            let attributes = match self.context.aws.region(region).load_balancer_attributes(id).await {
                Reading::Found(attributes) => attributes,
                Reading::Absent => continue,
                Reading::AccessDenied { permission } => {
                    notes.push(format!("attributes of {id} are not compared: {permission} is not allowed"));
                    wanted
                }
                Reading::Failed { message } => anyhow::bail!("attributes of {id}: {message}"),
            };
            let complete = res.get_or_insert_with(|| snapshot.clone());
            let found = complete.load_balancers.iter_mut().filter(|it| it.id == *id);
            found.for_each(|it| it.attributes = Some(attributes.clone()));
        }
        Ok(res)
    }

    fn decide(
        &self,
        cluster: &Cluster,
        aws_cluster: &Cached<AWSCluster>,
        snapshot: &Snapshot,
    ) -> anyhow::Result<Decision> {
        let management = &self.context.management;
        let name = ObjectName::new(cluster.namespace().unwrap_or_default(), cluster.name_any());
        let record = PersistedState::of_cluster(aws_cluster)?;
        let rules = requested(&self.context, &name, aws_cluster).as_ref().map(add_on_rules);
        // They matter while it is deleted, and hold up nothing else.
        let left = management.of_cluster::<AWSMachine>(&name);
        let machines: Vec<String> = left.iter().map(|it| it.name_any()).collect();
        let random = random();
        Ok(infra::cluster::decide(&Input {
            cluster,
            aws_cluster,
            machines: &machines,
            rules: rules.as_deref(),
            snapshot,
            record: &record,
            now: now(),
            random: &random,
        }))
    }

    /// The objects of the file in the namespace of a cluster.
    fn objects_of(&self, cluster: &Cluster) -> Vec<Value> {
        let namespace = cluster.namespace().unwrap_or_default();
        let all = self.file.objects.iter().filter(|it| it["metadata"]["namespace"] == namespace.as_str());
        all.cloned().collect()
    }

    /// Objects that are there and that nothing can be said of.
    fn unreadable(&self) -> Vec<String> {
        fn of<K: Watched>(management: &Management) -> impl Iterator<Item = String> {
            let all = management.unreadable::<K>().into_iter();
            all.map(|(name, why)| format!("{} {name} cannot be read: {why}", K::KIND.as_str()))
        }
        let management = &self.context.management;
        of::<AWSCluster>(management)
            .chain(of::<AWSMachine>(management))
            .chain(of::<KubeadmControlPlane>(management))
            .chain(of::<ClusterPlugin>(management))
            .collect()
    }
}

fn change(action: &'static str, resource: impl ToString, detail: impl Into<String>) -> AwsChange {
    AwsChange { action, resource: resource.to_string(), detail: detail.into() }
}

/// What a decision would do, waits for, and cannot do.
fn changes_of(decision: &Decision) -> Vec<AwsChange> {
    let done = |action: &Action| {
        let detail = match action {
            Action::Confirm { id, .. } => format!(" ({id}) was not found, and is made again if it is gone"),
            action => action.detail(),
        };
        change(action.verb(), action.key(), detail)
    };
    let plan = &decision.plan;
    let mut res: Vec<AwsChange> = plan.actions.iter().map(done).collect();
    res.extend(plan.waiting.iter().map(|(key, why)| change("wait", key, why)));
    res.extend(plan.blocked.iter().map(|(key, why)| change("blocked", key, why)));
    res.extend(decision.held.iter().map(|(kind, why)| change("held", kind, why)));
    res.extend(decision.invalid.iter().map(|it| change("invalid", &it.field, &it.message)));
    res
}
