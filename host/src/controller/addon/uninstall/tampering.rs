//! Whoever writes over the record of an add-on in the workload cluster can make the operator do nothing but
//! delete what that add-on applied there, and remove the record.

use std::collections::BTreeMap;

use addons::{Inventory, Proofs, digest};
use serde_json::{Value, json};

use super::execute_removal;
use crate::context::ObjectName;
use crate::controller::addon::memory::Memories;
use crate::controller::addon::progress::StepProgress;
use crate::workload::WorkloadCluster;
use crate::workload::fake::{self, Server, holding};

const MODULE: &str = "aws-ebs-csi";
const RECORD: &str = "/api/v1/namespaces/kube-system/configmaps/cluster-plugin-aws-ebs-csi";

fn delete(kind: &str, namespace: &str, name: &str) -> Value {
    let spec =
        json!({"apiVersion": "apps/v1", "kind": kind, "namespace": namespace, "name": name, "wait": true});
    json!({"id": name, "kind": "k8s.delete/v1", "spec": spec, "after": []})
}

/// A privileged DaemonSet under a name that the add-on has.
fn apply(image: &str) -> Value {
    let pod = json!({"serviceAccountName": "ebs-csi-node-sa", "hostNetwork": true, "containers": [{"name": "a", "image": image,
        "securityContext": {"privileged": true}}]});
    let object = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "ebs-csi-node", "namespace": "kube-system"},
        "spec": {"template": {"spec": pod}}});
    json!({"id": "apply", "kind": "k8s.apply/v1", "spec": {"objects": [object]}, "after": []})
}

fn record(config: Value, removal: &[Value]) -> Value {
    json!({"module": MODULE, "version": "1", "digest": "", "config": config, "planHash": "", "complete": true, "objects": [],
        "rules": [{"group": "control-plane", "protocol": "-1", "peer": "node", "description": "open"}], "removal": removal})
}

fn object(name: &str, manager: &str) -> Value {
    json!({"metadata": {"name": name, "uid": name, "managedFields": [{"manager": manager, "operation": "Apply"}]}})
}

/// The cluster that is attacked: what the add-on applied, and what others did.
async fn attacked(text: &str) -> (Server, WorkloadCluster) {
    let at = |kind: &str, namespace: &str, name: &str| {
        format!("/apis/apps/v1/namespaces/{namespace}/{kind}/{name}")
    };
    let objects = BTreeMap::from([
        (
            at("daemonsets", "kube-system", "ebs-csi-node"),
            object("ebs-csi-node", "cluster-operator-aws-ebs-csi"),
        ),
        (at("daemonsets", "kube-system", "calico-node"), object("calico-node", "cluster-operator-calico")),
        (at("deployments", "kube-system", "coredns"), object("coredns", "kubeadm")),
        (at("deployments", "shop", "web"), object("web", "kubectl")),
        (
            RECORD.to_owned(),
            json!({"metadata": {"name": "cluster-plugin-aws-ebs-csi"}, "data": {"inventory": text}}),
        ),
    ]);
    let server = holding(objects).await.0;
    let cluster = fake::cluster(&server).await;
    (server, cluster)
}

/// What is written to the cluster when the add-on is removed by this record, while the management cluster
/// knows `proofs`.
async fn written(text: &str, proofs: &Proofs) -> String {
    let (server, cluster) = attacked(text).await;
    let outcome = match cluster.inventory(MODULE).await {
        Ok(Some(found)) => {
            let standing = proofs.standing(MODULE, &found.digest);
            let record = Inventory { standing, ..found.inventory };
            assert_eq!(
                addons::rules_of_installed([&record]).len(),
                usize::from(text == honest()),
                "rules of {standing:?}"
            );
            match executed(&cluster, &record).await {
                StepProgress::Done => "out".to_owned(),
                other => format!("{other:?}"),
            }
        }
        Ok(None) => "no record".to_owned(),
        Err(error) => error.to_string(),
    };
    let writes = server.requests().into_iter().filter(|it| !it.starts_with("GET "));
    let writes: Vec<String> = writes
        .map(|it| it.split('?').next().unwrap_or_default().replace("/apis/apps/v1/namespaces/", ""))
        .collect();
    format!("{outcome}; {}", writes.join(", "))
}

async fn executed(cluster: &WorkloadCluster, record: &Inventory) -> StepProgress {
    let (memories, name) = (Memories::default(), ObjectName::new("default", "one"));
    execute_removal(cluster, record, memories.of(&name, MODULE)).await
}

fn honest() -> String {
    record(json!({}), &[delete("DaemonSet", "kube-system", "ebs-csi-node")]).to_string()
}

#[tokio::test]
async fn only_what_the_add_on_applied_is_deleted_by_whatever_record() {
    let own = delete("DaemonSet", "kube-system", "ebs-csi-node");
    let registry = json!({"imageRegistry": "evil.example.com"});
    let older =
        record(json!({}), &[own.clone(), delete("DaemonSet", "kube-system", "calico-node")]).to_string();
    let attacks = [
        ("another registry", record(registry, &[apply("evil.example.com/a"), own.clone()]).to_string()),
        (
            "a granted registry",
            record(json!({}), &[apply("public.ecr.aws/ebs-csi-driver/a"), own.clone()]).to_string(),
        ),
        (
            "other objects",
            record(json!({}), &[delete("Deployment", "kube-system", "coredns"), own.clone()]).to_string(),
        ),
        (
            "another add-on's",
            record(json!({}), &[delete("DaemonSet", "kube-system", "calico-node"), own.clone()]).to_string(),
        ),
        (
            "another namespace",
            record(json!({}), &[delete("Deployment", "shop", "web"), own.clone()]).to_string(),
        ),
        ("an older one", older),
    ];
    let known = Proofs::default().only(MODULE, &digest(&honest()));
    let never_asked_for = Proofs::default().only("calico", "abc");
    for (attack, text) in attacks {
        for proofs in [&known, &never_asked_for, &Proofs::default()] {
            assert_eq!(
                written(&text, proofs).await,
                "out; DELETE kube-system/daemonsets/ebs-csi-node",
                "{attack}"
            );
        }
    }
    assert_eq!(written(&honest(), &known).await, "out; DELETE kube-system/daemonsets/ebs-csi-node");
}

#[tokio::test]
async fn what_is_too_long_is_no_record() {
    let long = record(json!({"a": "x".repeat(1 << 20)}), &[]).to_string();
    let known = Proofs::default().only(MODULE, &digest(&long));
    let outcome = written(&long, &known).await;
    assert!(
        outcome.starts_with("ConfigMap kube-system/cluster-plugin-aws-ebs-csi: data.inventory is not an inventory of this program: it has ")
    );
    assert!(outcome.ends_with(" bytes; "), "{outcome}");
}

#[tokio::test]
async fn even_a_record_that_is_known_applies_nothing() {
    let text = record(json!({}), &[apply("public.ecr.aws/ebs-csi-driver/a")]).to_string();
    let known = Proofs::default().only(MODULE, &digest(&text));
    let (_server, cluster) = attacked(&text).await;
    let found = cluster.inventory(MODULE).await.expect("it answers").expect("a record");
    let record = Inventory { standing: known.standing(MODULE, &found.digest), ..found.inventory };
    let progress = executed(&cluster, &record).await;
    let message = "the record of aws-ebs-csi in the cluster, step \"apply\" of its removal: a removal deletes and waits, and k8s.apply/v1 \
                   does neither";
    assert_eq!(progress, StepProgress::Refused("RecordDenied", message.into()));
}
