//! Answers what plugins ask for beside their facts: from the workload cluster, as far as it is granted, and
//! within bounds. An answer that is not whole is none: it is unknown, and says why.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use addons::grant::{Reach, is_granted, is_withheld, judge, told};
use addons::{self, Inventory, NODES_PARTS, ObjectRef, Standing, nodes_answer};
use contract::{
    ApiAnswer, ApisQuery, FACTS, Fact, FactValue, Need, ObjectsQuery, OwnObjectAnswer, OwnObjectsQuery,
    Query, QueryError, Request,
};
use crds::conditions::reason;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::workload::{WorkloadCluster, WorkloadError};

/// How often a plugin is answered in one question.
pub const ROUNDS: usize = 5;
/// Needs of one question.
const NEEDS: usize = 32;
/// Bytes of one answer as JSON, and of all answers to one add-on in a reconciliation.
const LARGEST: usize = 1 << 20;
const LARGEST_ALL: usize = 4 << 20;
/// How long an add-on's answers may take in a reconciliation: the others of the cluster wait meanwhile.
const PATIENCE: Duration = Duration::from_secs(20);
/// Objects of its own that one answer has at most: each is asked for by itself.
const MOST_OWN: usize = 100;

/// Whom to ask in one reconciliation, and what was answered in it.
pub struct Queries {
    /// Or why nobody is asked.
    workload: Result<Arc<WorkloadCluster>, String>,
    /// What add-ons tell of themselves, by their names; or why that is not known.
    outputs: Result<BTreeMap<String, BTreeMap<String, String>>, String>,
    /// After this nobody is asked.
    until: Instant,
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers {
    by_question: HashMap<String, FactValue>,
    /// What answers to each add-on took.
    spent: HashMap<String, Spent>,
}

#[derive(Clone, Copy, Default)]
struct Spent {
    bytes: usize,
    time: Duration,
}

/// Who asks: an add-on, what it may ask for, and its record.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    pub module: &'a str,
    pub grants: &'a addons::grant::Grants,
    pub installed: Result<Option<&'a Inventory>, &'a str>,
}

/// What a plugin asked for in one question.
#[derive(Default)]
pub struct Rounds {
    count: usize,
    needs: usize,
    asked: BTreeMap<String, Value>,
}

/// A reason for a condition, and what is wrong.
pub type Defect = (&'static str, String);

impl Queries {
    /// Nobody is asked, for this reason.
    pub fn unanswered(why: &str) -> Queries {
        let why = why.to_owned();
        Queries {
            workload: Err(why.clone()),
            outputs: Err(why),
            until: Instant::now(),
            answers: Mutex::default(),
        }
    }

    /// A cluster that answers, in which this is installed, is asked until then.
    pub fn of(
        workload: Option<Arc<WorkloadCluster>>,
        installed: Result<&[Inventory], &str>,
        until: Instant,
    ) -> Queries {
        let whole = |all: &[Inventory]| {
            let proven = all.iter().filter(|it| it.standing == Standing::Proven);
            proven.map(|it| (it.module.clone(), it.outputs.clone())).collect()
        };
        Queries {
            workload: workload.ok_or_else(|| "the API server of the cluster was not asked".to_owned()),
            outputs: installed.map(whole).map_err(str::to_owned),
            until,
            answers: Mutex::default(),
        }
    }

    /// What is known about a question. The same question gets the same answer in one reconciliation.
    pub async fn answer(&self, query: &Query, asking: Asking<'_>) -> FactValue {
        let reach = match judge(query, &asking.grants.queries) {
            Ok(reach) => reach,
            Err(denial) => return FactValue::Denied(denial),
        };
        // Plugins differ in what they may ask for and in what they own.
        let question = format!("{} {reach:?} {query:?}", asking.module);
        if let Some(known) = self.lock().by_question.get(&question) {
            return known.clone();
        }
        let spent = self.lock().spent.get(asking.module).copied().unwrap_or_default();
        let began = Instant::now();
        let left = PATIENCE.saturating_sub(spent.time).min(self.until.saturating_duration_since(began));
        let found = match tokio::time::timeout(left, self.ask(query, reach, asking)).await {
            Ok(found) => found.unwrap_or_else(unknown),
            Err(_) => FactValue::Unknown("there was no time left to ask".to_owned()),
        };
        let mut answers = self.lock();
        let all = answers.spent.entry(asking.module.to_owned()).or_default();
        all.time += began.elapsed();
        let bytes = bytes(&found);
        if bytes > LARGEST {
            return FactValue::Unknown(format!("the answer has more than {LARGEST} bytes"));
        }
        if all.bytes + bytes > LARGEST_ALL {
            return FactValue::Unknown(format!("all answers together have more than {LARGEST_ALL} bytes"));
        }
        all.bytes += bytes;
        answers.by_question.insert(question, found.clone());
        found
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, query: &Query, reach: Reach, asking: Asking<'_>) -> Result<FactValue, WorkloadError> {
        if let Query::Outputs(query) = query {
            return Ok(match &self.outputs {
                Ok(all) => {
                    all.get(&query.plugin).map_or(FactValue::Absent, |it| FactValue::Present(json!(it)))
                }
                Err(why) => FactValue::Unknown(why.clone()),
            });
        }
        let workload = match &self.workload {
            Ok(workload) => workload,
            Err(why) => return Ok(FactValue::Unknown(why.clone())),
        };
        match query {
            Query::Objects(query) => objects(workload, query, reach).await,
            Query::Nodes(_) => {
                let nodes = workload.lists().all("v1", "Node", &NODES_PARTS).await?;
                let too_many = || FactValue::Unknown("the Nodes are of more sorts than are told".to_owned());
                Ok(nodes_answer(&nodes).map_or_else(too_many, |it| FactValue::Present(json!(it))))
            }
            Query::Apis(query) => apis(workload, query).await,
            Query::OwnObjects(query) => self.own_objects(workload, query, asking).await,
            Query::Outputs(_) => Ok(FactValue::Absent),
        }
    }

    /// Only what this program wrote down tells what an add-on owns, and only what is granted today.
    async fn own_objects(
        &self,
        workload: &WorkloadCluster,
        query: &OwnObjectsQuery,
        asking: Asking<'_>,
    ) -> Result<FactValue, WorkloadError> {
        let record = match asking.installed {
            Err(why) => return Ok(FactValue::Unknown(why.to_owned())),
            Ok(None) => return Ok(FactValue::Absent),
            Ok(Some(record)) if record.standing != Standing::Proven => {
                return Ok(FactValue::Unknown("its record was not written by this operator".to_owned()));
            }
            Ok(Some(record)) => record,
        };
        let is_asked = |it: &&ObjectRef| {
            let is_kind = query.kinds.is_empty() || query.kinds.contains(&it.kind);
            is_kind && is_granted(it, asking.grants) && !is_withheld(it)
        };
        let own: Vec<&ObjectRef> = record.objects.iter().filter(is_asked).collect();
        if own.len() > MOST_OWN {
            return Ok(FactValue::Unknown(format!("it has more than {MOST_OWN} objects: name kinds")));
        }
        let parts = parts(&query.fields);
        let mut res = Vec::new();
        for it in own {
            let object = workload.get_only(it, &parts).await?.unwrap_or(Value::Null);
            let ObjectRef { api_version, kind, namespace, name } = it.clone();
            res.push(OwnObjectAnswer { api_version, kind, namespace, name, object });
        }
        Ok(FactValue::Present(json!(res)))
    }
}

async fn objects(
    workload: &WorkloadCluster,
    query: &ObjectsQuery,
    reach: Reach,
) -> Result<FactValue, WorkloadError> {
    let ObjectsQuery { api_version, kind, namespace, name, label_selector, fields, limit } = query;
    let is_namespaced = match workload.is_namespaced(api_version, kind).await {
        Err(WorkloadError::UnknownKind { .. }) => return Ok(FactValue::Absent),
        other => other?,
    };
    let denial = match (is_namespaced, namespace, name) {
        (true, None, _) if reach == Reach::ClusterScoped => {
            Some("is in namespaces: needs grants.queries with namespaces *")
        }
        (true, None, Some(_)) => Some("is in namespaces: an object is asked for by its namespace too"),
        (false, Some(_), _) => Some("is in no namespace"),
        _ => None,
    };
    if let Some(denial) = denial {
        return Ok(FactValue::Denied(format!("{kind} of {api_version} {denial}")));
    }
    let parts = parts(fields);
    let found = match name {
        Some(name) => {
            let object = ObjectRef::at((api_version, kind, namespace.as_deref(), name));
            let Some(found) = workload.get_only(&object, &parts).await? else { return Ok(FactValue::Absent) };
            vec![found]
        }
        None => {
            let pairs: Vec<String> =
                label_selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let most = usize::try_from(*limit).unwrap_or(contract::MOST_OBJECTS);
            let of = (api_version.as_str(), kind.as_str(), namespace.as_deref());
            let found = workload.lists().matching(of, &pairs.join(","), &parts, most).await?;
            if found.len() > most {
                return Ok(FactValue::Unknown(format!("there are more than {most} objects of kind {kind}")));
            }
            found
        }
    };
    Ok(FactValue::Present(told(kind, found).into()))
}

async fn apis(workload: &WorkloadCluster, query: &ApisQuery) -> Result<FactValue, WorkloadError> {
    let mut res = Vec::new();
    for api_version in workload.api_versions().await? {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        if query.groups.is_empty() {
            res.push(ApiAnswer { api_version, kinds: None });
        } else if query.groups.iter().any(|it| it == group) {
            let kinds = Some(workload.served_kinds(&api_version).await?);
            res.push(ApiAnswer { api_version, kinds });
        }
    }
    Ok(FactValue::Present(json!(res)))
}

fn parts(fields: &[String]) -> Vec<&str> {
    let always = ["/metadata/name", "/metadata/namespace"];
    always.into_iter().chain(fields.iter().map(String::as_str)).collect()
}

fn unknown(error: WorkloadError) -> FactValue {
    match error {
        WorkloadError::UnknownKind { .. } => FactValue::Absent,
        error => FactValue::Unknown(error.to_string()),
    }
}

fn bytes(value: &FactValue) -> usize {
    match value {
        FactValue::Present(value) => value.to_string().len(),
        FactValue::Absent => 0,
        FactValue::Denied(text) | FactValue::Unknown(text) => text.len(),
    }
}

impl Rounds {
    /// Answers what a plugin asks for, in the facts of the request with which it is asked again.
    ///
    /// # Errors
    /// It does not ask as the contract says, or never stops asking.
    pub async fn answer(
        &mut self,
        needs: &[Need],
        request: &mut Request,
        queries: &Queries,
        asking: Asking<'_>,
    ) -> Result<(), Defect> {
        let defect = |reason, what: String| Err((reason, format!("plugin {} {what}", asking.module)));
        if self.count == ROUNDS {
            let keys: Vec<&str> = needs.iter().map(|it| it.key.as_str()).collect();
            let message = format!("still asks for {} after {ROUNDS} answers", keys.join(", "));
            return defect(reason::NEEDS_UNRESOLVED, message);
        }
        self.count += 1;
        if needs.is_empty() {
            return defect(reason::NEEDS_INVALID, "asks for nothing in place of a plan".to_owned());
        }
        self.needs += needs.len();
        if self.needs > NEEDS {
            return defect(reason::NEEDS_INVALID, format!("asks for more than {NEEDS} answers"));
        }
        let mut all = Vec::new();
        for (place, need) in needs.iter().enumerate() {
            let Need { key, query } = need;
            if FACTS.contains(&key.as_str()) || needs[..place].iter().any(|it| it.key == *key) {
                let message = format!("asks for {key:?}, which is the key of a fact or of another need");
                return defect(reason::NEEDS_INVALID, message);
            }
            if self.asked.get(key) == Some(query) {
                return defect(reason::NEEDS_REPEATED, format!("asks for {key:?} again, which it was told"));
            }
            match Query::read(query) {
                Ok(query) => all.push((need, query)),
                Err(error @ QueryError::UnknownKind(_)) => {
                    return defect(reason::NEEDS_DENIED, format!("asks for {key:?}: {error}"));
                }
                Err(error) => return defect(reason::NEEDS_INVALID, format!("asks for {key:?}: {error}")),
            }
        }
        for (Need { key, query: text }, query) in all {
            let value = queries.answer(&query, asking).await;
            request.facts.retain(|it| it.key != *key);
            request.facts.push(Fact { key: key.clone(), value });
            self.asked.insert(key.clone(), text.clone());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
