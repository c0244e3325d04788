//! Plugins of third parties, registered while the operator runs: installed, repaired, upgraded, refused for what
//! they are not granted, kept when their module goes, and removed.

mod artifacts;
mod hostile;
mod module;

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use end_to_end::{MOMENT, find_condition, machineless};
use guests::{SCRIPTED, scripted_with};
use module::{Module, digest};
use sandbox::{Bed, Options};
use serde_json::{Value, json};

const SERVER: &str = "https://127.0.0.1:6443";
const UPGRADE: &str = "cluster.kurator.dev/upgrade";

#[tokio::test(flavor = "multi_thread")]
async fn on_a_bed_a_registered_plugin_lives_through_all_that_happens() -> Result<()> {
    let bed = Bed::up(options("modules")).await?;
    bed.kubectl(&["create", "namespace", "plugins"]).await?;
    let none = json!({"cloudProvider": {"none": {}}});
    machineless::make(&bed, "one", SERVER, none.clone()).await?;

    // Installed.
    select(&bed, "one", json!([notes(json!({"objects": [note("a"), note("b")]}))])).await?;
    let missing = said(&bed, "one", "ModuleNotFound").await?;
    ensure!(
        missing.contains("there is no PluginModule acme; an administrator has to register it"),
        "{missing}"
    );
    let began = Instant::now();
    let acme = Module::new("acme", SCRIPTED);
    acme.register(&bed).await?;
    running(&bed, "one", "1.0.0").await?;
    println!("registered to installed: {:?}", began.elapsed());
    let status = acme.status(&bed).await?;
    ensure!(status["version"] == "1.0.0" && status["digest"] == digest(SCRIPTED).as_str(), "{status}");
    ensure!(status["contract"] == "kurator:cluster-plugin@0.1.0", "{status}");

    // Repaired.
    bed.kubectl(&["delete", "configmap", "a", "--wait"]).await?;
    touch(&bed, "one").await?;
    bed.wait_for("what was deleted to be there again", MOMENT, async || {
        bed.kubectl(&["get", "configmap", "a"]).await.map(drop)
    })
    .await?;

    // Another digest is an upgrade, with consent.
    let second = scripted_with(&[("1.0.0", "1.0.1")]);
    acme.with(&second).register(&bed).await?;
    let available = bed
        .wait_for("an upgrade to be available", MOMENT, async || {
            let plugin = plugin(&bed, "one").await?;
            let available = plugin["available"].clone();
            ensure!(available["version"] == "1.0.1" && plugin["version"] == "1.0.0", "{plugin}");
            Ok(available)
        })
        .await?;
    let consent = format!("{UPGRADE}=notes@{}", available["digest"].as_str().context("a digest")?);
    bed.kubectl(&["annotate", "clusterplugin", "one", &consent]).await?;
    running(&bed, "one", "1.0.1").await?;

    // One that asks for more waits, and the one before serves.
    let greedy = scripted_with(&[("1.0.0", "1.0.2"), ("kubernetes-version", "api-server-version")]);
    acme.with(&greedy).register(&bed).await?;
    let ready = acme.condition(&bed, "PendingApproval").await?;
    ensure!(
        ready.contains("fact api-server-version is not granted (grants.facts: [api-server-version])"),
        "{ready}"
    );
    ensure!(ready.contains("version 1.0.1 "), "{ready}");
    select(&bed, "one", json!([notes(json!({"objects": [note("a"), note("c")]}))])).await?;
    bed.wait_for("another configuration to be carried out", MOMENT, async || {
        bed.kubectl(&["get", "configmap", "c"]).await.map(drop)
    })
    .await?;
    acme.with(&second).register(&bed).await?;

    // What is not granted is denied before anything of it is done.
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}});
    select(&bed, "one", json!([notes(json!({"objects": [note("d"), secret]}))])).await?;
    let denied = said(&bed, "one", "PlanDenied").await?;
    ensure!(
        denied.contains("Secret s") && denied.contains("in namespace default is not granted"),
        "{denied}"
    );
    ensure!(bed.kubectl(&["get", "configmap", "d"]).await.is_err(), "a part of a denied plan is carried out");
    select(&bed, "one", json!([notes(json!({"objects": [note("a")]}))])).await?;
    running(&bed, "one", "1.0.1").await?;

    // Whose it is not any more, it stays with.
    acme.with(&second).of_namespaces(json!({"matchLabels": {"team": "a"}})).register(&bed).await?;
    let not_allowed = said(&bed, "one", "ModuleNotAllowed").await?;
    ensure!(not_allowed.contains("it stays as it is"), "{not_allowed}");
    bed.kubectl(&["label", "namespace", "default", "team=a"]).await?;
    bed.wait_for("the namespace to be allowed", MOMENT * 2, async || {
        touch(&bed, "one").await?;
        running_now(&bed, "one", "1.0.1").await
    })
    .await?;

    // The module goes, what it installed stays, and can be removed.
    bed.kubectl(&["delete", "pluginmodule", "acme", "--wait"]).await?;
    said(&bed, "one", "ModuleNotFound").await?;
    bed.kubectl(&["get", "configmap", "a"]).await?;
    select(&bed, "one", json!([])).await?;
    bed.wait_for("what the module installed to be removed", MOMENT, async || {
        ensure!(bed.kubectl(&["get", "configmap", "a"]).await.is_err(), "it is there");
        let object = bed.kubectl_json(&["get", "clusterplugin", "one"]).await?;
        ensure!(object["status"]["plugins"].as_array().is_none_or(Vec::is_empty), "{}", object["status"]);
        Ok(())
    })
    .await?;
    artifacts::are_pulled_and_verified(&bed).await.context("components from a registry")?;
    hostile::harms_nobody(&bed).await?;
    hostile::built_in_plugins_are_narrowed(&bed).await
}

fn options(name: &str) -> Options {
    let cache = std::env::temp_dir().join(format!("cluster-operator-{name}-{}", std::process::id()));
    let cache = cache.display().to_string();
    let operator_arguments =
        ["--api-server-cidrs", "127.0.0.0/8", "--plugin-cache-dir", &cache].map(str::to_owned).into();
    Options { name: name.into(), boots: false, operator_arguments, ..Options::default() }
}

/// The add-on of the tests, with this configuration.
fn notes(config: Value) -> Value {
    json!({"name": "notes", "module": "acme", "stage": "Initialized", "config": config})
}

fn note(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"a": "b"}})
}

async fn select(bed: &Bed, cluster: &str, plugins: Value) -> Result<()> {
    let patch = json!({"spec": {"plugins": plugins}}).to_string();
    bed.kubectl(&["patch", "clusterplugin", cluster, "--type=merge", "--patch", &patch]).await.map(drop)
}

/// Has it looked at: any edit does.
async fn touch(bed: &Bed, cluster: &str) -> Result<()> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let edit = format!("edit={}", now.as_millis());
    bed.kubectl(&["annotate", "--overwrite", "clusterplugin", cluster, &edit]).await.map(drop)
}

/// What the status says of the add-on.
async fn plugin(bed: &Bed, cluster: &str) -> Result<Value> {
    let object = bed.kubectl_json(&["get", "clusterplugin", cluster]).await?;
    let plugins = object["status"]["plugins"].as_array().cloned().unwrap_or_default();
    plugins.into_iter().find(|it| it["name"] == "notes").context("it is not in the status")
}

async fn running_now(bed: &Bed, cluster: &str, version: &str) -> Result<()> {
    let object = bed.kubectl_json(&["get", "clusterplugin", cluster]).await?;
    let plugin = plugin(bed, cluster).await?;
    ensure!(
        plugin["phase"] == "Running" && plugin["version"] == version && plugin["module"] == "acme",
        "{plugin}"
    );
    let condition = find_condition(&object, "PluginsReady").context("no condition")?;
    ensure!(condition["status"] == "True" && condition["reason"] == "Ready", "{condition}");
    Ok(())
}

async fn running(bed: &Bed, cluster: &str, version: &str) -> Result<()> {
    bed.wait_for("the plugin to run", MOMENT, async || running_now(bed, cluster, version).await).await
}

/// Waits until the condition has this reason, and returns what it says.
async fn said(bed: &Bed, cluster: &str, reason: &str) -> Result<String> {
    bed.wait_for("the condition to say it", MOMENT, async || {
        let object = bed.kubectl_json(&["get", "clusterplugin", cluster]).await?;
        let condition = find_condition(&object, "PluginsReady").context("no condition")?;
        ensure!(condition["reason"] == reason, "{condition}");
        Ok(condition["message"].as_str().unwrap_or_default().to_owned())
    })
    .await
}
