//! The objects of a file, as YAML.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

/// The text of a file; `-`: of standard input.
pub fn read(file: &Path) -> anyhow::Result<String> {
    if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("standard input cannot be read")?;
        return Ok(text);
    }
    std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))
}

/// The objects of a YAML text; a List is opened.
pub fn objects(text: &str) -> anyhow::Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    let items = |document: Value| match document.get("items").and_then(Value::as_array) {
        Some(items) => items.clone(),
        None => vec![document],
    };
    Ok(documents.into_iter().filter(|it| !it.is_null()).flat_map(items).collect())
}

/// The objects of one kind and group.
pub fn of_kind<T: serde::de::DeserializeOwned>(
    objects: &[Value],
    kind: &str,
    group: &str,
) -> anyhow::Result<Vec<T>> {
    let is = |object: &&Value| {
        object["kind"] == kind
            && object["apiVersion"].as_str().and_then(|it| it.split('/').next()) == Some(group)
    };
    let read = |object: &Value| {
        serde_json::from_value(object.clone())
            .with_context(|| format!("{kind} {} cannot be read", object["metadata"]["name"]))
    };
    objects.iter().filter(is).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crds::AWSCluster;
    use crds::cluster_api::Cluster;

    const FILE: &str = "
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: prod}
spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSCluster, name: prod}}
---
---
apiVersion: v1
kind: List
items:
- apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
  kind: AWSCluster
  metadata: {name: prod}
  spec: {region: eu-central-1}
";

    #[test]
    fn objects_are_found_in_several_documents_and_in_lists() {
        let objects = objects(FILE).expect("YAML");
        let clusters: Vec<Cluster> = of_kind(&objects, "Cluster", "cluster.x-k8s.io").expect("Clusters");
        let infrastructure: Vec<AWSCluster> =
            of_kind(&objects, "AWSCluster", "infrastructure.cluster.x-k8s.io").expect("AWSClusters");
        assert_eq!((clusters.len(), infrastructure[0].spec.region.as_str()), (1, "eu-central-1"));
    }
}
