//! Finds out what serves each add-on: the component that installed it, as it is stored in the cluster, the one
//! that this operator brings, or the plan that was carried out before an upgrade. Which of them may is decided
//! in `addons::upgrade`.

use std::borrow::Cow;
use std::sync::Arc;

use addons::upgrade::{self, Component, Server, Situation, Stored};
use addons::{DesiredAddOn, Inventory, Source, Standing, changes, changes_of_record, stored};
use contract::AddOnPlan;
use crds::cluster_plugin::AvailablePlugin;
use crds::conditions::reason;

use super::Installation;
use super::bounded::{bounded, bounded_lines};
use super::plan::{Asked, Course};
use crate::controller::addon::fleet::consent;
use crate::controller::addon::plugins::{Answer, LoadedPlugin, Verdict, authorized};
use crate::system::now;

/// What serves an add-on.
pub(super) struct Service {
    server: Server,
    brought: Arc<LoadedPlugin>,
    /// The component that installed it, if that is another one and could be loaded.
    earlier: Option<Arc<LoadedPlugin>>,
}

impl Service {
    /// Keys of the facts that its components ask for.
    pub(super) fn facts(&self) -> impl Iterator<Item = &str> {
        let earlier = self.earlier.iter().flat_map(|it| &it.facts);
        self.brought.facts.iter().chain(earlier).map(String::as_str)
    }

    /// What serves the add-on; `None` where it is left as it is.
    pub(super) fn serving(&self) -> Option<&LoadedPlugin> {
        match &self.server {
            Server::Brought => Some(&self.brought),
            Server::Installed | Server::Upgrade => self.earlier.as_deref(),
            Server::Undo(_) | Server::Nothing(_) | Server::Unavailable(_) => None,
        }
    }

    /// What this operator brings.
    pub(super) fn brought(&self) -> &LoadedPlugin {
        &self.brought
    }
}

impl Installation<'_> {
    /// What serves an add-on; or what follows where that cannot be found out.
    pub(super) async fn service(
        &self,
        desired: &DesiredAddOn,
        installed: &Result<Option<Inventory>, String>,
    ) -> Result<Service, Verdict> {
        let brought = self.brought(desired, installed).await?;
        let Ok(installed) = installed else {
            return Ok(Service { server: Server::Brought, brought, earlier: None });
        };
        let installed = installed.as_ref();
        let (stored, earlier) = match upgrade::served_by(installed, &brought.component) {
            Some(digest) => self.earlier(desired, installed, digest).await?,
            None => (Stored::Missing, None),
        };
        let timeout = self.objects.plugin.spec.upgrade_timeout();
        let memory = self.memory(&desired.module);
        let overdue = installed.and_then(|it| memory.overdue_upgrade(it, timeout, now()));
        let situation = Situation {
            module: &desired.module,
            installed,
            brought: &brought.component,
            consent: &consent(&self.objects.plugin, desired),
            stored,
            overdue: overdue.as_deref(),
        };
        Ok(Service { server: situation.server(), brought, earlier })
    }

    /// The component that installed an add-on.
    async fn earlier(
        &self,
        desired: &DesiredAddOn,
        installed: Option<&Inventory>,
        digest: &str,
    ) -> Result<(Stored, Option<Arc<LoadedPlugin>>), Verdict> {
        let module = desired.module.as_str();
        let plugins = &self.controller.plugins;
        // What a module installed ran here when its record was written, if this program wrote that.
        let is_known = match &desired.source {
            Source::BuiltIn => plugins.released.contains(module, digest),
            Source::Registered(_) => installed.is_some_and(|it| it.standing == Standing::Proven),
        };
        if !is_known {
            return Ok((Stored::Unrecognized, None));
        }
        if let Some(loaded) = plugins.earlier(module, digest).await {
            return Ok((Stored::Available, Some(loaded)));
        }
        // One that is too large for the cluster is stored here alone.
        let is_registered = matches!(desired.source, Source::Registered(_));
        if let Some(bytes) = plugins.stored_component(digest).filter(|_| is_registered)
            && let Ok(loaded) = plugins.load_earlier(desired, Cow::Owned(bytes)).await
        {
            return Ok((Stored::Available, Some(loaded)));
        }
        let is_stored = installed.is_some_and(|it| it.stored_plan.is_some() || it.previous.is_some());
        let (Some(workload), true) = (self.workload.as_deref(), is_stored) else {
            return Ok((Stored::Missing, None));
        };
        let unreachable = |error| Verdict::Pending(format!("for the API server: {error}"));
        let data = workload.stored(module, digest).await.map_err(unreachable)?;
        if data.is_empty() {
            return Ok((Stored::Missing, None));
        }
        let Some(bytes) = stored::component(&data, digest) else { return Ok((Stored::Damaged, None)) };
        match plugins.load_earlier(desired, Cow::Owned(bytes)).await {
            Ok(loaded) => Ok((Stored::Available, Some(loaded))),
            Err(error) => {
                tracing::warn!(module, digest, %error, "a stored plugin cannot be loaded");
                Ok((Stored::Damaged, None))
            }
        }
    }

    /// Asks what serves an add-on for its plan, and what this operator brings for what an upgrade would change.
    pub(super) async fn ask(
        &self,
        desired: &DesiredAddOn,
        installed: &Result<Option<Inventory>, String>,
        service: &Service,
    ) -> Asked {
        let (plugins, facts) = (&self.controller.plugins, &self.facts);
        let Service { server, brought, earlier } = service;
        let known = installed.as_ref().map(Option::as_ref).map_err(String::as_str);
        let answer = match (server, earlier) {
            (Server::Brought, _) => return Asked::serve(plugins.ask(brought, desired, facts, known).await),
            (Server::Undo(awaited), _) => return self.undo(desired, known, brought, awaited.clone()).await,
            (Server::Unavailable(message), _) => Answer {
                component: brought.component.clone(),
                verdict: Verdict::Refused(reason::VERSION_NOT_AVAILABLE.into(), message.clone()),
            },
            (Server::Installed | Server::Upgrade, Some(earlier)) => {
                plugins.ask(earlier, desired, facts, known).await
            }
            (Server::Installed | Server::Upgrade, None) => unserved(known, String::new()),
            (Server::Nothing(message), _) => unserved(known, message.clone()),
        };
        let Ok(Some(record)) = known else { return Asked::serve(answer) };
        let new = plugins.ask(brought, desired, facts, known).await;
        let available = Some(available(record, &answer.verdict, &new));
        let course = if *server == Server::Upgrade { Course::Upgrade(new) } else { Course::Serve };
        Asked { answer, course, available }
    }

    /// The plan that was carried out before an upgrade; or the upgrade's, where there is no way back.
    async fn undo(
        &self,
        desired: &DesiredAddOn,
        known: Result<Option<&Inventory>, &str>,
        brought: &LoadedPlugin,
        awaited: String,
    ) -> Asked {
        let new = self.controller.plugins.ask(brought, desired, &self.facts, known).await;
        let Ok(Some(record)) = known else { return Asked::serve(new) };
        let before = match record.replaced() {
            Some(it) => Component { version: it.version.clone(), digest: it.digest.clone() },
            None => Component { version: record.version.clone(), digest: record.digest.clone() },
        };
        let is_brought = record.digest == brought.component.digest;
        let desired = &DesiredAddOn { config: record.config_before().clone(), ..desired.clone() };
        let (answer, course) = match self.stored_plan(desired, record, &before.digest).await {
            Err(Verdict::Left(_, why) | Verdict::Refused(_, why)) if is_brought => (new, Course::Stuck(why)),
            Err(verdict) => (Answer { component: before, verdict }, Course::Undo(awaited)),
            Ok(plan) => {
                let no_way_back = match &new.verdict {
                    Verdict::Plan(after, _) if is_brought => upgrade::no_way_back(record, Some(&plan), after),
                    _ => None,
                };
                match no_way_back {
                    Some(why) => (new, Course::Stuck(why)),
                    None => {
                        let verdict = Verdict::Plan(plan, Vec::new());
                        (Answer { component: before, verdict }, Course::Undo(awaited))
                    }
                }
            }
        };
        Asked { answer, course, available: None }
    }

    /// The plan that is stored with the component of this digest, if it may be carried out today.
    pub(super) async fn stored_plan(
        &self,
        desired: &DesiredAddOn,
        record: &Inventory,
        digest: &str,
    ) -> Result<AddOnPlan, Verdict> {
        let plan_digest = match record.replaced() {
            Some(previous) => previous.stored_plan.as_ref(),
            None => record.stored_plan.as_ref(),
        };
        let missing = || {
            let why = "the plan that was carried out before is not stored any more".to_owned();
            Verdict::Left(reason::UPGRADE_AVAILABLE, why)
        };
        let plan_digest = plan_digest.ok_or_else(missing)?;
        let unreachable = |error: String| Verdict::Pending(format!("for the API server: {error}"));
        let workload =
            self.workload.as_deref().ok_or_else(|| unreachable("it does not answer".to_owned()))?;
        let data = workload.stored(&desired.module, digest).await;
        let data = data.map_err(|error| unreachable(error.to_string()))?;
        let plan = stored::plan(&data, plan_digest).ok_or_else(missing)?;
        match authorized(desired, plan, &self.controller.plugins.grants(desired)) {
            Verdict::Plan(plan, _) => Ok(plan),
            refused => Err(refused),
        }
    }
}

/// What this operator brings in place of what serves an add-on, and what that would change.
fn available(installed: &Inventory, served: &Verdict, new: &Answer) -> AvailablePlugin {
    let mut lines = match (&new.verdict, served) {
        (Verdict::Plan(after, _), Verdict::Plan(before, _)) => changes(installed, before, after),
        (Verdict::Plan(after, _), _) => changes_of_record(installed, after),
        (Verdict::Refused(_, message) | Verdict::Pending(message), _)
        | (Verdict::Left(_, message) | Verdict::Unsupported(message), _) => {
            vec![format!("it cannot be planned now: {message}")]
        }
    };
    if let Verdict::Plan(after, _) = &new.verdict {
        let before = if let Verdict::Plan(before, _) = served { Some(before) } else { None };
        let why = upgrade::no_way_back(installed, before, after);
        lines.extend(why.map(|why| format!("! there is no way back: {why}")));
    }
    AvailablePlugin {
        version: bounded(&new.component.version),
        digest: bounded(&new.component.digest),
        changes: bounded_lines(lines),
    }
}

/// The answer for an add-on that is left as it is.
fn unserved(installed: Result<Option<&Inventory>, &str>, message: String) -> Answer {
    let (version, digest) = match installed {
        // Somebody else may have written to the record, and a status takes no more.
        Ok(Some(it)) => (bounded(&it.version), bounded(&it.digest)),
        _ => (String::new(), String::new()),
    };
    Answer {
        component: Component { version, digest },
        verdict: Verdict::Left(reason::UPGRADE_AVAILABLE, message),
    }
}
