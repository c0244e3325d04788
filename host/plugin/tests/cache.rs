//! The cache of compiled components: used when it is whole, and never in the way when it is not.

mod common;

use common::request;
use plugin::{Engine, Limits, built_in};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cache-{name}-{}", std::process::id()));
    drop(fs::remove_dir_all(&folder));
    folder
}

/// Loads a plugin and asks it, with a cache in this folder. Tells how many components were compiled.
fn works(folder: &Path) -> usize {
    let engine = Engine::new(Limits::default(), Some(folder)).expect("this machine can run Wasm");
    let plugin = engine.load(built_in()[0].name, built_in()[0].bytes).expect("it loads");
    assert!(plugin.plan(&request(json!({}))).expect("it answers").value.is_ok());
    engine.compiled()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}

#[test]
fn the_second_start_compiles_nothing() {
    let folder = folder("second-start");
    let start = || {
        let engine = Engine::new(Limits::default(), Some(&folder)).expect("this machine can run Wasm");
        for plugin in built_in() {
            engine.load(plugin.name, plugin.bytes).expect("it loads");
        }
        engine.compiled()
    };
    assert_eq!([start(), start()], [built_in().len(), 0]);
    fs::remove_dir_all(folder).expect("it goes away");
}

#[test]
fn what_was_compiled_is_stored_and_used() {
    let folder = folder("stored");
    assert_eq!(works(&folder), 1);
    let [file] = files(&folder).try_into().expect("one file per component");
    let state = || fs::metadata(&file).map(|file| (file.ino(), file.modified().ok())).expect("it is there");
    let before = state();
    assert_eq!(works(&folder), 0);
    let after = state();
    assert_eq!(after.0, before.0, "it was written again");
    assert!(after.1 > before.1, "it does not count as used");
    fs::remove_dir_all(folder).expect("it goes away");
}

#[test]
fn a_damaged_file_is_replaced() {
    let folder = folder("damaged");
    works(&folder);
    let [file] = files(&folder).try_into().expect("one file per component");
    let whole = fs::read(&file).expect("it is there");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [&flipped[..], &whole[..whole.len() / 2], b""] {
        fs::write(&file, damaged).expect("it can be damaged");
        assert_eq!(works(&folder), 1);
        assert_eq!(fs::read(&file).expect("it is there").len(), whole.len());
    }
    fs::remove_dir_all(folder).expect("it goes away");
}

#[test]
fn a_folder_that_others_can_write_to_is_not_used() {
    let folder = folder("shared");
    fs::create_dir_all(&folder).expect("it can be made");
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("it can be opened");
    works(&folder);
    assert_eq!(files(&folder), Vec::<PathBuf>::new());
    fs::remove_dir_all(folder).expect("it goes away");
}

#[test]
fn a_folder_that_cannot_be_made_is_no_error() {
    works(Path::new("/proc/nowhere"));
}
