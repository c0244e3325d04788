//! The bindings generated from `wit/cluster-plugin.wit`. Nothing outside this crate uses them by name.
#![allow(missing_docs)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "plugin",
    pub_export_macro: true,
    export_macro_name: "__export_component",
    default_bindings_module: "plugin_sdk::__bindings",
});
