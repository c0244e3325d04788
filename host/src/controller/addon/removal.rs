//! Asks the plugin of an add-on that is going what uninstalls it: once, within some seconds. Whatever else it
//! answers than a removal that is granted, what was recorded when the add-on was installed is carried out.

use std::time::Duration;

use addons::{DesiredAddOn, Inventory, LARGEST_RECORD, Standing, too_large};
use contract::Operation;
use crds::AWSCluster;
use crds::cluster_api::{Cluster, KubeadmControlPlane};
use crds::cluster_plugin::{Approval, ClusterPlugin};

use super::AddOns;
use super::facts::{ClusterFacts, FactSources, RequestedFacts};
use super::queries::Queries;
use crate::management::Cached;
use crate::workload::WorkloadCluster;

/// How long a deletion waits for the answer of a plugin, and for the facts that it asks for.
const PATIENCE: Duration = Duration::from_secs(20);

impl AddOns {
    /// The record of an add-on that is going, with the removal that its plugin wants; the same record when it
    /// was asked before, or wants nothing that counts.
    pub(super) async fn with_removal_of_plugin(
        &self,
        object: &Cached<ClusterPlugin>,
        workload: &WorkloadCluster,
        record: Inventory,
        operation: Operation,
    ) -> Inventory {
        let name = object.object_name();
        let memory = self.memories.of(&name, &record.module);
        if !may_be_asked(&record, object.spec.approval) || !memory.ask_for_removal() {
            return record;
        }
        let asked = self.ask_for_removal(object, workload, &record, operation);
        let asked = tokio::time::timeout(PATIENCE, asked).await;
        let removal = match asked.unwrap_or_else(|_| Err("it did not answer in time".to_owned())) {
            Ok(removal) if removal == record.removal => return record,
            Ok(removal) => removal,
            Err(why) => {
                tracing::info!(cluster_plugin = %name, module = record.module, why, "its recorded removal is carried out");
                return record;
            }
        };
        // So that each step counts once, whoever carries it out, and after a restart too.
        let wanted = Inventory { removal, ..record.clone() };
        match self.write_record(&name, workload, &wanted).await {
            Ok(()) => wanted,
            Err(progress) => {
                tracing::info!(cluster_plugin = %name, module = record.module, ?progress, "its recorded removal is carried out");
                record
            }
        }
    }

    async fn ask_for_removal(
        &self,
        object: &Cached<ClusterPlugin>,
        workload: &WorkloadCluster,
        record: &Inventory,
        operation: Operation,
    ) -> Result<Vec<contract::Step>, String> {
        let desired = DesiredAddOn::recorded(record).ok_or("no plugin of its name is known")?;
        let loaded = match self.plugins.earlier(&record.module, &record.digest).await {
            Some(loaded) => loaded,
            None => match self.plugins.brought(&desired).await {
                Ok(brought) if brought.component.digest == record.digest => brought,
                _ => return Err("the component that installed it is not here".to_owned()),
            },
        };
        let management = &self.context.management;
        let cluster_name = object.object_name().sibling(&object.spec.cluster_name);
        let cluster = management.get::<Cluster>(&cluster_name).ok_or("its Cluster is gone")?;
        let control_plane = management.of_cluster::<KubeadmControlPlane>(&cluster_name).into_iter().next();
        let aws_cluster = management.of_cluster::<AWSCluster>(&cluster_name).into_iter().next();
        let mut facts = ClusterFacts {
            cluster: &cluster,
            control_plane: control_plane.as_deref().map(|it| &**it),
            aws_cluster: aws_cluster.as_deref().map(|it| &**it),
            requested: RequestedFacts::new(),
            profiles: Err("nobody looks at roles for a removal".to_owned()),
            queries: Queries::unanswered("a plugin that is going is asked once"),
        };
        let region = aws_cluster.as_ref().map(|it| self.context.aws.region(&it.spec.region));
        let sources = FactSources { is_initialized: true, workload: Some(workload), region: region.as_ref() };
        let keys: Vec<_> = loaded.facts.iter().map(|key| (&desired, key.as_str())).collect();
        facts.requested = self.requested_facts(&keys, &facts, sources).await.0;
        let plan = self.plugins.ask_to_remove(&loaded, &desired, &facts, record, operation).await?;
        let wanted = Inventory { removal: plan.removal, ..record.clone() };
        let bytes = wanted.bytes_at_most();
        if bytes > LARGEST_RECORD { Err(too_large(&wanted, bytes)) } else { Ok(wanted.removal) }
    }
}

/// What anybody may have written in the cluster is no configuration to ask a plugin with, and where plans are
/// approved, the removal that was recorded is the one that was.
fn may_be_asked(record: &Inventory, approval: Approval) -> bool {
    record.standing == Standing::Proven && approval == Approval::Automatic
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(module: &str, standing: Standing) -> Inventory {
        let value = json!({"module": module, "version": "1", "digest": "sha256:1", "config": {"a": 1}, "planHash": "a",
            "complete": true, "objects": [], "removal": []});
        Inventory { standing, ..serde_json::from_value(value).expect("a record") }
    }

    #[test]
    fn approved_removals_stay_and_forged_records_ask_nobody() {
        let proven = record("aws-ebs-csi", Standing::Proven);
        assert!(may_be_asked(&proven, Approval::Automatic));
        assert!(!may_be_asked(&proven, Approval::Manual));
        for standing in [Standing::Unknown, Standing::Foreign] {
            assert!(!may_be_asked(&record("aws-ebs-csi", standing), Approval::Automatic), "{standing:?}");
        }
    }

    #[test]
    fn a_plugin_is_asked_with_the_configuration_that_was_installed() {
        let asked = DesiredAddOn::recorded(&record("aws-ebs-csi", Standing::Proven)).expect("it is known");
        assert_eq!(
            (asked.module.as_str(), asked.path.as_str(), &asked.config),
            ("aws-ebs-csi", "spec.storage.ebs", &json!({"a": 1}))
        );
        assert_eq!(DesiredAddOn::recorded(&record("of-nobody", Standing::Proven)), None);
    }
}
