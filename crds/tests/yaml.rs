//! The committed CustomResourceDefinitions are what the crate prints. `UPDATE=1` writes them instead of comparing.

use std::path::Path;

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
fn every_definition_is_one_for_kubernetes() {
    let definitions = crds::definitions().expect("definitions are typed");
    let kinds: Vec<&str> = definitions.iter().map(|definition| definition.spec.names.kind.as_str()).collect();
    assert_eq!(kinds, ["AWSCluster", "AWSClusterTemplate", "AWSMachine", "AWSMachineTemplate", "ClusterPlugin"]);
}
