//! What still needs the storage drivers of an add-on.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ObservedStorage, claim, volume_text};
use crate::Inventory;
use crate::built_in::{self, CsiDriver};
use crate::load_balancer_users::{named, text};

/// What still needs the drivers of an add-on: nothing else can detach or delete it.
pub fn used_by_storage(installed: &Inventory, observed: &ObservedStorage) -> Vec<String> {
    let built_in = built_in::find(&installed.module).and_then(|add_on| add_on.driver);
    let applied = installed.objects.iter().filter(|it| it.kind == "CSIDriver");
    let applied = applied.map(|it| CsiDriver { name: &it.name, in_tree: None });
    let drivers: Vec<CsiDriver<'_>> = match built_in {
        Some(driver) => vec![driver],
        None => applied.collect(),
    };
    drivers.iter().flat_map(|driver| used_by_driver(driver, observed)).collect()
}

fn used_by_driver(driver: &CsiDriver<'_>, observed: &ObservedStorage) -> Vec<String> {
    let volumes: Vec<&Value> = observed.volumes.iter().filter(|it| driver.has(it)).collect();
    let names: BTreeSet<&str> = volumes.iter().map(|it| text(it, "/metadata/name")).collect();
    let is_named = |attachment: &Value| names.contains(text(attachment, "/spec/source/persistentVolumeName"));
    let attachments =
        observed.attachments.iter().filter(|it| text(it, "/spec/attacher") == driver.name && !is_named(it));
    let attachments = attachments.map(|it| named("storage.k8s.io/v1", "VolumeAttachment", it).to_string());
    let classes = driver.classes(observed);
    let claims =
        observed.claims.iter().filter(|it| driver.is_asked(it, &classes)).map(|it| claim(it).to_string());
    volumes.iter().map(|it| volume_text(it)).chain(attachments).chain(claims).collect()
}
