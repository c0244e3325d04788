//! Plugins for tests, written as text: components that stand in the place of a built-in one.

use std::path::PathBuf;

use crds::cluster_api::Cluster;
use serde_json::{Value, json};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

use super::Plugins;
use crate::controller::addon::facts::{ClusterFacts, RequestedFacts};
use crate::controller::addon::queries::Queries;
use crate::metrics::PluginCalls;

/// The built-in plugin whose place a guest takes.
pub const PLACE: &str = "aws-ebs-csi";

/// Where the texts of a guest are in its memory.
const TEXTS: usize = 1024;

/// A guest whose functions answer with the address of what they made. Each of them may use `$facts`, the number
/// of facts in its request, `$operation`, and the functions that make answers at address 0.
const GUEST: &str = r#"(module
  (memory (export "memory") 8)
  (global $next (mut i32) (i32.const 131072))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
    (global.set $next (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func $text (param $at i32) (param $text i32) (param $length i32)
    (i32.store (local.get $at) (local.get $text))
    (i32.store offset=4 (local.get $at) (local.get $length)))
  DATA
  (func $complete (result i32)
    (call $text (i32.const 16) (i32.const 256) (i32.const REMOVALS))
    (call $text (i32.const 32) EXTRA) (i32.const 0))
  (func $needs (param $key i32) (result i32)
    (i32.store8 (i32.const KEY_AT) (i32.add (i32.const 97) (local.get $key)))
    (call $text (i32.const 64) KEY)
    (call $text (i32.const 72) QUERY)
    (i32.store8 (i32.const 4) (i32.const 1))
    (i32.store (i32.const 8) (i32.const 64))
    (i32.store (i32.const 12) (i32.const 1)) (i32.const 0))
  (func $steps
    (call $text (i32.const 256) ID) (call $text (i32.const 264) KIND) (call $text (i32.const 272) SPEC))
  (func (export "kurator:cluster-plugin/planner@0.1.0#describe") (result i32)
    (call $text (i32.const 0) NAME) (call $text (i32.const 8) VERSION) (call $text (i32.const 16) CATEGORY)
    (call $text (i32.const 24) SCHEMA) (call $text (i32.const 32) REQUIRES) (call $text (i32.const 40) EMPTY)
    (i32.const 0))
  (func (export "kurator:cluster-plugin/planner@0.1.0#validate") (param $request i32) (result i32)
    (i32.store8 (i32.const 128) (i32.const 2))
    (call $text (i32.const 132) CODE) (call $text (i32.const 140) PATH) (call $text (i32.const 148) MESSAGE)
    (i32.store (i32.const 0) (i32.const 128))
    (i32.store (i32.const 4) VALIDATE)
    (i32.const 0))
  (func (export "kurator:cluster-plugin/planner@0.1.0#plan") (param $request i32) (result i32)
    (local $facts i32) (local $operation i32)
    (local.set $facts (i32.load offset=56 (local.get $request)))
    (local.set $operation (i32.load8_u (local.get $request)))
    (call $steps)
    PLAN))"#;

/// What a guest of a test does.
pub struct Guest<'a> {
    /// JSON Schema of its configuration.
    pub schema: Value,
    /// How many errors `validate` answers: an expression, such as `(i32.const 0)`.
    pub validate: &'a str,
    /// What `plan` answers: an expression.
    pub plan: &'a str,
    /// What it asks for, under a key that ends in a letter for the argument of `$needs`.
    pub query: Value,
    /// The removal of its plan, if it has one: a step's kind and spec.
    pub removal: Option<(&'a str, Value)>,
}

impl Default for Guest<'_> {
    fn default() -> Self {
        Guest {
            schema: json!({}),
            validate: "(i32.const 0)",
            plan: "(call $complete)",
            query: json!({"kind": "k8s.nodes/v1", "spec": {}}),
            removal: None,
        }
    }
}

impl Guest<'_> {
    fn component(&self) -> Vec<u8> {
        let (kind, spec) = self.removal.clone().unwrap_or_default();
        let texts = [
            ("KEY", "answer-a".to_owned()),
            ("QUERY", self.query.to_string()),
            ("NAME", PLACE.to_owned()),
            ("VERSION", "1.0.0".to_owned()),
            ("CATEGORY", "storage".to_owned()),
            ("SCHEMA", self.schema.to_string()),
            ("REQUIRES", "{}".to_owned()),
            ("EMPTY", "{}".to_owned()),
            ("EXTRA", json!({"outputs": {"endpoint": "https://example.com"}}).to_string()),
            ("CODE", "TooMany".to_owned()),
            ("PATH", "/replicas".to_owned()),
            ("MESSAGE", "that is too many".to_owned()),
            ("ID", "gone".to_owned()),
            ("KIND", kind.to_owned()),
            ("SPEC", spec.to_string()),
        ];
        let mut guest = GUEST
            .replace("REMOVALS", if self.removal.is_some() { "1" } else { "0" })
            .replace("VALIDATE", self.validate)
            .replace("PLAN", self.plan);
        let (mut data, mut at) = (String::new(), TEXTS);
        for (name, text) in &texts {
            let bytes: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
            data += &format!("(data (i32.const {at}) \"{bytes}\")\n");
            if *name == "KEY" {
                guest = guest.replace("KEY_AT", &(at + text.len() - 1).to_string());
            }
            for end in [")", " "] {
                let place = format!("(i32.const {at}) (i32.const {}){end}", text.len());
                guest = guest.replace(&format!(" {name}{end}"), &format!(" {place}"));
            }
            at += text.len();
        }
        encode(&guest.replace("DATA", &data))
    }
}

/// A component of the contract's world.
fn encode(text: &str) -> Vec<u8> {
    let mut resolve = wit_parser::Resolve::default();
    let wit = include_str!("../../../../../wit/cluster-plugin.wit");
    let package = resolve.push_str("contract.wit", wit).expect("the WIT is valid");
    let world = resolve.select_world(&[package], Some("plugin")).expect("the world is there");
    let mut module = wat::parse_str(text).expect("the guest is valid");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("it is of the world");
    let encoder = ComponentEncoder::default().module(&module);
    encoder.and_then(|it| it.validate(true).encode()).expect("the guest is a component")
}

/// The built-in plugins, with this guest in the place of one.
pub fn plugins(guest: &Guest<'_>) -> Plugins {
    let directory: PathBuf = std::env::temp_dir().join(format!("guest-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir_all(&directory).expect("a directory");
    for built_in in plugin::built_in() {
        let guest = (built_in.name == PLACE).then(|| guest.component());
        let file = directory.join(built_in.name).with_extension("wasm");
        std::fs::write(file, guest.as_deref().unwrap_or(built_in.bytes)).expect("it is written");
    }
    let plugins = Plugins::load(PluginCalls::default(), Some(&directory), None).expect("they are read");
    std::fs::remove_dir_all(&directory).expect("it is removed");
    plugins
}

/// The add-on whose place the guest takes, with this configuration.
pub fn desired(config: Value) -> addons::DesiredAddOn {
    let spec = json!({"clusterName": "one", "cloudProvider": {"none": {}}, "storage": {"ebs": {}}});
    let desired = addons::desired(&serde_json::from_value(spec).expect("a spec")).remove(0);
    addons::DesiredAddOn { config, ..desired }
}

/// A Cluster of which little is known.
pub fn cluster() -> Cluster {
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "one", "namespace": "default"}, "spec": {}});
    serde_json::from_value(cluster).expect("a Cluster")
}

/// What is known of it.
pub fn facts(cluster: &Cluster) -> ClusterFacts<'_> {
    ClusterFacts {
        cluster,
        control_plane: None,
        aws_cluster: None,
        requested: RequestedFacts::new(),
        profiles: Err("no matter".into()),
        queries: Queries::unanswered("nobody is asked"),
    }
}
