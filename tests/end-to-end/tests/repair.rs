//! What a real kube-apiserver answers about objects that somebody changes after they were applied, and what
//! `plan` makes of it: everything about repairing add-ons rests on that. No controller runs.

use std::collections::BTreeMap;

use addons::{Change, Compared, Drift, ObjectRef, Writers, compare, drift, without};
use anyhow::{Context, Result, ensure};
use sandbox::{Bed, Options, Parts};
use serde_json::{Value, json};

const MANAGER: &str = "cluster-operator-test";

/// An edit by hand of the object of this kind, and what is said of it; nothing where it is of no field of
/// ours.
struct Edit {
    kind: &'static str,
    patch: Value,
    told: &'static str,
}

#[tokio::test]
async fn on_a_bed_edits_of_an_applied_object_show_and_are_undone() -> Result<()> {
    let bed =
        Bed::up(Options { name: "repair".into(), parts: Parts::ApiServer, ..Options::default() }).await?;
    let objects = objects();
    for edit in edits() {
        let object = objects.get(edit.kind).context("there is such an object")?;
        edited(&bed, object, &edit).await.with_context(|| format!("an edit of the {}", edit.kind))?;
    }
    for (kind, object) in &objects {
        deleted(&bed, object).await.with_context(|| format!("a deleted {kind}"))?;
        made_anew(&bed, object).await.with_context(|| format!("a {kind} that somebody made anew"))?;
    }
    left_alone(&bed, &objects["Deployment"]).await.context("what is not ours")?;
    scaled(&bed, &objects["Deployment"]).await.context("an autoscaler")
}

/// Objects as add-ons have them, by kind.
fn objects() -> BTreeMap<&'static str, Value> {
    let local = json!({"name": "drift", "namespace": "default"});
    let global = json!({"name": "drift"});
    let labels = json!({"app": "drift"});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "example.com/a:1", "args": ["--b"]}]}});
    let age = json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
    let rbac = "rbac.authorization.k8s.io/v1";
    let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    let account = json!({"kind": "ServiceAccount", "name": "default", "namespace": "default"});
    BTreeMap::from([
        (
            "ConfigMap",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": local, "data": {"a.yaml": "1", "b": "2"}}),
        ),
        ("Role", json!({"apiVersion": rbac, "kind": "Role", "metadata": local, "rules": [rule]})),
        (
            "RoleBinding",
            json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": local, "subjects": [account],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "drift"}}),
        ),
        (
            "Service",
            json!({"apiVersion": "v1", "kind": "Service", "metadata": local, "spec": {"selector": labels,
            "ports": [{"name": "web", "port": 80, "targetPort": 8080}]}}),
        ),
        (
            "ValidatingWebhookConfiguration",
            json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration", "metadata": global, "webhooks": [hook(&["CREATE"])]}),
        ),
        (
            "CustomResourceDefinition",
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced", "versions": [version(&[age])],
            "names": {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"}}}),
        ),
        (
            "StorageClass",
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": global,
            "provisioner": "ebs.csi.aws.com", "parameters": {"type": "gp3"}}),
        ),
        (
            "Deployment",
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": local, "spec": {"replicas": 2,
            "selector": {"matchLabels": labels}, "template": pod}}),
        ),
    ])
}

fn hook(operations: &[&str]) -> Value {
    let service = json!({"name": "a", "namespace": "default", "path": "/a"});
    json!({"name": "a.example.com", "clientConfig": {"service": service, "caBundle": "YQ=="},
        "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": operations, "resources": ["things"]}],
        "sideEffects": "None", "admissionReviewVersions": ["v1"]})
}

fn version(columns: &[Value]) -> Value {
    json!({"name": "v1", "served": true, "storage": true, "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
}

fn edits() -> Vec<Edit> {
    let edit = |kind, patch: Value, told| Edit { kind, patch, told };
    vec![
        edit(
            "ConfigMap",
            json!({"data": {"a.yaml": "3"}}),
            r#".data[a.yaml] of ConfigMap default/drift was changed by "kubectl-patch""#,
        ),
        edit(
            "ConfigMap",
            json!({"data": {"b": null}}),
            ".data.b of ConfigMap default/drift was changed by somebody",
        ),
        edit(
            "ConfigMap",
            json!({"data": null}),
            ".data[a.yaml], .data.b of ConfigMap default/drift was changed by somebody",
        ),
        edit("Role", json!({"rules": []}), r#".rules of Role default/drift was changed by "kubectl-patch""#),
        edit(
            "RoleBinding",
            json!({"subjects": null}),
            ".subjects of RoleBinding default/drift was changed by somebody",
        ),
        edit(
            "Service",
            json!({"spec": {"selector": {"app": "other"}}}),
            r#".spec.selector of Service default/drift was changed by "kubectl-patch""#,
        ),
        edit(
            "Service",
            json!({"spec": {"ports": [{"name": "web", "port": 80, "targetPort": 1}]}}),
            r#".spec.ports[port=80,protocol=TCP].targetPort of Service default/drift was changed by "kubectl-patch""#,
        ),
        edit(
            "ValidatingWebhookConfiguration",
            json!({"webhooks": [hook(&["DELETE"])]}),
            r#".webhooks[name=a.example.com].rules of ValidatingWebhookConfiguration drift was changed by "kubectl-patch""#,
        ),
        edit(
            "CustomResourceDefinition",
            json!({"spec": {"versions": [version(&[])]}}),
            r#".spec.versions of CustomResourceDefinition things.example.com was changed by "kubectl-patch""#,
        ),
        // Its parameters cannot be edited: it is made anew, as all are below.
        edit("StorageClass", json!({"allowVolumeExpansion": true, "metadata": {"labels": {"a": "b"}}}), ""),
        edit(
            "Deployment",
            json!({"spec": {"replicas": 7}}),
            r#".spec.replicas of Deployment default/drift was changed by "kubectl-patch""#,
        ),
    ]
}

/// An object is applied, edited, found to be so, and applied with force.
async fn edited(bed: &Bed, object: &Value, edit: &Edit) -> Result<()> {
    let mark = applied(bed, object, true).await?;
    ensure!(
        compared(bed, object, &mark).await? == Compared::Same,
        "it is not the same as it was just applied"
    );
    ensure!(applied(bed, object, false).await? == mark, "applying the same again changes what is ours");
    patch(bed, object, &edit.patch, &[]).await?;
    if edit.told.is_empty() {
        ensure!(compared(bed, object, &mark).await? == Compared::Same, "what is not ours counts");
        return Ok(());
    }
    let found = found(bed, object, &mark).await?;
    let told = found.told(&reference(object)?);
    ensure!(told == edit.told, "{told}");
    let mark = applied(bed, &without(object, &found.left), true).await?;
    ensure!(compared(bed, object, &mark).await? == Compared::Same, "it was not taken back");
    let live = get(bed, object).await?.context("it is there")?;
    holds(object, &live)
}

async fn deleted(bed: &Bed, object: &Value) -> Result<()> {
    let mark = applied(bed, object, true).await?;
    delete(bed, object).await?;
    let found = found(bed, object, &mark).await?;
    ensure!(found.change == Change::Gone, "{found:?}");
    let new = applied(bed, object, true).await?;
    ensure!(compared(bed, object, &new).await? == Compared::Same && new != mark, "it is another object");
    delete(bed, object).await
}

async fn made_anew(bed: &Bed, object: &Value) -> Result<()> {
    let mark = applied(bed, object, true).await?;
    delete(bed, object).await?;
    bed.running().exec("kubectl", &["create", "-f", "-"], Some(&object.to_string())).await?;
    let found = found(bed, object, &mark).await?;
    ensure!(found.change == Change::Anew && found.by == "\"kubectl-create\"", "{found:?}");
    let mark = applied(bed, object, true).await?;
    ensure!(compared(bed, object, &mark).await? == Compared::Same, "it was not taken over");
    delete(bed, object).await
}

/// Annotations, a status, a restart and fields that nobody asked for.
async fn left_alone(bed: &Bed, object: &Value) -> Result<()> {
    let mark = applied(bed, object, true).await?;
    let name = "deployment/drift";
    bed.kubectl(&["annotate", name, "a=b"]).await?;
    bed.kubectl(&["rollout", "restart", name]).await?;
    patch(bed, object, &json!({"spec": {"revisionHistoryLimit": 3}}), &[]).await?;
    patch(bed, object, &json!({"status": {"observedGeneration": 1}}), &["--subresource=status"]).await?;
    ensure!(compared(bed, object, &mark).await? == Compared::Same, "what is not ours counts");
    delete(bed, object).await
}

/// An autoscaler writes through the subresource `scale`; somebody else then changes an argument.
async fn scaled(bed: &Bed, object: &Value) -> Result<()> {
    let mark = applied(bed, object, true).await?;
    bed.kubectl(&["scale", "deployment/drift", "--replicas=5"]).await?;
    let only_scaled = found(bed, object, &mark).await?;
    ensure!(only_scaled.change == Change::Scaled, "{only_scaled:?}");
    let args = json!([{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": ["--c"]}]);
    bed.kubectl(&["patch", "deployment/drift", "--type=json", "--patch", &args.to_string()]).await?;
    let both = found(bed, object, &mark).await?;
    let told = both.told(&reference(object)?);
    let wanted = r#".spec.template.spec.containers[name=a].args of Deployment default/drift was changed by "kubectl-patch""#;
    ensure!(told == wanted, "{told}");
    let mark = applied(bed, &without(object, &both.left), true).await?;
    let live = get(bed, object).await?.context("it is there")?;
    let args = &live["spec"]["template"]["spec"]["containers"][0]["args"];
    ensure!(live["spec"]["replicas"] == 5 && *args == json!(["--b"]), "{}", live["spec"]);
    ensure!(compared(bed, object, &mark).await? == Compared::Same, "what was left counts again");
    delete(bed, object).await
}

/// Applies in our name; what is written down of the object then.
async fn applied(bed: &Bed, object: &Value, force: bool) -> Result<String> {
    Ok(apply(bed, object, &[&format!("--force-conflicts={force}")]).await?.mark(MANAGER))
}

async fn apply(bed: &Bed, object: &Value, more: &[&str]) -> Result<Writers> {
    let manager = format!("--field-manager={MANAGER}");
    let fixed = ["apply", "--server-side", "-f", "-", "-o", "json", "--show-managed-fields", &manager];
    let answer = bed.running().exec("kubectl", &[&fixed, more].concat(), Some(&object.to_string())).await?;
    Ok(Writers::of(&serde_json::from_str(&answer).context("reading kubectl's JSON")?))
}

async fn compared(bed: &Bed, object: &Value, mark: &str) -> Result<Compared> {
    let seen = get(bed, object).await?.map(|it| Writers::of(&it));
    Ok(compare(mark, seen.as_ref(), MANAGER))
}

/// What is said of an object that has to be different.
async fn found(bed: &Bed, object: &Value, mark: &str) -> Result<Drift> {
    ensure!(compared(bed, object, mark).await? == Compared::Different, "nothing is seen of it");
    let seen = get(bed, object).await?.map(|it| Writers::of(&it));
    let would = match seen {
        Some(_) => apply(bed, object, &["--force-conflicts=true", "--dry-run=server"]).await.ok(),
        None => None,
    };
    ensure!(
        get(bed, object).await?.map(|it| Writers::of(&it)) == seen,
        "asking what would be changes something"
    );
    Ok(drift(mark, seen.as_ref(), would.as_ref(), MANAGER))
}

fn reference(object: &Value) -> Result<ObjectRef> {
    ObjectRef::of(object).context("it has a name")
}

/// Kind with group, and name, as kubectl takes them.
fn name(object: &Value) -> Result<[String; 2]> {
    let it = reference(object)?;
    let group = it.api_version.split_once('/').map_or(String::new(), |(group, _)| format!(".{group}"));
    Ok([format!("{}{group}", it.kind.to_lowercase()), it.name])
}

async fn get(bed: &Bed, object: &Value) -> Result<Option<Value>> {
    let [kind, name] = name(object)?;
    let text = bed
        .kubectl(&["get", &kind, &name, "-o", "json", "--show-managed-fields", "--ignore-not-found"])
        .await?;
    if text.trim().is_empty() {
        Ok(None)
    } else {
        serde_json::from_str(&text).map(Some).context("reading kubectl's JSON")
    }
}

async fn patch(bed: &Bed, object: &Value, patch: &Value, more: &[&str]) -> Result<()> {
    let ([kind, name], patch) = (name(object)?, patch.to_string());
    let fixed = ["patch", &kind, &name, "--type=merge", "--patch", &patch];
    bed.kubectl(&[&fixed, more].concat()).await.map(drop)
}

async fn delete(bed: &Bed, object: &Value) -> Result<()> {
    let [kind, name] = name(object)?;
    bed.kubectl(&["delete", &kind, &name, "--wait=true"]).await.map(drop)
}

/// Whether `live` says all that `object` says; lists have as many elements.
fn holds(object: &Value, live: &Value) -> Result<()> {
    match (object, live) {
        (Value::Object(fields), _) => {
            fields.iter().try_for_each(|(name, it)| holds(it, &live[name]).with_context(|| name.clone()))
        }
        (Value::Array(all), Value::Array(others)) if all.len() == others.len() => {
            all.iter().zip(others).try_for_each(|(a, b)| holds(a, b))
        }
        _ => {
            ensure!(object == live, "{live} rather than {object}");
            Ok(())
        }
    }
}
