//! Which component serves an add-on: the one that installed it, until somebody consents to the one that this
//! operator brings, and again when an upgrade did not come to its end. Nothing here reads or loads either.

mod way_back;

use super::{Inventory, Standing, UndoneUpgrade};

pub use way_back::no_way_back;

/// Annotation of a ClusterPlugin with which a user consents to upgrades, such as
/// `calico@sha256:...`; several are separated by commas. An entry is removed when it was used.
pub const UPGRADE_ANNOTATION: &str = "cluster.kurator.dev/upgrade";

/// How much is shown of a version that is read from a record: whoever can write to the cluster wrote it.
const VERSION_CHARACTERS: usize = 72;

/// A component by what it says of itself and by what it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Component {
    pub version: String,
    /// `sha256:` and the hash.
    pub digest: String,
}

/// What a user says about upgrades of one add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    /// `spec.upgradePolicy` is `Automatic`.
    pub automatic: bool,
    /// `version` among the settings of the add-on.
    pub pin: Option<String>,
    /// The digest that [`UPGRADE_ANNOTATION`] names for it.
    pub digest: Option<String>,
}

/// What became of the component that installed an add-on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is loaded, or can be.
    Available,
    /// The cluster does not have it: an operator installed the add-on that did not store components, or
    /// somebody removed it.
    Missing,
    /// What is stored is not what its digest says.
    Damaged,
    /// This operator does not know its digest, and runs nothing that it does not know.
    Unrecognized,
}

/// What serves an add-on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// The component that this operator brings: it installed the add-on, is replacing another, or may install.
    Brought,
    /// The component that installed it, until the one that this operator brings may begin to replace it.
    Upgrade,
    /// The component that installed it.
    Installed,
    /// The plan that is stored of the component before: an upgrade is undone. What it awaited.
    Undo(String),
    /// Nothing: the add-on is left as it is. Why.
    Nothing(String),
    /// A version is asked for that nobody has. What to do.
    Unavailable(String),
}

/// What decides about what serves an add-on.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Name of the plugin.
    pub module: &'a str,
    /// Its record.
    pub installed: Option<&'a Inventory>,
    /// What this operator brings.
    pub brought: &'a Component,
    pub consent: &'a Consent,
    /// What became of the component that [`served_by`] names.
    pub stored: Stored,
    /// What an upgrade under way still awaited when its time was over.
    pub overdue: Option<&'a str>,
}

/// The digest of the component that has to serve an add-on unless somebody consents to the one that this
/// operator brings; `None` where that is the same, or where nothing was ever installed whole.
pub fn served_by<'a>(installed: Option<&'a Inventory>, brought: &Component) -> Option<&'a str> {
    let installed = installed.filter(|it| it.digest != brought.digest)?;
    if let Some(previous) = installed.replaced() {
        return Some(previous.digest.as_str()).filter(|digest| *digest != brought.digest);
    }
    installed.was_whole().then_some(installed.digest.as_str())
}

impl Situation<'_> {
    /// Decides what serves the add-on.
    pub fn server(&self) -> Server {
        let Situation { installed, brought, consent, .. } = *self;
        if let Some(awaited) = self.undone() {
            return Server::Undo(awaited);
        }
        let is_pinned = |version: &str| consent.pin.as_deref().is_none_or(|pin| pin == version);
        let Some(installed) = installed.filter(|it| served_by(Some(it), brought).is_some()) else {
            if is_pinned(&brought.version) {
                return Server::Brought;
            }
            return Server::Unavailable(unavailable(consent, None, brought));
        };
        if self.consents(installed) {
            return Server::Upgrade;
        }
        if !is_pinned(&installed.version) && !is_pinned(&brought.version) {
            let message = unavailable(consent, Some(&shown(&installed.version)), brought);
            return Server::Unavailable(message);
        }
        match self.unserved(installed) {
            None => Server::Installed,
            Some(why) => {
                Server::Nothing(left_as_it_is(self.module, installed, brought, consent.pin.is_some(), why))
            }
        }
    }

    /// What an upgrade awaited that is, or is to be, undone.
    fn undone(&self) -> Option<String> {
        let Situation { brought, consent, .. } = *self;
        let installed = self.installed?;
        if let Some(undone) = installed.is_being_undone() {
            // It is finished, unless somebody asks for the upgrade anew, by its digest.
            return (!consent.names(brought)).then(|| undone.awaited.clone());
        }
        let previous = installed.replaced()?;
        if installed.digest != brought.digest {
            let is_whole_here = previous.digest == brought.digest;
            let gives_up = is_whole_here || !self.consents(installed);
            return gives_up.then(|| "this operator does not bring what was upgraded to".to_owned());
        }
        let is_pinned_back =
            consent.pin.as_ref().is_some_and(|pin| *pin == previous.version && *pin != brought.version);
        if is_pinned_back {
            return Some(format!("version {} was asked for again", shown(&previous.version)));
        }
        self.overdue.map(str::to_owned)
    }

    /// Why what installed it cannot serve it.
    fn unserved(&self, installed: &Inventory) -> Option<&'static str> {
        match self.stored {
            Stored::Available if installed.standing == Standing::Proven => None,
            Stored::Available => Some("its record was not written by this operator"),
            Stored::Missing => Some("the component that installed it is not stored in the cluster"),
            Stored::Damaged => {
                Some("the component that is stored in the cluster is not the one that installed it")
            }
            Stored::Unrecognized => Some("this operator does not know the component that installed it"),
        }
    }

    /// Whether somebody wants what this operator brings in place of what is installed. What was undone has to
    /// be named.
    fn consents(&self, installed: &Inventory) -> bool {
        let Situation { brought, consent, .. } = *self;
        let was_undone = installed.undone.as_ref().is_some_and(|undone| undone.digest == brought.digest);
        if was_undone && !consent.names(brought) {
            return false;
        }
        consents(&installed.version, brought, consent)
    }
}

/// Whether somebody wants what this operator brings in place of this version, which is installed.
pub fn consents(installed: &str, brought: &Component, consent: &Consent) -> bool {
    match &consent.pin {
        Some(pin) if *pin == brought.version => *pin != installed || consent.names(brought),
        Some(_) => false,
        None => consent.automatic || consent.names(brought),
    }
}

impl Consent {
    fn names(&self, brought: &Component) -> bool {
        self.digest.as_deref() == Some(brought.digest.as_str())
    }
}

/// What is said of an upgrade that was undone.
pub fn undone(module: &str, undone: &UndoneUpgrade) -> String {
    format!(
        "the upgrade to {} ({}) was not whole in time and was undone; it awaited: {}; it is not tried again \
         until it is asked for: annotate this ClusterPlugin with {UPGRADE_ANNOTATION}={module}@{}",
        shown(&undone.version),
        shown(&undone.digest),
        undone.awaited,
        shown(&undone.digest)
    )
}

/// What is said of an add-on that is served by what installed it while this operator brings another.
pub fn available(module: &str, installed: &Inventory, brought: &Component, is_pinned: bool) -> String {
    format!(
        "{} is installed and is served by the component that installed it; this operator brings {}: {}",
        shown(&installed.version),
        other(&installed.version, brought),
        how_to(module, installed, brought, is_pinned)
    )
}

fn left_as_it_is(
    module: &str,
    installed: &Inventory,
    brought: &Component,
    is_pinned: bool,
    why: &str,
) -> String {
    format!(
        "version {} is installed and stays, and this operator brings {}: {why}, so changed settings are not applied, what is changed \
         or removed in the cluster is not repaired, and certificates are not renewed, until it is upgraded: {}",
        shown(&installed.version),
        other(&installed.version, brought),
        how_to(module, installed, brought, is_pinned)
    )
}

fn unavailable(consent: &Consent, installed: Option<&str>, brought: &Component) -> String {
    let pin: String = consent.pin.iter().map(|pin| shown(pin)).collect();
    let installed =
        installed.map(|version| format!("{version}, which is installed, or ")).unwrap_or_default();
    format!("version {pin} is not available: set {installed}{}, which this operator brings", brought.version)
}

fn other(installed: &str, brought: &Component) -> String {
    if installed == brought.version {
        return "another build of it".to_owned();
    }
    brought.version.clone()
}

/// How an add-on is upgraded to what this operator brings. A version that is pinned counts before the annotation.
pub fn how_to(module: &str, installed: &Inventory, brought: &Component, is_pinned: bool) -> String {
    let annotation =
        format!("annotate this ClusterPlugin with {UPGRADE_ANNOTATION}={module}@{}", brought.digest);
    if installed.version == brought.version {
        return format!("to upgrade, {annotation}");
    }
    if is_pinned {
        return format!("to upgrade, set the add-on's version to {}", brought.version);
    }
    format!("to upgrade, {annotation}, or set the add-on's version to {}", brought.version)
}

fn shown(version: &str) -> String {
    version.chars().filter(char::is_ascii_graphic).take(VERSION_CHARACTERS).collect()
}

#[cfg(test)]
mod tests;
