//! Real clusters on one bed: real cloud-init, kubeadm, etcd, API servers, Cluster API and cloud controller
//! manager. Chains run side by side on it, each on clusters of its own. Nothing here looks into the operator:
//! everything is asked of the APIs that users have.

mod add_ons;
mod calico;
mod certificate;
mod deletion;
mod file_system;
mod kubernetes;
mod leaving;
mod own_network;
mod repair;
mod trust;
mod volumes;
mod vpc_cni;
mod zones;

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use end_to_end::{
    BOOT, Cluster, MOMENT, condition, condition_text, ensure_nothing_was_forbidden,
    wait_until_account_is_empty,
};
use sandbox::{Bed, Options};

#[tokio::test(flavor = "multi_thread")]
async fn on_a_bed_clusters_are_made_changed_repaired_and_removed() -> Result<()> {
    let bed = Bed::up(Options { name: "clusters".into(), ..Options::default() }).await?;
    let (one, three, full, networks) = tokio::join!(
        one_control_plane(&bed),
        three_control_planes(&bed),
        add_ons::all_add_ons(&bed),
        networks(&bed)
    );
    one?;
    three?;
    full?;
    networks?;
    ensure_nothing_was_forbidden(&bed).await?;
    wait_until_account_is_empty(&bed).await
}

async fn networks(bed: &Bed) -> Result<()> {
    own_network::a_network_that_a_user_brought_stays_as_it_is(bed).await?;
    zones::zones_come_and_go(bed).await?;
    kubernetes::an_unsupported_version_is_held(bed).await
}

async fn one_control_plane(bed: &Bed) -> Result<()> {
    let cluster = Cluster::new("default", "one", 1, 2);
    cluster.apply(bed).await?;
    cluster.wait_until_ready(bed).await?;
    passed("one control plane and two workers are ready after one apply");
    a_cluster_of_the_same_name_is_blocked_and_touches_nothing(bed, &cluster).await?;
    a_copy_of_an_aws_cluster_is_held_and_touches_nothing(bed, &cluster).await?;
    let cluster = workers_scale_up_and_down(bed, cluster).await?;
    an_instance_that_is_gone_fails_its_machine_and_is_replaced(bed, &cluster).await?;
    a_paused_cluster_is_left_alone(bed, &cluster).await?;
    calico::settings_come_and_go(bed, &cluster).await?;
    add_ons::without_roles(bed, &cluster).await?;
    add_ons::what_is_deleted_by_hand_is_applied_again(bed, &cluster).await?;
    repair::what_is_changed_by_hand_is_set_back(bed, &cluster, 5).await?;
    leaving::networking_is_not_switched(bed, &cluster).await?;
    leaving::a_deleted_cluster_plugin_takes_what_may_go(bed, &cluster).await?;
    a_load_balancer_of_a_service_is_gone_before_any_machine_is(bed, &cluster).await
}

async fn a_cluster_of_the_same_name_is_blocked_and_touches_nothing(bed: &Bed, first: &Cluster) -> Result<()> {
    let before = tagged(bed, first).await?;
    let second = Cluster::new("elsewhere", &first.name, 1, 0);
    second.apply(bed).await?;
    bed.wait_for("the second cluster to say that it is blocked", MOMENT, async || {
        let text = condition_text(&second.object(bed, "awscluster", &second.name).await?, "Ready");
        ensure!(text.contains("vpc"), "Ready says {text:?}");
        Ok(())
    })
    .await?;
    second.delete(bed).await?;
    let after = tagged(bed, first).await?;
    ensure!(before == after && !before.is_empty(), "{before:?} before, {after:?} after");
    passed("a cluster of the same name in another namespace is blocked, and nothing of the first is touched");
    Ok(())
}

/// As `kubectl get awscluster -o yaml`, renamed and created, makes it: with the annotations of the original.
async fn a_copy_of_an_aws_cluster_is_held_and_touches_nothing(bed: &Bed, original: &Cluster) -> Result<()> {
    let object = original.object(bed, "awscluster", &original.name).await?;
    let id =
        object["metadata"]["annotations"]["cluster.kurator.dev/id"].as_str().unwrap_or_default().to_owned();
    ensure!(!id.is_empty(), "the original has no id");
    let copy = Cluster::new("copies", "copy", 0, 0);
    bed.kubectl(&["create", "namespace", &copy.namespace]).await?;
    let mut copied = object.clone();
    let annotations = &object["metadata"]["annotations"];
    copied["metadata"] =
        serde_json::json!({"name": copy.name, "namespace": copy.namespace, "annotations": annotations});
    let owner = serde_json::json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": copy.name, "namespace": copy.namespace},
        "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": copy.name}},
    });
    let before = tagged(bed, original).await?;
    let from = bed.emulator().calls(0).await?.next;
    bed.apply(&copied.to_string()).await?;
    bed.apply(&owner.to_string()).await?;
    let original_name = format!("{}/{}", original.namespace, original.name);
    bed.wait_for("the copy to say whose id it has", MOMENT, async || {
        let object = copy.object(bed, "awscluster", &copy.name).await?;
        let text = condition_text(&object, "Ready");
        ensure!(text.contains(&original_name) && text.contains("copied"), "Ready says {text:?}");
        ensure!(!object["status"].to_string().contains(&id), "the id is in the status");
        Ok(())
    })
    .await?;
    copy.delete(bed).await?;
    // Without the endpoint it can be a cluster of its own; an id that is put back holds it.
    copied["spec"].as_object_mut().map(|it| it.remove("controlPlaneEndpoint"));
    bed.apply(&copied.to_string()).await?;
    bed.apply(&owner.to_string()).await?;
    bed.wait_for("the copy to have an id of its own", MOMENT, async || {
        let object = copy.object(bed, "awscluster", &copy.name).await?;
        let annotations = &object["metadata"]["annotations"];
        let own = annotations["cluster.kurator.dev/id"].as_str().unwrap_or_default();
        ensure!(
            !own.is_empty()
                && own != id
                && annotations["cluster.kurator.dev/copied-from"] == original_name.as_str(),
            "not yet"
        );
        Ok(())
    })
    .await?;
    copy.delete(bed).await?;
    let calls = bed.emulator().calls(from).await?.calls;
    let ours = |call: &&sandbox::emulator::Call| {
        call.write && call.caller.as_deref().is_some_and(|it| it.contains("operator"))
    };
    let written: Vec<_> = calls
        .iter()
        .filter(ours)
        .filter(|call| call.resources.iter().any(|it| before.contains(it)))
        .map(|it| &it.action)
        .collect();
    ensure!(
        written.is_empty() && tagged(bed, original).await? == before,
        "the original was written to: {written:?}"
    );
    passed("a copy of an AWSCluster, annotations included, is held, says whose it is, and can be deleted");
    Ok(())
}

/// Everything of EC2 that carries the tag of a cluster of this name.
async fn tagged(bed: &Bed, cluster: &Cluster) -> Result<BTreeSet<String>> {
    let filter = format!("Name=key,Values=sigs.k8s.io/cluster-api-provider-aws/cluster/{}", cluster.name);
    let tags = bed.aws(&["ec2", "describe-tags", "--filters", &filter]).await?;
    Ok(tags["Tags"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it["ResourceId"].as_str())
        .map(str::to_owned)
        .collect())
}

async fn workers_scale_up_and_down(bed: &Bed, cluster: Cluster) -> Result<Cluster> {
    let deployment = format!("{}-md-0", cluster.name);
    let mut now = cluster;
    for workers in [4, 1] {
        now.workers = workers;
        now.patch(bed, "machinedeployment", &deployment, &format!(r#"{{"spec":{{"replicas":{workers}}}}}"#))
            .await?;
        now.wait_until_ready(bed).await?;
        bed.wait_for("instances to be as many as machines", MOMENT, async || {
            let instances = now.instances(bed).await?;
            ensure!(instances.len() == now.control_planes + workers, "instances {instances:?}");
            Ok(())
        })
        .await?;
    }
    passed("workers scale from two to four to one");
    Ok(now)
}

async fn an_instance_that_is_gone_fails_its_machine_and_is_replaced(
    bed: &Bed,
    cluster: &Cluster,
) -> Result<()> {
    let health_check = format!(
        "apiVersion: cluster.x-k8s.io/v1beta2\nkind: MachineHealthCheck\nmetadata: {{name: {0}-workers, namespace: {1}}}\nspec:\n  \
         clusterName: {0}\n  selector: {{matchLabels: {{cluster.x-k8s.io/deployment-name: {0}-md-0}}}}\n  checks:\n    \
         nodeStartupTimeoutSeconds: 1200\n    unhealthyNodeConditions: [{{type: Ready, status: Unknown, timeoutSeconds: 30}}]\n",
        cluster.name, cluster.namespace
    );
    let machines = cluster.objects(bed, "awsmachines").await?;
    let is_worker =
        |it: &&serde_json::Value| it["metadata"]["labels"].get("cluster.x-k8s.io/control-plane").is_none();
    let worker = machines.iter().find(is_worker).ok_or_else(|| anyhow::anyhow!("there is no worker"))?;
    let name = worker["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let id = worker["spec"]["providerID"]
        .as_str()
        .and_then(|it| it.rsplit('/').next())
        .unwrap_or_default()
        .to_owned();
    bed.emulator().terminate(&id).await?;
    bed.wait_for("the AWSMachine to say that its instance is gone", MOMENT, async || {
        let object = cluster.object(bed, "awsmachine", &name).await?;
        ensure!(condition(&object, "Ready") == "False", "Ready is {}", condition_text(&object, "Ready"));
        Ok(())
    })
    .await?;
    let alive = cluster.instances(bed).await?;
    ensure!(
        alive.len() == cluster.control_planes + cluster.workers - 1,
        "something was made in silence: {alive:?}"
    );
    bed.apply(&health_check).await?;
    bed.wait_for("the machine to be replaced", BOOT, async || {
        let machines = cluster.objects(bed, "awsmachines").await?;
        ensure!(machines.iter().all(|it| it["metadata"]["name"] != name.as_str()), "{name} is still there");
        Ok(())
    })
    .await?;
    cluster.wait_until_ready(bed).await?;
    passed("an instance terminated behind our back fails its Machine, and MachineHealthCheck replaces it");
    Ok(())
}

async fn a_paused_cluster_is_left_alone(bed: &Bed, cluster: &Cluster) -> Result<()> {
    cluster.patch(bed, "cluster", &cluster.name, r#"{"spec":{"paused":true}}"#).await?;
    bed.wait_for("the pause to be seen", MOMENT, async || {
        let object = cluster.object(bed, "awscluster", &cluster.name).await?;
        ensure!(condition(&object, "Paused") == "True", "Paused is {}", condition_text(&object, "Paused"));
        Ok(())
    })
    .await?;
    cluster
        .patch(bed, "awscluster", &cluster.name, r#"{"spec":{"additionalTags":{"paused":"yes"}}}"#)
        .await?;
    let from = bed.emulator().calls(0).await?.next;
    tokio::time::sleep(std::time::Duration::from_secs(15)).await;
    // Clusters beside this one are tagged too.
    let resources = tagged(bed, cluster).await?;
    let tag = |call: &sandbox::emulator::Call| {
        let ours = call.caller.as_deref().is_some_and(|it| it.contains("operator"))
            && call.resources.iter().any(|it| resources.contains(it));
        call.action == "CreateTags" && ours
    };
    let calls = bed.emulator().calls(from).await?.calls;
    ensure!(!calls.iter().any(tag), "tags were written while the cluster was paused");
    cluster.patch(bed, "cluster", &cluster.name, r#"{"spec":{"paused":null}}"#).await?;
    bed.wait_for("the change to be carried out after the pause", MOMENT, async || {
        let calls = bed.emulator().calls(from).await?.calls;
        ensure!(calls.iter().any(tag), "no tags were written");
        Ok(())
    })
    .await?;
    tokio::time::sleep(std::time::Duration::from_secs(15)).await;
    let calls = bed.emulator().calls(from).await?.calls;
    let mut written: Vec<&String> = calls.iter().filter(|it| tag(it)).flat_map(|it| &it.resources).collect();
    written.sort();
    let again: Vec<_> = written.windows(2).filter(|it| it[0] == it[1]).map(|it| it[0]).collect();
    ensure!(again.is_empty(), "tags are written again and again: {again:?}");
    passed("a paused cluster is left alone until the pause is over");
    Ok(())
}

async fn a_load_balancer_of_a_service_is_gone_before_any_machine_is(
    bed: &Bed,
    cluster: &Cluster,
) -> Result<()> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\n\
                   spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}\n";
    workload.apply(service).await?;
    bed.wait_for("the Service to have a load balancer", MOMENT, async || {
        let service = workload.kubectl_json(&["get", "service", "web"]).await?;
        ensure!(service["status"]["loadBalancer"]["ingress"][0]["hostname"].is_string(), "no hostname yet");
        Ok(())
    })
    .await?;
    let mut load_balancers = cluster.load_balancers(bed).await?;
    load_balancers.retain(|it| !it.contains("apiserver"));
    let from = bed.emulator().calls(0).await?.next;
    let instances = cluster.instances(bed).await?;
    cluster.delete(bed).await?;
    // Clusters beside this one are deleted too.
    let calls = bed.emulator().calls(from).await?.calls;
    let load_balancer =
        calls.iter().find(|it| it.did("DeleteLoadBalancer", &load_balancers)).map(|it| it.sequence);
    let machine = calls.iter().find(|it| it.did("TerminateInstances", &instances)).map(|it| it.sequence);
    ensure!(
        load_balancer.is_some() && machine.is_some() && load_balancer < machine,
        "deleted {load_balancer:?}, terminated {machine:?}"
    );
    let left = cluster.instances(bed).await?;
    ensure!(left.is_empty(), "of {instances:?} {left:?} are left");
    passed("a Service's load balancer is gone before any machine, and the cluster leaves nothing");
    Ok(())
}

async fn three_control_planes(bed: &Bed) -> Result<()> {
    let cluster = Cluster::new("default", "three", 3, 1).with("AWS_LOAD_BALANCER_TYPE", "nlb");
    cluster.apply(bed).await?;
    bed.wait_for("the middle of creation", MOMENT, async || {
        let subnets = tagged(bed, &cluster).await?.into_iter().filter(|it| it.starts_with("subnet-")).count();
        ensure!(subnets > 0, "no subnet is there");
        Ok(())
    })
    .await?;
    bed.kill_operator().await?;
    bed.start_operator().await?;
    cluster.wait_until_ready(bed).await?;
    passed(
        "three control planes and one worker behind a network load balancer are ready, though the operator was killed in between",
    );
    the_control_plane_rolls_to_a_new_template(bed, &cluster).await?;
    leaving::a_cluster_with_a_dead_api_server_is_deleted(bed, &cluster).await
}

async fn the_control_plane_rolls_to_a_new_template(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let mut add_ons = kubernetes::Replacement::of(bed, cluster).await?;
    let name = format!("{}-control-plane", cluster.name);
    let mut template = cluster.object(bed, "awsmachinetemplate", &name).await?;
    let metadata = serde_json::json!({"name": format!("{name}-2"), "namespace": cluster.namespace});
    template["metadata"] = metadata;
    template["spec"]["template"]["spec"]["instanceType"] = "m5.large".into();
    bed.apply(&template.to_string()).await?;
    let patch = serde_json::json!({"spec": {"machineTemplate": {"spec": {"infrastructureRef": {"name": format!("{name}-2")}}}}});
    cluster.patch(bed, "kubeadmcontrolplane", &name, &patch.to_string()).await?;
    let tag = format!("sigs.k8s.io/cluster-api-provider-aws/cluster/{}", cluster.name);
    bed.wait_for("every control plane machine to be of the new type", BOOT, async || {
        add_ons.look().await?;
        let world = bed.emulator().world().await?;
        let alive = world.instances.iter().filter(|it| it.state == "running" && it.tags.contains_key(&tag));
        let new = alive.filter(|it| it.instance_type == "m5.large").count();
        let machines = cluster.objects(bed, "machines").await?;
        ensure!(new == 3 && machines.len() == 4, "{new} of 3 are new, {} machines", machines.len());
        Ok(())
    })
    .await?;
    cluster.wait_until_ready(bed).await?;
    passed("the control plane rolls to a new machine template");
    add_ons.ensure_unchanged().await
}

fn passed(what: &str) {
    eprintln!("passed: {what}");
}
