//! What one machine sees: the cluster's things as another driver's, and its own instance, target and
//! bootstrap secret as its own. An instance is a machine's when it says so itself by its tags: what the
//! object names as its instance was written by a user, or copied.

use std::collections::BTreeSet;

use crds::names::{ID_TAG, MACHINE_NAME_TAG, OWNED, cluster_tag};

use super::{API_SERVER, MAIN};
use crate::PersistedState;
use crate::token::client_token;
use model::{
    Answers, FoundInstance, Instance, Key, Kind, LoadBalancer, Observed, ObservedResource, Owner, Resource,
    Secret, Snapshot, State, Subnet, Target,
};

/// What one machine sees. `cluster`: what its cluster sees in the same snapshot; `wants_secret`: whether its
/// bootstrap data should be in Secrets Manager; a secret that is on its way counts as absent then, and as
/// something to delete otherwise.
pub fn machine(
    snapshot: &Snapshot,
    cluster: &Observed,
    record: &PersistedState,
    name: &str,
    found: Option<&FoundInstance>,
    wants_secret: bool,
) -> Observed {
    let mut res = cluster.clone();
    for observed in res.values_mut().filter(|it| it.owner == Owner::Mine) {
        observed.owner = Owner::OtherDriver("the cluster".into());
        observed.others.clear();
    }
    let mut put = |id: &str, state: State, is: Resource, tags: Option<model::Tags>| {
        let observed = ObservedResource {
            id: id.to_owned(),
            owner: Owner::Mine,
            state,
            is,
            tags,
            others: Vec::new(),
            note: None,
        };
        res.insert(observed.is.key(), observed);
    };
    if let Some((prefix, count)) = &record.secret {
        let on_its_way = record.intents.contains_key(&Secret::key(name));
        if !(on_its_way && wants_secret) {
            let is =
                Secret { name: name.to_owned(), prefix: prefix.clone(), parts: Vec::new(), count: *count };
            put(prefix, State::Ready, is.into(), None);
        }
    }
    let Some(found) = found else { return res };
    lies_in(&mut res, found);
    let state = match found.status.state.as_str() {
        "pending" => Some(State::Creating),
        "shutting-down" => Some(State::Deleting),
        "terminated" => None,
        _ => Some(State::Ready),
    };
    let behind = res.get(&LoadBalancer::key(API_SERVER)).is_some_and(|balancer| {
        snapshot.load_balancers.iter().any(|it| it.id == balancer.id && it.targets.contains(&found.id))
    });
    if let Some(state) = state {
        let is = observed_instance(found, &res, name);
        let observed = ObservedResource {
            id: found.id.clone(),
            owner: Owner::Mine,
            state,
            is: is.into(),
            tags: Some(found.tags.clone()),
            others: Vec::new(),
            note: None,
        };
        res.insert(observed.is.key(), observed);
    }
    if behind {
        let is =
            Target { name: name.to_owned(), load_balancer: API_SERVER.into(), instance: name.to_owned() };
        let observed = ObservedResource {
            id: found.id.clone(),
            owner: Owner::Mine,
            state: State::Ready,
            is: is.into(),
            tags: None,
            others: Vec::new(),
            note: None,
        };
        res.insert(observed.is.key(), observed);
    }
    res
}

/// What an instance has to say of itself to be one machine's.
pub struct Identity {
    /// Of the AWSMachine, which names its resources.
    pub name: String,
    /// Name of the Cluster.
    pub cluster: String,
    /// What its tag `MachineName` may be: namespace and name of the AWSMachine, which is written here, or of
    /// the Machine, which Cluster API Provider AWS writes.
    pub machine_names: [String; 2],
    /// The same, of the namespace that the cluster is restored from; counts with its id alone.
    pub former_names: Vec<String>,
    /// The random ids that it may carry: the AWSCluster's, and what the AWSMachine wrote down when it was
    /// made.
    pub ids: Vec<String>,
}

/// The instance that an AWSMachine names, or that the attempt made that was written down.
pub enum Named<'a> {
    /// There is none, or it is not shown.
    Nothing,
    Mine(&'a FoundInstance),
    /// It does not say that it is this machine's; why not.
    Foreign(&'a FoundInstance, String),
}

impl Identity {
    /// The instance of a machine.
    pub fn instance<'a>(&self, snapshot: &'a Snapshot, record: &PersistedState) -> Named<'a> {
        let key = Instance::key(&self.name);
        let tokens: Vec<String> = match record.intents.get(&key) {
            Some(intent) => self.ids.iter().map(|id| client_token(id, &key, &intent.nonce)).collect(),
            None => Vec::new(),
        };
        let by_token =
            |it: &FoundInstance| it.client_token.as_ref().is_some_and(|token| tokens.contains(token));
        let found = match record.ids.get(&key) {
            Some(id) => snapshot.instances.iter().find(|it| it.id == *id),
            None => snapshot.instances.iter().find(|it| by_token(it)),
        };
        // Nobody else can have made what has a token that follows from what was written down before it was
        // made.
        let untagged =
            |it: &FoundInstance| !it.tags.contains_key(MACHINE_NAME_TAG) && !it.tags.contains_key(ID_TAG);
        match found.map(|found| (found, self.doubt(found).filter(|_| !(by_token(found) && untagged(found)))))
        {
            None => Named::Nothing,
            Some((found, None)) => Named::Mine(found),
            Some((found, Some(why))) => Named::Foreign(found, why),
        }
    }

    /// Why an instance is not this machine's. What it carries of others is not told: it is theirs.
    fn doubt(&self, found: &FoundInstance) -> Option<String> {
        let machine = &self.machine_names[0];
        match found.tags.get(MACHINE_NAME_TAG) {
            Some(it) if self.machine_names.contains(it) => (),
            Some(it)
                if self.former_names.contains(it)
                    && found.tags.get(ID_TAG).is_some_and(|id| self.ids.contains(id)) => {}
            Some(_) => return Some(format!("its tag {MACHINE_NAME_TAG} is not {machine}")),
            None => return Some(format!("it has no tag {MACHINE_NAME_TAG}: {machine}")),
        }
        let owned = cluster_tag(&self.cluster);
        match found.tags.get(ID_TAG) {
            Some(id) => {
                (!self.ids.contains(id)).then(|| format!("its tag {ID_TAG} is that of another cluster"))
            }
            // Made by Cluster API Provider AWS, or for a cluster that somebody else looks after.
            None if found.tags.get(&owned).map(String::as_str) == Some(OWNED) => None,
            None => Some(format!("it has neither the tag {ID_TAG} of its cluster nor {owned}: {OWNED}")),
        }
    }
}

/// The subnets that the user means by filters or id and that no poll shows, since the cluster does not list
/// them.
pub(crate) fn looked_up(observed: &mut Observed, answers: &Answers) {
    for it in answers.subnets.values().flatten() {
        let is = Subnet {
            name: it.id.clone(),
            vpc: MAIN.into(),
            zone: it.zone.clone(),
            cidr: it.cidr.clone(),
            public: it.public,
        };
        brought(observed, &it.id, it.state, is);
    }
}

/// An instance may lie in a subnet that no poll shows. That the subnet is there follows from the instance.
fn lies_in(observed: &mut Observed, found: &FoundInstance) {
    let Some(id) = &found.subnet_id else { return };
    let is = Subnet {
        name: id.clone(),
        vpc: MAIN.into(),
        zone: found.status.zone.clone(),
        cidr: String::new(),
        public: false,
    };
    brought(observed, id, State::Ready, is);
}

fn brought(observed: &mut Observed, id: &str, state: State, is: Subnet) {
    if observed.iter().any(|(key, it)| key.kind == Kind::Subnet && it.id == id) {
        return;
    }
    let subnet = ObservedResource {
        id: id.to_owned(),
        owner: Owner::User,
        state,
        is: is.into(),
        tags: None,
        others: Vec::new(),
        note: None,
    };
    observed.insert(subnet.is.key(), subnet);
}

fn observed_instance(found: &FoundInstance, observed: &Observed, name: &str) -> Instance {
    let role = |kind: Kind, id: &str| {
        observed.iter().find(|(key, it)| key.kind == kind && it.id == id).map(|(key, _)| key.name.clone())
    };
    let (mut groups, mut additional_groups) = (BTreeSet::new(), BTreeSet::new());
    for id in &found.groups {
        match role(Kind::SecurityGroup, id) {
            Some(role) => groups.insert(role),
            None => additional_groups.insert(id.clone()),
        };
    }
    let subnet = found.subnet_id.as_deref().unwrap_or_default();
    Instance {
        name: name.to_owned(),
        subnet: role(Kind::Subnet, subnet).unwrap_or_else(|| subnet.to_owned()),
        groups,
        additional_groups,
        removed_groups: BTreeSet::new(),
        internet_gateway: None,
        secret: None,
        launch: None,
        status: Some(found.status.clone()),
    }
}

/// Whether a key is the machine's own.
pub(crate) fn is_own(key: &Key) -> bool {
    matches!(key.kind, Kind::Instance | Kind::Target | Kind::Secret)
}
