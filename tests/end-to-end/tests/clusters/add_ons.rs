//! All add-ons of a cluster with roles of their own: issuer published, roles checked and assumed with real
//! tokens, volumes and load balancers made by the stand-ins of drivers and controllers, and all of it gone
//! with the cluster. Nothing here looks into the operator.

use anyhow::{Context, Result, ensure};
use end_to_end::add_ons::{FLAVOR, NAME, file_system, manifest, plugin, prepare, running, trust};
use end_to_end::{BOOT, Cluster, MOMENT, condition, condition_text};
use sandbox::{Bed, Workload};
use serde_json::{Value, json};

use super::{certificate, deletion, file_system, passed, trust, volumes, vpc_cni};

/// The whole life of a cluster with all six add-ons.
pub async fn all_add_ons(bed: &Bed) -> Result<()> {
    prepare(bed, Some("full-ebs")).await?;
    let cluster = Cluster::new("default", NAME, 1, 1).of_flavor(FLAVOR).with("AWS_AVAILABILITY_ZONES", "2");
    bed.apply(&manifest(bed, &cluster).await?).await?;
    cluster.wait_until_ready(bed).await?;
    vpc_cni::nothing_is_in_the_way_of_pods(bed, &cluster).await?;
    passed(
        "the VPC CNI acts as its role with a token of an issuer that was published from the public half of the signing key",
    );
    a_wrong_trust_policy_holds_one_slot(bed, &cluster).await?;
    let file_system = file_system(bed, &cluster).await?;
    file_system::it_is_found_by_its_tags(bed, &cluster, &file_system).await?;
    file_system::tags_that_its_role_may_not_set_are_refused(bed, &cluster).await?;
    passed("all six kinds of add-ons but Calico run together, each as its own role");
    volumes_and_load_balancers_are_made(bed, &cluster).await?;
    volumes::one_is_made_attached_grown_and_deleted(bed, &cluster).await?;
    what_is_in_use_is_not_uninstalled(bed, &cluster).await?;
    let end = certificate::an_ending_one_is_renewed(bed, &cluster).await?;
    changed_settings_are_applied(bed, &cluster).await?;
    what_is_not_in_use_is_uninstalled(bed, &cluster).await?;
    trust::wrong_policies_are_told_apart(bed, &cluster).await?;
    trust::a_role_that_is_missing_or_cannot_be_read_is_told_apart(bed, &cluster).await?;
    certificate::the_webhook_outlives_it(bed, &cluster, end, "one").await?;
    deletion::the_cluster_goes(bed, &cluster, &file_system).await
}

/// Storage and ingress join Calico on a cluster that lives; they act as the instances they run on.
pub async fn without_roles(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let patch = r#"{"spec":{"storage":{"ebs":{},"efs":{}},"ingress":{"awsLoadBalancerController":{}}}}"#;
    cluster.patch(bed, "clusterplugin", &cluster.name, patch).await?;
    running(bed, cluster, 5).await?;
    passed("storage and ingress are added to a cluster with Calico, without roles of their own");
    Ok(())
}

/// A workload of an add-on that somebody deletes is back after the next look.
pub async fn what_is_deleted_by_hand_is_applied_again(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let deleted = ["daemonset/efs-csi-node", "deployment/ebs-csi-controller"];
    for object in deleted {
        workload.kubectl(&["delete", object, "--namespace", "kube-system", "--wait=true"]).await?;
    }
    // The next look of a settled ClusterPlugin may be minutes away; a change of it brings one at once.
    cluster.patch(bed, "clusterplugin", &cluster.name, r#"{"spec":{"deletion":{"timeout":"16m"}}}"#).await?;
    bed.wait_for("what was deleted to be back", MOMENT, async || {
        for object in deleted {
            workload.kubectl(&["get", object, "--namespace", "kube-system"]).await?;
        }
        Ok(())
    })
    .await?;
    running(bed, cluster, 5).await?;
    passed("workloads of add-ons that are deleted by hand are applied again");
    Ok(())
}

async fn a_wrong_trust_policy_holds_one_slot(bed: &Bed, cluster: &Cluster) -> Result<()> {
    bed.wait_for("ingress to be ready and storage to be held", BOOT, async || {
        let object = plugin(bed, cluster).await?;
        let text = condition_text(&object, "StorageReady");
        ensure!(
            text.starts_with("TrustPolicyDenies: ") && text.contains("ebs-csi-controller-sa"),
            "StorageReady says {text:?}"
        );
        let ingress = condition(&object, "IngressReady");
        ensure!(ingress == "True", "IngressReady is {ingress}: {}", condition_text(&object, "IngressReady"));
        Ok(())
    })
    .await?;
    let object = plugin(bed, cluster).await?;
    let text = condition_text(&object, "StorageReady");
    let fixed = trust("ebs-csi-controller-sa");
    let statement =
        text.split_once('{').map(|(_, rest)| format!("{{{rest}")).context("no trust policy is printed")?;
    let printed: Value = serde_json::from_str(&statement)
        .with_context(|| format!("what is printed is no policy: {statement}"))?;
    ensure!(
        printed["Statement"] == serde_json::from_str::<Value>(&fixed)?["Statement"],
        "{printed} would do, wanted {fixed}"
    );
    bed.aws(&[
        "iam",
        "update-assume-role-policy",
        "--role-name",
        "full-ebs",
        "--policy-document",
        &statement,
    ])
    .await?;
    bed.wait_for("storage to be ready", MOMENT * 2, async || {
        let object = plugin(bed, cluster).await?;
        ensure!(
            condition(&object, "StorageReady") == "True",
            "StorageReady says {:?}",
            condition_text(&object, "StorageReady")
        );
        Ok(())
    })
    .await?;
    passed("a wrong trust policy holds storage alone, and the policy that is printed sets it right");
    Ok(())
}

async fn volumes_and_load_balancers_are_made(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let claim = |name: &str, class: &str, mode: &str| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {"accessModes": [mode], "storageClassName": class, "resources": {"requests": {"storage": "1Gi"}}}})
    };
    let service = |name: &str, kind: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": kind, "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}})
    };
    let ingress = |name: &str| {
        let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": name, "namespace": "default", "annotations": {"alb.ingress.kubernetes.io/scheme": "internet-facing"}},
            "spec": {"ingressClassName": "alb", "rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]}})
    };
    let volumes = [
        ("data-0", "ebs", "ReadWriteOnce"),
        ("data-1", "ebs", "ReadWriteOnce"),
        ("shared", "efs", "ReadWriteMany"),
    ];
    let mounted: Vec<Value> = volumes
        .iter()
        .map(|(name, ..)| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
        .collect();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web"}], "volumes": mounted}});
    let mut items: Vec<Value> = volumes.iter().map(|(name, class, mode)| claim(name, class, mode)).collect();
    items.extend([pod, service("web", "NodePort"), ingress("one"), ingress("two")]);
    items.extend(["a", "b", "c"].map(|name| service(name, "LoadBalancer")));
    workload.apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()).await?;
    bed.wait_for(
        "volumes to be bound, and Services and Ingresses to have load balancers",
        MOMENT * 2,
        async || {
            let claims = workload.kubectl_json(&["get", "pvc"]).await?;
            let bound = count(&claims, |it| it["status"]["phase"] == "Bound");
            let services = workload.kubectl_json(&["get", "services"]).await?;
            let has_name = |it: &Value| it["status"]["loadBalancer"]["ingress"][0]["hostname"].is_string();
            let services = count(&services, has_name);
            let ingresses = count(&workload.kubectl_json(&["get", "ingresses"]).await?, has_name);
            ensure!(
                (bound, services, ingresses) == (3, 3, 2),
                "{bound} claims, {services} Services, {ingresses} Ingresses"
            );
            Ok(())
        },
    )
    .await?;
    let volumes = bed
        .aws(&[
            "ec2",
            "describe-volumes",
            "--filters",
            "Name=tag:team,Values=storage",
            "Name=tag-key,Values=CSIVolumeName",
        ])
        .await?;
    let tagged = volumes["Volumes"].as_array().map_or(0, Vec::len);
    ensure!(tagged == 2, "{tagged} volumes on EBS carry the cluster's tags");
    passed("three volumes on EBS and EFS, three load balancers of Services and two of Ingresses are there");
    Ok(())
}

fn count(list: &Value, which: impl Fn(&Value) -> bool) -> usize {
    list["items"].as_array().into_iter().flatten().filter(|it| which(it)).count()
}

async fn what_is_in_use_is_not_uninstalled(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let ingress = plugin(bed, cluster).await?["spec"]["ingress"].clone();
    cluster.patch(bed, "clusterplugin", &cluster.name, r#"{"spec":{"ingress":null}}"#).await?;
    bed.wait_for("the ingress controller to be kept for what uses it", MOMENT, async || {
        let object = plugin(bed, cluster).await?;
        let text = object["status"].to_string();
        ensure!(
            text.contains("default/one") || text.contains("default/two"),
            "the status names no Ingress: {text}"
        );
        Ok(())
    })
    .await?;
    let back = json!({"spec": {"ingress": ingress}}).to_string();
    cluster.patch(bed, "clusterplugin", &cluster.name, &back).await?;
    is_ready(bed, cluster).await?;
    passed(
        "an ingress controller that is taken out of the spec stays while an Ingress needs it, which is named",
    );
    Ok(())
}

async fn changed_settings_are_applied(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let patch = r#"{"spec":{"storage":{"ebs":{"replicas":1}}}}"#;
    cluster.patch(bed, "clusterplugin", &cluster.name, patch).await?;
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    bed.wait_for("the controller of EBS to have one replica", MOMENT, async || {
        let deployment = workload
            .kubectl_json(&["get", "deployment", "ebs-csi-controller", "--namespace", "kube-system"])
            .await?;
        ensure!(deployment["spec"]["replicas"] == 1, "it has {}", deployment["spec"]["replicas"]);
        Ok(())
    })
    .await?;
    passed("changed settings are applied");
    Ok(())
}

/// EFS leaves, comes back, and finds its file system again.
async fn what_is_not_in_use_is_uninstalled(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    workload.kubectl(&["delete", "pod", "web", "--grace-period=0", "--wait=false"]).await?;
    workload.kubectl(&["delete", "pvc", "shared", "--wait=false"]).await?;
    let efs = plugin(bed, cluster).await?["spec"]["storage"]["efs"].clone();
    write_over_the_record(&workload).await?;
    cluster.patch(bed, "clusterplugin", &cluster.name, r#"{"spec":{"storage":{"efs":null}}}"#).await?;
    bed.wait_for("the EFS driver to be gone", MOMENT, async || {
        let left = workload
            .kubectl_json(&["get", "deployments,daemonsets,csidrivers,storageclasses", "--all-namespaces"])
            .await?;
        let left =
            count(&left, |object| object["metadata"]["name"].as_str().is_some_and(|it| it.contains("efs")));
        let names = plugin(bed, cluster).await?["status"]["plugins"].to_string();
        ensure!(left == 0 && !names.contains("efs"), "{left} objects are left; {names}");
        Ok(())
    })
    .await?;
    workload
        .kubectl(&["get", "deployment", "coredns", "--namespace", "kube-system"])
        .await
        .context("it was only named in a record")?;
    cluster
        .patch(bed, "clusterplugin", &cluster.name, &json!({"spec": {"storage": {"efs": efs}}}).to_string())
        .await?;
    is_ready(bed, cluster).await?;
    passed(
        "a driver that nothing uses is uninstalled when it is taken out of the spec, without what somebody wrote into its record",
    );
    Ok(())
}

/// An administrator of the cluster has the removal of EFS take CoreDNS along, and apply something first.
async fn write_over_the_record(workload: &Workload<'_>) -> Result<()> {
    let name = "cluster-plugin-aws-efs-csi";
    let found = workload.kubectl_json(&["get", "configmap", name, "--namespace", "kube-system"]).await?;
    let mut record: Value = serde_json::from_str(found["data"]["inventory"].as_str().context("no record")?)?;
    let mut pods =
        workload.kubectl_json(&["get", "daemonset", "efs-csi-node", "--namespace", "kube-system"]).await?;
    pods["metadata"] =
        json!({"name": "efs-csi-node", "namespace": "kube-system", "labels": {"written": "over"}});
    let core_dns = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "kube-system", "name": "coredns", "wait": true});
    let steps = record["removal"].as_array_mut().context("no removal")?;
    steps.insert(0, json!({"id": "dns", "kind": "k8s.delete/v1", "spec": core_dns, "after": []}));
    steps.insert(0, json!({"id": "apply", "kind": "k8s.apply/v1", "spec": {"objects": [pods]}, "after": []}));
    let patch = json!({"data": {"inventory": record.to_string()}}).to_string();
    workload
        .kubectl(&[
            "patch",
            "configmap",
            name,
            "--namespace",
            "kube-system",
            "--type=merge",
            "--patch",
            &patch,
        ])
        .await
        .map(drop)
}

async fn is_ready(bed: &Bed, cluster: &Cluster) -> Result<()> {
    bed.wait_for("everything to be ready", MOMENT, async || {
        let object = plugin(bed, cluster).await?;
        ensure!(condition(&object, "Ready") == "True", "Ready says {:?}", condition_text(&object, "Ready"));
        Ok(())
    })
    .await
}
