//! Counters of what this process does, in Prometheus text. Nothing here decides anything, and no label ever holds the name of an object.

use std::sync::Arc;

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
    seconds: Family<Labels<1>, Histogram, fn() -> Histogram>,
    writes: Family<Labels<3>, Counter>,
    workload_requests: WorkloadRequests,
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

impl Metrics {
    pub fn new() -> Self {
        let reconciles = Family::default();
        let seconds = Family::new_with_constructor(reconcile_seconds as fn() -> Histogram);
        let writes = Family::default();
        let workload_requests = WorkloadRequests::default();
        let leader = Gauge::default();
        let mut registry = Registry::with_prefix("cluster_operator");
        registry.register("reconciles", "Times that an object was looked at", reconciles.clone());
        registry.register("reconcile_seconds", "How long one look took", seconds.clone());
        registry.register("api_writes", "Writes to the management API", writes.clone());
        registry.register("workload_requests", "Requests to the API servers of workload clusters", workload_requests.0.clone());
        registry.register("leader", "1 while this process holds the lease", leader.clone());
        registry.register_collector(Box::new(AwsCalls));
        Self { registry: Arc::new(registry), reconciles, seconds, writes, workload_requests, leader }
    }

    /// Counts one look of `controller` at an object; `result` is a word such as `settled`, `waiting`, `failed`.
    pub fn reconciled(&self, controller: &str, result: &str, took: std::time::Duration) {
        self.reconciles.get_or_create(&[("controller", controller.to_owned()), ("result", result.to_owned())]).inc();
        self.seconds.get_or_create(&[("controller", controller.to_owned())]).observe(took.as_secs_f64());
    }

    /// Counts one write to the management API.
    pub fn wrote(&self, kind: &str, verb: &str, result: &str) {
        self.writes.get_or_create(&[("kind", kind.to_owned()), ("verb", verb.to_owned()), ("result", result.to_owned())]).inc();
    }

    /// The counter of requests to workload clusters.
    pub fn workload_requests(&self) -> WorkloadRequests {
        self.workload_requests.clone()
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

fn reconcile_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 4.0, 8))
}

/// Shows what the AWS leaf counted.
#[derive(Debug)]
struct AwsCalls;

impl Collector for AwsCalls {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut family = encoder.encode_descriptor("aws_calls", "Calls to AWS", None, MetricType::Counter)?;
        for call in aws::calls() {
            let labels = [("service", call.service.as_str()), ("action", call.action.as_str()), ("result", call.result)];
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
        assert!(text.contains(r#"cluster_operator_api_writes_total{kind="AWSCluster",verb="patch",result="ok"} 2"#), "{text}");
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
