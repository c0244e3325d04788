//! The bindings generated from `wit/cluster-plugin.wit`. Nothing outside this crate sees them.
#![allow(missing_docs, clippy::all)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "plugin",
    imports: { default: trappable },
});
