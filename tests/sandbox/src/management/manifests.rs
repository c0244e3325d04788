//! Reads manifests and turns them into what a cluster without nodes can use.

use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Kubectl;

/// Kinds that need something this cluster does not have: nodes, or cert-manager.
const LEFT_OUT: [&str; 5] = ["Deployment", "Certificate", "Issuer", "ServiceMonitor", "PodMonitor"];

/// All documents of a YAML text.
pub fn parse(text: &str) -> Result<Vec<Value>> {
    // Definitions of custom resources are larger than the parser's default budget for untrusted input.
    let options = serde_saphyr::options! { budget: None };
    serde_saphyr::from_multiple_with_options(text, options).context("parsing YAML")
}

/// What `deploy/` installs in a cluster, this project's custom resources included.
pub async fn deployed(kubectl: &Kubectl, directory: &Path) -> Result<Vec<Value>> {
    let directory = directory.display().to_string();
    let text = kubectl.run(&["kustomize", "--load-restrictor", "LoadRestrictionsNone", &directory]).await?;
    Ok(without_workloads(parse(&text)?))
}

/// Leaves out what cannot run here.
pub fn without_workloads(mut objects: Vec<Value>) -> Vec<Value> {
    objects.retain(|object| !LEFT_OUT.iter().any(|kind| object["kind"] == *kind));
    objects
}

/// Splits objects into those that others need first (Namespaces and definitions), and the rest.
pub fn in_order(objects: Vec<Value>) -> (Vec<Value>, Vec<Value>) {
    objects
        .into_iter()
        .partition(|object| object["kind"] == "Namespace" || object["kind"] == "CustomResourceDefinition")
}

/// Puts the default in place of every `${VARIABLE:=default}`, as clusterctl does for a variable that nobody
/// sets.
pub fn with_defaults(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        result.push_str(before);
        let Some(end) = from.find('}') else {
            rest = from;
            break;
        };
        let expression = &from[2..end];
        let default = expression
            .split_once(":=")
            .or_else(|| expression.split_once(":-"))
            .or_else(|| expression.split_once('='));
        result.push_str(default.map_or("", |(_, default)| default));
        rest = &from[end + 1..];
    }
    result.push_str(rest);
    result
}

/// Makes every webhook of an object, admission and conversion alike, point to a port of this machine instead
/// of a Service, since the server behind it is a process here.
pub fn point_webhooks_at(object: &mut Value, port: u16, authority: &str) {
    if let Some(webhooks) = object.get_mut("webhooks").and_then(Value::as_array_mut) {
        for webhook in webhooks {
            point_at(&mut webhook["clientConfig"], port, authority);
        }
    }
    if let Some(config) = object.pointer_mut("/spec/conversion/webhook/clientConfig") {
        point_at(config, port, authority);
    }
}

fn point_at(config: &mut Value, port: u16, authority: &str) {
    let path = config["service"]["path"].as_str().unwrap_or("/").to_owned();
    *config =
        json!({ "url": format!("https://127.0.0.1:{port}{path}"), "caBundle": STANDARD.encode(authority) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_nobody_sets_take_their_defaults() {
        let text = "--v=${LEVEL:=2} --gates=A=${A:=true},B=${B:=false} ${NONE}end";
        assert_eq!(with_defaults(text), "--v=2 --gates=A=true,B=false end");
    }

    #[test]
    fn webhooks_keep_their_path_and_lose_their_service() {
        let service = json!({ "service": { "name": "s", "namespace": "n", "path": "/convert" } });
        let mut object = json!({
            "webhooks": [{ "clientConfig": service }],
            "spec": { "conversion": { "webhook": { "clientConfig": service } } },
        });
        point_webhooks_at(&mut object, 9443, "CA");
        let expected = json!({ "url": "https://127.0.0.1:9443/convert", "caBundle": "Q0E=" });
        assert_eq!(object["webhooks"][0]["clientConfig"], expected);
        assert_eq!(object["spec"]["conversion"]["webhook"]["clientConfig"], expected);
    }

    #[test]
    fn what_needs_nodes_or_cert_manager_is_left_out() {
        let objects =
            parse("kind: Deployment\n---\nkind: Issuer\n---\nkind: Service\n").expect("three documents");
        let kept = without_workloads(objects);
        assert_eq!(kept, vec![json!({ "kind": "Service" })]);
    }
}
