//! Reports on each AWSMachineTemplate what a node of a machine made from it would have: without that the
//! cluster autoscaler cannot scale from zero. AWS is asked once for each type of instances, and never written
//! to.

use std::time::Duration;

use crds::machine::AWSMachineTemplateStatus;
use crds::{AWSCluster, AWSMachineTemplate};
use model::ActionNeeded;
use tokio::time::Instant;

use super::reconcile::{Controller, Memory, ReconcileResult, is_ours};
use crate::context::Context;
use crate::management::{Cached, Error, Event, Watched};
use crate::object_name::ObjectName;

/// How soon to ask again for what AWS did not answer.
const LATER: Duration = Duration::from_secs(300);

/// The controller of AWSMachineTemplates.
pub struct Templates {
    context: Context,
    /// Until when AWS is not asked again.
    memory: Memory<Option<Instant>>,
}

impl Controller for Templates {
    const NAME: &'static str = "awsmachinetemplate";

    fn context(&self) -> &Context {
        &self.context
    }

    async fn reconcile(&self, name: &ObjectName) -> Result<ReconcileResult, Error> {
        let management = &self.context.management;
        let until = self.memory.take(name);
        let Some(object) = management.get::<AWSMachineTemplate>(name) else {
            return Ok(ReconcileResult::Settled);
        };
        let status = object.status.as_ref();
        if !is_ours(&self.context, &object)
            || object.is_deleting()
            || management.is_paused(&object)
            || status.is_some_and(is_whole)
        {
            return Ok(ReconcileResult::Settled);
        }
        // Until it is known, its AWSCluster triggers it.
        let Some(region) = self.region(&object) else { return Ok(ReconcileResult::Settled) };
        if until.is_some_and(|it| it > Instant::now()) {
            self.memory.put(name, until);
            return Ok(ReconcileResult::Waiting { until });
        }
        match self.context.aws.region(&region).instance_type(&object.spec.template.spec.instance_type).await {
            Ok(found) => {
                management.patch_status(&object, &infra::status::machine_template(&found)).await?;
                Ok(ReconcileResult::Settled)
            }
            Err(problem) => {
                let (code, message) = (&problem.code, &problem.message);
                tracing::warn!(object = %name, code, "what its instance type has is not known: {message}");
                if problem.who != ActionNeeded::None {
                    let (reason, action) = ("CapacityQueryFailed".into(), "Describe instance type".into());
                    management.publish_event(
                        &object,
                        Event { warning: true, reason, action, message: problem.message },
                    );
                }
                let until = Some(Instant::now() + LATER);
                self.memory.put(name, until);
                Ok(ReconcileResult::Waiting { until })
            }
        }
    }
}

impl Templates {
    pub fn new(context: Context) -> Self {
        Self { context, memory: Memory::default() }
    }

    /// The region of the Cluster that owns it.
    fn region(&self, object: &Cached<AWSMachineTemplate>) -> Option<String> {
        let found = self
            .context
            .management
            .of_cluster::<AWSCluster>(&Watched::cluster(&**object)?)
            .into_iter()
            .next()?;
        Some(found.spec.region.clone()).filter(|it| !it.is_empty())
    }
}

/// Whether its status is complete. The spec of a template never changes.
fn is_whole(status: &AWSMachineTemplateStatus) -> bool {
    let whole = |it: &crds::machine::NodeInfo| it.architecture.is_some() && it.operating_system.is_some();
    !status.capacity.is_empty() && status.node_info.as_ref().is_some_and(whole)
}
