//! What the controller does in AWS as conditions of policies see it: which tags its requests set.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::versions::{ACTIONS, Needed};
use plugin_sdk::steps::RoleAction;
use plugin_sdk::{Diagnostic, facts, settings};
use serde_json::{Map, Value};

/// What keeps volumes from getting the cluster's tags. The driver's controller would stop at the first key
/// that it keeps for itself (`validateExtraTags` in `pkg/driver/validation.go`), and refuse each volume
/// because of a value that it takes for a template.
pub fn problems(tags: &BTreeMap<String, String>) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for (key, value) in settings::flag_tags(tags, '=', ',') {
        let (code, why) = if key == "CSIVolumeName"
            || key == "CSIVolumeSnapshotName"
            || key.starts_with("ebs.csi.aws.com/")
        {
            ("ReservedTag", ", which the EBS CSI driver keeps for itself; rename or remove it")
        } else if value.contains("{{") {
            (
                "TemplateInTag",
                " with {{ in its value, which the EBS CSI driver takes for a template; remove it",
            )
        } else {
            continue;
        };
        problems.push(Diagnostic::error(
            code,
            "",
            ["spec.additionalTags of the AWSCluster has ", key, why].concat(),
        ));
    }
    problems
}

/// What the controller's role must allow, sorted.
pub fn actions(config: &Config, cluster: &facts::Cluster, aws: &facts::Aws) -> Vec<RoleAction> {
    let mut volume = created(&cluster.name, &aws.tags);
    for key in [
        "CSIVolumeName",
        "kubernetes.io/created-for/pv/name",
        "kubernetes.io/created-for/pvc/name",
        "kubernetes.io/created-for/pvc/namespace",
    ] {
        volume.insert(key.to_owned(), Value::Null);
    }
    volume.insert("KubernetesCluster".to_owned(), cluster.name.as_str().into());
    let mut snapshot = created(&cluster.name, &aws.tags);
    snapshot.insert("CSIVolumeSnapshotName".to_owned(), Value::Null);
    let with_key = config.classes().iter().any(|(_, class)| class.kms_key_id.is_some());
    let mut all = Vec::new();
    for (name, needed) in ACTIONS {
        let action = RoleAction::new(name);
        match needed {
            Needed::Always => all.push(action),
            Needed::ForCopies => all.push(action.sets(&volume).only("when a claim is a copy of another one")),
            Needed::ToMakeVolumes => all.push(action.sets(&volume)),
            Needed::ToTagVolumes => all.push(action.sets(&volume).of("CreateVolume")),
            Needed::ForSnapshots if config.snapshots => all.push(action),
            Needed::ToMakeSnapshots if config.snapshots => all.push(action.sets(&snapshot)),
            Needed::ToTagSnapshots if config.snapshots => {
                all.push(action.sets(&snapshot).of("CreateSnapshot"))
            }
            Needed::ForKeys if with_key => all.push(action),
            Needed::ForSnapshots | Needed::ToMakeSnapshots | Needed::ToTagSnapshots | Needed::ForKeys => (),
        }
    }
    all
}

/// The tags that the driver sets on all that it makes with the arguments that it is given; null where each
/// has another value.
fn created(cluster: &str, tags: &BTreeMap<String, String>) -> Map<String, Value> {
    let mut all = Map::new();
    all.insert("Name".to_owned(), Value::Null);
    all.insert("ebs.csi.aws.com/cluster".to_owned(), "true".into());
    all.insert("ebs.csi.aws.com/cluster-name".to_owned(), cluster.into());
    all.insert(["kubernetes.io/cluster/", cluster].concat(), "owned".into());
    for (key, value) in settings::flag_tags(tags, '=', ',') {
        all.insert(key.clone(), value.as_str().into());
    }
    all
}
