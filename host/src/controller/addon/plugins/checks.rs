//! Checks a configuration before a plan is asked for: by the schema that the plugin publishes, then by the
//! plugin itself. The same question has the same answer, so what was found is remembered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addons::DesiredAddOn;
use contract::{Diagnostic, Request, Severity};
use crds::conditions::reason;
use plugin::PluginError;
use sha2::{Digest, Sha256};

use super::verdict::text;
use super::{LoadedPlugin, Plugins, Verdict};
use crate::object_name::ObjectName;

/// How many answers are remembered: several of each add-on of a hundred clusters.
const MOST: usize = 4096;
/// Bytes of an answer that is remembered.
const LARGEST: usize = 2 << 10;

/// What plugins found about configurations, by the hash of the question.
#[derive(Default)]
pub struct Checked(Mutex<HashMap<[u8; 32], Arc<[Diagnostic]>>>);

impl Checked {
    fn get(&self, question: &[u8; 32]) -> Option<Arc<[Diagnostic]>> {
        self.lock().get(question).cloned()
    }

    fn insert(&self, question: [u8; 32], found: Arc<[Diagnostic]>) {
        let bytes = |it: &Diagnostic| it.code.len() + it.path.len() + it.message.len();
        if found.iter().map(bytes).sum::<usize>() > LARGEST {
            return;
        }
        let mut known = self.lock();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(question, found);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Arc<[Diagnostic]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plugins {
    /// Checks the configuration of a request: what the plugin warns of; or, where it is wrong, the paths of the
    /// settings that are.
    ///
    /// # Errors
    /// The plugin did not answer.
    pub(super) async fn check(
        &self,
        loaded: &LoadedPlugin,
        desired: &DesiredAddOn,
        cluster: &ObjectName,
        request: &Request,
    ) -> Result<Result<Vec<String>, Verdict>, PluginError> {
        let question = question(&loaded.component.digest, request);
        let found = match self.checked.get(&question) {
            Some(found) => found,
            None => {
                let found = self.find(loaded, cluster, request).await?;
                let found: Arc<[Diagnostic]> = found.into();
                self.checked.insert(question, found.clone());
                found
            }
        };
        let of = |severity| found.iter().filter(move |it| it.severity == severity).cloned();
        let errors: Vec<Diagnostic> = of(Severity::Error).collect();
        if !errors.is_empty() {
            let message = text(desired, &errors);
            return Ok(Err(Verdict::Refused(reason::INVALID_CONFIGURATION.into(), message)));
        }
        Ok(Ok(of(Severity::Warning).map(|it| text(desired, &[it])).collect()))
    }

    async fn find(
        &self,
        loaded: &LoadedPlugin,
        cluster: &ObjectName,
        request: &Request,
    ) -> Result<Vec<Diagnostic>, PluginError> {
        let found = loaded.schema.check(&request.config);
        if !found.is_empty() {
            return Ok(found);
        }
        let _permit = self.queue.acquire(cluster).await;
        Ok(loaded.plugin.validate_async(request.clone()).await?.value)
    }
}

fn question(digest: &str, request: &Request) -> [u8; 32] {
    // A request always serializes; one that did not would share its answer with nothing but itself.
    let text = serde_json::to_vec(request).unwrap_or_default();
    Sha256::new().chain_update(digest).chain_update([0]).chain_update(text).finalize().into()
}
