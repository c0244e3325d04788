//! Values of other owners in every field of AWSClusters and AWSMachines that takes a text, and in their
//! annotations: generated from the schemas, so that a new field is in it by itself. Nothing of the others may
//! change, and nothing of theirs be told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::world::driver::Fleet;
use crate::world::objects::merge;
use crate::world::{Faults, World};
use infra::PersistedState;
use serde_json::{Map, Value, json};

const CASES: u64 = 10_000;
/// Looks at what was written, and as many after it is deleted.
const LOOKS: usize = 4;

/// What others have, as somebody who writes objects may know it.
struct Others {
    world: World,
    before: BTreeMap<String, String>,
    fleets: Vec<Fleet>,
    /// Ids and names, by how they begin or what they are.
    known: BTreeMap<&'static str, Vec<String>>,
    /// What nobody else is told, and what it is.
    private: BTreeMap<String, &'static str>,
    schemas: BTreeMap<String, Value>,
    /// Cases in which something was done.
    acted: AtomicU64,
}

/// Two clusters with machines whose bootstrap data was not fetched yet, and a network of a user.
fn others() -> Others {
    let mut world = World::new(7, Faults::default());
    let mut fleets = Vec::new();
    for (name, balancer) in [("prod", "classic"), ("test", "nlb")] {
        let mut fleet = Fleet::new(name, json!({"controlPlaneLoadBalancer": {"loadBalancerType": balancer}}));
        fleet.settle(&mut world);
        fleet.add_machine(&format!("{name}-control"), true, json!({}));
        fleet.add_machine(&format!("{name}-worker"), false, json!({}));
        fleet.settle(&mut world);
        fleets.push(fleet);
    }
    (0..12).for_each(|_| world.tick());
    let truth = &world.truth;
    let ids = |prefix: &'static str| {
        (prefix, ids_of(&world).into_iter().filter(|it| it.starts_with(prefix)).collect::<Vec<_>>())
    };
    let mut known: BTreeMap<&'static str, Vec<String>> =
        ["vpc-", "subnet-", "igw-", "nat-", "eipalloc-", "rtb-", "sg-", "i-"].map(ids).into();
    known.insert(
        "name",
        truth.load_balancers.iter().map(|it| it.name.clone()).chain(fleets.iter().map(name)).collect(),
    );
    known.insert("secret", secret_prefixes(&world));
    known.insert(
        "providerID",
        truth.instances.iter().map(|it| format!("aws:///{}/{}", it.status.zone, it.id)).collect(),
    );
    known.insert("group-name", truth.security_groups.iter().map(|it| it.group_name.clone()).collect());
    known.insert("zone", truth.zones.clone());
    known.insert(
        "cidr",
        truth.subnets.iter().map(|it| it.cidr.clone()).chain(["10.0.0.0/16".to_owned()]).collect(),
    );
    known.insert(
        "filter",
        ["vpc-id", "subnet-id", "group-id", "group-name", "tag:Name", "tag:cluster.kurator.dev/owner"]
            .map(str::to_owned)
            .into(),
    );
    known.insert("pattern", vec!["*".to_owned(), "default/*".to_owned(), "prod-*".to_owned()]);
    assert!(known.values().all(|it| !it.is_empty()), "{known:?}");
    let of = |what: &'static str| move |it: String| (it, what);
    let ids = fleets.iter().map(|it| annotations(it)["cluster.kurator.dev/id"].clone());
    let mut private: BTreeMap<String, &'static str> = ids.map(of("id")).collect();
    private.extend(
        truth
            .instances
            .iter()
            .filter_map(|it| it.status.private_dns_name.clone())
            .map(of("host name of an instance")),
    );
    private.extend(
        truth.load_balancers.iter().map(|it| it.dns_name.clone()).map(of("host name of a load balancer")),
    );
    private.extend(secret_prefixes(&world).into_iter().map(of("name of a secret")));
    let definition = |it| serde_json::to_value(it).expect("a definition is JSON");
    let all = crds::definitions().expect("definitions").into_iter().map(definition);
    let schemas = all
        .map(|it: Value| {
            let kind = it["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
            (kind, it["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].clone())
        })
        .collect();
    Others { before: things(&world), world, fleets, known, private, schemas, acted: AtomicU64::new(0) }
}

fn ids_of(world: &World) -> Vec<String> {
    things(world).into_keys().filter_map(|it| it.split_once(' ').map(|(_, id)| id.to_owned())).collect()
}

fn name(fleet: &Fleet) -> String {
    fleet.aws_cluster.metadata.name.clone().unwrap_or_default()
}

fn annotations(fleet: &Fleet) -> BTreeMap<String, String> {
    fleet.aws_cluster.metadata.annotations.clone().unwrap_or_default()
}

fn secret_prefixes(world: &World) -> Vec<String> {
    world.secrets.keys().filter_map(|it| it.strip_suffix("-0")).map(str::to_owned).collect()
}

/// Everything that exists, as it is, by its kind and id.
fn things(world: &World) -> BTreeMap<String, String> {
    let mut res = BTreeMap::new();
    macro_rules! all {
        ($($field:ident)*) => {$(res.extend(world.truth.$field.iter().map(|it| (format!("{} {}", stringify!($field), it.id), format!("{it:?}"))));)*};
    }
    all!(vpcs subnets internet_gateways nat_gateways addresses route_tables security_groups instances load_balancers network_interfaces);
    res.extend(
        world.secrets.iter().map(|(name, content)| (format!("secrets {name}"), format!("{content:?}"))),
    );
    res.extend(world.target_groups.iter().map(|it| (format!("target_groups {it}"), String::new())));
    res.extend(world.parts.iter().map(|(id, tags)| (format!("volumes {id}"), format!("{tags:?}"))));
    res
}

/// Xorshift: the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % bound
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// What a text field of this path is likely to name.
const MEANS: [(&str, &str); 18] = [
    ("subnets[].resourceID", "subnet-"),
    ("subnets[].id", "subnet-"),
    ("subnet.id", "subnet-"),
    ("additionalSecurityGroups[].id", "sg-"),
    ("sourceSecurityGroupIds", "sg-"),
    ("securityGroup", "sg-"),
    ("vpc.id", "vpc-"),
    ("internetGatewayId", "igw-"),
    ("routeTableId", "rtb-"),
    ("natGatewayId", "nat-"),
    ("instanceID", "i-"),
    ("providerID", "providerID"),
    ("secretPrefix", "secret"),
    ("filters[].name", "filter"),
    ("filters[].values", "pattern"),
    ("availabilityZone", "zone"),
    ("idr", "cidr"),
    ("ame", "name"),
];

impl Others {
    fn text(&self, path: &str, random: &mut Random) -> String {
        let means = MEANS.iter().find(|(end, _)| path.contains(end)).filter(|_| random.chance(80));
        let kinds: Vec<&&str> = self.known.keys().collect();
        let kind = match means {
            Some((_, kind)) => kind,
            // An instance that begins without its bootstrap data is no case of this.
            None if path.contains("secretPrefix") => &"secret",
            None => *random.of(&kinds),
        };
        random.of(&self.known[*kind]).clone()
    }

    fn tags(&self, random: &mut Random) -> Value {
        let fleet = random.of(&self.fleets);
        let (id, owner) =
            (annotations(fleet)["cluster.kurator.dev/id"].clone(), infra::cluster::owner(&fleet.aws_cluster));
        let cluster = format!("sigs.k8s.io/cluster-api-provider-aws/cluster/{}", name(fleet));
        let machine = format!("default/{}", random.of(&fleet.machines.keys().cloned().collect::<Vec<_>>()));
        let all = [
            ("cluster.kurator.dev/id", id.as_str()),
            ("cluster.kurator.dev/owner", owner.as_str()),
            (cluster.as_str(), "owned"),
            ("MachineName", machine.as_str()),
            ("Name", "prod-vpc"),
        ];
        let chosen: Map<String, Value> = all
            .into_iter()
            .filter(|_| random.chance(50))
            .map(|(key, value)| (key.to_owned(), json!(value)))
            .collect();
        Value::Object(chosen)
    }

    /// A value that a schema allows, with others' names wherever a text may be.
    fn value(&self, schema: &Value, path: &str, random: &mut Random) -> Value {
        if let Some(values) = schema["enum"].as_array() {
            return random.of(values).clone();
        }
        match schema["type"].as_str() {
            Some("object") if schema["additionalProperties"].is_object() => self.tags(random),
            Some("object") => {
                let required: Vec<&str> =
                    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let fields = schema["properties"].as_object().into_iter().flatten();
                let chosen = fields
                    .filter(|(name, _)| required.contains(&name.as_str()) || random.chance(30))
                    .collect::<Vec<_>>();
                let value = |(name, field): (&String, &Value)| {
                    (name.clone(), self.value(field, &format!("{path}.{name}"), random))
                };
                Value::Object(chosen.into_iter().map(value).collect())
            }
            Some("array") => {
                let count = 1 + random.below(2);
                (0..count).map(|_| self.value(&schema["items"], &format!("{path}[]"), random)).collect()
            }
            Some("integer") => {
                let least = schema["minimum"].as_f64().map_or(1, |it| it as i64);
                json!(least + random.below(3) as i64)
            }
            Some("boolean") => json!(random.chance(50)),
            Some("string") if schema["format"] == "date-time" => json!("2027-01-15T08:00:00Z"),
            _ => json!(self.text(path, random)),
        }
    }

    fn part(&self, kind: &str, part: &str, random: &mut Random) -> Value {
        self.value(&self.schemas[kind][part], part, random)
    }

    /// An AWSCluster and AWSMachines of somebody else; `None` where a value is none of its type.
    fn hostile(&self, random: &mut Random) -> Option<Fleet> {
        let (namespace, name) = *random.of(&[("evil", "mallory"), ("evil", "prod"), ("default", "mallory")]);
        let mut spec = self.part("AWSCluster", "spec", random);
        // Most are carried out; the rest of the cases holds for those that are not.
        spec["region"] = json!("us-east-1");
        spec["identityRef"] = json!({"kind": "AWSClusterControllerIdentity", "name": "default"});
        let parsed: crds::AWSCluster = serde_json::from_value(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster", "metadata": {}, "spec": spec,
        }))
        .ok()?;
        let mut fleet = Fleet::new(name, json!({}));
        fleet.aws_cluster.spec = parsed.spec;
        if random.chance(50) {
            fleet.aws_cluster.spec.network = Default::default();
        }
        if random.chance(50) {
            fleet.aws_cluster.status = serde_json::from_value(self.part("AWSCluster", "status", random)).ok();
        }
        fleet.aws_cluster.metadata.namespace = Some(namespace.to_owned());
        fleet.cluster.metadata.namespace = Some(namespace.to_owned());
        let copied = annotations(random.of(&self.fleets)).into_iter().filter(|_| random.chance(50)).collect();
        fleet.aws_cluster.metadata.annotations = Some(copied);
        for number in 0..2 {
            self.add_machine(&mut fleet, namespace, &format!("mallory-{number}"), random);
        }
        PersistedState::of_cluster(&fleet.aws_cluster).is_ok().then_some(fleet)
    }

    fn add_machine(&self, fleet: &mut Fleet, namespace: &str, name: &str, random: &mut Random) {
        let whose = random.of(&self.fleets);
        let victims: Vec<&String> = whose.machines.keys().collect();
        let victim = random.of(&victims).as_str();
        // In their own namespace, that would be their object.
        let name = if namespace != "default" && random.chance(30) { victim } else { name };
        fleet.add_machine(name, random.chance(50), json!({}));
        let (machine, aws_machine) = fleet.machines.get_mut(name).expect("it was added");
        let mut object = serde_json::to_value(&*aws_machine).expect("an object");
        let mut spec = self.part("AWSMachine", "spec", random);
        spec["cloudInit"]["secretCount"] = json!(1 + random.below(3));
        merge(&mut object["spec"], &spec);
        if let Ok(parsed) = serde_json::from_value(object) {
            *aws_machine = parsed;
        }
        machine.metadata.namespace = Some(namespace.to_owned());
        aws_machine.metadata.namespace = Some(namespace.to_owned());
        let copied = whose.machines[victim].1.metadata.annotations.clone().unwrap_or_default();
        aws_machine.metadata.annotations = Some(copied.into_iter().filter(|_| random.chance(50)).collect());
        // The controller does nothing with what it cannot read.
        if PersistedState::of_machine(aws_machine).is_err() {
            fleet.machines.remove(name);
        }
    }
}

/// Everything that is written of a fleet, and said of it.
fn told(fleet: &Fleet, world: &mut World) -> String {
    let decision = fleet.decide(world);
    let snapshot = fleet.snapshot(world);
    let status = fleet.status(world.now, &snapshot, &decision, &[], None);
    let mut res = format!(
        "{}\n{}\n{:?}",
        decision.plan,
        serde_json::to_string(&status).expect("a status"),
        decision.invalid
    );
    res += &written(fleet);
    for name in fleet.machines.keys() {
        let decision = fleet.decide_machine(world, name);
        res += &format!(
            "{}\n{:?}{:?}{:?}{:?}",
            decision.plan, decision.invalid, decision.waits, decision.failed, decision.foreign
        );
    }
    res
}

fn written(fleet: &Fleet) -> String {
    let machines = fleet.machines.values().map(|(_, it)| serde_json::to_string(it).expect("an object"));
    machines.chain([serde_json::to_string(&fleet.aws_cluster).expect("an object")]).collect()
}

/// What of the others' changed, and what of it was told: what kind of thing, and how.
fn case(others: &Others, seed: u64) -> Vec<(String, String)> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let Some(mut fleet) = others.hostile(&mut random) else { return Vec::new() };
    let mut world = others.world.clone();
    let own = written(&fleet);
    let mut all = String::new();
    for reconcile in 1..=2 * LOOKS {
        fleet.reconcile_whatever(&mut world);
        for name in fleet.machines.keys().cloned().collect::<Vec<_>>() {
            fleet.reconcile_machine(&mut world, &name);
        }
        if reconcile == 1 || reconcile == LOOKS || reconcile == 2 * LOOKS {
            all += &told(&fleet, &mut world);
        }
        if reconcile == LOOKS {
            fleet.delete(&world);
        }
        world.tick();
    }
    if world.log.len() > others.world.log.len() {
        others.acted.fetch_add(1, Ordering::Relaxed);
    }
    let after = things(&world);
    let kind = |id: &str| id.split(' ').next().unwrap_or_default().to_owned();
    let changed = others.before.iter().filter(|(id, it)| after.get(*id) != Some(it));
    let changed = changed.map(|(id, it)| {
        (format!("{} changed", kind(id)), format!("{id} was {it} and is {:?}", after.get(id)))
    });
    let disclosed =
        others.private.iter().filter(|(it, _)| all.contains(it.as_str()) && !own.contains(it.as_str()));
    let disclosed = disclosed.map(|(it, what)| (format!("{what} told"), format!("{it} is told")));
    let mut res: Vec<(String, String)> = changed.chain(disclosed).collect();
    if let Some((_, what)) = res.first_mut() {
        *what += &format!("\nby {own}\nin {:#?}", &world.log[others.world.log.len()..]);
    }
    res
}

#[test]
fn nothing_of_another_owner_is_touched_or_told_whatever_users_write() {
    let others = others();
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let share = |first: u64| {
        (first..CASES)
            .step_by(threads as usize)
            .flat_map(|seed| case(&others, seed).into_iter().map(move |it| (seed, it)))
    };
    let found: Vec<(u64, (String, String))> = std::thread::scope(|scope| {
        let running: Vec<_> =
            (0..threads).map(|first| scope.spawn(move || share(first).collect::<Vec<_>>())).collect();
        running.into_iter().flat_map(|it| it.join().expect("a case does not panic")).collect()
    });
    let mut kinds: BTreeMap<&str, (BTreeSet<u64>, &str)> = BTreeMap::new();
    for (seed, (kind, what)) in &found {
        let (seeds, shortest) = kinds.entry(kind).or_insert((BTreeSet::new(), what));
        seeds.insert(*seed);
        if what.len() < shortest.len() {
            *shortest = what;
        }
    }
    let lines = kinds.iter().map(|(kind, (seeds, what))| {
        format!(
            "{kind} in {} of {CASES} cases, such as {:?}:\n{what}",
            seeds.len(),
            seeds.iter().take(5).collect::<Vec<_>>()
        )
    });
    let acted = others.acted.load(Ordering::Relaxed);
    assert!(
        acted > CASES / 2,
        "in {acted} of {CASES} cases anything was done at all: the generator reaches too little"
    );
    assert!(found.is_empty(), "{}", lines.collect::<Vec<_>>().join("\n\n"));
}
