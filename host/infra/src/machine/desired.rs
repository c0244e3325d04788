//! Everything a machine should consist of, and the decision about it.

use std::collections::BTreeSet;

use crds::instance::{HttpTokens, MetadataState, Volume as VolumeSpec};
use crds::names::{MACHINE_NAME_TAG, OWNED, cloud_provider_tag};

use super::{Bootstrap, Input, additions, full_name, is_control_plane, name, placement, user_data};
use crate::TOKEN_AGE;
use crate::cluster::{self, Layout, cluster_name};
use crate::observe::{API_SERVER, MAIN};
use crate::token::derive;
use model::{
    Applied, Desired, DesiredResource, ImageQuery, Instance, InstanceStatus, Invalid, Launch, LoadBalancer,
    Lookup, MetadataOptions, Observed, Resource, Secret, Sensitive, Subnet, Tags, Target, Volume,
};

/// The only format of bootstrap data that instances are made to run, in the words of Cluster API.
const CLOUD_CONFIG: &str = "cloud-config";

/// What a machine should consist of, or what has to be known first.
#[derive(Default)]
pub(super) struct DesiredMachine {
    pub resources: Desired,
    pub needs_bootstrap: bool,
    pub needs_image: Option<ImageQuery>,
    pub lookups: BTreeSet<Lookup>,
    /// Prefix and number of the secrets in `resources`.
    pub secret: Option<(String, usize)>,
    /// To be written down before `resources` are carried out.
    pub applied: Option<Applied>,
}

/// What exists of the machine already.
pub(super) struct Found<'a> {
    pub status: Option<&'a InstanceStatus>,
    /// Whether its node was seen by Cluster API.
    pub node: bool,
}

/// What should exist.
///
/// # Errors
/// The field that cannot be carried out.
pub(super) fn desired(
    input: &Input<'_>,
    layout: &Layout,
    observed: &Observed,
    found: &Found<'_>,
) -> Result<DesiredMachine, Invalid> {
    let mut res = DesiredMachine::default();
    let name = name(input.aws_machine);
    let by_secret = !input.aws_machine.spec.cloud_init.insecure_skip_secrets_manager;
    if let (None, Some(bootstrap)) = (found.status, &input.bootstrap) {
        runnable(bootstrap)?;
    }
    let wants_secret = by_secret && !found.node && (found.status.is_none() || input.record.secret.is_some());
    if wants_secret {
        secret(input, observed, &name, &mut res);
    }
    match found.status {
        Some(_) => existing(input, observed, &name, &mut res)?,
        None if res.needs_bootstrap => (),
        None => new(input, layout, observed, &name, by_secret, &mut res)?,
    }
    if is_balanced(input, observed) && res.resources.contains_key(&Instance::key(&name)) {
        let is = Target { name: name.clone(), load_balancer: API_SERVER.into(), instance: name };
        add(&mut res, is, Tags::new());
    }
    Ok(res)
}

/// Instances are made to run cloud-init: with data for anything else they would start, and never join.
fn runnable(bootstrap: &Bootstrap<'_>) -> Result<(), Invalid> {
    match bootstrap.format.filter(|it| !it.is_empty() && *it != CLOUD_CONFIG) {
        None => Ok(()),
        Some(format) => {
            let message = format!(
                "bootstrap data has format {format}, which is not supported by cluster-operator; set spec.format of the KubeadmConfig to \
                 {CLOUD_CONFIG}, and use an image that runs cloud-init"
            );
            Err(Invalid::new("Machine spec.bootstrap", message))
        }
    }
}

/// Whether the machine is put behind a load balancer. Where somebody else looks after the cluster, that one
/// may put it behind one of his own.
fn is_balanced(input: &Input<'_>, observed: &Observed) -> bool {
    let made =
        || !cluster::is_external(input.aws_cluster) || observed.contains_key(&LoadBalancer::key(API_SERVER));
    is_control_plane(input.machine, input.aws_machine)
        && cluster::load_balancer_kind(input.aws_cluster).is_some()
        && made()
}

fn add(res: &mut DesiredMachine, is: impl Into<Resource>, tags: Tags) {
    let is = is.into();
    res.resources.insert(is.key(), DesiredResource { is, tags, untag: BTreeSet::new() });
}

fn secret(input: &Input<'_>, observed: &Observed, name: &str, res: &mut DesiredMachine) {
    let key = Secret::key(name);
    if let Some(resource) = observed.get(&key) {
        res.secret = input.record.secret.clone();
        return add(res, resource.is.clone(), Tags::new());
    }
    let Some(bootstrap) = input.bootstrap else {
        res.needs_bootstrap = true;
        return;
    };
    let prefix = match &input.record.secret {
        Some((prefix, _)) => prefix.clone(),
        None => user_data::secret_prefix(
            &derive(input.random, &key.to_string()),
            &input.record.id,
            &full_name(input.aws_machine),
        ),
    };
    let parts = user_data::parts(bootstrap.data);
    res.secret = Some((prefix.clone(), parts.len()));
    let tags = tags(input);
    add(res, Secret { name: name.to_owned(), prefix, count: parts.len(), parts }, tags);
}

/// The instance is there: of it, only groups and tags that the user adds and takes away can be changed.
fn existing(
    input: &Input<'_>,
    observed: &Observed,
    name: &str,
    res: &mut DesiredMachine,
) -> Result<(), Invalid> {
    let Some(Resource::Instance(instance)) = observed.get(&Instance::key(name)).map(|it| &it.is) else {
        return Ok(());
    };
    let (tags, untag) = (tags(input), additions::untagged(input, &tags(input)));
    let known = placement::additional_groups(input, observed, &mut res.lookups)?;
    let is = match &known {
        Some(groups) => additions::regrouped(input, observed, instance, groups, &core_groups(input))?,
        None => Instance { launch: None, status: None, ..instance.clone() },
    };
    let groups = known.unwrap_or_else(|| input.record.applied.groups.clone());
    res.applied =
        Some(additions::applied(input, groups.into_iter().chain(is.removed_groups.iter().cloned()), &tags));
    res.resources.insert(Instance::key(name), DesiredResource { is: is.into(), tags, untag });
    Ok(())
}

/// What the instance boots with; `None`: the bootstrap data is not there.
fn boots_with(
    input: &Input<'_>,
    by_secret: bool,
    secret: Option<&(String, usize)>,
) -> Result<Option<Sensitive>, Invalid> {
    let uncompressed = input.aws_machine.spec.uncompressed_user_data.unwrap_or_default();
    match (by_secret, secret, input.bootstrap) {
        (true, Some((prefix, count)), _) => {
            Ok(Some(user_data::fetching(prefix, *count, &input.aws_cluster.spec.region)))
        }
        (false, _, Some(bootstrap)) => user_data::whole(bootstrap.data, uncompressed).map(Some),
        _ => Ok(None),
    }
}

fn new(
    input: &Input<'_>,
    layout: &Layout,
    observed: &Observed,
    name: &str,
    by_secret: bool,
    res: &mut DesiredMachine,
) -> Result<(), Invalid> {
    let Some(user_data) = boots_with(input, by_secret, res.secret.as_ref())? else {
        res.needs_bootstrap = true;
        return Ok(());
    };
    let begun = begun(input, name, observed);
    let subnet = match &begun {
        Some((subnet, _)) => placement::begun_in(input, subnet, observed, &mut res.lookups),
        None => {
            res.needs_image = placement::image(input)?.filter(|_| input.image.is_none());
            placement::subnet(input, layout, observed, &mut res.lookups)?
        }
    };
    let additional_groups = placement::additional_groups(input, observed, &mut res.lookups)?;
    // Everything that only AWS can say is asked for at once.
    let (Some(subnet), Some(additional_groups), None) = (subnet, additional_groups, &res.needs_image) else {
        return Ok(());
    };
    let launch = match begun {
        Some((_, launch)) => launch,
        None => launch(input)?,
    };
    let public = launch.public_ip.unwrap_or_default() && layout.owned;
    let tags = tags(input);
    // An earlier attempt may have been begun with others.
    let groups = input.record.applied.groups.union(&additional_groups).cloned();
    res.applied = Some(additions::applied(input, groups, &tags));
    let is = Instance {
        name: name.to_owned(),
        subnet,
        groups: core_groups(input),
        additional_groups,
        removed_groups: BTreeSet::new(),
        internet_gateway: public.then(|| MAIN.to_owned()),
        secret: by_secret.then(|| name.to_owned()),
        launch: Some(Launch { user_data, ..launch }),
        status: None,
    };
    add(res, is, tags);
    Ok(())
}

/// Roles of the groups that every machine of its kind has. Where somebody else looks after the cluster, it
/// has those that the user names.
fn core_groups(input: &Input<'_>) -> BTreeSet<String> {
    let roles: &[&str] = if cluster::is_external(input.aws_cluster) {
        &[]
    } else if is_control_plane(input.machine, input.aws_machine) {
        &["node", "lb", "controlplane"]
    } else {
        &["node", "lb"]
    };
    roles.iter().map(|it| (*it).to_owned()).collect()
}

/// The inputs of an attempt that was written down: they may not change as long as its client token counts.
/// After that, one that was to be in a subnet that is not there any more is given up.
fn begun(input: &Input<'_>, name: &str, observed: &Observed) -> Option<(String, Launch)> {
    let intent = input.record.intents.get(&Instance::key(name))?;
    let inputs = intent.inputs.as_ref()?;
    let subnet = inputs.get("subnet")?.as_str()?;
    let is_there = observed.contains_key(&Subnet::key(subnet)) || subnet.starts_with("subnet-");
    if !is_there && input.now >= intent.at + TOKEN_AGE {
        return None;
    }
    let launch = serde_json::from_value(inputs.get("launch")?.clone()).ok()?;
    Some((subnet.to_owned(), launch))
}

fn launch(input: &Input<'_>) -> Result<Launch, Invalid> {
    let spec = &input.aws_machine.spec;
    let options = &spec.instance_metadata_options;
    let mut volumes = Vec::new();
    if let (Some(root), Some(image)) = (&spec.root_volume, input.image) {
        if root.size < i64::from(image.root_size) {
            let message =
                format!("{} GiB is less than the {} GiB of image {}", root.size, image.root_size, image.id);
            return Err(Invalid::new("spec.rootVolume.size", message));
        }
        volumes.push(volume(root, &image.root_device));
    }
    volumes.extend(spec.non_root_volumes.iter().map(|it| volume(it, &it.device_name)));
    let image = spec.ami.id.clone().or_else(|| input.image.map(|it| it.id.clone())).unwrap_or_default();
    let filled = |text: &String| (!text.is_empty()).then(|| text.clone());
    Ok(Launch {
        image,
        instance_type: spec.instance_type.clone(),
        iam_instance_profile: filled(&spec.iam_instance_profile),
        key_name: key_name(input),
        public_ip: spec.public_ip,
        tenancy: None,
        volumes,
        metadata_options: MetadataOptions {
            http_endpoint: state(options.http_endpoint),
            http_protocol_ipv6: Some(state(options.http_protocol_ipv6)),
            http_tokens: if options.http_tokens == HttpTokens::Required { "required" } else { "optional" }
                .into(),
            http_put_response_hop_limit: i32::try_from(options.http_put_response_hop_limit).unwrap_or(1),
            instance_metadata_tags: state(options.instance_metadata_tags),
        },
        user_data: Sensitive::default(),
    })
}

/// Absent means the cluster's, absent there means `default` (none where somebody else looks after the
/// cluster), and empty means none.
fn key_name(input: &Input<'_>) -> Option<String> {
    let name = input.aws_machine.spec.ssh_key_name.as_ref().or(input.aws_cluster.spec.ssh_key_name.as_ref());
    match name.map(String::as_str) {
        None => (!cluster::is_external(input.aws_cluster)).then(|| "default".into()),
        Some("") => None,
        Some(name) => Some(name.into()),
    }
}

fn state(value: MetadataState) -> String {
    if value == MetadataState::Enabled { "enabled" } else { "disabled" }.into()
}

fn volume(spec: &VolumeSpec, device_name: &str) -> Volume {
    let number = |it: i64| i32::try_from(it).unwrap_or(i32::MAX);
    let filled = |text: &String| (!text.is_empty()).then(|| text.clone());
    Volume {
        device_name: device_name.to_owned(),
        size: number(spec.size),
        volume_type: filled(&spec.kind),
        iops: (spec.iops > 0).then(|| number(spec.iops)),
        throughput: spec.throughput.map(number),
        // EC2 takes a key only with the word that the volume is encrypted.
        encrypted: if spec.encryption_key.is_empty() { spec.encrypted } else { Some(true) },
        kms_key: filled(&spec.encryption_key),
    }
}

/// The cluster's tags, the machine's over them, and those that others rely on over all.
fn tags(input: &Input<'_>) -> Tags {
    let cluster = cluster_name(input.cluster);
    let role = if is_control_plane(input.machine, input.aws_machine) { "control-plane" } else { "node" };
    let name = name(input.aws_machine);
    let namespace = input.aws_machine.metadata.namespace.as_deref().unwrap_or_default();
    let mut ours = cluster::common(&cluster, &input.record.id, input.aws_cluster, role, &name);
    ours.insert(cloud_provider_tag(&cluster), OWNED.into());
    ours.insert(MACHINE_NAME_TAG.into(), format!("{namespace}/{name}"));
    let theirs = &input.aws_cluster.spec.additional_tags;
    for (key, value) in &input.aws_machine.spec.additional_tags {
        if !ours.contains_key(key) || theirs.get(key) == ours.get(key) {
            ours.insert(key.clone(), value.clone());
        }
    }
    ours
}
