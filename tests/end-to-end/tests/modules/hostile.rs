//! Plugins that do what none should, beside one that is as it should be: each is told from the others by its
//! reason, and the good one goes on being served.

use anyhow::{Context, Result, ensure};
use end_to_end::{MOMENT, condition_text, machineless};
use guests::{SCRIPTED, scripted_with};
use sandbox::Bed;
use serde_json::{Value, json};

use crate::module::Module;
use crate::{SERVER, note, touch};

/// What a plugin does, and what its status says of it.
const BAD: [(&str, &str); 6] = [
    ("trap-in-plan", "plan trapped: "),
    ("trap-in-validate", "validate trapped: "),
    ("loop", "plan used up its 10000000000 units of fuel"),
    ("grow", "plan wanted more than the 134217728 bytes of memory allowed"),
    ("log", "plan wrote more to the log than the 10000 messages or 16777216 bytes allowed"),
    ("endless", "asks"),
];

/// Registers components that are none, and selects plugins that misbehave.
pub async fn harms_nobody(bed: &Bed) -> Result<()> {
    Module::new("good", SCRIPTED).register(bed).await?;
    let good = json!({"name": "good", "module": "good", "stage": "Initialized",
        "config": {"objects": [note("good")]}});
    machineless::make(bed, "two", SERVER, json!({"cloudProvider": {"none": {}}, "plugins": [good]})).await?;
    no_components(bed).await?;
    let plugins: Vec<Value> = BAD.iter().map(|(does, _)| misbehaving(does)).collect();
    machineless::make(bed, "three", SERVER, json!({"cloudProvider": {"none": {}}, "plugins": plugins}))
        .await?;
    bed.wait_for("each to be told by its reason", MOMENT, async || {
        let object = bed.kubectl_json(&["get", "clusterplugin", "three"]).await?;
        let all = object["status"]["plugins"].as_array().context("no add-ons")?;
        for (does, expected) in BAD {
            let plugin = all.iter().find(|it| it["name"] == does).context("an add-on is missing")?;
            let said = plugin["waitingFor"].as_str().unwrap_or_default();
            ensure!(plugin["phase"] == "Failed" && said.contains(expected), "{plugin}");
        }
        Ok(())
    })
    .await?;
    // They are looked at again and again.
    for _ in 0..10 {
        touch(bed, "three").await?;
    }
    bed.kubectl(&["delete", "configmap", "good", "--wait"]).await?;
    touch(bed, "two").await?;
    bed.wait_for("the good one to be repaired", MOMENT, async || {
        bed.kubectl(&["get", "configmap", "good"]).await.map(drop)
    })
    .await?;
    bed.wait_for("what fails again and again to rest", MOMENT, async || {
        touch(bed, "three").await?;
        let object = bed.kubectl_json(&["get", "clusterplugin", "three"]).await?;
        let text = object["status"]["plugins"].to_string();
        ensure!(text.contains("times in a row; it is asked again in"), "{text}");
        Ok(())
    })
    .await
}

fn misbehaving(does: &str) -> Value {
    let needs = json!([{"key": "more", "query": {"kind": "k8s.apis/v1"}}]);
    json!({"name": does, "module": "good", "stage": "Initialized", "config": {"does": does, "needs": needs}})
}

/// Components that cannot be used, each with its reason.
async fn no_components(bed: &Bed) -> Result<()> {
    let contract = scripted_with(&[("cluster-plugin/planner@0.1.0", "cluster-plugin/planner@0.2.0")]);
    let imports = scripted_with(&[("kurator:cluster-plugin/log@0.1.0", "wasi:filesystem/preopensab@0.2.0")]);
    // What is no text, or kubectl would put it elsewhere in the ConfigMap.
    let core = b"\0asm\x01\0\0\0\xff".to_vec();
    let cases = [
        (
            "truncated",
            SCRIPTED[..SCRIPTED.len() / 2].to_vec(),
            "InvalidComponent",
            "not a valid WebAssembly component",
        ),
        ("core", core, "InvalidComponent", ""),
        ("contract", contract, "ContractUnsupported", "kurator:cluster-plugin/planner@0.2.0"),
        ("imports", imports, "ImportsRefused", "wasi:filesystem/preopensab@0.2.0"),
    ];
    for (name, component, reason, text) in cases {
        let module = Module::new(name, &component);
        module.register(bed).await?;
        let said = module.condition(bed, reason).await.with_context(|| name.to_owned())?;
        ensure!(said.contains(text), "{name}: {said}");
    }
    Ok(())
}

/// Narrows a built-in plugin by an object of its name, and lets it have its own again.
pub async fn built_in_plugins_are_narrowed(bed: &Bed) -> Result<()> {
    let object = json!({"apiVersion": "cluster.kurator.dev/v1alpha1", "kind": "PluginModule",
        "metadata": {"name": "calico"}, "spec": {"allowedNamespaces": {}, "grants": {"steps": ["k8s.apply/v1"]}}});
    bed.apply(&object.to_string()).await?;
    let spec = json!({"cloudProvider": {"none": {}}, "networking": {"calico": {}}});
    machineless::make(bed, "four", SERVER, spec).await?;
    let said = async || {
        let object = bed.kubectl_json(&["get", "clusterplugin", "four"]).await?;
        Ok::<_, anyhow::Error>(condition_text(&object, "NetworkingReady"))
    };
    bed.wait_for("the narrowed plugin to be denied", MOMENT, async || {
        let said = said().await?;
        ensure!(said.starts_with("PlanDenied: ") && said.contains("grants.securityGroupRules: "), "{said}");
        Ok(())
    })
    .await?;
    bed.kubectl(&["delete", "pluginmodule", "calico", "--wait"]).await?;
    bed.wait_for("the plugin to have its own grants", MOMENT, async || {
        let said = said().await?;
        ensure!(said.contains("tigera-operator"), "{said}");
        Ok(())
    })
    .await
}
