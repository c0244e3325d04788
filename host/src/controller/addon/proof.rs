//! Records of add-ons in a workload cluster, and the digests by which the management cluster knows them: both
//! are written here, in an order that no crash confuses. What follows from a record is `addons`'s to say.

use addons::{Inventory, KEPT_RULES_ANNOTATION, Proofs, RECORDS_ANNOTATION, Standing, digest, kept_rules};
use crds::AWSCluster;
use crds::cluster_plugin::ClusterPlugin;
use kube::ResourceExt;
use model::AddOnRule;
use serde_json::json;

use super::AddOns;
use super::execute::{StepProgress, carried};
use crate::context::ObjectName;
use crate::management::Error;
use crate::workload::{Found, WorkloadCluster};

impl AddOns {
    /// Says of each record whose it is. The first time, that is written down.
    pub(super) async fn judged(&self, name: &ObjectName, found: Vec<Found>) -> Result<Vec<Inventory>, Error> {
        let proofs = match self.proofs(name) {
            Some(proofs) => proofs,
            None if found.is_empty() => Proofs::default(),
            None => {
                let object = self.context.management.get::<ClusterPlugin>(name);
                let told = object
                    .as_ref()
                    .and_then(|it| it.status.as_ref())
                    .map(|it| it.plugins.as_slice())
                    .unwrap_or_default();
                let told: Vec<&str> = told.iter().map(|it| it.name.as_str()).collect();
                let kept = object
                    .as_ref()
                    .map(|it| self.kept_rules(&name.sibling(&it.spec.cluster_name)))
                    .unwrap_or_default();
                let first =
                    Proofs::first(found.iter().map(|it| (&it.inventory, it.digest.as_str())), &told, &kept);
                self.prove(name, &first).await?;
                first
            }
        };
        Ok(found.into_iter().map(|it| standing(it, &proofs)).collect())
    }

    /// Writes a record that the management cluster knows from then on.
    pub(super) async fn write_record(
        &self,
        name: &ObjectName,
        workload: &WorkloadCluster,
        record: &Inventory,
    ) -> Result<(), StepProgress> {
        let module = record.module.as_str();
        let text = serde_json::to_string(record).map_err(|it| StepProgress::Unreachable(it.to_string()))?;
        let new = digest(&text);
        let proofs = self.proofs(name).unwrap_or_default().with(module, &new);
        self.prove(name, &proofs).await.map_err(unwritten)?;
        workload.write_inventory(module, &text).await.map_err(carried)?;
        self.prove(name, &proofs.only(module, &new)).await.map_err(unwritten)
    }

    /// Removes the record of an add-on that is not there any more.
    pub(super) async fn remove_record(
        &self,
        name: &ObjectName,
        workload: &WorkloadCluster,
        module: &str,
    ) -> Result<(), StepProgress> {
        workload.forget_inventory(module).await.map_err(carried)?;
        match self.proofs(name) {
            Some(proofs) => self.prove(name, &proofs.without(module)).await.map_err(unwritten),
            None => Ok(()),
        }
    }

    /// The record of one add-on, and whose it is.
    pub(super) async fn record(
        &self,
        name: &ObjectName,
        workload: &WorkloadCluster,
        module: &str,
    ) -> Result<Option<Inventory>, StepProgress> {
        let found = workload.inventory(module).await.map_err(carried)?;
        let proofs = self.proofs(name).unwrap_or_default();
        Ok(found.map(|it| standing(it, &proofs)))
    }

    /// Rules that the AWSCluster keeps of add-ons that stayed when their ClusterPlugin went.
    fn kept_rules(&self, cluster: &ObjectName) -> Vec<AddOnRule> {
        let aws_cluster = self.context.management.of_cluster::<AWSCluster>(cluster).into_iter().next();
        let text = aws_cluster.as_ref().and_then(|it| it.annotations().get(KEPT_RULES_ANNOTATION));
        kept_rules(text.map(String::as_str)).unwrap_or_default()
    }

    fn proofs(&self, name: &ObjectName) -> Option<Proofs> {
        let object = self.context.management.get::<ClusterPlugin>(name)?;
        Proofs::read(object.annotations().get(RECORDS_ANNOTATION))
    }

    /// Nothing is written where it says so already.
    async fn prove(&self, name: &ObjectName, proofs: &Proofs) -> Result<(), Error> {
        let Some(object) = self.context.management.get::<ClusterPlugin>(name) else { return Ok(()) };
        let text = proofs.text();
        if object.annotations().get(RECORDS_ANNOTATION) != Some(&text) {
            self.context
                .management
                .patch(&object, json!({"metadata": {"annotations": {RECORDS_ANNOTATION: text}}}))
                .await?;
        }
        Ok(())
    }
}

fn standing(found: Found, proofs: &Proofs) -> Inventory {
    let standing = proofs.standing(&found.inventory.module, &found.digest);
    if standing == Standing::Foreign {
        tracing::warn!(
            module = found.inventory.module,
            "somebody else wrote to the record of an add-on: it is not believed"
        );
    }
    Inventory { standing, ..found.inventory }
}

/// Nothing was written to the cluster either.
fn unwritten(error: Error) -> StepProgress {
    StepProgress::Unreachable(format!(
        "the digest of a record cannot be written to the ClusterPlugin: {error}"
    ))
}
