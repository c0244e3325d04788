//! What has to outlast everything: it is kept on the object itself, in annotations and in the two spec fields
//! that Cluster API gives a provider. Status is not moved by `clusterctl move`, so nothing of this is only
//! there. It is read and written as patches; nothing here talks to an API server.

mod settled;

use std::collections::BTreeMap;

use crds::cluster::AWSIdentityKind;
use crds::names::{BLOCK_MOVE_ANNOTATION, ID_ANNOTATION, INTENT_ANNOTATION};
use crds::{AWSCluster, AWSMachine};
use serde_json::{Map, Value, json};

use model::{Action, Applied, Intent, Invalid, Key, Kind, Outcome, Plan, Resource, Timestamp};

pub use settled::{CREATED_ANNOTATION, Settled};

/// Annotation of an AWSCluster: AWS ids of what is never made again once it was there. JSON, key to id.
pub const RECORDED_ANNOTATION: &str = "cluster.kurator.dev/recorded";
/// Annotation of an AWSCluster: the availability zones that were chosen for it, separated by commas.
pub const ZONES_ANNOTATION: &str = "cluster.kurator.dev/zones";

/// What the annotation says that keeps `clusterctl move` waiting.
pub(crate) const BLOCKED: &str = "cluster-operator is creating AWS resources";

/// What lasts of an AWSCluster or AWSMachine besides what its author wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PersistedState {
    /// Random; every resource made for a cluster carries it as a tag. Empty until it was chosen. Of a
    /// machine: the id that its instance carries, since machines outlive their AWSCluster, and a cluster that
    /// somebody else looks after has none.
    pub id: String,
    /// Zones chosen for a cluster that lists no subnets.
    pub zones: Vec<String>,
    /// What was there once and is not made again.
    pub ids: BTreeMap<Key, String>,
    /// Creations that were begun and whose outcome is not settled.
    pub intents: BTreeMap<Key, Intent>,
    /// The latest of them that was settled, or whose outcome was recorded: reads that begin soon after may
    /// still lack what it made.
    pub created: Option<Settled>,
    /// Host and port of the API of a cluster.
    pub endpoint: Option<(String, i32)>,
    /// `aws:///ZONE/INSTANCE` of a machine.
    pub provider_id: Option<String>,
    /// Prefix and number of the secrets that hold a machine's bootstrap data.
    pub secret: Option<(String, usize)>,
    /// What a machine's user added to its instance.
    pub applied: Applied,
}

impl PersistedState {
    /// What an AWSCluster says.
    ///
    /// # Errors
    /// An annotation of ours was overwritten by somebody and cannot be read, or what was made belongs to
    /// another identity's account, where absence would be concluded from looking in the wrong place: nothing
    /// may be done then.
    pub fn of_cluster(aws_cluster: &AWSCluster) -> Result<PersistedState, Invalid> {
        // Refused by the API server, but for objects that were stored before it knew.
        if aws_cluster.spec.identity_ref.kind != AWSIdentityKind::AWSClusterControllerIdentity {
            let message = "of the AWSCluster is not supported by cluster-operator: use AWSClusterControllerIdentity, and run an operator \
                           with the credentials of that account";
            return Err(Invalid::new("spec.identityRef", message));
        }
        let annotations = aws_cluster.metadata.annotations.as_ref();
        let text = |name| annotations.and_then(|all| all.get(name)).map(String::as_str);
        let endpoint = &aws_cluster.spec.control_plane_endpoint;
        Ok(PersistedState {
            id: text(ID_ANNOTATION).unwrap_or_default().to_owned(),
            zones: text(ZONES_ANNOTATION)
                .map(|it| it.split(',').map(str::to_owned).collect())
                .unwrap_or_default(),
            ids: keyed(RECORDED_ANNOTATION, text(RECORDED_ANNOTATION))?,
            intents: keyed(INTENT_ANNOTATION, text(INTENT_ANNOTATION))?,
            created: text(CREATED_ANNOTATION).and_then(Settled::parse),
            endpoint: (!endpoint.is_unset()).then(|| (endpoint.host.clone(), endpoint.port)),
            ..PersistedState::default()
        })
    }

    /// What an AWSMachine says.
    ///
    /// # Errors
    /// As [`of_cluster`](Self::of_cluster), or the provider id is none of AWS's.
    pub fn of_machine(aws_machine: &AWSMachine) -> Result<PersistedState, Invalid> {
        let name = aws_machine.metadata.name.clone().unwrap_or_default();
        let annotations = aws_machine.metadata.annotations.as_ref();
        let text = |name| annotations.and_then(|all| all.get(name)).map(String::as_str);
        let cloud_init = &aws_machine.spec.cloud_init;
        let mut res = PersistedState {
            id: text(ID_ANNOTATION).unwrap_or_default().to_owned(),
            intents: keyed(INTENT_ANNOTATION, text(INTENT_ANNOTATION))?,
            created: text(CREATED_ANNOTATION).and_then(Settled::parse),
            provider_id: aws_machine.spec.provider_id.clone().filter(|it| !it.is_empty()),
            secret: (!cloud_init.secret_prefix.is_empty()).then(|| {
                (
                    cloud_init.secret_prefix.clone(),
                    usize::try_from(cloud_init.secret_count).unwrap_or_default(),
                )
            }),
            applied: Applied::of(aws_machine.metadata.annotations.as_ref()),
            ..PersistedState::default()
        };
        let from_provider_id = match &res.provider_id {
            None => None,
            Some(text) => match text.rsplit_once('/') {
                Some((before, id)) if before.starts_with("aws://") && id.starts_with("i-") => {
                    Some(id.to_owned())
                }
                _ => {
                    return Err(Invalid::new(
                        "spec.providerID",
                        format!("{text:?} is not of the form aws:///ZONE/INSTANCE"),
                    ));
                }
            },
        };
        if let Some(id) = from_provider_id.or_else(|| aws_machine.spec.instance_id.clone()) {
            res.ids.insert(Key::new(Kind::Instance, name), id);
        }
        Ok(res)
    }

    /// The merge patch that makes an AWSCluster say this; `None` when it already does.
    pub fn cluster_patch(&self, aws_cluster: &AWSCluster) -> Option<Value> {
        let current = aws_cluster.metadata.annotations.clone().unwrap_or_default();
        let mut annotations = self.creation_annotations();
        let some = |text: String| (!text.is_empty()).then_some(text);
        annotations.insert(ID_ANNOTATION, some(self.id.clone()));
        annotations.insert(ZONES_ANNOTATION, some(self.zones.join(",")));
        annotations.insert(RECORDED_ANNOTATION, (!self.ids.is_empty()).then(|| unkeyed(&self.ids)));
        let mut spec = Map::new();
        if let Some((host, port)) =
            self.endpoint.as_ref().filter(|_| aws_cluster.spec.control_plane_endpoint.is_unset())
        {
            spec.insert("controlPlaneEndpoint".into(), json!({"host": host, "port": port}));
        }
        patch(&current, annotations, spec, aws_cluster.metadata.resource_version.as_deref())
    }

    /// The merge patch that makes an AWSMachine say this; `None` when it already does.
    pub fn machine_patch(&self, aws_machine: &AWSMachine) -> Option<Value> {
        let current = aws_machine.metadata.annotations.clone().unwrap_or_default();
        let mut spec = Map::new();
        let instance = self.ids.iter().find(|(key, _)| key.kind == Kind::Instance).map(|(_, id)| id);
        if self.provider_id.is_some() && self.provider_id != aws_machine.spec.provider_id {
            spec.insert("providerID".into(), json!(self.provider_id));
        }
        if instance.is_some() && instance != aws_machine.spec.instance_id.as_ref() {
            spec.insert("instanceID".into(), json!(instance));
        }
        let (prefix, count) =
            self.secret.clone().map(|(prefix, count)| (Some(prefix), Some(count))).unwrap_or_default();
        if prefix.as_deref().unwrap_or_default() != aws_machine.spec.cloud_init.secret_prefix {
            spec.insert("cloudInit".into(), json!({"secretPrefix": prefix, "secretCount": count}));
        }
        let mut annotations = self.creation_annotations();
        annotations.insert(ID_ANNOTATION, (!self.id.is_empty()).then(|| self.id.clone()));
        annotations.extend(self.applied.annotations(&current));
        patch(&current, annotations, spec, aws_machine.metadata.resource_version.as_deref())
    }

    /// It was made, and is not made again; `since`: when this process began to act.
    pub(crate) fn remember(&mut self, key: Key, id: &str, now: Timestamp, since: Timestamp) {
        if self.ids.insert(key, id.to_owned()).is_none_or(|before| before != id) {
            self.created = Some(Settled::now(now, since, self.created));
        }
    }

    /// What has to be on the object before the plan is carried out.
    pub(crate) fn before(&self, plan: &Plan, now: Timestamp, since: Timestamp) -> PersistedState {
        let mut res = self.clone();
        if plan.close.iter().any(|key| res.intents.contains_key(key)) {
            res.created = Some(Settled::now(now, since, res.created));
        }
        res.intents.retain(|key, _| !plan.close.contains(key));
        res.intents.extend(plan.open.clone());
        res
    }

    /// What has to be on the object after the plan was carried out: attempts that were refused are taken off,
    /// and what was deleted for good. `outcomes` are in the order of the plan's actions.
    pub fn after(&self, plan: &Plan, outcomes: &[(Key, Outcome)]) -> PersistedState {
        let mut res = self.clone();
        for (n, action) in plan.actions.iter().enumerate() {
            let key = action.key();
            // Two may be about one thing: outcomes are in the order of actions.
            let earlier = plan.actions[..n].iter().filter(|it| it.key() == key).count();
            let outcome =
                outcomes.iter().filter(|(other, _)| *other == key).nth(earlier).map(|(_, outcome)| outcome);
            match (action, outcome) {
                // A refused retry says nothing about the attempt before it.
                (Action::Create { .. }, Some(Outcome::Refused { .. }))
                    if plan.open.contains_key(&key) && key.kind != Kind::Secret =>
                {
                    res.intents.remove(&key);
                }
                (Action::Create { .. }, Some(Outcome::Done)) if key.kind == Kind::Secret => {
                    res.intents.remove(&key);
                }
                (Action::Delete { .. }, Some(Outcome::Done)) if key.kind == Kind::Secret => {
                    res.intents.remove(&key);
                    res.secret = None;
                }
                (Action::Update { is: Resource::Instance(is), .. }, Some(Outcome::Done)) => {
                    res.applied.groups.retain(|id| !is.removed_groups.contains(id));
                }
                (Action::Tag { untag, .. }, Some(Outcome::Done)) if key.kind == Kind::Instance => {
                    res.applied.tags.retain(|name, _| !untag.contains(name));
                }
                (Action::Delete { .. }, Some(Outcome::Done))
                    if matches!(key.kind, Kind::Vpc | Kind::LoadBalancer) =>
                {
                    res.ids.remove(&key);
                }
                _ => (),
            }
        }
        res
    }

    fn creation_annotations(&self) -> BTreeMap<&'static str, Option<String>> {
        let open = !self.intents.is_empty();
        BTreeMap::from([
            (INTENT_ANNOTATION, open.then(|| unkeyed(&self.intents))),
            (CREATED_ANNOTATION, self.created.map(|it| it.text())),
            (BLOCK_MOVE_ANNOTATION, open.then(|| BLOCKED.to_owned())),
        ])
    }
}

/// The merge patch that makes annotations and spec say what is desired; `None` when they already do.
pub(crate) fn patch(
    current: &BTreeMap<String, String>,
    desired: BTreeMap<&'static str, Option<String>>,
    spec: Map<String, Value>,
    resource_version: Option<&str>,
) -> Option<Value> {
    let differing: Map<String, Value> = desired
        .into_iter()
        .filter(|(name, value)| current.get(*name) != value.as_ref())
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    if differing.is_empty() && spec.is_empty() {
        return None;
    }
    let mut metadata = Map::new();
    if let Some(version) = resource_version {
        metadata.insert("resourceVersion".into(), json!(version));
    }
    if !differing.is_empty() {
        metadata.insert("annotations".into(), Value::Object(differing));
    }
    let mut res = json!({"metadata": metadata});
    if !spec.is_empty() {
        res["spec"] = Value::Object(spec);
    }
    Some(res)
}

fn keyed<T: serde::de::DeserializeOwned>(
    annotation: &str,
    text: Option<&str>,
) -> Result<BTreeMap<Key, T>, Invalid> {
    let invalid = |why: String| {
        Invalid::new(
            format!("metadata.annotations[{annotation}]"),
            format!("was overwritten and cannot be read: {why}"),
        )
    };
    let Some(text) = text else { return Ok(BTreeMap::new()) };
    let all: BTreeMap<String, T> = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
    all.into_iter()
        .map(|(key, value)| {
            Ok((key.parse().map_err(|error: model::NoKey| invalid(error.to_string()))?, value))
        })
        .collect()
}

fn unkeyed<T: serde::Serialize>(all: &BTreeMap<Key, T>) -> String {
    let all: BTreeMap<String, &T> = all.iter().map(|(key, value)| (key.to_string(), value)).collect();
    // Strings, numbers and JSON values always serialize.
    serde_json::to_string(&all).unwrap_or_default()
}
