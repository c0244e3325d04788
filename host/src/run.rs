//! `cluster-operator run`: brings everything up, waits for the lease, works until it is told to end.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ipnet::IpNet;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::context::Context;
use crate::lease::{self, Held};
use crate::logging::LogFormat;
use crate::management::Management;
use crate::metrics::Metrics;
use crate::rules::Rules;
use crate::{admin, controller, logging};

/// How long what is under way may take once the process is told to end.
const GRACE: Duration = Duration::from_secs(20);

/// Options of `cluster-operator run`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Leftovers after objects of this namespace only.
    #[arg(long)]
    namespace: Option<String>,
    /// Leftovers after objects only whose label cluster.x-k8s.io/watch-filter has this value.
    #[arg(long)]
    watch_filter: Option<String>,
    /// Work only while holding the Lease in the operator's own namespace (POD_NAMESPACE).
    #[arg(
        long,
        default_value_t = true,
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    leader_elect: bool,
    /// Where API servers of workload clusters may be, besides at the control plane endpoint that their
    /// Cluster or AWSCluster names: ranges of addresses, such as `10.0.0.0/8,fd00::/8`. For hosted control
    /// planes and private endpoints. Addresses of the machine and of its link (loopback, 169.254.0.0/16 and
    /// the like) are asked only if they are in one of these.
    #[arg(long, value_delimiter = ',', value_name = "CIDR")]
    api_server_cidrs: Vec<IpNet>,
    /// In how many clusters add-ons may be upgraded at once. Clusters that do not answer do not count.
    #[arg(long, value_name = "CLUSTERS", default_value = "1")]
    max_concurrent_upgrades: NonZeroUsize,
    /// Folder in which compiled plugins are stored, so that the next start does not compile them again. It is
    /// made if it is not there, and not used when anybody else can write to it: code in it is run. Without
    /// it nothing is stored.
    #[arg(long, value_name = "FOLDER")]
    plugin_cache_dir: Option<PathBuf>,
    /// Folder with the components of the built-in plugins, `<name>.wasm`, to bring in place of those compiled
    /// in, which stay known: what they installed goes on being served by them. Others that may run are listed
    /// in its `released.txt`, as the command `built-in-plugins` prints them.
    #[arg(long, value_name = "FOLDER")]
    built_in_plugins: Option<PathBuf>,
    /// Where /metrics is served; `0`: nowhere.
    #[arg(long, default_value = "0.0.0.0:8080", value_parser = address)]
    metrics_address: Address,
    /// Where /healthz and /readyz are served; `0`: nowhere.
    #[arg(long, default_value = "0.0.0.0:9440", value_parser = address)]
    health_address: Address,
    /// How log lines look.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

/// `None`: not served.
type Address = std::option::Option<SocketAddr>;

fn address(text: &str) -> Result<Address, String> {
    match text {
        "0" | "" => Ok(None),
        _ => {
            let text = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
            text.parse().map(Some).map_err(|_| "not of the form ADDRESS:PORT".to_owned())
        }
    }
}

/// Runs until a signal or the loss of the lease.
///
/// # Errors
/// There is no kubeconfig, there are no AWS credentials, an address cannot be listened on, or the lease was
/// lost.
pub async fn run(options: Options) -> anyhow::Result<()> {
    let (client, aws) = connect().await?;
    logging::begin(options.log_format);
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "starting");
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let metrics = Metrics::new();
    let management = Management::start(client.clone(), options.namespace.clone(), metrics.clone());
    if let Some(address) = options.metrics_address {
        admin::serve_metrics(address, metrics.clone()).await?;
    }
    if let Some(address) = options.health_address {
        let management = management.clone();
        admin::serve_health(address, Arc::new(move || management.is_ready())).await?;
    }
    let watch_filter = options.watch_filter.as_deref().map(Arc::from);
    let api_server_ranges = options.api_server_cidrs.into();
    let context = Context {
        management,
        aws,
        rules: Rules::default(),
        metrics,
        watch_filter,
        api_server_ranges,
        max_concurrent_upgrades: options.max_concurrent_upgrades.get(),
        operator: own_namespace().into(),
        built_in_plugins: options.built_in_plugins.map(Arc::from),
        plugin_cache: options.plugin_cache_dir.map(Arc::from),
    };
    let (stop, stopped) = watch::channel(false);
    let work = work(context, client, options.leader_elect, stopped);
    tokio::pin!(work);
    tokio::select! {
        ended = &mut work => return ended,
        _ = terminate.recv() => tracing::info!("SIGTERM: ending"),
        _ = interrupt.recv() => tracing::info!("interrupt: ending"),
    }
    stop.send_replace(true);
    tokio::time::timeout(GRACE, work).await.unwrap_or_else(|_| {
        tracing::warn!("ended before everything under way was finished");
        Ok(())
    })
}

/// Connects to the management cluster and to AWS. Whoever lacks both is told both at once.
async fn connect() -> anyhow::Result<(Client, aws::Aws)> {
    match tokio::join!(management(), aws::Aws::connect()) {
        (Ok(config), Ok(aws)) => {
            Ok((Client::try_from(config).context("the kubeconfig cannot be used")?, aws))
        }
        (Err(kubernetes), Err(aws)) => anyhow::bail!("{kubernetes}; {aws}"),
        (Err(error), Ok(_)) => Err(error),
        (Ok(_), Err(error)) => Err(error.into()),
    }
}

async fn management() -> anyhow::Result<Config> {
    let mut config = config(&Reached::default()).await?;
    // Each controller tries again by itself, sees what changed in between, and is not held up by what the
    // server says about when.
    config.default_retry = false;
    // A connection that was lost without a word: a watch hears something at least this often.
    config.read_timeout = Some(crate::management::WATCH_SILENCE);
    config.reset_reader_on_write = true;
    Ok(config)
}

/// How somebody says that the management cluster is reached.
#[derive(Default)]
pub struct Reached {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
}

/// How the management cluster is reached: as somebody says, or else by a kubeconfig where there is one, otherwise by
/// the service account of the Pod.
///
/// # Errors
/// There is neither, or it cannot be used.
pub async fn config(reached: &Reached) -> anyhow::Result<Config> {
    let options = KubeConfigOptions { context: reached.context.clone(), ..KubeConfigOptions::default() };
    if let Some(file) = &reached.kubeconfig {
        let kubeconfig = Kubeconfig::read_from(file)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        return config.with_context(|| format!("{} cannot be used", file.display()));
    }
    Ok(match Config::from_kubeconfig(&options).await {
        Ok(config) => config,
        // These errors say their own cause.
        Err(_) if options.context.is_none() && std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() => {
            Config::incluster()
                .map_err(|error| anyhow::anyhow!("the Pod's service account cannot be used: {error}"))?
        }
        Err(KubeconfigError::FindPath | KubeconfigError::ReadConfig(..))
            if std::env::var_os("KUBECONFIG").is_none() =>
        {
            anyhow::bail!(
                "no management cluster: set KUBECONFIG to the path of its kubeconfig, or run in a Pod of it"
            )
        }
        Err(error) => anyhow::bail!(
            "the kubeconfig cannot be used (KUBECONFIG names it, or else it is ~/.kube/config): {error}"
        ),
    })
}

/// Waits for the lease and for the first whole read, then lets the controllers work until `stopped` is true.
async fn work(
    context: Context,
    client: Client,
    elect: bool,
    mut stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let (namespace, identity) = (own_namespace(), identity());
    let lease = if elect {
        Some(tokio::select! {
            lease = lease::acquire(client, &namespace, &identity) => lease?,
            _ = stopped.wait_for(|it| *it) => return Ok(()),
        })
    } else {
        None
    };
    context.aws.begin();
    context.metrics.set_leader(true);
    let mut work = std::pin::pin!(controllers(context, stopped.clone()));
    let Some(mut lease) = lease else { return work.await };
    let ended = tokio::select! {
        ended = &mut work => ended,
        () = lease.renew_until_lost() => anyhow::bail!("the lease was lost: another copy may be working now"),
    };
    Held::release(lease).await;
    ended
}

async fn controllers(context: Context, mut stopped: watch::Receiver<bool>) -> anyhow::Result<()> {
    let ready = async {
        while !context.management.is_ready() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = ready => tracing::info!("working"),
        _ = stopped.wait_for(|it| *it) => return Ok(()),
    }
    controller::run(context, stopped).await
}

fn own_namespace() -> String {
    std::env::var("POD_NAMESPACE").unwrap_or_else(|_| "cluster-operator-system".into())
}

/// A Pod's own name where there is one: its container is started again only when the one before has ended,
/// and goes on at once with the lease of that. Otherwise something that no second copy can have.
fn identity() -> String {
    let pod = std::env::var("POD_NAME").ok().filter(|it| !it.is_empty());
    pod.unwrap_or_else(|| {
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "cluster-operator".into());
        format!("{host}_{}", uuid::Uuid::new_v4())
    })
}
