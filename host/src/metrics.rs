//! Counters of what this process does, in Prometheus text. No label holds the name of an object: there would
//! be a series for each.

use std::sync::Arc;
use std::time::Instant;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

type Labels<const N: usize> = [(&'static str, String); N];

/// All counters; cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    reconciles: Family<Labels<2>, Counter>,
    durations: Family<Labels<1>, Histogram, fn() -> Histogram>,
    writes: Family<Labels<3>, Counter>,
    workload_requests: WorkloadRequests,
    plugin_calls: PluginCalls,
    leader: Gauge,
}

/// Counts requests to the API servers of workload clusters; cheap to clone.
#[derive(Clone, Default)]
pub struct WorkloadRequests(Family<[(&'static str, &'static str); 1], Counter>);

impl WorkloadRequests {
    /// Counts one request; `verb` is Kubernetes' word for it: `get`, `list`, `patch`, `delete`.
    pub fn count(&self, verb: &'static str) {
        self.0.get_or_create(&[("verb", verb)]).inc();
    }
}

/// Counts calls of plugins that wait for their turn, and for how long; cheap to clone.
#[derive(Clone)]
pub struct PluginCalls {
    waiting: Gauge,
    wait_times: Histogram,
}

/// A call that waits, until it is dropped.
pub struct Waits {
    of: PluginCalls,
    began: Instant,
}

impl Default for PluginCalls {
    fn default() -> Self {
        Self { waiting: Gauge::default(), wait_times: seconds_histogram() }
    }
}

impl PluginCalls {
    /// A call begins to wait.
    pub fn waits(&self) -> Waits {
        self.waiting.inc();
        Waits { of: self.clone(), began: Instant::now() }
    }

    /// How many wait.
    #[cfg(test)]
    pub fn waiting(&self) -> i64 {
        self.waiting.get()
    }
}

impl Waits {
    /// Its turn has come.
    pub fn end(self) {
        self.of.wait_times.observe(self.began.elapsed().as_secs_f64());
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.of.waiting.dec();
    }
}

impl Metrics {
    pub fn new() -> Self {
        let reconciles = Family::default();
        let durations = Family::new_with_constructor(seconds_histogram as fn() -> Histogram);
        let writes = Family::default();
        let workload_requests = WorkloadRequests::default();
        let plugin_calls = PluginCalls::default();
        let leader = Gauge::default();
        let mut registry = Registry::with_prefix("cluster_operator");
        registry.register("reconciles", "Times that an object was looked at", reconciles.clone());
        registry.register("reconcile_seconds", "How long one look took", durations.clone());
        registry.register("api_writes", "Writes to the management API", writes.clone());
        registry.register(
            "workload_requests",
            "Requests to the API servers of workload clusters",
            workload_requests.0.clone(),
        );
        registry.register(
            "plugin_calls_waiting",
            "Calls of plugins that wait for their turn",
            plugin_calls.waiting.clone(),
        );
        registry.register(
            "plugin_call_wait_seconds",
            "How long calls of plugins waited for their turn",
            plugin_calls.wait_times.clone(),
        );
        registry.register("leader", "1 while this process holds the lease", leader.clone());
        registry.register_collector(Box::new(AwsCalls));
        Self {
            registry: Arc::new(registry),
            reconciles,
            durations,
            writes,
            workload_requests,
            plugin_calls,
            leader,
        }
    }

    /// Counts one reconciliation of an object by `controller`; `result` is a word such as `settled`,
    /// `waiting`, `failed`.
    pub fn reconciled(&self, controller: &str, result: &str, took: std::time::Duration) {
        self.reconciles
            .get_or_create(&[("controller", controller.to_owned()), ("result", result.to_owned())])
            .inc();
        self.durations.get_or_create(&[("controller", controller.to_owned())]).observe(took.as_secs_f64());
    }

    /// Counts one write to the management API.
    pub fn wrote(&self, kind: &str, verb: &str, result: &str) {
        self.writes
            .get_or_create(&[
                ("kind", kind.to_owned()),
                ("verb", verb.to_owned()),
                ("result", result.to_owned()),
            ])
            .inc();
    }

    /// The counter of requests to workload clusters.
    pub fn workload_requests(&self) -> WorkloadRequests {
        self.workload_requests.clone()
    }

    /// What is counted of calls of plugins.
    pub fn plugin_calls(&self) -> PluginCalls {
        self.plugin_calls.clone()
    }

    pub fn set_leader(&self, leader: bool) {
        self.leader.set(i64::from(leader));
    }

    /// Everything in OpenMetrics text.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

fn seconds_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 4.0, 8))
}

/// Shows what the AWS leaf counted.
#[derive(Debug)]
struct AwsCalls;

impl Collector for AwsCalls {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut family = encoder.encode_descriptor("aws_calls", "Calls to AWS", None, MetricType::Counter)?;
        for call in aws::calls() {
            let labels = [
                ("service", call.service.as_str()),
                ("action", call.action.as_str()),
                ("result", call.result),
            ];
            ConstCounter::new(call.count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_counted_by_kind_verb_and_result() {
        let metrics = Metrics::new();
        metrics.wrote("AWSCluster", "patch", "ok");
        metrics.wrote("AWSCluster", "patch", "ok");
        let text = metrics.text().expect("text");
        assert!(
            text.contains(
                r#"cluster_operator_api_writes_total{kind="AWSCluster",verb="patch",result="ok"} 2"#
            ),
            "{text}"
        );
    }

    #[test]
    fn a_call_of_a_plugin_that_waits_is_counted() {
        let metrics = Metrics::new();
        metrics.plugin_calls().waits().end();
        let _waits = metrics.plugin_calls().waits();
        let text = metrics.text().expect("text");
        assert!(text.contains("cluster_operator_plugin_calls_waiting 1\n"), "{text}");
        assert!(text.contains("cluster_operator_plugin_call_wait_seconds_count 1\n"), "{text}");
    }

    #[test]
    fn requests_to_workload_clusters_are_counted_by_verb() {
        let metrics = Metrics::new();
        let requests = metrics.workload_requests();
        for verb in ["get", "patch", "get"] {
            requests.count(verb);
        }
        let text = metrics.text().expect("text");
        assert!(text.contains(r#"cluster_operator_workload_requests_total{verb="get"} 2"#), "{text}");
        assert!(text.contains(r#"cluster_operator_workload_requests_total{verb="patch"} 1"#), "{text}");
    }
}
