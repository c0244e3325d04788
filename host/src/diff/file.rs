//! The objects of a file, in the place of those of the management cluster: what an edit would do is seen before
//! it is made. Nothing here reads anything.

use std::collections::BTreeSet;

use anyhow::Context;
use kube::core::ApiResource;
use serde_json::{Map, Value, json};

use crate::object_name::ObjectName;
use crate::preview::objects::objects;

const CAPI: &str = "cluster.x-k8s.io";
const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";

/// Kinds of which an object takes the place of the one that there is.
const READ: [(&str, &str); 7] = [
    (CAPI, "Cluster"),
    (CAPI, "Machine"),
    (CONTROL_PLANE, "KubeadmControlPlane"),
    (INFRASTRUCTURE, "AWSCluster"),
    (INFRASTRUCTURE, "AWSMachine"),
    (INFRASTRUCTURE, "AWSMachineTemplate"),
    ("cluster.kurator.dev", "ClusterPlugin"),
];

/// Kinds that files with clusters have besides. Others act on them, or nobody does.
const PASSED_OVER: [(&str, &str); 13] = [
    (CAPI, "MachineDeployment"),
    (CAPI, "MachineSet"),
    (CAPI, "MachinePool"),
    (CAPI, "MachineHealthCheck"),
    (CAPI, "MachineDrainRule"),
    (CAPI, "ClusterClass"),
    (CONTROL_PLANE, "KubeadmControlPlaneTemplate"),
    (BOOTSTRAP, "KubeadmConfig"),
    (BOOTSTRAP, "KubeadmConfigTemplate"),
    ("addons.cluster.x-k8s.io", "ClusterResourceSet"),
    ("", "Namespace"),
    ("", "Secret"),
    ("", "ConfigMap"),
];

/// Fields of specs that controllers fill in: a file that leaves them out leaves them as they are.
const FILLED_IN: [(&str, &str); 7] = [
    ("Cluster", "/spec/controlPlaneEndpoint"),
    ("AWSCluster", "/spec/controlPlaneEndpoint"),
    ("AWSMachine", "/spec/providerID"),
    ("AWSMachine", "/spec/instanceID"),
    ("AWSMachine", "/spec/cloudInit/secretPrefix"),
    ("AWSMachine", "/spec/cloudInit/secretCount"),
    ("Machine", "/spec/providerID"),
];

/// What of the metadata of an object that there is stays whatever a file says.
const METADATA: [&str; 7] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
    "ownerReferences",
];

/// The objects of a file, each with its namespace.
#[derive(Debug, Default)]
pub struct File {
    /// All of them, also those that are passed over.
    pub objects: Vec<Value>,
}

impl File {
    /// Reads a YAML text. Objects without a namespace are in `namespace`.
    ///
    /// # Errors
    /// It is no YAML, or has an object that is nothing to this operator.
    pub fn parse(text: &str, namespace: &str) -> anyhow::Result<File> {
        let mut objects = objects(text)?;
        for object in &mut objects {
            let kind = kind_of(object);
            let is_known = READ.iter().chain(&PASSED_OVER).any(|known| *known == kind);
            let described = format!(
                "{} {} ({})",
                shown(&object["kind"]),
                shown(&object["metadata"]["name"]),
                shown(&object["apiVersion"])
            );
            anyhow::ensure!(
                is_known,
                "{described} is nothing that this operator looks at: leave it out, or mend its kind or apiVersion"
            );
            let metadata = object["metadata"].as_object_mut();
            let metadata = metadata.filter(|it| it.get("name").is_some_and(Value::is_string));
            let metadata = metadata.with_context(|| format!("{described} has no name"))?;
            metadata.entry("namespace").or_insert_with(|| namespace.into());
        }
        let clusters: Vec<Value> = objects.iter().filter(|it| kind_of(it) == READ[0]).cloned().collect();
        for cluster in &clusters {
            objects.iter_mut().for_each(|object| adopt(cluster, object));
        }
        Ok(File { objects })
    }

    /// Names of the objects that are looked at, with their kinds.
    pub fn named(&self) -> impl Iterator<Item = (&str, ObjectName)> {
        let read = self.objects.iter().filter(|object| READ.contains(&kind_of(object)));
        read.map(|object| (object["kind"].as_str().unwrap_or_default(), name_of(object)))
    }

    /// Namespaces of the objects that are looked at.
    pub fn namespaces(&self) -> BTreeSet<String> {
        self.named().map(|(_, name)| name.namespace).collect()
    }

    /// The objects of a kind and namespace as they would be were the file applied.
    pub fn amended(&self, resource: &ApiResource, namespace: &str, live: Vec<Value>) -> Vec<Value> {
        let is_of_kind =
            |object: &&Value| kind_of(object) == (resource.group.as_str(), resource.kind.as_str());
        let mut res = live;
        for object in self.objects.iter().filter(is_of_kind) {
            let name = name_of(object);
            if name.namespace != namespace {
                continue;
            }
            match res.iter_mut().find(|live| name_of(live) == name) {
                Some(live) => *live = replaced(live, object),
                None => res.push(object.clone()),
            }
        }
        res
    }
}

/// An object as it would be once one of a file was applied in its place: what nobody writes into a file stays.
fn replaced(live: &Value, object: &Value) -> Value {
    let mut res = object.clone();
    for field in METADATA {
        match live["metadata"].get(field) {
            Some(value) => res["metadata"][field] = value.clone(),
            None => drop(res["metadata"].as_object_mut().and_then(|it| it.remove(field))),
        }
    }
    for field in ["labels", "annotations"] {
        let mut merged = live["metadata"][field].as_object().cloned().unwrap_or_default();
        merged.extend(object["metadata"][field].as_object().cloned().unwrap_or_default());
        res["metadata"][field] = Value::Object(merged);
    }
    match live.get("status") {
        Some(status) => res["status"] = status.clone(),
        None => drop(res.as_object_mut().and_then(|it| it.remove("status"))),
    }
    for (_, pointer) in FILLED_IN.iter().filter(|(kind, _)| object["kind"] == *kind) {
        if let (Some(value), None) = (live.pointer(pointer), object.pointer(pointer)) {
            set(&mut res, pointer, value.clone());
        }
    }
    res
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for name in pointer.split('/').skip(1) {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[name];
    }
    *at = value;
}

/// Writes into an object of the file what Cluster API would: that it belongs to a Cluster of the file which names
/// it.
fn adopt(cluster: &Value, object: &mut Value) {
    let (spec, name) = (&cluster["spec"], cluster["metadata"]["name"].clone());
    let references = [&spec["infrastructureRef"], &spec["controlPlaneRef"]];
    let is_named =
        references.iter().any(|it| it["kind"] == object["kind"] && it["name"] == object["metadata"]["name"]);
    if !is_named || cluster["metadata"]["namespace"] != object["metadata"]["namespace"] {
        return;
    }
    let metadata = &mut object["metadata"];
    if metadata["ownerReferences"].as_array().is_none_or(Vec::is_empty) {
        metadata["ownerReferences"] =
            json!([{"apiVersion": cluster["apiVersion"], "kind": "Cluster", "name": name, "uid": ""}]);
    }
}

/// Group and kind.
fn kind_of(object: &Value) -> (&str, &str) {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    (group, object["kind"].as_str().unwrap_or_default())
}

fn name_of(object: &Value) -> ObjectName {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    ObjectName::new(text("namespace"), text("name"))
}

fn shown(value: &Value) -> &str {
    value.as_str().unwrap_or("(none)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(group: &str, kind: &str) -> ApiResource {
        let text = String::new();
        ApiResource {
            group: group.to_owned(),
            version: text.clone(),
            api_version: text.clone(),
            kind: kind.to_owned(),
            plural: text,
        }
    }

    fn amended(file: &str, kind: (&str, &str), live: Value) -> Vec<Value> {
        let file = File::parse(file, "default").expect("objects");
        file.amended(&resource(kind.0, kind.1), "default", vec![live])
    }

    const PLUGIN: &str = "
apiVersion: cluster.kurator.dev/v1alpha1
kind: ClusterPlugin
metadata: {name: prod, annotations: {cluster.kurator.dev/upgrade: calico@sha256:1}, uid: forged}
spec: {clusterName: prod}
status: {phase: Forged}
";

    #[test]
    fn an_object_of_the_file_takes_the_place_of_the_one_that_there_is() {
        let live = json!({"apiVersion": "cluster.kurator.dev/v1alpha1", "kind": "ClusterPlugin",
            "metadata": {"name": "prod", "namespace": "default", "uid": "1", "resourceVersion": "7",
                "annotations": {"cluster.kurator.dev/records": "{}"}, "finalizers": ["a"]},
            "spec": {"clusterName": "prod", "storage": {"ebs": {}}}, "status": {"phase": "Ready"}});
        let expected = json!({"apiVersion": "cluster.kurator.dev/v1alpha1", "kind": "ClusterPlugin",
            "metadata": {"name": "prod", "namespace": "default", "uid": "1", "resourceVersion": "7",
                "annotations": {"cluster.kurator.dev/records": "{}",
                    "cluster.kurator.dev/upgrade": "calico@sha256:1"},
                "labels": {}, "finalizers": ["a"]},
            "spec": {"clusterName": "prod"}, "status": {"phase": "Ready"}});
        assert_eq!(amended(PLUGIN, READ[6], live.clone()), [expected]);
        let mut other = live.clone();
        other["metadata"]["name"] = "other".into();
        assert_eq!(amended(PLUGIN, READ[6], other.clone()).len(), 2, "one more");
        assert_eq!(amended(PLUGIN, READ[0], other.clone()), [other], "of another kind");
        let elsewhere = PLUGIN.replace("name: prod,", "name: prod, namespace: elsewhere,");
        assert_eq!(amended(&elsewhere, READ[6], live.clone()), [live], "of another namespace");
    }

    #[test]
    fn what_controllers_fill_in_stays_where_a_file_leaves_it_out() {
        let file = "
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata: {name: prod}
spec: {region: us-east-1}
";
        let live = |spec: Value| {
            json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
                "metadata": {"name": "prod", "namespace": "default"}, "spec": spec})
        };
        let endpoint = json!({"host": "a.example", "port": 6443});
        let spec =
            json!({"region": "us-east-1", "controlPlaneEndpoint": endpoint, "additionalTags": {"a": "b"}});
        let amended = amended(file, READ[3], live(spec));
        assert_eq!(amended[0]["spec"], json!({"region": "us-east-1", "controlPlaneEndpoint": endpoint}));
    }

    #[test]
    fn what_a_cluster_of_the_file_names_belongs_to_it() {
        let file = "
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: prod}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSCluster, name: network}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: machines}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata: {name: network}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: machines}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata: {name: other}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: passed-over}
";
        let file = File::parse(file, "default").expect("objects");
        let owner = |place: usize| file.objects[place]["metadata"]["ownerReferences"][0]["name"].as_str();
        assert_eq!((owner(1), owner(2), owner(3)), (Some("prod"), Some("prod"), None));
        let named: Vec<String> = file.named().map(|(kind, name)| format!("{kind} {name}")).collect();
        assert_eq!(
            named,
            [
                "Cluster default/prod",
                "AWSCluster default/network",
                "KubeadmControlPlane default/machines",
                "AWSCluster default/other"
            ]
        );
    }

    #[test]
    fn what_nobody_here_looks_at_is_refused_by_its_name() {
        let refused = |text: &str| File::parse(text, "default").expect_err("it is taken").to_string();
        assert_eq!(
            refused("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}"),
            "Deployment web (apps/v1) is nothing that this operator looks at: leave it out, or mend its kind or apiVersion"
        );
        let other = PLUGIN.replace("cluster.kurator.dev/v1alpha1", "kurator.dev/v1");
        assert!(refused(&other).starts_with("ClusterPlugin prod (kurator.dev/v1) is nothing"));
        assert!(refused("just a text").starts_with("(none) (none) ((none)) is nothing"));
        assert!(refused("{apiVersion: v1, kind: Secret}").ends_with("has no name"));
    }
}
