//! Questions and answers as an author sees them. They hold values; text is made and read in the adapter
//! alone.

use crate::{Diagnostic, Operation, Severity};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The question put to a plugin.
#[derive(Clone, Debug)]
pub struct Request<C> {
    /// What the plan is for.
    pub operation: Operation,
    /// Version of cluster-operator, such as `0.1.0`.
    pub host_version: String,
    /// Kinds of steps that the host carries out, and of queries that it answers.
    pub features: Vec<String>,
    /// Version of this plugin whose plan was carried out last.
    pub installed_version: Option<String>,
    /// Configuration of that plan, as it was: an older version of the plugin may have had another form.
    pub previous_config: Option<Value>,
    /// What the user set; it fulfils the schema in [`Descriptor`].
    pub config: C,
    /// What the host knows: facts that come without asking, and those granted. Better read by
    /// [`fact`](Self::fact).
    pub facts: Vec<Fact>,
}

/// One thing the host knows.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Such as `kubernetes-version`; see [`crate::facts`].
    pub key: String,
    /// What the host found.
    pub value: FactValue,
}

/// What is known under a key.
#[derive(Clone, Debug)]
pub enum FactValue {
    /// What it is, by the JSON Schema of the key.
    Present(Value),
    /// Looked for, and not there.
    Absent,
    /// The plugin was not granted it, or the host may not read it; says which and why.
    Denied(String),
    /// Could not be read now; says why.
    Unknown(String),
}

impl<C> Request<C> {
    /// A fact that the plan can do without: `None` when it is absent, or the host does not give it.
    ///
    /// # Errors
    /// Pending when the fact could not be read, unsupported when it is denied or of another form than `T`.
    pub fn optional_fact<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Stop> {
        let found = self.facts.iter().find(|fact| fact.key == key);
        match found.map(|fact| &fact.value) {
            Some(FactValue::Absent) | None => Ok(None),
            Some(_) => self.fact(key).map(Some),
        }
    }

    /// Whether the host carries out steps of this kind.
    pub fn offers(&self, kind: &str) -> bool {
        self.features.iter().any(|feature| feature == kind)
    }

    /// # Errors
    /// Unsupported when the host does not carry out steps of this kind; `why` says what they are for, such as
    /// `roleARN`.
    pub fn needs_step(&self, kind: &str, why: &str) -> Result<(), Stop> {
        if self.offers(kind) {
            return Ok(());
        }
        let message = [
            why,
            " needs steps of kind ",
            kind,
            ", which cluster-operator ",
            &self.host_version,
            " does not carry out",
        ];
        Err(Stop::unsupported("UnsupportedHost", message.concat()))
    }

    /// A fact that the plan cannot do without.
    ///
    /// # Errors
    /// Pending when the fact could not be read, unsupported when it is absent, denied or of another form than
    /// `T`.
    pub fn fact<T: DeserializeOwned>(&self, key: &str) -> Result<T, Stop> {
        let found = self.facts.iter().find(|fact| fact.key == key);
        match found.map(|fact| &fact.value) {
            Some(FactValue::Present(value)) => T::deserialize(value).map_err(|error| {
                unusable("FactMalformed", key, "has an unexpected form", &error.to_string())
            }),
            Some(FactValue::Unknown(why)) => Err(Stop::Pending(vec![Diagnostic {
                severity: Severity::Info,
                code: "FactUnknown".to_owned(),
                path: String::new(),
                message: ["waiting for fact ", key, ": ", why].concat(),
            }])),
            Some(FactValue::Denied(why)) => Err(unusable("FactDenied", key, "was not given", why)),
            Some(FactValue::Absent) | None => Err(unusable("FactAbsent", key, "is needed", "it is absent")),
        }
    }
}

fn unusable(code: &str, key: &str, what: &str, why: &str) -> Stop {
    Stop::unsupported(code, ["fact ", key, " ", what, ": ", why].concat())
}

/// What shall be.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// What installs it. Done in the order of `after`; what a later plan no longer has is pruned.
    pub steps: Vec<Step>,
    /// What uninstalls it, in a list of its own.
    pub removal: Vec<Step>,
    /// For the user. One of severity `Error` keeps the plan from being carried out.
    pub diagnostics: Vec<Diagnostic>,
    /// What users and other plugins are told of what it installs: texts of one line by their names.
    pub outputs: Vec<(String, String)>,
}

/// One thing the host shall do. Made by the functions in [`crate::steps`].
#[derive(Clone, Debug)]
pub struct Step {
    /// Unique within its list.
    pub id: String,
    /// Such as `k8s.apply/v1`; see [`crate::steps`].
    pub kind: &'static str,
    /// What to do, by the JSON Schema of the kind.
    pub spec: Value,
    /// Ids of steps of the same list that must be done before.
    pub after: Vec<String>,
}

impl Step {
    /// The same step, done only after `ids` of the same list.
    pub fn after<I: IntoIterator<Item = S>, S: Into<String>>(mut self, ids: I) -> Step {
        self.after.extend(ids.into_iter().map(Into::into));
        self
    }
}

/// A question back to the host.
#[derive(Clone, Debug)]
pub struct Need {
    /// Key of the fact that the next call shall have.
    pub key: String,
    /// What is asked; better made by the functions in [`crate::queries`].
    pub query: Value,
}

/// Why there is no plan, or not yet.
#[derive(Clone, Debug)]
pub enum Stop {
    /// Asks for facts and wants to be called again.
    Needs(Vec<Need>),
    /// Nothing can be done yet; each diagnostic says what it waits for.
    Pending(Vec<Diagnostic>),
    /// The user has to change the configuration.
    Invalid(Vec<Diagnostic>),
    /// The configuration is right, but not for this cluster or this host.
    Unsupported(Diagnostic),
    /// A defect of the plugin.
    Internal(String),
}

impl Stop {
    /// The configuration does not suit this cluster or this host.
    pub fn unsupported(code: &str, message: String) -> Stop {
        Stop::Unsupported(error(code, "", message))
    }
}

/// A diagnostic of severity `Error`.
pub(crate) fn error(code: &str, path: &str, message: String) -> Diagnostic {
    Diagnostic { severity: Severity::Error, code: code.to_owned(), path: path.to_owned(), message }
}

impl Diagnostic {
    /// What is wrong at `path` (a JSON pointer) of the configuration.
    pub fn error(code: &str, path: &str, message: impl Into<String>) -> Diagnostic {
        error(code, path, message.into())
    }

    /// What helps the user while the plan takes longer than it should, about `path` (a JSON pointer) of the
    /// configuration.
    pub fn info(code: &str, path: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Info, ..error(code, path, message.into()) }
    }

    /// What the user should know about `path` (a JSON pointer) of the configuration, although it is carried
    /// out.
    pub fn warning(code: &str, path: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..error(code, path, message.into()) }
    }
}

/// What a plugin says about itself.
#[derive(Clone, Debug)]
pub struct Descriptor {
    /// Such as `calico`.
    pub name: &'static str,
    /// Of the plugin, which changes with what it installs: most often the newest release that it knows, such
    /// as `1.63.1`.
    pub version: &'static str,
    /// `cloud-provider`, `networking`, `storage`, `ingress` or `other`.
    pub category: &'static str,
    /// JSON Schema (draft 2020-12) of the configuration, as text.
    pub config_schema: &'static str,
    /// Step kinds it wants to be granted.
    pub steps: &'static [&'static str],
    /// Keys of the facts it wants to be granted.
    pub facts: &'static [&'static str],
    /// What of other add-ons has to run before it is installed.
    pub requires: Requires,
}

/// What a plugin needs of other add-ons of the cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requires {
    /// Names of add-ons in the ClusterPlugin.
    pub plugins: &'static [&'static str],
    /// `cloud-provider`, `cni`, `csi` or `ingress`: add-ons in that slot, if there are any.
    pub capabilities: &'static [&'static str],
}
