//! Where a machine's instance goes, and which image it boots. It chooses among what the cluster has, and what
//! AWS says that the user means.

use std::collections::BTreeSet;

use crds::instance::{AWSResourceReference, Filter as WrittenFilter};

use super::Input;
use crate::cluster::{Layout, is_external};
use crate::observe::{MAIN, SubnetRole, is_public, kept_for_pods};
use model::{
    Action, Filter, FoundSubnet, ImageQuery, Invalid, Key, Kind, Lookup, Observed, Owner, Plan, Read,
    Resource, RouteTable, State, Subnet, Vpc,
};

const DEFAULT_NAME: &str = "capa-ami-{{.BaseOS}}-?{{.K8sVersion}}-*";
/// The account that Cluster API Provider AWS publishes images from.
const DEFAULT_OWNER: &str = "819546954734";
const DEFAULT_SYSTEM: &str = "ubuntu-24.04";

const VPC_ID: &str = "vpc-id";
/// How many subnets a message names.
const NAMED: usize = 8;

/// The role name of the subnet: the one that the spec names, or the first that fits in the machine's failure
/// domain. `None`: AWS has to be asked first.
pub(super) fn subnet(
    input: &Input<'_>,
    layout: &Layout,
    observed: &Observed,
    lookups: &mut BTreeSet<Lookup>,
) -> Result<Option<String>, Invalid> {
    let spec = &input.aws_machine.spec;
    let public = spec.public_ip.unwrap_or_default();
    let zone = failure_domain(input);
    if let Some(reference) = spec.subnet.as_ref().filter(|it| it.id.is_some() || !it.filters.is_empty()) {
        return referred(input, reference, layout, observed, lookups);
    }
    if is_external(input.aws_cluster) {
        return of_external(input, layout, observed, lookups);
    }
    let fits = |name: &&SubnetRole| name.public == public && zone.is_none_or(|zone| name.zone == zone);
    let found = layout.for_nodes().find(fits).map(|it| it.name.clone());
    found.map(Some).ok_or_else(|| {
        let kind = if public { "public" } else { "private" };
        match zone {
            Some(zone) => Invalid::new(
                "Machine spec.failureDomain",
                format!("the cluster has no {kind} subnet in {zone}"),
            ),
            None => Invalid::new("spec.publicIP", format!("the cluster has no {kind} subnet")),
        }
    })
}

/// The first that fits of those that an AWSCluster lists which somebody else looks after. No sweep shows
/// them.
fn of_external(
    input: &Input<'_>,
    layout: &Layout,
    observed: &Observed,
    lookups: &mut BTreeSet<Lookup>,
) -> Result<Option<String>, Invalid> {
    let ids: Vec<String> = layout.for_nodes().filter_map(|it| it.id.clone()).collect();
    if ids.is_empty() {
        let message = "is needed: the AWSCluster, which somebody else looks after, lists no subnets by their ids; name one by id or filters";
        return Err(Invalid::new("spec.subnet", message));
    }
    let question = within(vec![Filter { name: "subnet-id".into(), values: ids }], vpc_id(input, observed));
    let Some(found) = input.answers.subnets.get(&question) else {
        lookups.insert(Lookup::Subnets(question));
        return Ok(None);
    };
    let mut listed = layout
        .for_nodes()
        .filter_map(|role| Some((role, found.iter().find(|it| role.id.as_ref() == Some(&it.id))?)));
    let public = input.aws_machine.spec.public_ip.unwrap_or_default();
    let fits = |(role, it): &(&SubnetRole, &FoundSubnet)| {
        (role.public || it.public) == public && why_unfit(input, layout, it, &role.name).is_none()
    };
    let kind = if public { "public" } else { "private" };
    let zone = failure_domain(input).map(|it| format!(" in {it}")).unwrap_or_default();
    let none = || {
        Invalid::new(
            "spec.subnet",
            format!("is needed: the AWSCluster lists no {kind} subnet{zone} that exists"),
        )
    };
    listed.find(fits).map(|(role, _)| Some(role.name.clone())).ok_or_else(none)
}

/// The subnet of an attempt that was written down, which no sweep shows if the cluster does not list it.
/// `None`: AWS has to be asked first.
pub(super) fn begun_in(
    input: &Input<'_>,
    name: &str,
    observed: &Observed,
    lookups: &mut BTreeSet<Lookup>,
) -> Option<String> {
    let question = vec![Filter::new("subnet-id", name)];
    let known = observed.contains_key(&Subnet::key(name))
        || !name.starts_with("subnet-")
        || input.answers.subnets.contains_key(&question);
    if !known {
        lookups.insert(Lookup::Subnets(question));
    }
    known.then(|| name.to_owned())
}

/// An instance that starts before its subnet has its way out does not get what it boots from. An attempt that
/// was written down goes on: it may have been carried out.
pub(super) fn wait_for_way_out(plan: &mut Plan, key: &Key, layout: &Layout, observed: &Observed) {
    let is_begun =
        |it: &&Action| matches!(it, Action::Create { .. }) && it.key() == *key && plan.open.contains_key(key);
    let Some(Action::Create { is: Resource::Instance(it), .. }) = plan.actions.iter().find(is_begun) else {
        return;
    };
    let Some(missing) = way_out_missing(layout, observed, &it.subnet) else { return };
    plan.actions.retain(|it| it.key() != *key);
    plan.open.remove(key);
    plan.waiting.push((key.clone(), missing));
    plan.awaits.extend([Read::RouteTables, Read::NatGateways]);
}

/// What is not there yet of the way out of one of the subnets that are the cluster's to connect.
fn way_out_missing(layout: &Layout, observed: &Observed, subnet: &str) -> Option<String> {
    let role = layout.subnets.iter().find(|it| layout.owned && it.name == subnet)?;
    let (table, route) = (RouteTable::key(subnet), layout.default_route(role)?);
    let is_up = |key: &Key| observed.get(key).is_some_and(|it| it.state == State::Ready);
    let leads_out = observed.get(&table).is_some_and(|resource| match &resource.is {
        // What a user put there is not changed.
        _ if resource.owner == Owner::User => true,
        Resource::RouteTable(it) => {
            it.subnets.contains(subnet) && it.default_route.as_ref() == Some(&route) && is_up(&route)
        }
        _ => false,
    });
    (!leads_out).then(|| format!("after {table} leads to {route}"))
}

fn failure_domain<'a>(input: &Input<'a>) -> Option<&'a str> {
    input.machine.spec.failure_domain.as_deref().filter(|it| !it.is_empty())
}

fn referred(
    input: &Input<'_>,
    reference: &AWSResourceReference,
    layout: &Layout,
    observed: &Observed,
    lookups: &mut BTreeSet<Lookup>,
) -> Result<Option<String>, Invalid> {
    let vpc_id = vpc_id(input, observed);
    let (field, question) = match &reference.id {
        Some(id) => ("spec.subnet.id", within(vec![Filter::new("subnet-id", id)], vpc_id)),
        None => ("spec.subnet.filters", within(reference.filters.iter().map(asked).collect(), vpc_id)),
    };
    let swept = reference.id.as_ref().filter(|id| name_of(observed, id).is_some());
    let swept = swept.and_then(|id| input.snapshot.subnets.iter().find(|it| it.id == *id));
    let mut found: Vec<&FoundSubnet> = match (swept, input.answers.subnets.get(&question)) {
        (Some(it), _) => vec![it],
        (None, Some(answer)) => answer.iter().collect(),
        (None, None) => {
            lookups.insert(Lookup::Subnets(question));
            return Ok(None);
        }
    };
    found.sort_by(|one, other| one.id.cmp(&other.id));
    let mut unfit = Vec::new();
    for it in found {
        let name = name_of(observed, &it.id).unwrap_or_else(|| it.id.clone());
        let elsewhere = vpc_id
            .filter(|id| *id != it.vpc_id)
            .map(|id| format!("lies in {}, and the cluster in {id}", it.vpc_id));
        match elsewhere.or_else(|| why_unfit(input, layout, it, &name)) {
            None => return Ok(Some(name)),
            Some(why) => unfit.push(format!("{} {why}", it.id)),
        }
    }
    unfit.truncate(NAMED);
    let why = if unfit.is_empty() { none_match("subnet", vpc_id) } else { unfit.join("; ") };
    Err(Invalid::new(field, why))
}

/// Why the machine cannot be put into a subnet that the user means; `None` when it can.
fn why_unfit(input: &Input<'_>, layout: &Layout, subnet: &FoundSubnet, name: &str) -> Option<String> {
    if let Some(zone) = failure_domain(input).filter(|zone| *zone != subnet.zone) {
        return Some(format!("lies in {}, and the machine's failure domain is {zone}", subnet.zone));
    }
    // Of the others, not all route tables are read.
    let is_unmanaged = !layout.owned && !is_external(input.aws_cluster);
    let public = if is_unmanaged {
        is_public(input.snapshot, subnet)
    } else {
        subnet.public || layout.subnets.iter().any(|role| role.public && role.name == name)
    };
    if input.aws_machine.spec.public_ip.unwrap_or_default() && !public {
        return Some("is private, and spec.publicIP asks for a public one".to_owned());
    }
    kept_for_pods(&subnet.tags).then(|| "is kept for pods by its tags".to_owned())
}

/// Ids of groups that the user adds. `None`: AWS has to be asked first.
pub(super) fn additional_groups(
    input: &Input<'_>,
    observed: &Observed,
    lookups: &mut BTreeSet<Lookup>,
) -> Result<Option<BTreeSet<String>>, Invalid> {
    let vpc_id = vpc_id(input, observed);
    let (mut res, mut all_known) = (BTreeSet::new(), true);
    for (n, reference) in input.aws_machine.spec.additional_security_groups.iter().enumerate() {
        res.extend(reference.id.clone());
        if reference.filters.is_empty() {
            continue;
        }
        let question = within(reference.filters.iter().map(asked).collect(), vpc_id);
        let Some(found) = input.answers.security_groups.get(&question) else {
            lookups.insert(Lookup::SecurityGroups(question));
            all_known = false;
            continue;
        };
        let usable: Vec<String> = found
            .iter()
            .filter(|it| vpc_id.is_none_or(|id| it.vpc_id == id))
            .map(|it| it.id.clone())
            .collect();
        if usable.is_empty() {
            let field = format!("spec.additionalSecurityGroups[{n}].filters");
            return Err(Invalid::new(field, none_match("security group", vpc_id)));
        }
        res.extend(usable);
    }
    Ok(all_known.then_some(res))
}

/// The cluster's VPC, as far as anybody says which one that is.
fn vpc_id<'a>(input: &Input<'a>, observed: &'a Observed) -> Option<&'a str> {
    let given = Some(input.aws_cluster.spec.network.vpc.id.as_str()).filter(|it| !it.is_empty());
    let recorded = || input.cluster_record.ids.get(&Vpc::key(MAIN)).map(String::as_str);
    observed.get(&Vpc::key(MAIN)).map(|it| it.id.as_str()).or(given).or_else(recorded)
}

fn asked(filter: &WrittenFilter) -> Filter {
    Filter { name: filter.name.clone(), values: filter.values.clone() }
}

/// What lies in another VPC is of no use to an instance, whatever it is called. Who says himself which VPC he
/// means is not gainsaid.
fn within(mut question: Vec<Filter>, vpc_id: Option<&str>) -> Vec<Filter> {
    if !question.iter().any(|it| it.name == VPC_ID) {
        question.extend(vpc_id.map(|id| Filter::new(VPC_ID, id)));
    }
    question
}

fn none_match(what: &str, vpc_id: Option<&str>) -> String {
    format!("there is no such {what} in {}", vpc_id.unwrap_or("this region"))
}

fn name_of(observed: &Observed, subnet: &str) -> Option<String> {
    observed
        .iter()
        .find(|(key, it)| key.kind == Kind::Subnet && it.id == subnet)
        .map(|(key, _)| key.name.clone())
}

/// Which image is to be asked for; `None` when its id says all that is needed.
pub(super) fn image(input: &Input<'_>) -> Result<Option<ImageQuery>, Invalid> {
    let (spec, cluster) = (&input.aws_machine.spec, &input.aws_cluster.spec);
    let first = |texts: [&String; 2], default: &str| {
        texts.into_iter().find(|it| !it.is_empty()).cloned().unwrap_or_else(|| default.to_owned())
    };
    let (id, owner) =
        (spec.ami.id.clone(), first([&spec.image_lookup_org, &cluster.image_lookup_org], DEFAULT_OWNER));
    let instance_type = spec.instance_type.clone();
    if id.is_some() {
        return Ok(spec.root_volume.is_some().then(|| ImageQuery {
            id,
            owner,
            name: String::new(),
            instance_type,
        }));
    }
    let version = input
        .machine
        .spec
        .version
        .as_deref()
        .map(|it| it.trim_start_matches('v'))
        .filter(|it| !it.is_empty());
    let Some(version) = version else {
        return Err(Invalid::new(
            "Machine spec.version",
            "is needed to look an image up; set it, or name an image in spec.ami.id",
        ));
    };
    let system = first([&spec.image_lookup_base_os, &cluster.image_lookup_base_os], DEFAULT_SYSTEM);
    let format = first([&spec.image_lookup_format, &cluster.image_lookup_format], DEFAULT_NAME);
    let mut name = String::new();
    for (n, part) in format.split("{{").enumerate() {
        let Some((variable, rest)) = part.split_once("}}").filter(|_| n > 0) else {
            name += part;
            continue;
        };
        name += match variable.trim() {
            ".BaseOS" => &system,
            ".K8sVersion" => version,
            other => {
                let message = format!(
                    "{{{{{other}}}}} is not supported; there are {{{{.BaseOS}}}} and {{{{.K8sVersion}}}}"
                );
                return Err(Invalid::new("spec.imageLookupFormat", message));
            }
        };
        name += rest;
    }
    Ok(Some(ImageQuery { id, owner, name, instance_type }))
}
