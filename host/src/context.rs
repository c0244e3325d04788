//! What every controller is given: the leaves it may use, and what controllers share in memory.

use std::path::Path;
use std::sync::Arc;

use ipnet::IpNet;

use crate::management::Management;
use crate::metrics::Metrics;
use crate::rules::Rules;

/// Shared by all controllers; cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub management: Management,
    pub aws: aws::Aws,
    /// Security-group rules that add-ons ask for.
    pub rules: Rules,
    pub metrics: Metrics,
    /// What this operator is called where several write to one object: the namespace that it runs in.
    pub operator: Arc<str>,
    /// Value of the label `cluster.x-k8s.io/watch-filter` that objects must carry; `None`: all are
    /// reconciled.
    pub watch_filter: Option<Arc<str>>,
    /// Where API servers of workload clusters may be that are no control plane endpoint.
    pub api_server_ranges: Arc<[IpNet]>,
    /// In how many clusters add-ons may be upgraded at once.
    pub max_concurrent_upgrades: usize,
    /// Where compiled plugins are stored between starts, when anywhere.
    pub plugin_cache: Option<Arc<Path>>,
    /// Where the components of built-in plugins are that take the place of those compiled in, if any do.
    pub built_in_plugins: Option<Arc<Path>>,
}
