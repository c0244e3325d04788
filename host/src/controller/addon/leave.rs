//! How add-ons leave: with their cluster (load balancers first, then the cloud provider, then the machines are let go), or from a
//! cluster that lives on.

use std::collections::BTreeSet;
use std::sync::Arc;

use crds::cluster_api::Cluster;
use crds::cluster_plugin::{ClusterPlugin, OnPluginDelete, PluginPhase};
use crds::{AWSCluster, conditions::reason, names};
use kube::ResourceExt;
use plan::addon::{Api, Progress, Slot, Teardown, TeardownSeen, teardown, wanted};

use super::carry_out::{Carried, Manner, carry_out};
use super::check::Findings;
use super::{AddOns, BLOCKED, SOON, now};
use crate::context::ObjectName;
use crate::controller::queue::Again;
use crate::management::{Error, Known, Note};
use crate::workload::WorkloadCluster;

impl AddOns {
    /// One step of the teardown of a cluster that is being deleted.
    pub(super) async fn leave_with_cluster(&self, object: Arc<Known<ClusterPlugin>>, cluster: Arc<Known<Cluster>>) -> Result<Again, Error> {
        let name = cluster.object_name();
        if !object.has_finalizer(names::PLUGIN_FINALIZER) {
            self.context.management.remove_finalizer(&cluster, names::PLUGIN_FINALIZER).await?;
            self.forget(&object.object_name(), &name);
            return Ok(Again::OnChange);
        }
        let (api, workload) = self.reach(&name).await?;
        let seen = self.teardown_seen(&object, &cluster, api, workload.as_deref()).await;
        let message = match teardown(&seen) {
            Teardown::Release(skipped) => {
                if let Some(message) = skipped {
                    let note = Note { warning: true, reason: "TeardownSkipped".into(), action: "Teardown".into(), message };
                    self.context.management.note(&object, note);
                }
                self.context.management.remove_finalizer(&object, names::PLUGIN_FINALIZER).await?;
                self.context.management.remove_finalizer(&cluster, names::PLUGIN_FINALIZER).await?;
                self.forget(&object.object_name(), &name);
                return Ok(Again::OnChange);
            }
            Teardown::DeleteServices(services) => {
                if let Some(workload) = &workload {
                    for service in &services {
                        self.delete_service(workload, service).await;
                    }
                }
                format!("for Services of type LoadBalancer to be gone: {}", services.join(", "))
            }
            Teardown::Remove(module) => match &workload {
                Some(workload) => self.remove(workload, &object, &module).await,
                None => "for the API server".into(),
            },
            Teardown::Wait(message) => message,
        };
        let progress = leaving(&object, &message);
        self.say(&object, &progress, Some((reason::DELETING, &message))).await?;
        Ok(Again::After(SOON))
    }

    /// The ClusterPlugin is deleted and the cluster lives on: without cloud provider and networking nothing of it would work.
    pub(super) async fn leave_alone(&self, object: Arc<Known<ClusterPlugin>>, cluster: Arc<Known<Cluster>>) -> Result<Again, Error> {
        let kept: Vec<&str> = wanted(&object.spec).iter().map(|it| it.module).collect();
        if object.spec.deletion.on_plugin_delete == OnPluginDelete::Uninstall && !kept.is_empty() {
            let message = format!(
                "{} cannot be uninstalled from a cluster that lives on: its nodes would stop working; delete the Cluster, or set \
                 spec.deletion.onPluginDelete to Keep to leave everything as it is",
                kept.join(", ")
            );
            self.say(&object, &leaving(&object, &message), Some((reason::DELETING, &message))).await?;
            return Ok(Again::After(BLOCKED));
        }
        self.context.management.remove_finalizer(&cluster, names::PLUGIN_FINALIZER).await?;
        self.context.management.remove_finalizer(&object, names::PLUGIN_FINALIZER).await?;
        self.forget(&object.object_name(), &cluster.object_name());
        Ok(Again::OnChange)
    }

    /// Whether the workload API answers, and its client if it does.
    pub(super) async fn reach(&self, cluster: &ObjectName) -> Result<(Api, Option<Arc<WorkloadCluster>>), Error> {
        let secret = cluster.sibling(format!("{}{}", cluster.name, names::KUBECONFIG_SECRET_SUFFIX));
        let secret = self.context.management.secret(&secret).await?;
        let Some(kubeconfig) = secret.and_then(|it| it.data).and_then(|mut it| it.remove("value")) else {
            return Ok((Api::NoKubeconfig, None));
        };
        let workload = match self.workload.cluster(&cluster.namespace, &cluster.name, &kubeconfig.0).await {
            Ok(workload) => workload,
            Err(error) => return Ok((Api::Unreachable(error.to_string()), None)),
        };
        match workload.version().await {
            Ok(_) => Ok((Api::Answers, Some(workload))),
            Err(error) => Ok((Api::Unreachable(error.to_string()), None)),
        }
    }

    async fn teardown_seen(
        &self,
        object: &Known<ClusterPlugin>,
        cluster: &Known<Cluster>,
        api: Api,
        workload: Option<&WorkloadCluster>,
    ) -> TeardownSeen {
        let mut seen = TeardownSeen {
            began: cluster.metadata.deletion_timestamp.as_ref().map_or_else(now, |it| it.0.as_second() as f64),
            now: now(),
            timeout: std::time::Duration::from(object.spec.deletion.timeout).as_secs_f64(),
            forced: [&object.metadata, &cluster.metadata]
                .iter()
                .any(|it| it.annotations.as_ref().is_some_and(|it| it.contains_key(names::FORCE_DELETE_ANNOTATION))),
            api,
            services: vec![],
            services_to_delete: vec![],
            load_balancers: Ok(vec![]),
            installed: vec![],
        };
        let Some(workload) = workload else { return seen };
        let read = async {
            let services = workload.load_balancer_services().await?;
            let text = |it: &crate::workload::LoadBalancerService| format!("{}/{}", it.namespace, it.name);
            seen.services = services.iter().map(text).collect();
            seen.services_to_delete = services.iter().filter(|it| !it.is_deleting).map(text).collect();
            let modules = wanted(&object.spec).into_iter().rev().filter(|it| it.slot != Slot::Networking);
            for module in modules {
                if workload.inventory(module.module).await?.is_some() {
                    seen.installed.push(module.module.to_owned());
                }
            }
            Ok::<(), crate::workload::WorkloadError>(())
        };
        if let Err(error) = read.await {
            seen.api = Api::Unreachable(error.to_string());
            return seen;
        }
        if seen.services.is_empty() {
            seen.load_balancers = self.load_balancers_of(cluster).await;
        }
        seen
    }

    /// Load balancers that the cluster's own controllers made, by tag; ours carries another one.
    async fn load_balancers_of(&self, cluster: &Known<Cluster>) -> Result<Vec<String>, String> {
        let aws_cluster = self.context.management.of_cluster::<AWSCluster>(&cluster.object_name());
        let Some(aws_cluster) = aws_cluster.first() else { return Ok(vec![]) };
        let region = self.context.aws.region(&aws_cluster.spec.region);
        region.load_balancers_of(&cluster.name_any()).await.map_err(|it| format!("{}: {}", it.code, it.message))
    }

    async fn delete_service(&self, workload: &WorkloadCluster, service: &str) {
        let Some((namespace, name)) = service.split_once('/') else { return };
        let object = plan::addon::ObjectRef {
            api_version: "v1".into(),
            kind: "Service".into(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        };
        if let Err(error) = workload.delete(&object).await {
            tracing::info!(%error, "a Service could not be deleted yet");
        }
    }

    /// Carries out what was written down at install as the removal of an add-on, then its record. Says what is awaited.
    async fn remove(&self, workload: &WorkloadCluster, object: &Known<ClusterPlugin>, module: &str) -> String {
        let inventory = match workload.inventory(module).await {
            Ok(Some(inventory)) => inventory,
            Ok(None) => return String::new(),
            Err(error) => return error.to_string(),
        };
        let force = object.spec.conflicts == crds::cluster_plugin::Conflicts::Force;
        let manner = Manner {
            field_manager: &super::install::field_manager(module),
            force,
            rules_are_there: true,
            findings: &Findings::new(),
            authority: None,
        };
        let mut done = BTreeSet::new();
        match carry_out(workload, &inventory.removal, &mut done, &manner).await {
            Carried::Out => match workload.forget_inventory(module).await {
                Ok(()) => format!("{module} is removed"),
                Err(error) => error.to_string(),
            },
            Carried::Waiting(what) | Carried::Refused(_, what) => format!("removing {module}: {what}"),
        }
    }
}

fn leaving(object: &Known<ClusterPlugin>, message: &str) -> Vec<Progress> {
    let known = object.status.clone().unwrap_or_default().plugins;
    let of = |it: plan::addon::Wanted| {
        let before = known.iter().find(|known| known.name == it.module);
        Progress {
            slot: it.slot,
            module: it.module.to_owned(),
            version: before.map(|it| it.version.clone()).unwrap_or_default(),
            digest: before.map(|it| it.digest.clone()).unwrap_or_default(),
            phase: PluginPhase::Deleting,
            reason: reason::DELETING.to_owned(),
            message: message.to_owned(),
        }
    };
    wanted(&object.spec).into_iter().map(of).collect()
}
