//! What a cluster with all add-ons needs, each with a role of its own: what a user makes of AWS before, the
//! manifest, and how it all goes again.

use anyhow::{Context, Result, ensure};
use sandbox::Bed;
use serde_json::{Value, json};

use crate::{Cluster, MOMENT, condition, condition_text};

/// The emulator's account.
pub const ACCOUNT: &str = "123456789012";
/// Where issuers are published.
pub const BUCKET: &str = "issuers";
/// Name of the cluster, in the namespace `default`.
pub const NAME: &str = "full";
/// The tag that file systems for the cluster carry: key and value.
pub const FILE_SYSTEM_TAG: (&str, &str) = ("purpose", "shared-volumes");
/// Service accounts by the role that each assumes.
pub const ROLES: [(&str, &str); 4] = [
    ("full-cni", "aws-node"),
    ("full-ebs", "ebs-csi-controller-sa"),
    ("full-efs", "efs-csi-controller-sa"),
    ("full-lbc", "aws-load-balancer-controller"),
];

/// AWS's own policies that the documentation names, by the role that has one; the other roles may do
/// everything.
const DOCUMENTED: [(&str, &str); 2] = [
    ("full-ebs", "arn:aws:iam::aws:policy/AmazonEBSCSIDriverPolicyV2"),
    ("full-efs", "arn:aws:iam::aws:policy/service-role/AmazonEFSCSIDriverPolicy"),
];

/// The issuer of the cluster's tokens, without scheme.
pub fn issuer() -> String {
    format!("{BUCKET}.s3.us-east-1.amazonaws.com/default/{NAME}")
}

/// The trust policy by which a role can be assumed by exactly this service account of the cluster.
pub fn trust(service_account: &str) -> String {
    let issuer = issuer();
    let subject = format!("system:serviceaccount:kube-system:{service_account}");
    json!({"Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Action": "sts:AssumeRoleWithWebIdentity",
        "Principal": {"Federated": format!("arn:aws:iam::{ACCOUNT}:oidc-provider/{issuer}")},
        "Condition": {"StringEquals": {format!("{issuer}:sub"): subject, format!("{issuer}:aud"): "sts.amazonaws.com"}},
    }]})
    .to_string()
}

/// What a user makes before: the bucket of issuers, and a role for each add-on. The role `wrong` trusts
/// another service account.
pub async fn prepare(bed: &Bed, wrong: Option<&str>) -> Result<()> {
    bed.aws(&["s3api", "create-bucket", "--bucket", BUCKET]).await?;
    let open =
        "BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=false,RestrictPublicBuckets=false";
    bed.aws(&[
        "s3api",
        "put-public-access-block",
        "--bucket",
        BUCKET,
        "--public-access-block-configuration",
        open,
    ])
    .await?;
    let policy = json!({"Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": format!("arn:aws:s3:::{BUCKET}/*"),
    }]});
    bed.aws(&["s3api", "put-bucket-policy", "--bucket", BUCKET, "--policy", &policy.to_string()]).await?;
    let all =
        json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
            .to_string();
    for (role, service_account) in ROLES {
        let account = if wrong == Some(role) { "default" } else { service_account };
        bed.aws(&[
            "iam",
            "create-role",
            "--role-name",
            role,
            "--assume-role-policy-document",
            &trust(account),
        ])
        .await?;
        match documented(role) {
            Some(policy) => {
                bed.aws(&["iam", "attach-role-policy", "--role-name", role, "--policy-arn", policy]).await?
            }
            None => {
                bed.aws(&[
                    "iam",
                    "put-role-policy",
                    "--role-name",
                    role,
                    "--policy-name",
                    "all",
                    "--policy-document",
                    &all,
                ])
                .await?
            }
        };
    }
    Ok(())
}

fn documented(role: &str) -> Option<&'static str> {
    DOCUMENTED.iter().find(|(it, _)| *it == role).map(|(_, policy)| *policy)
}

/// The flavor of the template that goes with the add-ons.
pub const FLAVOR: &str = "amazon-vpc-cni";

/// The template of the flavor with tags, an issuer and other add-ons; EFS is not among them, because no file
/// system is there yet.
pub async fn manifest(bed: &Bed, cluster: &Cluster) -> Result<String> {
    let text = cluster.manifest(bed).await?;
    let role = |name: &str| format!("{{roleARN: \"arn:aws:iam::{ACCOUNT}:role/{name}\"}}");
    let changes = [
        (
            "  region: us-east-1\n",
            format!(
                "  region: us-east-1\n  additionalTags: {{team: storage}}\n  serviceAccountIssuer: {{publish: {{bucket: {BUCKET}}}}}\n"
            ),
        ),
        (
            "      controllerManager:\n",
            format!(
                "      apiServer:\n        extraArgs:\n        - name: service-account-issuer\n          value: https://{}\n      controllerManager:\n",
                issuer()
            ),
        ),
        (
            "    amazonVPC: {}\n",
            format!(
                "    amazonVPC: {}\n  storage:\n    ebs: {}\n  ingress:\n    awsLoadBalancerController: {}\n",
                role("full-cni"),
                role("full-ebs"),
                role("full-lbc")
            ),
        ),
    ];
    changes.into_iter().try_fold(text, |text, (from, to)| {
        ensure!(text.contains(from), "the template has no {from:?}:\n{text}");
        Ok(text.replacen(from, &to, 1))
    })
}

/// The cluster's ClusterPlugin.
pub async fn plugin(bed: &Bed, cluster: &Cluster) -> Result<Value> {
    cluster.object(bed, "clusterplugin", &cluster.name).await
}

/// Waits until so many add-ons run, and nothing is left to wait for.
pub async fn running(bed: &Bed, cluster: &Cluster, wanted: usize) -> Result<()> {
    bed.wait_for("all add-ons to run", MOMENT * 2, async || {
        let object = plugin(bed, cluster).await?;
        let plugins = object["status"]["plugins"].as_array().cloned().unwrap_or_default();
        let running = plugins.iter().filter(|it| it["phase"] == "Running").count();
        let text = condition_text(&object, "Ready");
        ensure!(
            running == wanted && condition(&object, "Ready") == "True",
            "{running} of {wanted} run; Ready says {text:?}"
        );
        Ok(())
    })
    .await
}

/// A file system with the tag, that nobody can mount yet.
pub async fn tagged_file_system(bed: &Bed, token: &str) -> Result<String> {
    let (key, value) = FILE_SYSTEM_TAG;
    let tag = format!("Key={key},Value={value}");
    let made = bed.aws(&["efs", "create-file-system", "--creation-token", token, "--tags", &tag]).await?;
    Ok(made["FileSystemId"].as_str().context("no file system")?.to_owned())
}

/// A file system that can be mounted in every zone of the cluster, which only a user can make.
pub async fn file_system(bed: &Bed, cluster: &Cluster) -> Result<String> {
    let id = tagged_file_system(bed, "full").await?;
    bed.wait_for("the file system to be available", MOMENT, async || {
        let found = bed.aws(&["efs", "describe-file-systems", "--file-system-id", &id]).await?;
        ensure!(found["FileSystems"][0]["LifeCycleState"] == "available", "{found}");
        Ok(())
    })
    .await?;
    let object = cluster.object(bed, "awscluster", &cluster.name).await?;
    for subnet in object["status"]["networkStatus"]["subnets"].as_array().into_iter().flatten() {
        if subnet["isPublic"] != true {
            let subnet = subnet["id"].as_str().unwrap_or_default();
            bed.aws(&["efs", "create-mount-target", "--file-system-id", &id, "--subnet-id", subnet]).await?;
        }
    }
    Ok(id)
}

/// Removes what the user made, and what is kept for the user.
pub async fn clean_up(bed: &Bed, volumes: &[&str], file_system: &str) -> Result<()> {
    for volume in volumes {
        bed.aws(&["ec2", "delete-volume", "--volume-id", volume]).await?;
    }
    let points = bed.aws(&["efs", "describe-access-points", "--file-system-id", file_system]).await?;
    for point in points["AccessPoints"].as_array().into_iter().flatten() {
        bed.aws(&[
            "efs",
            "delete-access-point",
            "--access-point-id",
            point["AccessPointId"].as_str().unwrap_or_default(),
        ])
        .await?;
    }
    bed.wait_for("the file system to be deleted", MOMENT, async || {
        bed.aws(&["efs", "delete-file-system", "--file-system-id", file_system]).await.map(drop)
    })
    .await?;
    for role in ROLES.iter().map(|(role, _)| *role).chain(["full-other"]) {
        match documented(role) {
            Some(policy) => {
                bed.aws(&["iam", "detach-role-policy", "--role-name", role, "--policy-arn", policy]).await?
            }
            None => {
                bed.aws(&["iam", "delete-role-policy", "--role-name", role, "--policy-name", "all"]).await?
            }
        };
        bed.aws(&["iam", "delete-role", "--role-name", role]).await?;
    }
    bed.aws(&["s3api", "delete-bucket", "--bucket", BUCKET]).await.map(drop)
}

/// What `status.plugins` says of one add-on.
///
/// # Errors
/// It says nothing of it.
pub async fn reported(bed: &Bed, cluster: &Cluster, add_on: &str) -> Result<Value> {
    let object = cluster.object(bed, "clusterplugin", &cluster.name).await?;
    let mut all = object["status"]["plugins"].as_array().into_iter().flatten();
    all.find(|it| it["name"] == add_on).cloned().with_context(|| format!("no status of {add_on}"))
}
