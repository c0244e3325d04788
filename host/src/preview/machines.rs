//! The machines of a previewed cluster, as far as the file says: its own AWSMachines, and those that a
//! control plane or a MachineDeployment would make from a template.

use crds::cluster_api::Cluster;
use crds::{AWSMachine, AWSMachineSpec, AWSMachineTemplate};
use kube::ResourceExt;
use serde_json::Value;

use super::objects::of_kind;

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// Each set of machines of the cluster: its instances, and what they would be.
///
/// # Errors
/// An AWSMachine or AWSMachineTemplate cannot be read.
pub fn machines(cluster: &Cluster, objects: &[Value]) -> anyhow::Result<Vec<(String, String)>> {
    let mut res = Vec::new();
    let name = cluster.name_any();
    let templates: Vec<AWSMachineTemplate> = of_kind(objects, "AWSMachineTemplate", INFRASTRUCTURE)?;
    for object in objects {
        let control_plane = cluster
            .spec
            .control_plane_ref
            .as_ref()
            .is_some_and(|it| object["kind"] == it.kind && object["metadata"]["name"] == it.name);
        let deployment = object["kind"] == "MachineDeployment" && object["spec"]["clusterName"] == name;
        if !control_plane && !deployment {
            continue;
        }
        let path = if control_plane {
            "/spec/machineTemplate/spec/infrastructureRef/name"
        } else {
            "/spec/template/spec/infrastructureRef/name"
        };
        // Where the reference is in the older version of a control plane.
        let older = object.pointer("/spec/machineTemplate/infrastructureRef/name");
        let template = object.pointer(path).or(older).and_then(Value::as_str).unwrap_or_default();
        let replicas = object["spec"]["replicas"].as_u64().unwrap_or(1);
        let what = object["metadata"]["name"].as_str().unwrap_or_default();
        let made = match templates.iter().find(|it| it.name_any() == template) {
            Some(found) => format!("{replicas} of {}", described(&found.spec.template.spec)),
            None => format!("{replicas}; AWSMachineTemplate {template:?} is not in the file"),
        };
        res.push((format!("instance/{what}-*"), made));
    }
    for machine in of_kind::<AWSMachine>(objects, "AWSMachine", INFRASTRUCTURE)? {
        res.push((format!("instance/{}", machine.name_any()), described(&machine.spec)));
    }
    Ok(res)
}

fn described(spec: &AWSMachineSpec) -> String {
    let image = spec
        .ami
        .id
        .as_deref()
        .map_or_else(|| "the image looked up for its Kubernetes version".to_owned(), str::to_owned);
    let profile = &spec.iam_instance_profile;
    format!(
        "{}, {image}{}",
        spec.instance_type,
        if profile.is_empty() { String::new() } else { format!(", profile {profile}") }
    )
}
