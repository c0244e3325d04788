//! Asks a plugin what uninstalls what it installed. It gets one call.

use addons::{DesiredAddOn, Inventory, authorize_removal};
use contract::{AddOnPlan, Operation, Outcome, Severity};

use super::{LoadedPlugin, Plugins};
use crate::controller::addon::facts::ClusterFacts;

impl Plugins {
    /// The plan for this operation of the plugin that installed an add-on, whose removal is granted today.
    ///
    /// # Errors
    /// It has no such plan now, in words.
    pub async fn ask_to_remove(
        &self,
        loaded: &LoadedPlugin,
        desired: &DesiredAddOn,
        cluster: &ClusterFacts<'_>,
        installed: &Inventory,
        operation: Operation,
    ) -> Result<AddOnPlan, String> {
        let mut request = loaded.request(desired, cluster, Ok(Some(installed)));
        request.operation = operation;
        let permit = self.queue.acquire(&cluster.cluster_name()).await;
        let outcome = loaded.plugin.plan_async(request).await;
        drop(permit);
        let plan = match outcome.map(|it| it.value) {
            Ok(Ok(Outcome::Complete(plan))) => plan,
            Ok(Ok(Outcome::Needs(_))) => return Err("its plugin asks for more".to_owned()),
            Ok(Ok(Outcome::Pending(_))) => return Err("its plugin has no plan yet".to_owned()),
            Ok(Err(_)) => return Err("its plugin refuses".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        if plan.diagnostics.iter().any(|it| it.severity == Severity::Error) {
            return Err("its plugin says that something is wrong".to_owned());
        }
        match authorize_removal(&plan.removal, &self.grants(desired)).into_iter().next() {
            Some(denial) => Err(format!("step {:?}: {}", denial.step, denial.message)),
            None => Ok(plan),
        }
    }
}
