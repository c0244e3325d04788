//! The records of installed add-ons in the workload cluster itself, where they survive the loss of the
//! management cluster: one ConfigMap for each.

use addons::{Inventory, LARGEST_RECORD, ObjectRef, digest};
use kube::api::ListParams;
use serde_json::{Value, json};

use super::{OWN_MANAGER, WorkloadCluster, WorkloadError};

/// Label of a record; its value is the plugin's name.
const LABEL: &str = "cluster.kurator.dev/inventory";
pub(super) const NAMESPACE: &str = "kube-system";
/// The parts of a ConfigMap that are read.
const PARTS: [&str; 2] = ["/metadata/name", "/data/inventory"];

/// A record as it is in the cluster, whoever wrote it.
#[derive(Clone, Debug)]
pub struct StoredRecord {
    pub inventory: Inventory,
    /// Of its text.
    pub digest: String,
}

impl WorkloadCluster {
    /// The record of an add-on.
    ///
    /// # Errors
    /// The API did not answer, or somebody wrote something else there.
    pub async fn inventory(&self, module: &str) -> Result<Option<StoredRecord>, WorkloadError> {
        let object = inventory_object(module);
        let Some(live) = self.get_only(&object, &PARTS).await? else { return Ok(None) };
        read(object, &live).map(Some)
    }

    /// The records of all add-ons, in one request, and what is wrong with records that somebody
    /// wrote over.
    ///
    /// # Errors
    /// The API did not answer.
    pub async fn inventories(&self) -> Result<(Vec<StoredRecord>, Vec<WorkloadError>), WorkloadError> {
        let mut lists = self.lists();
        let found =
            lists.selected("v1", "ConfigMap", NAMESPACE, ListParams::default().labels(LABEL), &PARTS).await?;
        let (mut read_well, mut broken) = (Vec::new(), Vec::new());
        for live in &found {
            let name = live.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            match read(config_map(name.to_owned()), live) {
                // Not written by this program, whoever put its label there.
                Ok(found) if inventory_object(&found.inventory.module).name != name => (),
                Ok(found) => read_well.push(found),
                Err(error) => broken.push(error),
            }
        }
        Ok((read_well, broken))
    }

    /// Writes a record; `text` is an [`Inventory`].
    pub async fn write_inventory(&self, module: &str, text: &str) -> Result<(), WorkloadError> {
        let object = inventory_object(module);
        let config_map = json!({
            "apiVersion": object.api_version, "kind": object.kind,
            "metadata": {"name": object.name, "namespace": object.namespace, "labels": {LABEL: module}},
            "data": {"inventory": text},
        });
        self.apply(&config_map, OWN_MANAGER, true).await.map(drop)
    }

    /// Removes the record of an add-on that is not there any more, and the authority of its certificates if
    /// it had one, and what is stored of its component.
    pub async fn remove_inventory(&self, module: &str) -> Result<(), WorkloadError> {
        self.delete(&authority_object(module)).await?;
        self.delete_stored(module, None).await?;
        self.delete(&inventory_object(module)).await.map(drop)
    }
}

/// The Secret with the authority of an add-on's certificates.
pub fn authority_object(module: &str) -> ObjectRef {
    let record = inventory_object(module);
    ObjectRef { kind: "Secret".into(), name: format!("{}-authority", record.name), ..record }
}

fn read(object: ObjectRef, live: &Value) -> Result<StoredRecord, WorkloadError> {
    let text = live.pointer("/data/inventory").and_then(Value::as_str).unwrap_or_default();
    let refused = |why: &str| WorkloadError::Refused {
        object: Box::new(object.clone()),
        code: 422,
        message: format!("data.inventory is not an inventory of this program{why}"),
        fields: vec![],
    };
    if text.len() > LARGEST_RECORD {
        return Err(refused(&format!(": it has {} bytes", text.len())));
    }
    let inventory = serde_json::from_str(text)
        .map_err(|it| refused(&format!(" (line {}, column {})", it.line(), it.column())))?;
    Ok(StoredRecord { inventory, digest: digest(text) })
}

fn inventory_object(module: &str) -> ObjectRef {
    config_map(format!("cluster-plugin-{module}"))
}

pub(super) fn config_map(name: String) -> ObjectRef {
    ObjectRef { api_version: "v1".into(), kind: "ConfigMap".into(), namespace: Some(NAMESPACE.into()), name }
}
