//! Whether an object of an add-on is still as it was applied, told from its metadata alone, and what is
//! done when it is not. What is ours in an object is what the API server answered to our last apply:
//! whoever changes or removes one of these fields takes it out of the entry of our field manager.

mod expected;
mod fields;
mod history;
#[cfg(test)]
mod tests;

use serde_json::Value;
use sha2::{Digest, Sha256};

pub use expected::drifted;
pub use fields::{Path, without};
use fields::{contains, leaves};
pub use history::{Decision, History};

/// What of an object is looked at, as JSON pointers.
pub const WRITERS: [&str; 3] = ["/metadata/uid", "/metadata/deletionTimestamp", "/metadata/managedFields"];
/// What is written down of an object of which the API server does not say what is ours.
pub const UNTOLD: &str = "-";

/// Hex digits of an object's digests: of its uid, and of our fields.
const UID: usize = 8;
const FIELDS: usize = 16;
/// Fields and managers that are named.
const NAMED: usize = 3;
/// Characters of the name of a manager that are shown. The API server takes 128.
const LONGEST: usize = 128;

/// Who wrote an object, as its API server says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writers {
    uid: String,
    /// It is going, and may be made anew when it is gone.
    pub is_deleting: bool,
    entries: Vec<Entry>,
}

/// What one manager has of an object.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    manager: String,
    /// Rather than updated.
    is_applied: bool,
    subresource: String,
    time: String,
    fields: Value,
}

impl Writers {
    /// Those of an object, of which no more than [`WRITERS`] is needed.
    pub fn of(object: &Value) -> Self {
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let entry = |it: &Value| Entry {
            manager: text(&it["manager"]),
            is_applied: it["operation"] == "Apply",
            subresource: text(&it["subresource"]),
            time: text(&it["time"]),
            fields: it["fieldsV1"].clone(),
        };
        let metadata = &object["metadata"];
        let entries = metadata["managedFields"].as_array().into_iter().flatten().map(entry).collect();
        Writers {
            uid: text(&metadata["uid"]),
            is_deleting: !metadata["deletionTimestamp"].is_null(),
            entries,
        }
    }

    /// What is written down of the object after this manager applied it: digests of which object it is, and
    /// of what is the manager's in it and since when. [`UNTOLD`] where nothing is.
    pub fn mark(&self, manager: &str) -> String {
        let Some(ours) = self.ours(manager) else { return UNTOLD.to_owned() };
        let mut text = ours.time.clone();
        fields::write(&ours.fields, &mut text);
        format!("{}{}", self.uid_digest(), hex(&text, FIELDS))
    }

    fn uid_digest(&self) -> String {
        hex(&self.uid, UID)
    }

    fn ours(&self, manager: &str) -> Option<&Entry> {
        self.entries.iter().find(|it| it.is_ours(manager))
    }

    /// Others that have something of the object that is neither its status nor its scale.
    fn others<'a>(&'a self, manager: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |it| !it.is_ours(manager) && it.subresource.is_empty())
    }
}

impl Entry {
    fn is_ours(&self, manager: &str) -> bool {
        self.is_applied && self.manager == manager && self.subresource.is_empty()
    }
}

fn hex(text: &str, digits: usize) -> String {
    Sha256::digest(text).iter().map(|it| format!("{it:02x}")).collect::<String>()[..digits].to_owned()
}

/// How an object is compared with what was written down of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// As it was applied.
    Same,
    /// It is being deleted: it can be applied again once it is gone.
    Going,
    Different,
}

/// Compares an object with the mark that was written down when this manager applied it; `None`: it is not
/// there.
pub fn compare(mark: &str, observed: Option<&Writers>, manager: &str) -> Compared {
    match observed {
        Some(observed) if observed.is_deleting => Compared::Going,
        Some(observed) if mark == UNTOLD || observed.mark(manager) == mark => Compared::Same,
        _ => Compared::Different,
    }
}

/// What somebody did to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    pub change: Change,
    /// The manager that did it, as it is shown; several in a row; empty where nobody has what was taken.
    pub by: String,
    /// Fields that an autoscaler has by now: they are left to it.
    pub left: Vec<Path>,
}

/// How an object is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Gone,
    /// Another one has its name.
    Anew,
    /// These fields, as they are shown; none where it is not known which.
    Fields(String),
    /// Nothing but fields that an autoscaler has.
    Scaled,
}

/// What was done to an object that is [`Different`](Compared::Different). `would` is who would have what if
/// our plan's object were applied with force; `None` where the API server does not say.
pub fn drift(mark: &str, observed: Option<&Writers>, would: Option<&Writers>, manager: &str) -> Drift {
    let Some(observed) = observed else {
        return Drift { change: Change::Gone, by: String::new(), left: Vec::new() };
    };
    let last = || observed.others(manager).max_by(|a, b| a.time.cmp(&b.time)).map(|it| it.manager.as_str());
    if mark.get(..UID) != Some(observed.uid_digest().as_str()) {
        return Drift { change: Change::Anew, by: named(last()), left: Vec::new() };
    }
    let Some(would) = would.and_then(|it| it.ours(manager)) else {
        return Drift { change: Change::Fields(String::new()), by: named(last()), left: Vec::new() };
    };
    let lost = leaves(&would.fields, observed.ours(manager).map(|it| &it.fields));
    let is_scaled = |path: &Path| {
        observed.entries.iter().any(|it| it.subresource == "scale" && contains(&it.fields, path))
    };
    let (left, taken): (Vec<Path>, Vec<Path>) = lost.into_iter().partition(is_scaled);
    if taken.is_empty() && !left.is_empty() {
        return Drift { change: Change::Scaled, by: String::new(), left };
    }
    let owners =
        taken.iter().flat_map(|path| observed.others(manager).filter(|it| contains(&it.fields, path)));
    let by = named(owners.map(|it| it.manager.as_str()));
    Drift { change: Change::Fields(fields::shown(&taken, NAMED)), by, left }
}

impl Drift {
    /// What happened to an object of this name, for people.
    pub fn told(&self, object: &super::ObjectRef) -> String {
        let by = if self.by.is_empty() { "somebody" } else { &self.by };
        match &self.change {
            Change::Gone => format!("{object} was deleted"),
            Change::Anew => format!("{object} was made anew by {by}"),
            Change::Scaled => format!("{object} was scaled"),
            Change::Fields(fields) if fields.is_empty() => format!("{object} was changed by {by}"),
            Change::Fields(fields) => format!("{fields} of {object} was changed by {by}"),
        }
    }
}

impl Drift {
    /// What is said of it where it is only to be said.
    pub fn warned(&self, object: &super::ObjectRef) -> String {
        format!("{}, and is not set back: spec.drift is Warn", self.told(object))
    }

    /// What is said of it where it was set back often enough.
    pub fn stopped(&self, object: &super::ObjectRef) -> String {
        let who = if self.by.is_empty() { "whoever does so" } else { &self.by };
        let told = self.told(object);
        format!(
            "{told} again and again, and is not set back any more: have {who} leave it alone, or set spec.drift to Warn"
        )
    }
}

/// Names of managers, in quotes since the cluster chooses them, each once.
fn named<'a>(managers: impl IntoIterator<Item = &'a str>) -> String {
    let mut res: Vec<String> = Vec::new();
    for manager in managers {
        let shown = format!("\"{}\"", fields::plain(manager, LONGEST).replace('"', "'"));
        if !res.contains(&shown) && res.len() < NAMED {
            res.push(shown);
        }
    }
    res.sort();
    res.join(" and ")
}
