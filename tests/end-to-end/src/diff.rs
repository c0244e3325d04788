//! `cluster-operator diff` as somebody runs it who may read the objects of one namespace and nothing more.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use sandbox::{Bed, Workload, operator};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::{Cluster, MOMENT};

/// Its access key: the calls of the operator have another one.
const ACCESS_KEY: &str = "viewer";

/// What the documentation says that it needs.
const ROLE: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: viewer, namespace: default}
rules:
- apiGroups: [cluster.x-k8s.io, controlplane.cluster.x-k8s.io, infrastructure.cluster.x-k8s.io, cluster.kurator.dev]
  resources: [clusters, machines, kubeadmcontrolplanes, awsclusters, awsmachines, awsmachinetemplates, clusterplugins]
  verbs: [list]
- apiGroups: ['']
  resources: [secrets]
  verbs: [get]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: viewer, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: viewer}
subjects:
- {kind: ServiceAccount, name: viewer, namespace: default}
";

/// What the program answered.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    pub text: String,
    pub error: String,
}

impl Answer {
    fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.text).with_context(|| format!("{self:?}"))
    }
}

/// Somebody who may only read.
pub struct Viewer<'a> {
    bed: &'a Bed,
    kubeconfig: PathBuf,
    arguments: Vec<String>,
}

impl<'a> Viewer<'a> {
    /// Makes an account for it. `arguments` are those that the operator has too.
    pub async fn new(bed: &'a Bed, arguments: &[&str]) -> Result<Viewer<'a>> {
        bed.apply(ROLE).await?;
        let token = bed.kubectl(&["create", "token", "viewer", "--namespace=default"]).await?;
        let mut kubeconfig = bed.kubectl_json(&["config", "view", "--raw"]).await?;
        kubeconfig["users"][0]["user"] = json!({"token": token.trim()});
        let file = bed.directory().join("viewer.kubeconfig");
        std::fs::write(&file, kubeconfig.to_string()).context("writing the viewer's kubeconfig")?;
        let arguments = arguments.iter().map(|it| (*it).to_owned()).collect();
        Ok(Viewer { bed, kubeconfig: file, arguments })
    }

    pub async fn diff(&self, arguments: &[&str], input: &str) -> Result<Answer> {
        let command = self.bed.running().command(operator::default_program());
        let mut command = tokio::process::Command::from(command);
        command.arg("diff").args(arguments).args(&self.arguments).arg("--kubeconfig").arg(&self.kubeconfig);
        command.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("starting the operator")?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that reads no file ends without reading.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let output = child.wait_with_output().await?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let answer =
            Answer { code: output.status.code(), text: text(output.stdout), error: text(output.stderr) };
        println!("diff {arguments:?}: {:?}\n{}{}", answer.code, answer.text, answer.error);
        Ok(answer)
    }
}

/// What is seen of a settled cluster with an upgrade of `add_on` that nobody consented to, and of edits of its
/// objects; and that nothing but reads came of looking.
pub async fn seen_before(
    viewer: &Viewer<'_>,
    cluster: &Cluster,
    workload: &Workload<'_>,
    (add_on, available): (&str, &str),
) -> Result<()> {
    let (bed, name) = (viewer.bed, cluster.name.as_str());
    let settled = viewer.diff(&[name, "--namespace", &cluster.namespace, "-o", "json"], "").await?;
    ensure!(settled.code == Some(0), "{settled:?}");
    let report = settled.json()?;
    ensure!(report["changes"] == false && report["aws"] == json!([]), "{report}");
    let found = of(&report, add_on)?;
    ensure!(found["available"]["digest"] == available && found["drift"] == json!([]), "{found}");
    ensure!(report["addOns"].as_array().is_some_and(|all| all.len() == 3), "{report}");
    let text = viewer.diff(&[name], "").await?;
    ensure!(text.code == Some(0) && text.text.contains("\nAWS: nothing would change\n"), "{text:?}");

    let mut plugin = cluster.object(bed, "clusterplugin", name).await?;
    plugin["spec"]["storage"]["ebs"]["replicas"] = 3.into();
    let edited = viewer.diff(&["-f", "-"], &plugin.to_string()).await?;
    let changed = "~ Deployment kube-system/ebs-csi-controller: .spec.replicas";
    ensure!(edited.code == Some(2) && edited.text.contains(changed), "{edited:?}");
    plugin["spec"]["storage"] = Value::Null;
    let removed = viewer.diff(&["-f", "-"], &plugin.to_string()).await?;
    let deleted = "  - Deployment kube-system/ebs-csi-controller";
    ensure!(removed.code == Some(2) && removed.text.contains(deleted), "{removed:?}");
    let mut aws_cluster = cluster.object(bed, "awscluster", name).await?;
    aws_cluster["spec"]["additionalTags"] = json!({"team": "storage"});
    let tagged = viewer.diff(&["-f", "-"], &aws_cluster.to_string()).await?;
    ensure!(tagged.code == Some(2) && tagged.text.contains("  tag     vpc/main ("), "{tagged:?}");
    upgraded(viewer, cluster, (add_on, available)).await?;
    let new = Cluster::new("default", "new", 1, 1).manifest(bed).await?;
    let new = viewer.diff(&["-f", "-"], &new).await?;
    let made = new.text.contains("  create  vpc/main") && new.text.contains("  + DaemonSet ");
    ensure!(new.code == Some(2) && made && new.text.contains("later   instance/new-"), "{new:?}");
    unreachable(viewer, cluster).await?;
    refused(viewer).await?;

    bed.stop_operator().await?;
    let budget = ["patch", "poddisruptionbudget", "ebs-csi-controller", "--namespace=kube-system"];
    let patch = ["--type=merge", "--patch", r#"{"spec":{"maxUnavailable":2}}"#];
    workload.kubectl(&[&budget[..], &patch].concat()).await?;
    let drifted = viewer.diff(&[name], "").await?;
    bed.start_operator().await?;
    let told = ".spec.maxUnavailable of PodDisruptionBudget kube-system/ebs-csi-controller was changed by \"kubectl-patch\": applied again";
    ensure!(drifted.code == Some(2) && drifted.text.contains(told), "{drifted:?}");
    bed.wait_for("what was seen to be repaired", MOMENT, async || {
        let budget = ["get", "poddisruptionbudget", "ebs-csi-controller", "--namespace=kube-system"];
        let found = workload.kubectl_json(&budget).await?;
        ensure!(found["spec"]["maxUnavailable"] != 2, "{found}");
        Ok(())
    })
    .await?;

    let calls = bed.emulator().calls(0).await?.calls;
    let own: Vec<_> = calls.iter().filter(|call| call.caller.as_deref() == Some(ACCESS_KEY)).collect();
    let writes: Vec<_> = own.iter().filter(|call| call.write).collect();
    ensure!(own.len() > 50 && writes.is_empty(), "{} calls, of which these write: {writes:?}", own.len());
    Ok(())
}

/// An upgrade counts once somebody consents to it.
async fn upgraded(viewer: &Viewer<'_>, cluster: &Cluster, (add_on, digest): (&str, &str)) -> Result<()> {
    let plugin = cluster.object(viewer.bed, "clusterplugin", &cluster.name).await?;
    let (mut automatic, mut annotated) = (plugin.clone(), plugin);
    automatic["spec"]["upgradePolicy"] = "Automatic".into();
    annotated["metadata"]["annotations"]["cluster.kurator.dev/upgrade"] = format!("{add_on}@{digest}").into();
    for edited in [automatic, annotated] {
        let answer = viewer.diff(&["-f", "-", "-o", "json"], &edited.to_string()).await?;
        let report = answer.json()?;
        let found = of(&report, add_on)?;
        let changes = found["changes"].to_string();
        let is_upgrade = changes.contains("~ component: ") && changes.contains(".args");
        ensure!(answer.code == Some(2) && is_upgrade && found["available"].is_null(), "{report}");
    }
    Ok(())
}

/// Where the workload cluster cannot be asked, each add-on says so, and the rest is shown.
async fn unreachable(viewer: &Viewer<'_>, cluster: &Cluster) -> Result<()> {
    let mut file = Vec::new();
    for kind in ["cluster", "awscluster"] {
        let mut object = cluster.object(viewer.bed, kind, &cluster.name).await?;
        object["spec"]["controlPlaneEndpoint"]["host"] = "192.0.2.1".into();
        file.push(object);
    }
    let file = json!({"apiVersion": "v1", "kind": "List", "items": file}).to_string();
    let answer = viewer.diff(&["-f", "-", "-o", "json"], &file).await?;
    ensure!(answer.code == Some(1) && answer.error.contains("not everything could be read: "), "{answer:?}");
    let report = answer.json()?;
    let all = report["addOns"].as_array().context("add-ons")?;
    let is_said =
        |it: &Value| it["error"].as_str().is_some_and(|it| it.starts_with("the workload cluster: "));
    ensure!(all.len() == 3 && all.iter().all(is_said), "{report}");
    Ok(())
}

/// What cannot be compared is said, and is neither of the two other answers.
async fn refused(viewer: &Viewer<'_>) -> Result<()> {
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}";
    for (arguments, input, said) in [
        (&["missing"][..], "", "there is no Cluster missing in namespace default; `kubectl get clusters."),
        (&["-f", "-"], deployment, "Deployment web (apps/v1) is nothing that this operator looks at"),
        (
            &["missing", "-n", "kube-system"],
            "",
            "cannot list resource \"awsclusters\" in API group \"infrastructure.cluster.x-k8s.io\" in the namespace \"kube-system\"\n",
        ),
        (&["--nonsense"], "", "unexpected argument '--nonsense'"),
    ] {
        let answer = viewer.diff(arguments, input).await?;
        ensure!(answer.code == Some(1) && answer.error.contains(said), "{said:?}: {answer:?}");
    }
    Ok(())
}

fn of<'a>(report: &'a Value, add_on: &str) -> Result<&'a Value> {
    let mut all = report["addOns"].as_array().into_iter().flatten();
    all.find(|it| it["name"] == add_on).with_context(|| format!("{add_on} is not in {report}"))
}
