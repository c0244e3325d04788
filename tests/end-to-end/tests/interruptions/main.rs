//! Upgrades of an add-on whose operator is killed at one of its writes to the cluster, each in its turn, and
//! upgrades that are undone and killed so: all of the add-on is there in the end, as it was or as it was to be.
//! The cluster is a real API server in which nothing runs; what is ready there is said by the test.
//!
//! A few writes are tried, and each of them where INTERRUPTIONS=all.

mod servers;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use end_to_end::add_ons::reported;
use end_to_end::components::{Program, components, folder, replace, restart};
use end_to_end::{Cluster, KUBERNETES_VERSION, MOMENT, condition_text, fleet};
use sandbox::{Bed, Options};
use serde_json::{Value, json};

use servers::{Servers, order};

const NAME: &str = "interrupted";
const EBS: &str = "aws-ebs-csi";
const UPGRADE: &str = "cluster.kurator.dev/upgrade";
/// An argument of the EBS driver's containers, before and after the upgrade.
const ARGUMENTS: [&str; 2] = ["--timeout=70s", "--timeout=60s"];
/// Addresses of API servers that the operator may ask.
const RANGE: &str = "127.0.1.0/24";
/// The API server as the operator knows it.
const COUNTED: &str = "127.0.1.1:8080";
/// How many writes are tried of an upgrade, and of one that is undone.
const TRIED: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn on_a_bed_an_upgrade_that_is_killed_at_a_write_ends_whole() -> Result<()> {
    let test = Test::begin().await?;
    let counted = test.upgrade(Interruption::None, Fares::Whole).await?;
    test.downgrade().await?;
    let undone = test.upgrade(Interruption::None, Fares::Undone).await?;
    println!("{counted} writes of an upgrade, {undone} of one that is undone");
    for (writes, fares) in [(counted, Fares::Whole), (undone, Fares::Undone)] {
        let tried = if std::env::var("INTERRUPTIONS").is_ok_and(|it| it == "all") { writes } else { TRIED };
        for number in 0..tried {
            let write = 1 + number * writes / tried;
            let interruption =
                if number % 2 == 0 { Interruption::Before(write) } else { Interruption::After(write) };
            test.upgrade(interruption, fares)
                .await
                .with_context(|| format!("{fares:?}, killed {interruption:?} of {writes}"))?;
            if fares == Fares::Whole {
                test.downgrade().await?;
            }
        }
    }
    Ok(())
}

/// When the operator is killed: before or after a write reaches the API server; no answer reaches it.
#[derive(Clone, Copy, Debug)]
enum Interruption {
    None,
    Before(usize),
    After(usize),
}

/// What becomes of an upgrade.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fares {
    Whole,
    Undone,
}

struct Test {
    bed: Bed,
    cluster: Cluster,
    program: Program,
    /// Folders of components, and the digests of the EBS driver in them: before the upgrade and after.
    folders: [PathBuf; 2],
    digests: [String; 2],
    _servers: Servers,
}

impl Test {
    async fn begin() -> Result<Test> {
        let folder = folder(NAME)?;
        let folders = ["before", "after"].map(|name| folder.join(name));
        components(&folders[0])?;
        replace(&folders[0].join(EBS).with_extension("wasm"), (ARGUMENTS[1], ARGUMENTS[0]))?;
        let after = components(&folders[1])?[EBS].clone();
        let program = Program::new(&folder, &folders[0])?;
        let bed = Bed::up(Options {
            name: NAME.into(),
            boots: false,
            operator: Some(program.path.clone()),
            operator_arguments: vec!["--api-server-cidrs".to_owned(), RANGE.to_owned()],
            ..Options::default()
        })
        .await?;
        let servers = Servers::start(&bed)?;
        order(&bed, "/ready/any").await?;
        let cluster = Cluster::new("default", NAME, 0, 0);
        make(&bed, &cluster).await?;
        let mut test =
            Test { bed, cluster, program, folders, digests: [String::new(), after], _servers: servers };
        test.bed.wait_for("the first installation", MOMENT, async || test.running(None).await).await?;
        test.digests[0] = text(&test.ebs().await?, "digest");
        for folder in &test.folders {
            let lines = test.digests.iter().map(|digest| format!("{EBS} v1 {digest}\n"));
            std::fs::write(folder.join("released.txt"), lines.collect::<String>())?;
        }
        restart(&test.bed, &test.program, &test.folders[1]).await?;
        Ok(test)
    }

    /// Upgrades, or has that undone because nothing of it becomes ready; the number of writes that it took.
    async fn upgrade(&self, interruption: Interruption, fares: Fares) -> Result<usize> {
        let ready = if fares == Fares::Whole { "any" } else { ARGUMENTS[0] };
        order(&self.bed, &format!("/ready/{ready}")).await?;
        let when = match interruption {
            Interruption::None => "/before/0".to_owned(),
            Interruption::Before(write) => format!("/before/{write}"),
            Interruption::After(write) => format!("/after/{write}"),
        };
        order(&self.bed, &when).await?;
        self.consent(1, if fares == Fares::Whole { "10m" } else { "2s" }).await?;
        self.bed
            .wait_for(&format!("an upgrade that is {fares:?}"), MOMENT, async || {
                self.consented().await?;
                match fares {
                    Fares::Whole => self.running(Some(1)).await,
                    Fares::Undone => {
                        let said = self.said().await?;
                        ensure!(said.starts_with("UpgradeUndone: "), "{said}");
                        self.running(Some(0)).await
                    }
                }
            })
            .await?;
        let writes: usize = order(&self.bed, "/writes").await?.trim().parse().context("a number")?;
        let at = match interruption {
            Interruption::None => 0,
            Interruption::Before(write) | Interruption::After(write) => write,
        };
        ensure!(writes >= at, "it was never killed: {writes} writes");
        Ok(writes)
    }

    /// Installs what was there before again, by consent.
    async fn downgrade(&self) -> Result<()> {
        order(&self.bed, "/ready/any").await?;
        order(&self.bed, "/before/0").await?;
        restart(&self.bed, &self.program, &self.folders[0]).await?;
        self.consent(0, "10m").await?;
        self.bed.wait_for("what was there before", MOMENT, async || self.running(Some(0)).await).await?;
        restart(&self.bed, &self.program, &self.folders[1]).await
    }

    async fn consent(&self, to: usize, timeout: &str) -> Result<()> {
        let value = format!("{EBS}@{}", self.digests[to]);
        let patch =
            json!({"metadata": {"annotations": {UPGRADE: value}}, "spec": {"upgradeTimeout": timeout}});
        self.cluster.patch(&self.bed, "clusterplugin", NAME, &patch.to_string()).await.map(drop)
    }

    /// The consent was used.
    async fn consented(&self) -> Result<()> {
        let object = self.cluster.object(&self.bed, "clusterplugin", NAME).await?;
        ensure!(object["metadata"]["annotations"][UPGRADE].is_null(), "the consent is still there");
        Ok(())
    }

    /// All of the add-on is there, by this component: its status, its record and its objects say so.
    async fn running(&self, component: Option<usize>) -> Result<()> {
        let ebs = self.ebs().await?;
        ensure!(ebs["phase"] == "Running", "{}", self.said().await?);
        let record = self.record().await?;
        ensure!(record["complete"] == true && record["digest"] == ebs["digest"], "{record}");
        ensure!(record["previous"].is_null(), "the record is of an upgrade: {}", record["previous"]);
        let Some(component) = component else { return Ok(()) };
        ensure!(ebs["digest"] == self.digests[component].as_str(), "{} is installed", ebs["digest"]);
        let workloads = self
            .bed
            .kubectl_json(&["get", "deployments,daemonsets", "--namespace=kube-system"])
            .await?
            .to_string();
        ensure!(workloads.contains(ARGUMENTS[component]), "the objects are not those of the component");
        ensure!(!workloads.contains(ARGUMENTS[1 - component]), "some objects are of the other component");
        let digits = &self.digests[component]["sha256:".len()..][..16];
        let stored = format!("cluster-component-{EBS}-{digits}");
        self.bed.kubectl(&["get", "configmap", &stored, "--namespace=kube-system"]).await.map(drop)
    }

    async fn record(&self) -> Result<Value> {
        let name = format!("configmap/cluster-plugin-{EBS}");
        let object = self.bed.kubectl_json(&["get", &name, "--namespace=kube-system"]).await?;
        let data = object["data"].as_object().and_then(|it| it.values().next()).and_then(Value::as_str);
        serde_json::from_str(data.context("no data")?).context("a record")
    }

    async fn ebs(&self) -> Result<Value> {
        reported(&self.bed, &self.cluster, EBS).await
    }

    async fn said(&self) -> Result<String> {
        let object = self.cluster.object(&self.bed, "clusterplugin", NAME).await?;
        Ok(condition_text(&object, "StorageReady"))
    }
}

/// A cluster with the EBS driver alone, whose API server is the management cluster's, at an address of the test.
async fn make(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let labels = json!({"cluster.x-k8s.io/cluster-name": NAME});
    let metadata = json!({"name": NAME, "namespace": "default", "labels": labels});
    let mut kubeconfig: Value = serde_json::from_str(&std::fs::read_to_string(bed.running().kubeconfig())?)?;
    kubeconfig["clusters"][0]["cluster"] = json!({"server": format!("http://{COUNTED}")});
    let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": metadata.clone(), "stringData": {"value": kubeconfig.to_string()}});
    secret["metadata"]["name"] = format!("{NAME}-kubeconfig").into();
    let endpoint = json!({"host": "10.255.0.1", "port": 6443});
    let spec = json!({"region": "us-east-1", "network": {"vpc": {"availabilityZoneUsageLimit": 1}},
        "controlPlaneLoadBalancer": {"loadBalancerType": "disabled"}, "controlPlaneEndpoint": endpoint});
    // Paused: nobody makes machines of it, and the test says how many are ready.
    let template =
        json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSMachineTemplate", "name": NAME});
    let mut control_plane = json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
        "metadata": metadata.clone(), "spec": {"replicas": 1, "version": KUBERNETES_VERSION, "kubeadmConfigSpec": {"format": "cloud-config"},
            "machineTemplate": {"spec": {"infrastructureRef": template}}}});
    control_plane["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": "true"});
    let plugin = json!({"apiVersion": "cluster.kurator.dev/v1alpha1", "kind": "ClusterPlugin", "metadata": metadata,
        "spec": {"clusterName": NAME, "cloudProvider": {"none": {}}, "storage": {"ebs": {}}}});
    let documents = [
        fleet::documents(cluster, spec, json!({}), &[]),
        secret.to_string(),
        control_plane.to_string(),
        plugin.to_string(),
    ];
    bed.apply(&documents.join("\n---\n")).await?;
    let initialized = json!({"status": {"initialization": {"controlPlaneInitialized": true}}});
    let ready = json!({"status": {"readyReplicas": 1, "initialization": {"controlPlaneInitialized": true}}});
    for (kind, patch) in [("cluster", initialized), ("kubeadmcontrolplane", ready)] {
        let patch = patch.to_string();
        bed.kubectl(&["patch", kind, NAME, "--subresource=status", "--type=merge", "--patch", &patch])
            .await?;
    }
    Ok(())
}

fn text(object: &Value, field: &str) -> String {
    object[field].as_str().unwrap_or_default().to_owned()
}
