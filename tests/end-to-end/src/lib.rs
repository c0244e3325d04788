//! What the scenarios share: clusters made from the template that users get, and questions about them. It
//! talks to the bed only as a user does (clusterctl, kubectl, the AWS API) and through the emulator's control
//! interface. It decides nothing about clusters.

pub mod add_ons;
pub mod components;
pub mod diff;
pub mod fleet;
pub mod machineless;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sandbox::Bed;
use sandbox::emulator::Call;
use serde_json::Value;

/// The Kubernetes version that the bed's programs are.
pub const KUBERNETES_VERSION: &str = "v1.36.3";

/// Long enough for a machine to boot on a busy machine with two cores.
pub const BOOT: Duration = Duration::from_secs(900);
/// Long enough for things that need no boot.
pub const MOMENT: Duration = Duration::from_secs(240);

/// One cluster of a scenario.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub namespace: String,
    pub name: String,
    pub control_planes: usize,
    pub workers: usize,
    /// The flavor of the template; the default one when empty.
    pub flavor: String,
    /// Further variables of the template.
    pub variables: BTreeMap<String, String>,
}

impl Cluster {
    pub fn new(namespace: &str, name: &str, control_planes: usize, workers: usize) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            control_planes,
            workers,
            flavor: String::new(),
            variables: BTreeMap::new(),
        }
    }

    pub fn with(mut self, variable: &str, value: &str) -> Self {
        self.variables.insert(variable.into(), value.into());
        self
    }

    pub fn of_flavor(mut self, flavor: &str) -> Self {
        self.flavor = flavor.into();
        self
    }

    /// The manifest, rendered by clusterctl from the template in `deploy/templates`.
    pub async fn manifest(&self, bed: &Bed) -> Result<String> {
        let flavor = if self.flavor.is_empty() { String::new() } else { format!("-{}", self.flavor) };
        let template =
            sandbox::paths::source().join(format!("deploy/templates/cluster-template{flavor}.yaml"));
        let mut assignments = vec![
            format!("NAMESPACE={}", self.namespace),
            format!("CLUSTER_NAME={}", self.name),
            format!("KUBERNETES_VERSION={KUBERNETES_VERSION}"),
            format!("CONTROL_PLANE_MACHINE_COUNT={}", self.control_planes),
            format!("WORKER_MACHINE_COUNT={}", self.workers),
            "AWS_REGION=us-east-1".to_owned(),
        ];
        assignments.extend(self.variables.iter().map(|(name, value)| format!("{name}={value}")));
        let template = template.display().to_string();
        let mut arguments: Vec<&str> = assignments.iter().map(String::as_str).collect();
        arguments.extend(["clusterctl", "generate", "yaml", "--from", &template]);
        bed.exec("env", &arguments).await
    }

    /// Applies the manifest, as a user does; the namespace is made when it is missing.
    pub async fn apply(&self, bed: &Bed) -> Result<()> {
        let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {}\n", self.namespace);
        bed.apply(&namespace).await?;
        bed.apply(&self.manifest(bed).await?).await.map(drop)
    }

    /// An object of this cluster's namespace.
    pub async fn object(&self, bed: &Bed, kind: &str, name: &str) -> Result<Value> {
        bed.kubectl_json(&["get", kind, name, "--namespace", &self.namespace]).await
    }

    /// Objects of a kind that carry this cluster's label.
    pub async fn objects(&self, bed: &Bed, kind: &str) -> Result<Vec<Value>> {
        let label = format!("cluster.x-k8s.io/cluster-name={}", self.name);
        let list =
            bed.kubectl_json(&["get", kind, "--namespace", &self.namespace, "--selector", &label]).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Merges `patch` into an object of this cluster.
    pub async fn patch(&self, bed: &Bed, kind: &str, name: &str, patch: &str) -> Result<()> {
        bed.kubectl(&[
            "patch",
            kind,
            name,
            "--namespace",
            &self.namespace,
            "--type",
            "merge",
            "--patch",
            patch,
        ])
        .await
        .map(drop)
    }

    /// Waits until every Machine is there and Available, and every Node of the cluster Ready.
    pub async fn wait_until_ready(&self, bed: &Bed) -> Result<()> {
        let wanted = self.control_planes + self.workers;
        bed.wait_for(&format!("{wanted} machines of {} to be available", self.name), BOOT, async || {
            let machines = self.objects(bed, "machines").await?;
            let available = machines.iter().filter(|it| condition(it, "Available") == "True").count();
            let phases: Vec<&str> =
                machines.iter().map(|it| it["status"]["phase"].as_str().unwrap_or("?")).collect();
            ensure!(
                machines.len() == wanted && available == wanted,
                "{available} of {wanted} are available; phases {phases:?}"
            );
            Ok(())
        })
        .await?;
        let workload = bed.workload(&self.namespace, &self.name).await?;
        bed.wait_for(&format!("{wanted} nodes of {} to be ready", self.name), MOMENT, async || {
            let nodes = workload.kubectl_json(&["get", "nodes"]).await?;
            let nodes = nodes["items"].as_array().cloned().unwrap_or_default();
            let ready = nodes.iter().filter(|it| condition(it, "Ready") == "True").count();
            ensure!(
                ready == wanted && nodes.len() == wanted,
                "{ready} of {} nodes are ready, {wanted} wanted",
                nodes.len()
            );
            Ok(())
        })
        .await
    }

    /// Deletes the Cluster, as a user does, and waits until it is gone.
    pub async fn delete(&self, bed: &Bed) -> Result<()> {
        self.ask_for_deletion(bed).await?;
        self.wait_until_gone(bed).await
    }

    pub async fn ask_for_deletion(&self, bed: &Bed) -> Result<()> {
        bed.kubectl(&["delete", "cluster", &self.name, "--namespace", &self.namespace, "--wait=false"])
            .await
            .map(drop)
    }

    pub async fn wait_until_gone(&self, bed: &Bed) -> Result<()> {
        bed.wait_for(&format!("cluster {} to be gone", self.name), BOOT, async || {
            for kind in ["clusters", "awsclusters", "clusterplugins"] {
                let list = bed.kubectl_json(&["get", kind, "--namespace", &self.namespace]).await?;
                let items = list["items"].as_array().cloned().unwrap_or_default();
                let left: Vec<String> = items
                    .iter()
                    .filter(|it| it["metadata"]["name"] == self.name)
                    .map(Value::to_string)
                    .collect();
                ensure!(left.is_empty(), "{kind} is left: {}", left.join(""));
            }
            let machines = self.objects(bed, "awsmachines").await?;
            ensure!(machines.is_empty(), "{} AWSMachines are left", machines.len());
            Ok(())
        })
        .await
    }

    /// Ids of the instances of this cluster that run or are about to.
    pub async fn instances(&self, bed: &Bed) -> Result<Vec<String>> {
        let tag = format!("sigs.k8s.io/cluster-api-provider-aws/cluster/{}", self.name);
        let world = bed.emulator().world().await?;
        let alive =
            world.instances.into_iter().filter(|it| matches!(it.state.as_str(), "pending" | "running"));
        Ok(alive.filter(|it| it.tags.contains_key(&tag)).map(|it| it.id).collect())
    }

    /// Names of the classic load balancers in this cluster's VPC, and ARNs of the others.
    pub async fn load_balancers(&self, bed: &Bed) -> Result<Vec<String>> {
        let vpc =
            self.object(bed, "awscluster", &self.name).await?["status"]["networkStatus"]["vpc"]["id"].clone();
        let classic = bed.aws(&["elb", "describe-load-balancers"]).await?["LoadBalancerDescriptions"].take();
        let other = bed.aws(&["elbv2", "describe-load-balancers"]).await?["LoadBalancers"].take();
        let classic = classic
            .as_array()
            .into_iter()
            .flatten()
            .filter(|it| it["VPCId"] == vpc)
            .map(|it| &it["LoadBalancerName"]);
        let other = other
            .as_array()
            .into_iter()
            .flatten()
            .filter(|it| it["VpcId"] == vpc)
            .map(|it| &it["LoadBalancerArn"]);
        Ok(classic.chain(other).filter_map(Value::as_str).map(str::to_owned).collect())
    }
}

/// Status of a condition, `""` when it is not there.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    find_condition(object, kind).and_then(|it| it["status"].as_str()).unwrap_or_default()
}

/// Reason and message of a condition.
pub fn condition_text(object: &Value, kind: &str) -> String {
    let part = |name: &str| {
        find_condition(object, kind).and_then(|it| it[name].as_str()).unwrap_or_default().to_owned()
    };
    format!("{}: {}", part("reason"), part("message"))
}

/// A condition, if it is there.
pub fn find_condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|it| it["type"] == kind)
}

/// Waits until the AWS account holds nothing: what a cluster leaves behind is money.
pub async fn wait_until_account_is_empty(bed: &Bed) -> Result<()> {
    bed.wait_for("the AWS account to be empty", MOMENT, async || {
        let account = bed.emulator().account().await?;
        let left: BTreeMap<_, _> = account.iter().filter(|(_, ids)| !ids.is_empty()).collect();
        ensure!(left.is_empty(), "left in the account: {left:?}");
        Ok(())
    })
    .await
}

/// Fails where the policies in `deploy/iam` forbade the operator something. What is gone has no tags that a
/// policy could allow it by, so removals are left out: those of what somebody else removed a moment before
/// are forbidden.
pub async fn ensure_nothing_was_forbidden(bed: &Bed) -> Result<()> {
    let removes = |action: &str| {
        ["Delete", "Terminate", "Release", "Revoke", "Detach", "Disassociate", "Deregister"]
            .iter()
            .any(|it| action.starts_with(it))
    };
    let by_operator = |call: &Call| call.caller.as_deref().is_some_and(|it| it.contains("operator"));
    let is_refusal = |call: &Call| {
        let code = call.code.as_deref().unwrap_or_default();
        call.fault.is_none()
            && ["AccessDenied", "AccessDeniedException", "UnauthorizedOperation"].contains(&code)
    };
    let calls = bed.emulator().calls(0).await?.calls;
    let forbidden: Vec<_> =
        calls.iter().filter(|it| by_operator(it) && is_refusal(it) && !removes(&it.action)).collect();
    ensure!(forbidden.is_empty(), "the operator needs more than deploy/iam allows: {forbidden:?}");
    Ok(())
}

/// Number of things of each kind in the account.
pub async fn account(bed: &Bed) -> Result<BTreeMap<String, usize>> {
    let account = bed.emulator().account().await.context("asking for what the account holds")?;
    Ok(account.iter().map(|(kind, ids)| (kind.clone(), ids.len())).collect())
}
