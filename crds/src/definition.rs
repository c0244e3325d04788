//! The CustomResourceDefinitions of this API, printed as YAML.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Value, json};

use crate::names::{CLUSTERCTL_LABEL, MOVE_HIERARCHY_LABEL, PROVIDER, PROVIDER_LABEL};
use crate::schema::{self, Spec};
use crate::{
    AWSCluster, AWSClusterControllerIdentity, AWSClusterTemplate, AWSMachine, AWSMachineTemplate,
    ClusterPlugin, PluginModule, rules, unsupported,
};

const HEADER: &str = "\
# A CustomResourceDefinition of cluster-operator, printed by the crate `crds`. It is never edited by hand: a test fails when it
# is not what the crate prints, and `UPDATE=1 cargo test -p crds` writes it anew.
";

/// File name and text of every CustomResourceDefinition. The same crate always prints the same bytes.
///
/// # Errors
/// When a definition cannot be printed; a test holds that this does not happen.
pub fn yaml() -> Result<Vec<(String, String)>, serde_saphyr::ser::Error> {
    let mut files = Vec::new();
    for definition in values() {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let text = serde_saphyr::to_string(&schema::sorted(definition.clone()))?;
        files.push((format!("{name}.yaml"), format!("{HEADER}{text}")));
    }
    Ok(files)
}

/// Every CustomResourceDefinition, typed.
///
/// # Errors
/// When a definition of ours is none; a test holds that this does not happen.
pub fn definitions() -> Result<Vec<CustomResourceDefinition>, serde_json::Error> {
    values().into_iter().map(serde_json::from_value).collect()
}

fn values() -> Vec<Value> {
    vec![
        definition(AWSCluster::crd(), |kind| {
            let mut spec = Spec::new(kind, "spec");
            rules::cluster(&mut spec);
            rules::cluster_object(&mut spec);
            unsupported::refuse(&mut spec, unsupported::CLUSTER);
        }),
        identity(),
        definition(AWSClusterTemplate::crd(), |kind| {
            let mut spec = Spec::new(kind, "spec.template.spec");
            rules::cluster(&mut spec);
            unsupported::refuse(&mut spec, unsupported::CLUSTER);
        }),
        definition(AWSMachine::crd(), |kind| {
            let mut spec = Spec::new(kind, "spec");
            rules::machine(&mut spec);
            rules::machine_object(&mut spec);
            unsupported::refuse(&mut spec, unsupported::MACHINE);
        }),
        definition(AWSMachineTemplate::crd(), |kind| {
            let mut spec = Spec::new(kind, "spec.template.spec");
            rules::machine(&mut spec);
            rules::machine_template(&mut spec);
            unsupported::refuse(&mut spec, unsupported::MACHINE);
        }),
        definition(ClusterPlugin::crd(), |kind| {
            let mut spec = Spec::new(kind, "spec");
            rules::cluster_plugin(&mut spec);
        }),
        module(),
    ]
}

/// Modules are cluster-scoped, and move with the clusters of whoever moves: they are copied, and stay.
fn module() -> Value {
    let mut definition = definition(PluginModule::crd(), rules::plugin_module);
    definition["metadata"]["labels"][MOVE_HIERARCHY_LABEL] = json!("");
    definition
}

fn identity() -> Value {
    let mut definition = definition(AWSClusterControllerIdentity::crd(), |kind| {
        let mut spec = Spec::new(kind, "spec");
        rules::controller_identity(&mut spec);
        unsupported::refuse(&mut spec, unsupported::CONTROLLER_IDENTITY);
    });
    definition["metadata"]["labels"][MOVE_HIERARCHY_LABEL] = json!("");
    definition
}

/// One definition: the derived one with labels, in the form that API servers want, and with what `refine`
/// adds to its schema.
fn definition(derived: CustomResourceDefinition, refine: impl FnOnce(&mut Value)) -> Value {
    let mut definition = json!(derived);
    definition["metadata"]["labels"][PROVIDER_LABEL] = json!(PROVIDER);
    definition["metadata"]["labels"][CLUSTERCTL_LABEL] = json!("");
    let kind = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema::normalize(kind);
    refine(kind);
    definition
}
