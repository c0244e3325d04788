//! A plugin for tests whose configuration says what it answers: objects to apply, whole steps, questions, or
//! something that no plugin should do.

use std::collections::BTreeMap;

use plugin_sdk::{Descriptor, Diagnostic, Need, Plan, Plugin, Request, Requires, Severity, Step, Stop};
use serde::Deserialize;
use serde_json::{Value, json};

/// What it answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Objects that it applies, in one step, and deletes in the opposite order.
    #[serde(default)]
    objects: Vec<Value>,
    /// Further steps, as they are.
    #[serde(default)]
    steps: Vec<ScriptedStep>,
    /// Steps of the removal in place of those that delete the objects.
    removal: Option<Vec<ScriptedStep>>,
    /// Questions, asked until their keys are among the facts. With `endless` they never are.
    #[serde(default)]
    needs: Vec<ScriptedNeed>,
    /// A fact whose value becomes a ConfigMap of this name in `default`, with the value as text.
    #[serde(default)]
    shows: Vec<Shown>,
    /// What no plugin should do, and where: `trap-in-plan`, `trap-in-validate`, `loop`, `grow`, `endless`, `log`.
    does: Option<String>,
    /// What it waits for.
    pending: Option<String>,
    /// What is wrong with the configuration, at `/wrong`.
    wrong: Option<String>,
    /// What it tells of what it installed.
    #[serde(default)]
    outputs: BTreeMap<String, String>,
    /// What it warns of.
    warning: Option<String>,
}

/// A step as it is.
#[derive(Deserialize)]
pub struct ScriptedStep {
    id: String,
    kind: String,
    spec: Value,
    #[serde(default)]
    after: Vec<String>,
}

/// A question as it is.
#[derive(Deserialize)]
pub struct ScriptedNeed {
    key: String,
    query: Value,
}

/// A fact that is shown.
#[derive(Deserialize)]
pub struct Shown {
    fact: String,
    #[serde(rename = "configMap")]
    config_map: String,
}

impl ScriptedStep {
    fn step(&self) -> Step {
        // The instance ends with the call.
        let kind = Box::leak(self.kind.clone().into_boxed_str());
        Step { id: self.id.clone(), kind, spec: self.spec.clone(), after: self.after.clone() }
    }
}

/// The plugin.
pub struct Scripted;

impl Plugin for Scripted {
    type Config = Config;

    fn describe() -> Descriptor {
        Descriptor {
            name: "scripted",
            version: "1.0.0",
            category: "other",
            config_schema: r#"{"type": "object", "properties": {"objects": {"type": "array"}, "replicas": {"type": "integer", "minimum": 0}}}"#,
            steps: &["k8s.apply/v1", "k8s.wait/v1", "k8s.delete/v1"],
            facts: &["kubernetes-version"],
            requires: Requires::default(),
        }
    }

    fn validate(request: &Request<Config>) -> Vec<Diagnostic> {
        let config = &request.config;
        assert!(config.does.as_deref() != Some("trap-in-validate"), "it traps in validate");
        config.wrong.iter().map(|message| Diagnostic::error("Wrong", "/wrong", message.clone())).collect()
    }

    fn plan(request: &Request<Config>) -> Result<Plan, Stop> {
        let config = &request.config;
        match config.does.as_deref() {
            Some("trap-in-plan") => panic!("it traps in plan"),
            Some("loop") => loop {
                std::hint::spin_loop();
            },
            Some("grow") => {
                let mut all: Vec<Vec<u8>> = Vec::new();
                loop {
                    all.push(vec![1; 1 << 20]);
                }
            }
            Some("log") => loop {
                plugin_sdk::log(plugin_sdk::Level::Info, "it talks");
            },
            _ => (),
        }
        let known = |key: &str| request.facts.iter().any(|it| it.key == key);
        let is_endless = config.does.as_deref() == Some("endless");
        let asked: Vec<Need> = config
            .needs
            .iter()
            .enumerate()
            .filter(|(_, it)| is_endless || !known(&it.key))
            .map(|(place, it)| {
                let round = request.facts.len() + place;
                let key = if is_endless { format!("{}-{round}", it.key) } else { it.key.clone() };
                Need { key, query: it.query.clone() }
            })
            .collect();
        if !asked.is_empty() {
            return Err(Stop::Needs(asked));
        }
        if let Some(what) = &config.pending {
            let severity = Severity::Info;
            let (code, path) = ("Waits".to_owned(), String::new());
            return Err(Stop::Pending(vec![Diagnostic { severity, code, path, message: what.clone() }]));
        }
        let mut objects = config.objects.clone();
        objects.extend(config.shows.iter().map(|shown| {
            let found = request.facts.iter().find(|it| it.key == shown.fact);
            let text = found.map_or("none".to_owned(), |it| format!("{:?}", it.value));
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": text},
                "metadata": {"name": shown.config_map, "namespace": "default"}})
        }));
        let mut steps = Vec::new();
        if !objects.is_empty() {
            let spec = json!({"objects": objects});
            steps.push(Step { id: "objects".into(), kind: "k8s.apply/v1", spec, after: Vec::new() });
        }
        steps.extend(config.steps.iter().map(ScriptedStep::step));
        let removal = match &config.removal {
            Some(removal) => removal.iter().map(ScriptedStep::step).collect(),
            None => objects.iter().rev().enumerate().map(|(place, it)| delete(place, it)).collect(),
        };
        let warnings = config.warning.iter().map(|it| Diagnostic::warning("Warned", "", it.clone()));
        let outputs = config.outputs.clone().into_iter().collect();
        Ok(Plan { steps, removal, diagnostics: warnings.collect(), outputs })
    }
}

fn delete(place: usize, object: &Value) -> Step {
    let mut spec = json!({"apiVersion": object["apiVersion"], "kind": object["kind"],
        "name": object["metadata"]["name"], "wait": true});
    if object["metadata"]["namespace"].is_string() {
        spec["namespace"] = object["metadata"]["namespace"].clone();
    }
    Step { id: format!("delete-{place}"), kind: "k8s.delete/v1", spec, after: Vec::new() }
}

plugin_sdk::export!(crate::Scripted);
