//! What the tests of this crate share: an engine, requests, and components made from text.
#![allow(dead_code)]

pub mod foreign;
pub mod guest;
pub mod plans;

use contract::{
    CertificateSpec, EfsFileSystemSpec, FEATURES, Fact, FactValue, HostInfo, IamRoleSpec, Operation, Request,
};
use plugin::{Engine, Limits, Plugin, built_in};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

/// The contract.
pub const WIT: &str = include_str!("../../../../wit/cluster-plugin.wit");

/// What every guest written as text has around its exports: memory, and an allocator that never frees.
const GUEST: &str = r#"(module IMPORTS
  (memory (export "memory") 4)
  (global $next (mut i32) (i32.const 131072))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
    (global.set $next (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  EXPORTS)"#;

/// Exports that a guest has when it says nothing of its own; both trap.
const DESCRIBE: &str = r#"(func (export "PACKAGE/planner@VERSION#describe") (result i32) (unreachable))"#;
const VALIDATE: &str =
    r#"(func (export "PACKAGE/planner@VERSION#validate") (param i32) (result i32) (unreachable))"#;

/// A component of the world `plugin` in `wit` from a `plan` function in text form.
pub fn component(wit: &str, plan: &str) -> Vec<u8> {
    component_importing(wit, "", plan)
}

/// The same, with imports in text form, which a module has first.
pub fn component_importing(wit: &str, imports: &str, plan: &str) -> Vec<u8> {
    component_exporting(wit, imports, &[DESCRIBE, VALIDATE, plan].concat())
}

/// A component of the world `plugin` in `wit` from imports and all exports in text form.
pub fn component_exporting(wit: &str, imports: &str, exports: &str) -> Vec<u8> {
    let mut resolve = wit_parser::Resolve::default();
    let package = resolve.push_str("contract.wit", wit).expect("the WIT is valid");
    let world = resolve.select_world(&[package], Some("plugin")).expect("the world is there");
    let version =
        resolve.packages[package].name.version.as_ref().expect("the package has a version").to_string();
    let text = GUEST
        .replace("IMPORTS", imports)
        .replace("EXPORTS", exports)
        .replace("PACKAGE", "kurator:cluster-plugin")
        .replace("VERSION", &version);
    let mut module = wat::parse_str(text).expect("the guest is valid");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .expect("the guest is of the world");
    let encoder = ComponentEncoder::default();
    encoder
        .module(&module)
        .and_then(|encoder| encoder.validate(true).encode())
        .expect("the guest is a component")
}

/// Bytes that the component of a built-in plugin may have: 400 KB.
pub const LARGEST: usize = 400_000;

/// An engine with the limits of production, but for less fuel so that tests are quick.
pub fn engine() -> Engine {
    Engine::new(Limits { fuel: 500_000_000, ..Limits::default() }, None).expect("this machine can run Wasm")
}

/// A built-in plugin. Each is compiled once for all tests of a program.
pub fn load(name: &str) -> &'static Plugin {
    static LOADED: LazyLock<Mutex<BTreeMap<&'static str, &'static Plugin>>> = LazyLock::new(Mutex::default);
    let found = built_in().iter().find(|plugin| plugin.name == name).expect("it is built in");
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    loaded.entry(found.name).or_insert_with(|| {
        Box::leak(Box::new(engine().load(found.name, found.bytes).expect("it is a plugin")))
    })
}

/// Step kinds that not every host may carry out.
pub const OPTIONAL: [&str; 4] =
    [IamRoleSpec::KIND, IamRoleSpec::KIND_WITH_TAGS, EfsFileSystemSpec::KIND, CertificateSpec::KIND];

/// A request to install with this configuration, for a cluster as most are, by a host that carries out every
/// step kind.
pub fn request(config: Value) -> Request {
    let fact = |key: &str, value: Value| Fact { key: key.to_owned(), value: FactValue::Present(value) };
    Request {
        operation: Operation::Install,
        host: HostInfo { version: "0.1.0".to_owned(), features: features() },
        installed_version: None,
        previous_config: None,
        config,
        facts: vec![
            fact(
                "cluster",
                json!({
                    "name": "prod", "namespace": "default",
                    "podCIDRs": ["192.168.0.0/16"], "serviceCIDRs": ["10.96.0.0/12"],
                    "controlPlaneEndpoint": { "host": "prod-apiserver-1.elb.us-east-1.amazonaws.com", "port": 6443 },
                }),
            ),
            fact("kubernetes-version", json!("v1.36.3")),
            fact(
                "aws",
                json!({ "region": "us-east-1", "partition": "aws", "vpcId": "vpc-1", "zones": ["us-east-1a"], "tags": {} }),
            ),
            Fact { key: "installed".to_owned(), value: FactValue::Absent },
        ],
        extra: json!({}),
    }
}

fn features() -> Vec<String> {
    FEATURES.iter().map(|feature| (*feature).to_owned()).collect()
}

/// The same request from a host that does not carry out steps of this kind.
pub fn without_feature(mut request: Request, kind: &str) -> Request {
    request.host.features.retain(|feature| feature != kind);
    request
}

/// The same request with one more fact.
pub fn and_fact(mut request: Request, key: &str, value: FactValue) -> Request {
    request.facts.push(Fact { key: key.to_owned(), value });
    request
}

/// The same request with another value for a fact.
pub fn with_fact(mut request: Request, key: &str, value: FactValue) -> Request {
    request.facts.iter_mut().filter(|fact| fact.key == key).for_each(|fact| fact.value = value.clone());
    request
}
