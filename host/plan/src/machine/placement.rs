//! Where a machine's instance goes, and which image it boots. It only chooses among what the cluster has.

use crds::instance::{AWSResourceReference, Filter};

use super::Input;
use crate::cluster::Layout;
use crate::{FoundSecurityGroup, FoundSubnet, ImageQuery, Invalid, Kind, Observed, Tags};

const DEFAULT_NAME: &str = "capa-ami-{{.BaseOS}}-?{{.K8sVersion}}-*";
/// The account that Cluster API Provider AWS publishes images from.
const DEFAULT_OWNER: &str = "819546954734";
const DEFAULT_SYSTEM: &str = "ubuntu-24.04";

/// The role name of the subnet: the one that the spec names, or the first that fits in the machine's failure domain.
pub(super) fn subnet(input: &Input<'_>, layout: &Layout, observed: &Observed) -> Result<String, Invalid> {
    let spec = &input.aws_machine.spec;
    let public = spec.public_ip.unwrap_or_default();
    let zone = input.machine.spec.failure_domain.as_deref().filter(|it| !it.is_empty());
    if let Some(reference) = spec.subnet.as_ref().filter(|it| it.id.is_some() || !it.filters.is_empty()) {
        return referred(input, reference, observed, zone);
    }
    let fits = |name: &&crate::see::SubnetRole| name.public == public && zone.is_none_or(|zone| name.zone == zone);
    let found = layout.subnets.iter().find(fits).map(|it| it.name.clone());
    found.ok_or_else(|| {
        let kind = if public { "public" } else { "private" };
        match zone {
            Some(zone) => Invalid::new("Machine spec.failureDomain", format!("the cluster has no {kind} subnet in {zone}")),
            None => Invalid::new("spec.publicIP", format!("the cluster has no {kind} subnet")),
        }
    })
}

fn referred(input: &Input<'_>, reference: &AWSResourceReference, observed: &Observed, zone: Option<&str>) -> Result<String, Invalid> {
    let named = |id: &str| observed.iter().find(|(key, it)| key.kind == Kind::Subnet && it.id == id).map(|(key, _)| key.name.clone());
    if let Some(id) = &reference.id {
        return named(id).ok_or_else(|| Invalid::new("spec.subnet.id", format!("{id} is none of the cluster's subnets")));
    }
    for filter in &reference.filters {
        if let Some(field) = unknown(filter, &["subnet-id", "vpc-id", "availability-zone", "cidr-block", "cidr"]) {
            return Err(Invalid::new("spec.subnet.filters", field));
        }
    }
    let matches = |it: &&FoundSubnet| {
        reference.filters.iter().all(|filter| {
            any(
                filter,
                match filter.name.as_str() {
                    "subnet-id" => Some(&it.id),
                    "vpc-id" => Some(&it.vpc_id),
                    "availability-zone" => Some(&it.zone),
                    "cidr-block" | "cidr" => Some(&it.cidr),
                    name => tag(name, &it.tags),
                },
            )
        })
    };
    let fitting = input.snapshot.subnets.iter().filter(matches).filter(|it| zone.is_none_or(|zone| it.zone == zone));
    let mut names: Vec<String> = fitting.filter_map(|it| named(&it.id)).collect();
    names.sort();
    let first = names.into_iter().next();
    first.ok_or_else(|| Invalid::new("spec.subnet.filters", "match none of the cluster's subnets in the machine's failure domain"))
}

/// Ids of groups that the user adds.
pub(super) fn additional_groups(input: &Input<'_>, vpc_id: Option<&str>) -> Result<Vec<String>, Invalid> {
    let mut res = Vec::new();
    for (n, reference) in input.aws_machine.spec.additional_security_groups.iter().enumerate() {
        let field = format!("spec.additionalSecurityGroups[{n}].filters");
        if let Some(id) = &reference.id {
            res.push(id.clone());
            continue;
        }
        for filter in &reference.filters {
            if let Some(message) = unknown(filter, &["group-id", "group-name", "vpc-id"]) {
                return Err(Invalid::new(field, message));
            }
        }
        let matches = |it: &&FoundSecurityGroup| {
            reference.filters.iter().all(|filter| {
                any(
                    filter,
                    match filter.name.as_str() {
                        "group-id" => Some(&it.id),
                        "group-name" => Some(&it.group_name),
                        "vpc-id" => Some(&it.vpc_id),
                        name => tag(name, &it.tags),
                    },
                )
            })
        };
        let found: Vec<_> = input.snapshot.security_groups.iter().filter(|it| Some(it.vpc_id.as_str()) == vpc_id).filter(matches).collect();
        if found.is_empty() {
            return Err(Invalid::new(field, "match none of the groups that are known of the cluster; name the group by its id"));
        }
        res.extend(found.into_iter().map(|it| it.id.clone()));
    }
    Ok(res)
}

fn unknown(filter: &Filter, known: &[&str]) -> Option<String> {
    let fine = filter.name.starts_with("tag:") || known.contains(&filter.name.as_str());
    (!fine).then(|| format!("filter {:?} is not supported by cluster-operator; use one of tag:NAME, {}", filter.name, known.join(", ")))
}

fn tag<'a>(name: &str, tags: &'a Tags) -> Option<&'a String> {
    tags.get(name.strip_prefix("tag:")?)
}

fn any(filter: &Filter, have: Option<&String>) -> bool {
    have.is_some_and(|have| filter.values.contains(have))
}

/// Which image is to be asked for; `None` when its id says all that is needed.
pub(super) fn image(input: &Input<'_>) -> Result<Option<ImageQuery>, Invalid> {
    let (spec, cluster) = (&input.aws_machine.spec, &input.aws_cluster.spec);
    let first =
        |texts: [&String; 2], default: &str| texts.into_iter().find(|it| !it.is_empty()).cloned().unwrap_or_else(|| default.to_owned());
    let (id, owner) = (spec.ami.id.clone(), first([&spec.image_lookup_org, &cluster.image_lookup_org], DEFAULT_OWNER));
    let instance_type = spec.instance_type.clone();
    if id.is_some() {
        return Ok(spec.root_volume.is_some().then(|| ImageQuery { id, owner, name: String::new(), instance_type }));
    }
    let version = input.machine.spec.version.as_deref().map(|it| it.trim_start_matches('v')).filter(|it| !it.is_empty());
    let Some(version) = version else {
        return Err(Invalid::new("Machine spec.version", "is needed to look an image up; set it, or name an image in spec.ami.id"));
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
                let message = format!("{{{{{other}}}}} is not supported; there are {{{{.BaseOS}}}} and {{{{.K8sVersion}}}}");
                return Err(Invalid::new("spec.imageLookupFormat", message));
            }
        };
        name += rest;
    }
    Ok(Some(ImageQuery { id, owner, name, instance_type }))
}
