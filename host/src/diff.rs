//! `cluster-operator diff`: what the operator would change in AWS and in workload clusters, before it does, and
//! before an edited file is applied. It reads, by GET and LIST alone, and changes nothing.

mod cluster;
mod file;
mod progress;
mod report;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use crds::cluster_api::{Cluster, KubeadmControlPlane, Machine};
use crds::{AWSCluster, AWSMachine, AWSMachineTemplate, ClusterPlugin, PluginModule};
use ipnet::IpNet;
use kube::Client;
use kube::client::ClientBuilder;

use cluster::Comparison;
use file::File;
use progress::Progress;
use report::Report;

use crate::context::Context;
use crate::controller::addon::AddOns;
use crate::controller::addon::plugins::Plugins;
use crate::controller::module::Modules;
use crate::controller::reconcile::Controller;
use crate::management::{Error, Management, Watched};
use crate::metrics::Metrics;
use crate::object_name::ObjectName;
use crate::preview::objects::read;
use crate::read_only::ReadOnlyLayer;
use crate::rules::Rules;
use crate::run::{Reached, config};

/// What is shown after the options.
pub const EXAMPLES: &str = "\
Examples:
  cluster-operator diff prod -n default            what the operator would change of a cluster now
  cluster-operator diff -f clusterplugin.yaml      what it would change once this file is applied
  kubectl get clusterplugin prod -o yaml | sed 's/replicas: 1/replicas: 2/' | cluster-operator diff -f -
  cluster-operator diff prod -o json | jq '.addOns[] | {name, changes}'

Exit codes: 0 nothing would change, 2 something would, 1 it cannot be said: the message names what failed.
An upgrade that needs consent is shown as available and does not count.

It only reads: objects of Cluster API and of this operator in the namespace of the cluster, the Secret
<cluster>-kubeconfig, AWS, and objects of the workload cluster.";

/// Options of `cluster-operator diff`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Name of a Cluster in the management cluster.
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    name: Option<String>,
    /// Namespace of the Cluster, and of objects of the file that name none; that of the kubeconfig's context
    /// otherwise.
    #[arg(short = 'n', long)]
    namespace: Option<String>,
    /// File with Kubernetes objects as YAML, which are taken to be applied: each takes the place of the one of its
    /// kind and name. `-`: standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    file: Option<PathBuf>,
    /// How it is printed.
    #[arg(short = 'o', long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Kubeconfig of the management cluster, in place of the one that KUBECONFIG names.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig, in place of its current one.
    #[arg(long)]
    context: Option<String>,
    /// As of `run`: where API servers of workload clusters may be besides at their control plane endpoint.
    #[arg(long, value_delimiter = ',', value_name = "CIDR")]
    api_server_cidrs: Vec<IpNet>,
    /// As of `run`: a folder in which compiled plugins are stored.
    #[arg(long, value_name = "FOLDER")]
    plugin_cache_dir: Option<PathBuf>,
    /// As of `run`: a folder with components to bring in place of those compiled in.
    #[arg(long, value_name = "FOLDER")]
    built_in_plugins: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    Text,
    Json,
}

/// Prints what would change of each cluster, and says whether anything would.
///
/// # Errors
/// Something could not be read; what could is printed before.
pub async fn print(options: Options) -> anyhow::Result<ExitCode> {
    let progress = Progress::begin("connecting");
    let reached = Reached { kubeconfig: options.kubeconfig.clone(), context: options.context.clone() };
    let config = config(&reached).await?;
    let namespace = options.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let file = match &options.file {
        Some(file) => File::parse(&read(file)?, &namespace).with_context(|| file.display().to_string())?,
        None => File::default(),
    };
    let builder = ClientBuilder::try_from(config).context("the kubeconfig cannot be used")?;
    let client = builder.with_layer(&ReadOnlyLayer).build();
    let aws = aws::Aws::connect().await?;
    let mut reports = Vec::new();
    match &options.name {
        Some(name) => {
            let name = ObjectName::new(namespace, name);
            let context = context(&options, &client, &aws, &name.namespace, &file, &progress).await?;
            reports.extend(compare(context, &BTreeSet::from([name]), &file, &progress).await?);
        }
        None => {
            for namespace in file.namespaces() {
                let context = context(&options, &client, &aws, &namespace, &file, &progress).await?;
                let clusters = clusters(&context.management, &file, &namespace)?;
                reports.extend(compare(context, &clusters, &file, &progress).await?);
            }
            anyhow::ensure!(!reports.is_empty(), "no object of the file is of a Cluster");
        }
    }
    drop(progress);
    show(&reports, options.output)?;
    let errors: Vec<String> = reports.iter().flat_map(Report::all_errors).collect();
    anyhow::ensure!(errors.is_empty(), "not everything could be read: {}", errors.join("; "));
    let is_changed = reports.iter().any(|report| report.changes);
    Ok(if is_changed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// The objects of a namespace, read once.
async fn context(
    options: &Options,
    client: &Client,
    aws: &aws::Aws,
    namespace: &str,
    file: &File,
    progress: &Progress,
) -> anyhow::Result<Context> {
    progress.say(format!("reading namespace {namespace} of the management cluster"));
    let metrics = Metrics::new();
    let amend = |resource: &kube::core::ApiResource, live| file.amended(resource, namespace, live);
    let management = Management::read(client.clone(), namespace, metrics.clone(), &amend).await;
    let management = management.map_err(Error::told)?;
    Ok(Context {
        // Nothing is begun.
        max_concurrent_upgrades: 0,
        operator: "cluster-operator".into(),
        management,
        aws: aws.clone(),
        rules: Rules::default(),
        metrics,
        watch_filter: None,
        api_server_ranges: options.api_server_cidrs.clone().into(),
        built_in_plugins: options.built_in_plugins.clone().map(Arc::from),
        plugin_cache: options.plugin_cache_dir.clone().map(Arc::from),
    })
}

async fn compare(
    context: Context,
    names: &BTreeSet<ObjectName>,
    file: &File,
    progress: &Progress,
) -> anyhow::Result<Vec<Report>> {
    let plugins = Plugins::of(&context)?;
    let add_ons = AddOns::new(context.clone(), plugins.clone());
    let modules = Modules::new(context.clone(), plugins, None);
    let asked = context.management.list::<ClusterPlugin>();
    let is_asked_for = |module: &str| {
        asked.iter().any(|it| addons::desired(&it.spec).iter().any(|it| it.is_of_module(module)))
    };
    for module in context.management.list::<PluginModule>() {
        let name = module.object_name();
        if !is_asked_for(&name.name) {
            continue;
        }
        progress.say(format!("resolving PluginModule {}", name.name));
        modules.reconcile(&name).await.map_err(Error::told)?;
    }
    let comparison = Comparison { context, add_ons, file, progress };
    let mut res = Vec::new();
    for name in names {
        let cluster = comparison.context.management.get::<Cluster>(name);
        let cluster = cluster.with_context(|| {
            let ObjectName { namespace, name } = name;
            format!(
                "there is no Cluster {name} in namespace {namespace}; `kubectl get clusters.cluster.x-k8s.io --namespace {namespace}` \
                 lists those that there are"
            )
        })?;
        res.push(comparison.of(cluster).await);
    }
    Ok(res)
}

/// The Clusters of a namespace that objects of the file belong to.
fn clusters(management: &Management, file: &File, namespace: &str) -> anyhow::Result<BTreeSet<ObjectName>> {
    fn of<K: Watched>(management: &Management, name: &ObjectName) -> anyhow::Result<Option<ObjectName>> {
        let unreadable = management.unreadable::<K>().into_iter().find(|(it, _)| it == name);
        if let Some((_, why)) = unreadable {
            anyhow::bail!("{} {name} cannot be read: {why}", K::KIND.as_str());
        }
        Ok(management.get::<K>(name).and_then(|object| object.cluster()))
    }
    let mut res = BTreeSet::new();
    for (kind, name) in file.named().filter(|(_, name)| name.namespace == namespace) {
        let cluster = match kind {
            "AWSCluster" => of::<AWSCluster>(management, &name)?,
            "AWSMachine" => of::<AWSMachine>(management, &name)?,
            "AWSMachineTemplate" => of::<AWSMachineTemplate>(management, &name)?,
            "Cluster" => of::<Cluster>(management, &name)?,
            "ClusterPlugin" => of::<ClusterPlugin>(management, &name)?,
            "KubeadmControlPlane" => of::<KubeadmControlPlane>(management, &name)?,
            "Machine" => of::<Machine>(management, &name)?,
            _ => None,
        };
        res.extend(cluster);
    }
    Ok(res)
}

/// JSON is one object for each cluster, one after the other.
fn show(reports: &[Report], output: Output) -> anyhow::Result<()> {
    use std::io::Write;
    let mut text = String::new();
    for report in reports {
        text.push_str(&match output {
            Output::Text => report.to_string(),
            Output::Json => format!("{}\n", serde_json::to_string_pretty(report)?),
        });
    }
    match std::io::stdout().write_all(text.as_bytes()) {
        // Whoever reads may stop reading.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
