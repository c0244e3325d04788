//! Lines in the host's log, and panics among them. Does nothing when the plugin runs as a plain library.

/// How much a line matters. The last line of level `Error` is shown to the user when the plugin traps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What only helps to find a defect.
    Debug,
    /// What is good to know.
    Info,
    /// What may be wrong, though a plan can be made.
    Warn,
    /// Why no plan can be made.
    Error,
}

/// Writes one line to the host's log.
#[cfg(target_arch = "wasm32")]
pub fn log(level: Level, message: &str) {
    use crate::bindings::kurator::cluster_plugin::log as host;
    let level = match level {
        Level::Debug => host::Level::Debug,
        Level::Info => host::Level::Info,
        Level::Warn => host::Level::Warn,
        Level::Error => host::Level::Error,
    };
    host::write(level, message);
}

/// Writes one line to the host's log; there is no host here.
#[cfg(not(target_arch = "wasm32"))]
pub fn log(_: Level, _: &str) {}

/// Makes a panic say its message and place in the host's log. Without it, all the host sees is a trap.
pub(crate) fn report_panics() {
    #[cfg(target_arch = "wasm32")]
    std::panic::set_hook(Box::new(|panic| log(Level::Error, &panic.to_string())));
}
