//! The plugins that administrators registered, as far as they can be used. The controller of PluginModules says
//! what there is; the controller of add-ons asks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addons::grant::Grants;

use super::LoadedPlugin;

/// Why a plugin cannot be used, or its newest component cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleProblem {
    /// A reason for a condition.
    pub reason: &'static str,
    pub message: String,
    pub origin: Origin,
}

/// What a problem of a module is with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Something does not answer now; nobody has to act.
    Outage,
    /// The place that the spec names has not what the spec says.
    Source,
    /// The component, which is the same each time.
    Component,
}

/// A plugin that was registered.
#[derive(Clone)]
pub struct Registration {
    pub grants: Arc<Grants>,
    /// What serves; or why nothing does.
    pub serving: Result<Arc<LoadedPlugin>, ModuleProblem>,
}

/// Registrations by the names of their PluginModules.
#[derive(Default)]
pub struct Registrations(Mutex<BTreeMap<String, Registration>>);

impl Registrations {
    pub fn set(&self, module: &str, registration: Registration) {
        self.lock().insert(module.to_owned(), registration);
    }

    /// The module is not there any more.
    pub fn remove(&self, module: &str) {
        self.lock().remove(module);
    }

    pub fn get(&self, module: &str) -> Option<Registration> {
        self.lock().get(module).cloned()
    }

    /// The component of this digest, if it serves.
    pub fn of_digest(&self, digest: &str) -> Option<Arc<LoadedPlugin>> {
        let all = self.lock();
        let mut serving = all.values().filter_map(|it| it.serving.as_ref().ok());
        serving.find(|it| it.component.digest == digest).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Registration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
