//! The deletion of a cluster that has all add-ons: what of them is left, in which order the rest goes, and what
//! is in the way.

use anyhow::{Result, ensure};
use end_to_end::add_ons::{ACCOUNT, BUCKET, clean_up, issuer};
use end_to_end::{BOOT, Cluster, MOMENT, condition_text};
use sandbox::Bed;
use sandbox::emulator::Fault;

use super::passed;

/// Deletes the cluster, with the operator killed on the way, and cleans up what it leaves.
pub async fn the_cluster_goes(bed: &Bed, cluster: &Cluster, file_system: &str) -> Result<()> {
    let load_balancers = cluster.load_balancers(bed).await?;
    let from = bed.emulator().calls(0).await?.next;
    cluster.ask_for_deletion(bed).await?;
    bed.wait_for("the middle of removing what has load balancers", MOMENT, async || {
        let calls = bed.emulator().calls(from).await?.calls;
        ensure!(
            calls.iter().any(|it| it.did("DeleteLoadBalancer", &load_balancers)),
            "no load balancer is deleted yet"
        );
        Ok(())
    })
    .await?;
    bed.kill_operator().await?;
    bed.start_operator().await?;
    bed.wait_for("the machines to be gone", BOOT, async || {
        let machines = cluster.objects(bed, "awsmachines").await?;
        ensure!(machines.is_empty(), "{} AWSMachines are left", machines.len());
        Ok(())
    })
    .await?;
    // Mount targets are the user's, and in the way.
    bed.wait_for("the AWSCluster to name what is in the way", MOMENT, async || {
        let object = cluster.object(bed, "awscluster", &cluster.name).await?;
        let text = condition_text(&object, "Ready");
        ensure!(text.contains("eni-") || text.contains(file_system), "Ready says {text:?}");
        Ok(())
    })
    .await?;
    let denied = Fault {
        kind: "access-denied".into(),
        service: Some("s3".into()),
        action: Some("GetObject".into()),
        ..Fault::default()
    };
    bed.emulator().set_faults(&[denied]).await?;
    let targets = bed.aws(&["efs", "describe-mount-targets", "--file-system-id", file_system]).await?;
    for target in targets["MountTargets"].as_array().into_iter().flatten() {
        let id = target["MountTargetId"].as_str().unwrap_or_default();
        bed.aws(&["efs", "delete-mount-target", "--mount-target-id", id]).await?;
    }
    bed.wait_for("the AWSCluster to say that it may not read whose the issuer is", MOMENT, async || {
        let object = cluster.object(bed, "awscluster", &cluster.name).await?;
        let text = condition_text(&object, "ServiceAccountIssuerReady");
        ensure!(
            text.starts_with("IssuerNotRetracted: ") && text.contains("s3:GetObject"),
            "ServiceAccountIssuerReady says {text:?}"
        );
        Ok(())
    })
    .await?;
    let objects = bed.aws(&["s3api", "list-objects-v2", "--bucket", BUCKET]).await?;
    ensure!(
        objects["Contents"].as_array().is_some_and(|it| it.len() == 2),
        "what could not be read was deleted: {objects}"
    );
    bed.emulator().set_faults(&[]).await?;
    cluster.wait_until_gone(bed).await?;
    let volumes = bed
        .aws(&["ec2", "describe-volumes", "--filters", "Name=tag:ebs.csi.aws.com/cluster,Values=true"])
        .await?;
    let volumes: Vec<&str> = volumes["Volumes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it["VolumeId"].as_str())
        .collect();
    ensure!(
        volumes.len() == 2,
        "volumes are kept unless their deletion is asked for, but {volumes:?} are left of two"
    );
    let provider = format!("arn:aws:iam::{ACCOUNT}:oidc-provider/{}", issuer());
    let provider =
        bed.aws(&["iam", "get-open-id-connect-provider", "--open-id-connect-provider-arn", &provider]).await;
    ensure!(provider.is_err(), "the OIDC provider is still there");
    let objects = bed.aws(&["s3api", "list-objects-v2", "--bucket", BUCKET]).await?;
    ensure!(
        objects["Contents"].as_array().is_none_or(Vec::is_empty),
        "documents of the issuer are left: {objects}"
    );
    clean_up(bed, &volumes, file_system).await?;
    passed(
        "the cluster leaves its volumes, as it was told to, and nothing else, though the operator was killed on the way",
    );
    Ok(())
}
