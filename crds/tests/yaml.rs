//! The committed CustomResourceDefinitions and the page of conditions are what the crate prints. `UPDATE=1`
//! writes them instead of comparing.

use std::path::Path;

use serde_json::Value;

#[test]
fn the_committed_definitions_are_what_the_crate_prints() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("yaml");
    let printed = crds::yaml().expect("definitions print");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(&directory).expect("a directory");
        for (name, text) in &printed {
            std::fs::write(directory.join(name), text).expect("a file is written");
        }
    }
    let mut committed: Vec<String> = std::fs::read_dir(&directory)
        .expect("crds/yaml is there")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    committed.sort();
    let mut names: Vec<String> = printed.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    assert_eq!(committed, names, "crds/yaml holds other files than the crate prints");
    for (name, text) in printed {
        let stored = std::fs::read_to_string(directory.join(&name)).expect("a file reads");
        assert!(stored == text, "crds/yaml/{name} is stale: UPDATE=1 cargo test -p crds writes it anew");
    }
}

#[test]
fn the_page_of_conditions_is_what_the_crate_prints() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/conditions.md");
    let printed = crds::conditions::page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &printed).expect("the page is written");
    }
    let stored = std::fs::read_to_string(&file).expect("the page reads");
    assert!(stored == printed, "docs/conditions.md is stale: UPDATE=1 cargo test -p crds writes it anew");
}

#[test]
fn a_reason_is_written_as_kubernetes_asks_and_means_one_thing() {
    let mut seen = std::collections::BTreeSet::new();
    for (reason, doc) in crds::conditions::reason::ALL {
        assert!(seen.insert(reason), "{reason} is there twice");
        let is_camel_case = reason.starts_with(|it: char| it.is_ascii_uppercase())
            && reason.chars().all(|it| it.is_ascii_alphanumeric());
        assert!(is_camel_case && doc.trim().ends_with('.'), "{reason}: {doc}");
    }
}

#[test]
fn every_definition_is_one_for_kubernetes() {
    let definitions = crds::definitions().expect("definitions are typed");
    let kinds: Vec<&str> = definitions.iter().map(|definition| definition.spec.names.kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "AWSCluster",
            "AWSClusterControllerIdentity",
            "AWSClusterTemplate",
            "AWSMachine",
            "AWSMachineTemplate",
            "ClusterPlugin",
            "PluginModule"
        ]
    );
}

/// Paths of fields inside lists that get a default, which clients that apply whole lists see as a change of
/// somebody else's, for ever.
fn defaults_in_lists(schema: &Value, path: &str, in_list: bool, found: &mut Vec<String>) {
    if in_list && schema.get("default").is_some() {
        found.push(path.to_owned());
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        defaults_in_lists(field, &format!("{path}.{name}"), in_list, found);
    }
    if let Some(items) = schema.get("items") {
        defaults_in_lists(items, &format!("{path}[]"), true, found);
    }
}

#[test]
fn no_element_of_a_list_in_a_manifest_of_capa_gets_a_default() {
    let mut found = Vec::new();
    for definition in crds::definitions()
        .expect("definitions are typed")
        .into_iter()
        .filter(|it| it.spec.names.kind.starts_with("AWS"))
    {
        let definition = serde_json::to_value(definition).expect("a definition is JSON");
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        defaults_in_lists(schema, "spec", false, &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
}
