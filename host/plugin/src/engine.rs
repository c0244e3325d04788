//! One compiler and linker for all plugins, set as strictly as plugins allow: no threads, no 64-bit memories,
//! no garbage collection, no exceptions, no concurrency, nothing whose result may differ between machines.

use crate::bindings::{Plugin as World, PluginPre};
use crate::cache::Cache;
use crate::clock;
use crate::error::PluginError;
use crate::guest::Guest;
use crate::limits::Limits;
use crate::plugin::Plugin;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use wasmtime::Config;
use wasmtime::component::{Component, HasSelf, Linker};

/// Bytes of stack that a plugin has.
const STACK: usize = 512 << 10;
/// What the names of the contract's interfaces begin with.
const PACKAGE: &str = "kurator:cluster-plugin/";

/// Loads plugins. Cheap to clone; one is enough for a process.
#[derive(Clone)]
pub struct Engine {
    wasm: wasmtime::Engine,
    linker: Arc<Linker<Guest>>,
    limits: Limits,
    cache: Option<Cache>,
    compiled: Arc<AtomicUsize>,
    calls: Arc<Semaphore>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("limits", &self.limits)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine that stores what it compiled in the folder `cache`, when given.
    ///
    /// # Errors
    /// [`PluginError::Host`] when this machine cannot run compiled code, or not one thread more.
    pub fn new(limits: Limits, cache: Option<&Path>) -> Result<Engine, PluginError> {
        let wasm = wasmtime::Engine::new(&strict()).map_err(host)?;
        clock::start(&wasm, limits.time).map_err(|error| PluginError::Host { detail: error.to_string() })?;
        let mut linker = Linker::new(&wasm);
        World::add_to_linker::<Guest, HasSelf<Guest>>(&mut linker, |guest| guest).map_err(host)?;
        Ok(Engine {
            wasm,
            linker: Arc::new(linker),
            limits,
            cache: cache.and_then(Cache::open),
            compiled: Arc::default(),
            calls: Arc::new(Semaphore::new(limits.calls.max(1))),
        })
    }

    /// Compiles a component, or takes it from the cache, and checks what it imports and exports. Nothing of
    /// it runs. Takes about 0.2 s for a component of 100 KB; call it where blocking is allowed, or use
    /// [`Engine::load_async`]. Compiling happens in this process, whatever the size.
    ///
    /// # Errors
    /// The component is too large or malformed, imports more than a log, or does not speak the contract.
    pub fn load(&self, name: &str, bytes: &[u8]) -> Result<Plugin, PluginError> {
        if bytes.len() > self.limits.component {
            return Err(PluginError::ComponentTooLarge { size: bytes.len(), limit: self.limits.component });
        }
        let digest = digest(bytes);
        let component = self.component(&digest, bytes)?;
        self.check(&component)?;
        let pre = self
            .linker
            .instantiate_pre(&component)
            .and_then(PluginPre::new)
            .map_err(|error| PluginError::Contract { detail: format!("{error:#}") })?;
        Ok(Plugin::new(name, digest, pre, self.limits, self.calls.clone()))
    }

    /// [`Engine::load`] on a thread where blocking is allowed.
    ///
    /// # Errors
    /// Those of [`Engine::load`].
    pub async fn load_async(&self, name: &str, bytes: Arc<[u8]>) -> Result<Plugin, PluginError> {
        let (engine, name) = (self.clone(), name.to_owned());
        tokio::task::spawn_blocking(move || engine.load(&name, &bytes))
            .await
            .map_err(|error| PluginError::Host { detail: error.to_string() })?
    }

    /// How many components it compiled; those that the cache had are not among them.
    pub fn compiled(&self) -> usize {
        self.compiled.load(Ordering::Relaxed)
    }

    fn component(&self, digest: &str, bytes: &[u8]) -> Result<Component, PluginError> {
        if let Some(component) = self.cache.as_ref().and_then(|cache| cache.read(&self.wasm, digest)) {
            return Ok(component);
        }
        let component = Component::from_binary(&self.wasm, bytes)
            .map_err(|error| PluginError::InvalidComponent { detail: format!("{error:#}") })?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        if let Some(cache) = &self.cache {
            cache.write(&self.wasm, digest, &component);
        }
        Ok(component)
    }

    fn check(&self, component: &Component) -> Result<(), PluginError> {
        let kind = component.component_type();
        let (known, foreign): (Vec<String>, Vec<String>) = kind
            .imports(&self.wasm)
            .map(|(name, _)| name.to_owned())
            .partition(|name| name.starts_with(PACKAGE));
        if !foreign.is_empty() {
            return Err(PluginError::ImportsRefused { imports: foreign });
        }
        let exports = kind.exports(&self.wasm).map(|(name, _)| name.to_owned());
        let other = known
            .into_iter()
            .chain(exports.filter(|name| name.starts_with(PACKAGE)))
            .find(|name| !is_ours(name));
        match other {
            Some(name) => Err(PluginError::Contract { detail: format!("it has {name}") }),
            None => Ok(()),
        }
    }
}

/// Whether an interface of the package is of our line, 0.1.
fn is_ours(name: &str) -> bool {
    name.split_once('@').is_some_and(|(_, version)| version.starts_with("0.1."))
}

fn strict() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(STACK)
        .cranelift_nan_canonicalization(true)
        .concurrency_support(false)
        .gc_support(false)
        .wasm_component_model(true)
        .wasm_memory64(false)
        .wasm_relaxed_simd(false)
        .wasm_backtrace_max_frames(None);
    // Threads, garbage collection and exceptions are not even compiled in.
    config
}

fn host(error: wasmtime::Error) -> PluginError {
    PluginError::Host { detail: format!("{error:#}") }
}

/// `sha256:` and the hash in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hash}")
}
