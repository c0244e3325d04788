//! What a record keeps of the components before and after the one that it names: so that an upgrade that does
//! not come to its end is undone, and is not tried again by itself.

use model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Inventory;
use crate::Standing;

/// How much of what an upgrade awaited is recorded.
const AWAITED_CHARACTERS: usize = 1024;

/// The component that installed an add-on before the one that is replacing it, which is still stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Previous {
    pub version: String,
    pub digest: String,
    /// Digest of the plan that was carried out last, which is stored with the component. Absent where neither was
    /// stored: then there is no way back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_plan: Option<String>,
    /// With which configuration.
    #[serde(default)]
    pub config: Value,
    /// When it began to be replaced.
    #[serde(default)]
    pub since: Timestamp,
}

/// An upgrade that is being undone, or was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoneUpgrade {
    /// Version of the component that was upgraded to.
    pub version: String,
    pub digest: String,
    /// What it awaited.
    pub awaited: String,
    /// All of what was installed before is there again.
    pub is_complete: bool,
}

/// What a record says of other components than its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Succession {
    pub stored_plan: Option<String>,
    pub previous: Option<Previous>,
    pub undone: Option<UndoneUpgrade>,
}

impl Inventory {
    /// What is recorded when the component of this digest carries out another plan; `awaited` is what an
    /// upgrade waited for that is given up by that.
    pub fn succession(&self, digest: &str, awaited: Option<&str>, now: Timestamp) -> Succession {
        if self.digest == digest {
            let (stored_plan, previous) = (self.stored_plan.clone(), self.previous.clone());
            return Succession { stored_plan, previous, undone: self.undone.clone() };
        }
        if let Some(previous) = self.previous.as_ref().filter(|previous| previous.digest == digest) {
            let undone = UndoneUpgrade {
                version: self.version.clone(),
                digest: self.digest.clone(),
                awaited: awaited.unwrap_or_default().chars().take(AWAITED_CHARACTERS).collect(),
                is_complete: false,
            };
            let stored_plan = previous.stored_plan.clone();
            return Succession { stored_plan, previous: None, undone: Some(undone) };
        }
        let this = || Previous {
            version: self.version.clone(),
            digest: self.digest.clone(),
            stored_plan: self.stored_plan.clone(),
            config: self.config.clone(),
            since: now,
        };
        let before = self.previous.clone().map(|previous| Previous { since: now, ..previous });
        let previous = before.or_else(|| self.was_whole().then(this));
        Succession { stored_plan: None, previous, undone: None }
    }

    /// The component that an upgrade under way replaces. Only a record of this program tells of one.
    pub fn replaced(&self) -> Option<&Previous> {
        self.previous.as_ref().filter(|_| self.standing == Standing::Proven && !self.complete)
    }

    /// The configuration of the plan that was carried out before an upgrade under way, or of this one.
    pub fn config_before(&self) -> &Value {
        self.replaced().map_or(&self.config, |previous| &previous.config)
    }

    /// The upgrade that is being undone. Only a record of this program tells of one.
    pub fn is_being_undone(&self) -> Option<&UndoneUpgrade> {
        let undone = self.undone.as_ref().filter(|it| !it.is_complete && self.stored_plan.is_some());
        undone.filter(|_| self.standing == Standing::Proven && !self.complete)
    }

    /// Whether CustomResourceDefinitions stay as a later component made them.
    pub fn keeps_definitions(&self, digest: &str) -> bool {
        self.undone.as_ref().is_some_and(|undone| undone.digest != digest && self.digest == digest)
            || self.previous.as_ref().is_some_and(|previous| previous.digest == digest)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(digest: &str, stored: Option<&str>) -> Inventory {
        let value = json!({"module": "a", "version": digest, "digest": digest, "config": {"a": 1}, "planHash": "",
            "complete": false, "objects": [], "removal": [], "storedPlan": stored});
        Inventory { standing: Standing::Proven, ..serde_json::from_value(value).expect("a record") }
    }

    fn with(record: Inventory, succession: Succession) -> Inventory {
        let Succession { stored_plan, previous, undone } = succession;
        Inventory { stored_plan, previous, undone, ..record }
    }

    #[test]
    fn the_component_before_is_known_until_another_replaced_it() {
        let before = |since| Previous {
            version: "a".into(),
            digest: "a".into(),
            stored_plan: Some("plan".into()),
            config: json!({"a": 1}),
            since,
        };
        let whole = record("a", Some("plan"));
        let same = whole.succession("a", None, 5.0);
        assert_eq!((same.stored_plan, same.previous), (Some("plan".into()), None), "other settings");
        let upgrade = whole.succession("b", None, 5.0);
        let begun = Succession { previous: Some(before(5.0)), ..Succession::default() };
        assert_eq!(upgrade, begun, "an upgrade begins");
        let upgrading = with(record("b", None), begun.clone());
        assert_eq!(upgrading.succession("b", None, 6.0), begun, "it goes on");
        assert_eq!(upgrading.succession("c", None, 6.0).previous, Some(before(6.0)), "to yet another");
        assert_eq!(record("a", None).succession("b", None, 5.0), Succession::default(), "it was never whole");
        let unstored = Inventory { complete: true, ..record("a", None) };
        let previous = unstored.succession("b", None, 5.0).previous;
        assert_eq!(previous, Some(Previous { stored_plan: None, ..before(5.0) }), "there is no way back");
    }

    #[test]
    fn an_upgrade_that_is_undone_is_remembered_and_its_definitions_stay() {
        let upgrading = record("a", Some("plan")).succession("b", None, 5.0);
        let upgrading = with(record("b", None), upgrading);
        assert!(!upgrading.keeps_definitions("b") && upgrading.is_being_undone().is_none());
        assert!(upgrading.keeps_definitions("a"), "on the way back");
        let back = with(record("a", None), upgrading.succession("a", Some("DaemonSet a"), 6.0));
        let undone = back.is_being_undone().expect("it is").clone();
        assert_eq!((undone.digest.as_str(), undone.awaited.as_str()), ("b", "DaemonSet a"));
        let after = UndoneUpgrade { is_complete: true, ..undone.clone() };
        let after = Inventory { complete: true, undone: Some(after), ..back.clone() };
        assert!(after.is_being_undone().is_none() && after.keeps_definitions("a"));
        assert_eq!(after.succession("a", None, 7.0).undone, after.undone, "settings change");
        assert_eq!(after.succession("c", None, 7.0).undone, None, "another is consented to");
        let forged = Inventory { standing: Standing::Unknown, ..back };
        assert!(forged.is_being_undone().is_none());
    }
}
