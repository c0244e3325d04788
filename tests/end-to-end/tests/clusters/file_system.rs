//! A file system that is found by its tags: while none or two have them, storage alone is held and says so;
//! once exactly one has, volumes are made on that one. Nothing here looks into the operator.

use anyhow::{Result, ensure};
use end_to_end::add_ons::{ACCOUNT, FILE_SYSTEM_TAG, plugin, running, tagged_file_system};
use end_to_end::{Cluster, MOMENT, condition, condition_text};
use sandbox::Bed;
use serde_json::json;

use super::passed;

/// EFS joins with a tag that no file system has, then with one that two have, of which one goes.
pub async fn it_is_found_by_its_tags(bed: &Bed, cluster: &Cluster, file_system: &str) -> Result<()> {
    let other = tagged_file_system(bed, "full-other").await?;
    use_tag(bed, cluster, "nothing").await?;
    storage_is_held(bed, cluster, &["no file system", "purpose=nothing"]).await?;
    use_tag(bed, cluster, FILE_SYSTEM_TAG.1).await?;
    storage_is_held(bed, cluster, &["several file systems", file_system, &other]).await?;
    bed.aws(&["efs", "delete-file-system", "--file-system-id", &other]).await?;
    running(bed, cluster, 5).await?;
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let class = workload.kubectl_json(&["get", "storageclass", "efs"]).await?;
    let chosen = &class["parameters"]["fileSystemId"];
    ensure!(chosen == file_system, "volumes are made on {chosen}, and {file_system} has the tags");
    passed(
        "storage alone waits while none or several file systems have the tags, and uses the only one that has",
    );
    Ok(())
}

/// AWS's policy for the driver lets it set no tag but its own: who wants the cluster's on access points is
/// told before a claim fails.
pub async fn tags_that_its_role_may_not_set_are_refused(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let patch = |wanted: serde_json::Value| {
        json!({"spec": {"storage": {"efs": {"tagAccessPoints": wanted}}}}).to_string()
    };
    cluster.patch(bed, "clusterplugin", &cluster.name, &patch(true.into())).await?;
    bed.wait_for("storage to be held because of the tags", MOMENT, async || {
        let object = plugin(bed, cluster).await?;
        let text = condition_text(&object, "StorageReady");
        let names =
            ["elasticfilesystem:CreateAccessPoint", "aws:TagKeys", "team"].iter().all(|it| text.contains(it));
        ensure!(text.starts_with("PermissionsMissing: ") && names, "StorageReady says {text:?}");
        Ok(())
    })
    .await?;
    cluster.patch(bed, "clusterplugin", &cluster.name, &patch(serde_json::Value::Null)).await?;
    running(bed, cluster, 5).await?;
    passed(
        "tags on access points that the role's policy does not let be set are refused, with the condition",
    );
    Ok(())
}

async fn use_tag(bed: &Bed, cluster: &Cluster, value: &str) -> Result<()> {
    let key = FILE_SYSTEM_TAG.0;
    let efs =
        json!({"roleARN": format!("arn:aws:iam::{ACCOUNT}:role/full-efs"), "fileSystemTags": {key: value}});
    cluster
        .patch(bed, "clusterplugin", &cluster.name, &json!({"spec": {"storage": {"efs": efs}}}).to_string())
        .await
}

/// Storage says so with these words, EBS and the other slots are well.
async fn storage_is_held(bed: &Bed, cluster: &Cluster, words: &[&str]) -> Result<()> {
    bed.wait_for(&format!("storage to be held with {words:?}"), MOMENT, async || {
        let object = plugin(bed, cluster).await?;
        let text = condition_text(&object, "StorageReady");
        let says_so = text.starts_with("InvalidConfiguration: spec.storage.efs.fileSystemTags: ")
            && words.iter().all(|it| text.contains(it));
        ensure!(says_so, "StorageReady says {text:?}, without {words:?}");
        let others =
            ["CloudProviderReady", "NetworkingReady", "IngressReady"].map(|it| condition(&object, it));
        ensure!(others == ["True"; 3], "the others are {others:?}");
        let plugins = object["status"]["plugins"].as_array().cloned().unwrap_or_default();
        let running = plugins.iter().filter(|it| it["phase"] == "Running").count();
        ensure!(running == 4, "{running} of 4 others run");
        Ok(())
    })
    .await
}
