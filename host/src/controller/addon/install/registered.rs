//! Finds the plugin of an add-on that an administrator registered: whether this namespace may use it, and
//! whether it can be used. What is installed stays where it cannot.

use std::sync::Arc;

use addons::{DesiredAddOn, Inventory, Source, Standing};
use crds::PluginModule;
use crds::conditions::reason;
use kube::core::{Selector, SelectorExt};

use super::Installation;
use crate::controller::addon::plugins::{LoadedPlugin, Verdict};
use crate::object_name::ObjectName;

impl Installation<'_> {
    /// What this operator brings for an add-on.
    pub(super) async fn brought(
        &self,
        desired: &DesiredAddOn,
        installed: &Result<Option<Inventory>, String>,
    ) -> Result<Arc<LoadedPlugin>, Verdict> {
        let Source::Registered(module) = &desired.source else {
            return self.controller.plugins.brought(desired).await;
        };
        let is_there = match installed {
            Ok(Some(it)) => it.standing == Standing::Proven && it.was_whole(),
            Ok(None) => false,
            Err(_) => true,
        };
        let registered = self.registered(desired, module).await;
        registered.map_err(|verdict| if is_there { left(verdict) } else { verdict })
    }

    async fn registered(&self, desired: &DesiredAddOn, module: &str) -> Result<Arc<LoadedPlugin>, Verdict> {
        let management = &self.controller.context.management;
        let path = &desired.path;
        let object = management.get::<PluginModule>(&ObjectName::new(String::new(), module.to_owned()));
        let Some(object) = object.filter(|it| !it.is_deleting()) else {
            let message = format!(
                "{path}: there is no PluginModule {module}; an administrator has to register it, or name another"
            );
            return Err(Verdict::Refused(reason::MODULE_NOT_FOUND.into(), message));
        };
        let selector = object.spec.allowed_namespaces.as_ref().map(|it| it.selector.clone());
        self.check_namespace(desired, module, selector).await?;
        self.controller.plugins.brought(desired).await
    }

    /// Whether ClusterPlugins of this namespace may use a module.
    async fn check_namespace(
        &self,
        desired: &DesiredAddOn,
        module: &str,
        selector: Option<Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector>>,
    ) -> Result<(), Verdict> {
        let (namespace, path) = (&self.plugin_name.namespace, &desired.path);
        let not_allowed = |why: &str| {
            let message = format!(
                "{path}: PluginModule {module} may not be used in namespace {namespace}: {why}; an administrator \
                 can allow it (spec.allowedNamespaces)"
            );
            Verdict::Refused(reason::MODULE_NOT_ALLOWED.into(), message)
        };
        let Some(selector) = selector else { return Err(not_allowed("it allows none")) };
        let selector = match Selector::try_from(selector.unwrap_or_default()) {
            Ok(selector) => selector,
            Err(_) => return Err(not_allowed("its selector cannot be read")),
        };
        if selector.selects_all() {
            return Ok(());
        }
        match self.controller.namespace_labels(namespace).await {
            Ok(labels) if selector.matches(&labels) => Ok(()),
            Ok(_) => Err(not_allowed("the namespace has not the labels that its selector wants")),
            Err(why) => Err(Verdict::Pending(format!("to read the labels of namespace {namespace}: {why}"))),
        }
    }
}

/// What follows for an add-on that is installed where its plugin cannot be used: it is left as it is, whether
/// somebody has to act or a registry does not answer.
fn left(verdict: Verdict) -> Verdict {
    let (why, message) = match verdict {
        Verdict::Refused(why, message) => (why, message),
        Verdict::Pending(message) => (reason::MODULE_NOT_READY.to_owned(), message),
        verdict => return verdict,
    };
    let known = reason::ALL.iter().find(|(known, _)| *known == why).map(|(known, _)| *known);
    Verdict::Left(known.unwrap_or(reason::MODULE_NOT_READY), format!("it stays as it is: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_installed_stays_when_its_plugin_is_refused_or_awaited() {
        let said = |verdict: Verdict| match left(verdict) {
            Verdict::Left(reason, message) => format!("{reason}: {message}"),
            _ => panic!("it is not left"),
        };
        let refused = Verdict::Refused(reason::MODULE_NOT_FOUND.into(), "there is none".into());
        assert_eq!(said(refused), "ModuleNotFound: it stays as it is: there is none");
        let awaited = Verdict::Pending("the registry does not answer".into());
        assert_eq!(said(awaited), "ModuleNotReady: it stays as it is: the registry does not answer");
    }
}
