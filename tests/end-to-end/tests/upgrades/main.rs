//! What becomes of add-ons when the operator brings other components than those that installed them: they are
//! served by what installed them, an upgrade is shown before it is made, is made when a user consents, and is undone
//! when it does not come to its end.

mod broken;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use end_to_end::add_ons::{reported, running};
use end_to_end::components::{Program, components, folder, replace, restart};
use end_to_end::diff::{Viewer, seen_before};
use end_to_end::{Cluster, MOMENT, condition_text, find_condition};
use sandbox::{Bed, Options, Workload};
use serde_json::{Value, json};

const EBS: &str = "aws-ebs-csi";
const UPGRADE: &str = "cluster.kurator.dev/upgrade";
/// An argument of the EBS driver's containers, and the one that another build of it has.
const ARGUMENT: (&str, &str) = ("--timeout=60s", "--timeout=70s");

#[tokio::test(flavor = "multi_thread")]
async fn on_a_bed_add_ons_are_served_by_what_installed_them() -> Result<()> {
    let folder = folder("upgrades")?;
    let [first, second] = ["first", "second"].map(|name| folder.join(name));
    // The first set is the one that is compiled in but for the EBS driver; the second is the compiled one, and
    // knows the first by its list alone.
    let released = components(&first)?;
    replace(&first.join(EBS).with_extension("wasm"), ARGUMENT)?;
    components(&second)?;
    let program = Program::new(&folder, &first)?;
    let options =
        Options { name: "upgrades".into(), operator: Some(program.path.clone()), ..Options::default() };
    let bed = Bed::up(options).await?;
    let cluster = Cluster::new("default", "upgrades", 1, 1);
    cluster.apply(&bed).await?;
    let storage = json!({"spec": {"storage": {"ebs": {}}}});
    cluster.patch(&bed, "clusterplugin", &cluster.name, &storage.to_string()).await?;
    cluster.wait_until_ready(&bed).await?;
    running(&bed, &cluster, 3).await?;
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let installed = ebs(&bed, &cluster).await?;
    ensure!(installed["available"].is_null(), "{installed}");
    ensure!(arguments(&workload).await?.contains(ARGUMENT.1), "the first set is not what was installed");
    let versions = versions(&workload).await?;

    // What nobody released is not run, whoever stored it.
    restart(&bed, &program, &second).await?;
    let said = says(&bed, &cluster, "does not know the component that installed it").await?;
    ensure!(said.contains(&format!("{UPGRADE}={EBS}@{}", released[EBS])), "{said}");

    let digest = text(&installed, "digest");
    std::fs::write(second.join("released.txt"), format!("{EBS} {} {digest}\n", text(&installed, "version")))?;
    restart(&bed, &program, &second).await?;
    let others = broken::others(&bed).await?;
    says(&bed, &cluster, "is served by the component that installed it").await?;
    let served = ebs(&bed, &cluster).await?;
    ensure!(served["digest"] == installed["digest"] && served["phase"] == "Running", "{served}");
    ensure!(served["available"]["digest"] == released[EBS].as_str(), "{served}");
    let changes = served["available"]["changes"].to_string();
    ensure!(
        changes.contains("~ Deployment kube-system/ebs-csi-controller: ") && changes.contains(".args"),
        "{changes}"
    );
    ensure!(versions == self::versions(&workload).await?, "something was written without consent");

    let [brings, cache] = [&second, &folder.join("compiled")].map(|it| it.display().to_string());
    let arguments = ["--built-in-plugins", &brings, "--plugin-cache-dir", &cache];
    let viewer = Viewer::new(&bed, &arguments).await?;
    seen_before(&viewer, &cluster, &workload, (EBS, &released[EBS])).await.context("what diff shows")?;
    served_meanwhile(&bed, &cluster, &workload).await.context("while an upgrade is available")?;
    pinned(&bed, &cluster).await.context("a version that nobody has")?;
    upgraded(&bed, &cluster, &workload, &released[EBS]).await.context("the upgrade")?;
    let third = folder.join("third");
    broken::stops_the_rest(&bed, &program, &third, &cluster, &others).await.context("a broken component")
}

/// Settings are applied and what somebody removed is set back, by the component that installed it.
async fn served_meanwhile(bed: &Bed, cluster: &Cluster, workload: &Workload<'_>) -> Result<()> {
    workload
        .kubectl(&["delete", "poddisruptionbudget", "ebs-csi-controller", "--namespace=kube-system"])
        .await?;
    // Other settings have everything applied again.
    let patch = json!({"spec": {"storage": {"ebs": {"replicas": 1}}}});
    cluster.patch(bed, "clusterplugin", &cluster.name, &patch.to_string()).await?;
    bed.wait_for("settings and repair by what installed it", MOMENT, async || {
        let deployment = controller(workload).await?;
        ensure!(deployment["spec"]["replicas"] == 1, "{}", deployment["spec"]["replicas"]);
        workload
            .kubectl(&["get", "poddisruptionbudget", "ebs-csi-controller", "--namespace=kube-system"])
            .await?;
        let ebs = ebs(bed, cluster).await?;
        ensure!(ebs["phase"] == "Running", "{ebs}");
        Ok(())
    })
    .await?;
    ensure!(arguments(workload).await?.contains(ARGUMENT.1), "it was upgraded without consent");
    Ok(())
}

async fn pinned(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let pin = |version: Value| json!({"spec": {"storage": {"ebs": {"version": version}}}}).to_string();
    cluster.patch(bed, "clusterplugin", &cluster.name, &pin("v0.0.1".into())).await?;
    let said = says(bed, cluster, "version v0.0.1 is not available: set ").await?;
    ensure!(said.starts_with("False VersionNotAvailable"), "{said}");
    cluster.patch(bed, "clusterplugin", &cluster.name, &pin(Value::Null)).await?;
    says(bed, cluster, "is served by the component that installed it").await.map(drop)
}

async fn upgraded(bed: &Bed, cluster: &Cluster, workload: &Workload<'_>, digest: &str) -> Result<()> {
    // What somebody takes meanwhile is taken back and not in the way.
    bed.stop_operator().await?;
    let taken = json!({"spec": {"maxUnavailable": 2}}).to_string();
    let budget = ["patch", "poddisruptionbudget", "ebs-csi-controller", "--namespace=kube-system"];
    workload.kubectl(&[budget.as_slice(), &["--type=merge", "--patch", &taken]].concat()).await?;
    let patch = json!({"metadata": {"annotations": {UPGRADE: format!("{EBS}@{digest}")}}});
    cluster.patch(bed, "clusterplugin", &cluster.name, &patch.to_string()).await?;
    bed.start_operator().await?;
    bed.wait_for("the upgrade, which uses up the consent", MOMENT, async || {
        let ebs = ebs(bed, cluster).await?;
        ensure!(ebs["phase"] == "Running" && ebs["digest"] == digest && ebs["available"].is_null(), "{ebs}");
        let object = cluster.object(bed, "clusterplugin", &cluster.name).await?;
        ensure!(object["metadata"]["annotations"][UPGRADE].is_null(), "the consent is still there");
        ensure!(arguments(workload).await?.contains(ARGUMENT.0), "it is not what the operator brings");
        Ok(())
    })
    .await?;
    let stored = [
        "get",
        "configmaps",
        "--namespace=kube-system",
        "--selector",
        "cluster.kurator.dev/component=aws-ebs-csi",
    ];
    let stored = workload.kubectl_json(&stored).await?;
    let names: Vec<&Value> =
        stored["items"].as_array().into_iter().flatten().map(|it| &it["metadata"]["name"]).collect();
    let expected = format!("cluster-component-{EBS}-{}", &digest["sha256:".len()..][..16]);
    ensure!(names == [expected.as_str()], "{names:?} are stored, and not {expected} alone");
    Ok(())
}

/// Waits until the condition of storage has these words; all of it.
async fn says(bed: &Bed, cluster: &Cluster, words: &str) -> Result<String> {
    bed.wait_for(&format!("storage to say {words:?}"), MOMENT, async || {
        let object = cluster.object(bed, "clusterplugin", &cluster.name).await?;
        let condition = find_condition(&object, "StorageReady").context("no condition")?;
        let said = format!(
            "{} {} {}",
            text(condition, "status"),
            text(condition, "reason"),
            text(condition, "message")
        );
        ensure!(said.contains(words), "{}", condition_text(&object, "StorageReady"));
        Ok(said)
    })
    .await
}

async fn ebs(bed: &Bed, cluster: &Cluster) -> Result<Value> {
    reported(bed, cluster, EBS).await
}

async fn controller(workload: &Workload<'_>) -> Result<Value> {
    workload.kubectl_json(&["get", "deployment", "ebs-csi-controller", "--namespace=kube-system"]).await
}

async fn arguments(workload: &Workload<'_>) -> Result<String> {
    Ok(controller(workload).await?["spec"]["template"]["spec"]["containers"].to_string())
}

/// Generations of what add-ons applied, and versions of what is recorded of them.
async fn versions(workload: &Workload<'_>) -> Result<BTreeMap<String, String>> {
    let all = workload
        .kubectl_json(&[
            "get",
            "daemonsets,deployments,configmaps,clusterroles,csidrivers,storageclasses",
            "--all-namespaces",
        ])
        .await?;
    let items = all["items"].as_array().into_iter().flatten();
    let version = |it: &Value| {
        let metadata = &it["metadata"];
        let is_record = it["kind"] == "ConfigMap";
        let version = if is_record { &metadata["resourceVersion"] } else { &metadata["generation"] };
        (format!("{} {}/{}", it["kind"], metadata["namespace"], metadata["name"]), version.to_string())
    };
    Ok(items.map(version).collect())
}

fn text(object: &Value, field: &str) -> String {
    object[field].as_str().unwrap_or_default().to_owned()
}
