//! Every field of every kind that is judged has a verdict, as the pinned OpenAPI of Kubernetes has them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::{
    admissionregistration::v1 as admission, apps::v1 as apps, batch::v1 as batch, core::v1 as core,
    networking::v1 as networking, rbac::v1 as rbac, storage::v1 as storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions;
use k8s_openapi::schemars::SchemaGenerator;

use super::super::tables::{self, FieldVerdict, KindVerdict, Verdict};
use super::*;

/// Types by their short names: what fields they have, and of which type each is.
fn schemas() -> BTreeMap<String, BTreeMap<String, Option<String>>> {
    let mut generator = SchemaGenerator::default();
    macro_rules! all {
        ($($kind:ty,)*) => { $(drop(generator.subschema_for::<$kind>());)* };
    }
    all!(
        core::ConfigMap,
        core::Namespace,
        core::PersistentVolumeClaim,
        core::Pod,
        core::PodTemplate,
        core::ReplicationController,
        core::Secret,
        core::Service,
        core::ServiceAccount,
        apps::DaemonSet,
        apps::Deployment,
        apps::ReplicaSet,
        apps::StatefulSet,
        batch::CronJob,
        batch::Job,
        rbac::ClusterRole,
        rbac::ClusterRoleBinding,
        rbac::Role,
        rbac::RoleBinding,
        storage::CSIDriver,
        storage::StorageClass,
        networking::IngressClass,
        admission::MutatingWebhookConfiguration,
        admission::ValidatingWebhookConfiguration,
        extensions::CustomResourceDefinition,
    );
    let short = |name: &str| name.rsplit(['.', '/']).next().unwrap_or(name).to_owned();
    let mut res: BTreeMap<String, BTreeMap<String, Option<String>>> = BTreeMap::new();
    for (name, schema) in generator.definitions() {
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        let of = |schema: &Value| type_of(schema).map(|it| short(&it));
        let fields = properties.iter().map(|(field, schema)| (field.clone(), of(schema)));
        let fields: BTreeMap<_, _> = fields.collect();
        let known = res.insert(short(name), fields.clone());
        assert!(known.is_none_or(|it| it == fields), "{name} has the short name of another type");
    }
    res
}

/// The type that a field, its items or its values refer to.
fn type_of(schema: &Value) -> Option<String> {
    let inner = || type_of(schema.get("items").or_else(|| schema.get("additionalProperties"))?);
    schema.get("$ref").and_then(Value::as_str).map(str::to_owned).or_else(inner)
}

/// Types that are values: they have no fields.
const VALUES: [&str; 3] = ["IntOrString", "Quantity", "Time"];

#[test]
fn every_field_has_a_verdict_and_every_verdict_a_field() {
    let schemas = schemas();
    let mut kinds: BTreeSet<String> = BTreeSet::new();
    for (name, text) in tables::lines(tables::KINDS_TEXT) {
        match tables::kind_verdict(text) {
            Some(KindVerdict::See(of)) => drop(kinds.insert(of.to_owned())),
            Some(_) => (),
            None => panic!("{name}: no verdict is called {text:?}"),
        }
    }
    let mut verdicts: BTreeMap<String, FieldVerdict> = BTreeMap::new();
    for (name, text) in tables::lines(tables::FIELDS_TEXT) {
        let verdict = tables::field_verdict(text);
        let verdict = verdict.unwrap_or_else(|| panic!("{name}: no verdict is called {text:?}"));
        assert!(verdicts.insert(name.to_owned(), verdict).is_none(), "{name} has two verdicts");
    }
    let mut to_do: Vec<String> = kinds.into_iter().chain(["PodSpec".to_owned()]).collect();
    let mut seen = BTreeSet::new();
    while let Some(of) = to_do.pop() {
        if !seen.insert(of.clone()) {
            continue;
        }
        for (field, inner) in schemas.get(&of).unwrap_or_else(|| panic!("no schema of {of}")) {
            let verdict = verdicts.remove(&format!("{of}.{field}"));
            let verdict = verdict.unwrap_or_else(|| panic!("{of}.{field} has no verdict"));
            let inner = inner.clone().filter(|it| !VALUES.contains(&it.as_str()));
            match (verdict, inner) {
                (FieldVerdict { see: Some(see), .. }, Some(inner)) if see == inner => to_do.push(inner),
                (FieldVerdict { see: Some(see), .. }, inner) => {
                    panic!("{of}.{field} is {inner:?}, not {see}")
                }
                (FieldVerdict { verdict: Verdict::HarmlessWhole, .. }, None) => {
                    panic!("{of}.{field} has nothing in it")
                }
                (FieldVerdict { verdict: Verdict::HarmlessWhole | Verdict::Never, .. }, _) => (),
                (_, Some(inner)) => panic!("{of}.{field}: {inner} has to be judged field by field"),
                _ => (),
            }
        }
    }
    assert!(verdicts.is_empty(), "verdicts on no field: {:?}", verdicts.keys().collect::<Vec<_>>());
}

#[test]
fn nothing_in_a_pod_is_harmless_as_a_whole() {
    let mut to_do = vec!["PodSpec"];
    let mut seen = BTreeSet::new();
    while let Some(of) = to_do.pop() {
        for (name, text) in tables::lines(tables::FIELDS_TEXT) {
            let Some((_, field)) = name.split_once('.').filter(|(type_name, _)| *type_name == of) else {
                continue;
            };
            let verdict = tables::field_verdict(text).expect("a verdict");
            // Metadata of claims is that of any object.
            if verdict.see.is_some_and(|it| seen.insert(it)) {
                to_do.extend(verdict.see);
            }
            assert_ne!(verdict.verdict, Verdict::HarmlessWhole, "{of}.{field}");
        }
    }
}
