//! One linker and one cache for all plugins. Those that come with the host are compiled here; those from
//! outside by a [`Compiler`].

use crate::bindings::{Plugin as World, PluginPre};
use crate::cache::Cache;
use crate::clock;
use crate::compiled;
use crate::compiler::Compiler;
use crate::digest::digest;
use crate::error::PluginError;
use crate::guest::Guest;
use crate::limits::Limits;
use crate::magic;
use crate::plugin::Plugin;
use crate::settings::strict;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use wasmtime::component::{Component, HasSelf, Linker};

/// What the names of the contract's interfaces begin with.
const PACKAGE: &str = "kurator:cluster-plugin/";

/// Loads plugins. Cheap to clone; one is enough for a process.
#[derive(Clone)]
pub struct Engine {
    wasm: wasmtime::Engine,
    linker: Arc<Linker<Guest>>,
    limits: Limits,
    cache: Option<Cache>,
    compiler: Option<Compiler>,
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
            compiler: None,
            compiled: Arc::default(),
            calls: Arc::new(Semaphore::new(limits.calls.max(1))),
        })
    }

    /// The same engine, that loads components from outside with this compiler.
    #[must_use]
    pub fn with_compiler(mut self, compiler: Compiler) -> Engine {
        self.compiler = Some(compiler);
        self
    }

    /// Compiles a component that comes with the host, or takes it from the cache, and checks what it imports
    /// and exports. Nothing of it runs. Takes about 0.2 s for a component of 100 KB; call it where blocking
    /// is allowed, or use [`Engine::load_async`]. Compiling happens in this process: for components from
    /// outside there is [`Engine::load_foreign`].
    ///
    /// # Errors
    /// The component is too large or malformed, imports more than a log, or does not speak the contract.
    pub fn load(&self, name: &str, bytes: &[u8]) -> Result<Plugin, PluginError> {
        self.fits(bytes)?;
        let digest = digest(bytes);
        let component = self.compile(&digest, bytes)?;
        self.link(name, digest, &component)
    }

    /// Loads a component from outside: what [`Engine::load`] does, but compiled by a child process within
    /// limits. What was loaded is kept in the cache, with its code, for [`Engine::stored`].
    ///
    /// # Errors
    /// Those of [`Engine::load`], what the compiler was not given, and [`PluginError::Host`] when the engine
    /// has no compiler.
    pub async fn load_foreign(&self, name: &str, bytes: Arc<[u8]>) -> Result<Plugin, PluginError> {
        self.fits(&bytes)?;
        magic::check(&bytes)?;
        let (engine, component) = (self.clone(), bytes.clone());
        let (digest, cached) = aside(move || {
            let digest = digest(&component);
            let cached = engine.cache.as_ref().and_then(|cache| cache.read(&engine.wasm, &digest));
            Ok((digest, cached))
        })
        .await?;
        let code = match (&cached, &self.compiler) {
            (Some(_), _) => Vec::new(),
            (None, Some(compiler)) => compiler.compile(&bytes).await?,
            (None, None) => {
                return Err(PluginError::Host { detail: "there is no compiler for plugins".to_owned() });
            }
        };
        let (engine, name) = (self.clone(), name.to_owned());
        aside(move || {
            let component = match cached {
                Some(component) => component,
                None => engine.read(&digest, &code)?,
            };
            let plugin = engine.link(&name, digest.clone(), &component)?;
            if let Some(cache) = &engine.cache {
                cache.store(&digest, &bytes);
            }
            Ok(plugin)
        })
        .await
    }

    /// A component that [`Engine::load_foreign`] loaded, by its digest (`sha256:...`), also in an earlier
    /// process. Reads a file of its size.
    pub fn stored(&self, digest: &str) -> Option<Vec<u8>> {
        self.cache.as_ref()?.component(digest)
    }

    /// Stores that a component, which is stored itself, is what a source has: a text that names the source and how
    /// it was verified.
    pub fn store_source(&self, source: &str, digest: &str) {
        if let Some(cache) = &self.cache {
            cache.store_source(source, digest);
        }
    }

    /// Digest of the component that a source had when [`Engine::store_source`] was called.
    pub fn component_of(&self, source: &str) -> Option<String> {
        self.cache.as_ref()?.component_of(source)
    }

    /// [`Engine::load`] on a thread where blocking is allowed.
    ///
    /// # Errors
    /// Those of [`Engine::load`].
    pub async fn load_async(&self, name: &str, bytes: Arc<[u8]>) -> Result<Plugin, PluginError> {
        let (engine, name) = (self.clone(), name.to_owned());
        aside(move || engine.load(&name, &bytes)).await
    }

    /// How many components it compiled; those that the cache had are not among them.
    pub fn compiled(&self) -> usize {
        self.compiled.load(Ordering::Relaxed)
    }

    fn fits(&self, bytes: &[u8]) -> Result<(), PluginError> {
        let (size, limit) = (bytes.len(), self.limits.component);
        if size > limit { Err(PluginError::ComponentTooLarge { size, limit }) } else { Ok(()) }
    }

    fn compile(&self, digest: &str, bytes: &[u8]) -> Result<Component, PluginError> {
        if let Some(component) = self.cache.as_ref().and_then(|cache| cache.read(&self.wasm, digest)) {
            return Ok(component);
        }
        let component = Component::from_binary(&self.wasm, bytes)
            .map_err(|error| PluginError::invalid_component(&format!("{error:#}")))?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        if let Some(cache) = &self.cache {
            match component.serialize() {
                Ok(code) => cache.write(&self.wasm, digest, &code),
                Err(error) => tracing::warn!(digest, %error, "a compiled plugin was not cached"),
            }
        }
        Ok(component)
    }

    /// What the compiler answered.
    fn read(&self, digest: &str, code: &[u8]) -> Result<Component, PluginError> {
        let component = compiled::load(&self.wasm, code)
            .map_err(|error| PluginError::compiler_answer(&format!("{error:#}")))?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        if let Some(cache) = &self.cache {
            cache.write(&self.wasm, digest, code);
        }
        Ok(component)
    }

    fn link(&self, name: &str, digest: String, component: &Component) -> Result<Plugin, PluginError> {
        self.check(component)?;
        let pre = self
            .linker
            .instantiate_pre(component)
            .and_then(PluginPre::new)
            .map_err(|error| PluginError::contract(&format!("{error:#}")))?;
        Ok(Plugin::new(name, digest, pre, self.limits, self.calls.clone()))
    }

    fn check(&self, component: &Component) -> Result<(), PluginError> {
        let kind = component.component_type();
        let (known, foreign): (Vec<String>, Vec<String>) = kind
            .imports(&self.wasm)
            .map(|(name, _)| name.to_owned())
            .partition(|name| name.starts_with(PACKAGE));
        if !foreign.is_empty() {
            return Err(PluginError::imports_refused(&foreign));
        }
        let exports = kind.exports(&self.wasm).map(|(name, _)| name.to_owned());
        let other = known
            .into_iter()
            .chain(exports.filter(|name| name.starts_with(PACKAGE)))
            .find(|name| !is_ours(name));
        match other {
            Some(name) => Err(PluginError::contract(&format!("it has {name}"))),
            None => Ok(()),
        }
    }
}

/// Whether an interface of the package is of our line, 0.1.
fn is_ours(name: &str) -> bool {
    name.split_once('@').is_some_and(|(_, version)| version.starts_with("0.1."))
}

/// Does work on a thread where blocking is allowed.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PluginError> + Send + 'static,
) -> Result<T, PluginError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| PluginError::Host { detail: error.to_string() })?
}

fn host(error: wasmtime::Error) -> PluginError {
    PluginError::Host { detail: format!("{error:#}") }
}
