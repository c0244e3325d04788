//! What becomes of installations that an earlier version of the operator made when this one takes over: nothing
//! is written to them or to AWS before their users consent; then nothing is lost, nothing is in conflict, no
//! condition fails on the way, and what restarts is listed. `make test-baseline BASELINE=<commit>` builds the
//! earlier version and runs this.

mod seen;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use end_to_end::add_ons::{ACCOUNT, FLAVOR, NAME, file_system, manifest, plugin, prepare, running};
use end_to_end::{Cluster, MOMENT, condition, ensure_nothing_was_forbidden, find_condition};
use futures::future::try_join_all;
use sandbox::{Bed, Options, operator};
use seen::{Seen, is_good_news};
use serde_json::{Value, json};

/// The earlier version: a directory with its source, of which the definitions are taken, and its program.
const SOURCE: &str = "BASELINE_SOURCE";
const PROGRAM: &str = "BASELINE_OPERATOR";
/// How many clusters there are; without it those two that have all add-ons between them.
const CLUSTERS: &str = "BASELINE_CLUSTERS";
/// How many of the further clusters are made at once.
const AT_ONCE: usize = 2;
/// How long nothing may change before everything counts as done.
const QUIET: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an earlier version of the operator: make test-baseline BASELINE=<commit>"]
async fn on_a_bed_installations_of_an_earlier_version_are_taken_over() -> Result<()> {
    let given =
        |name: &str| std::env::var_os(name).map(PathBuf::from).with_context(|| format!("{name} is not set"));
    let program = Link::to(&given(PROGRAM)?)?;
    let bed =
        Bed::up(Options { name: "baseline".into(), operator: Some(program.0.clone()), ..Options::default() })
            .await?;
    define(&bed, &given(SOURCE)?).await?;
    let clusters =
        [Cluster::new("default", "calico", 1, 1), Cluster::new("default", NAME, 1, 1).of_flavor(FLAVOR)];
    let [calico, vpc] = clusters.clone().map(|it| it.with("AWS_AVAILABILITY_ZONES", "2"));
    let (one, other) = tokio::join!(with_calico(&bed, &calico), with_amazon_vpc(&bed, &vpc));
    one.context("with Calico")?;
    other.context("with the Amazon VPC CNI")?;
    let further = further(&bed).await?;
    let account = bed.emulator().account().await?;
    let clusters: Vec<&Cluster> = [&calico, &vpc].into_iter().chain(&further).collect();
    let before = try_join_all(clusters.iter().map(|it| Seen::of(&bed, it))).await?;

    bed.stop_operator().await?;
    let from = bed.emulator().calls(0).await?.next;
    define(&bed, &sandbox::paths::source()).await?;
    program.change(&operator::default_program())?;
    bed.start_operator().await?;
    try_join_all(clusters.iter().map(|it| settled(&bed, it))).await?;
    let mut written = written_to_aws(&bed, from).await?;
    for (cluster, before) in clusters.iter().zip(&before) {
        written.extend(before.written(&Seen::of(&bed, cluster).await?));
    }
    println!("written without consent, of {} clusters: {written:#?}", clusters.len());
    ensure!(written.is_empty(), "written without consent: {written:#?}");
    let available = [available(&bed, &calico).await?, available(&bed, &vpc).await?].concat();
    println!("available: {available:#?}");
    ensure!(!available.is_empty(), "the earlier version brought the same components: take an older one");

    let (one, other) = tokio::join!(upgraded(&bed, &calico), upgraded(&bed, &vpc));
    let (one, other) = (one?, other?);

    println!("written to AWS: {:#?}", written_to_aws(&bed, from).await?);
    let mut wrong = before[0].compare(&Seen::of(&bed, &calico).await?, &one);
    wrong.extend(before[1].compare(&Seen::of(&bed, &vpc).await?, &other));
    let left = bed.emulator().account().await?;
    let is_left = |kind: &str, id: &String| left.get(kind).is_some_and(|it| it.contains(id));
    wrong.extend(account.iter().flat_map(|(kind, ids)| {
        ids.iter().filter(|it| !is_left(kind, it)).map(|it| format!("{it} is gone"))
    }));
    ensure!(wrong.is_empty(), "{wrong:#?}");
    ensure_nothing_was_forbidden(&bed).await?;
    settings_can_be_changed(
        &bed,
        &calico,
        json!({"networking": {"calico": {"mtu": 1400}}, "storage": {"ebs": {"replicas": 1}}}),
    )
    .await?;
    settings_can_be_changed(
        &bed,
        &vpc,
        json!({"networking": {"amazonVPC": {"warmENITarget": 2}}, "storage": {"efs": {"replicas": 1}}}),
    )
    .await
}

/// A program that can be another one the next time it is started.
struct Link(PathBuf);

impl Link {
    fn to(program: &Path) -> Result<Link> {
        let link =
            Link(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("operator-{}", std::process::id())));
        link.change(program)?;
        Ok(link)
    }

    fn change(&self, program: &Path) -> Result<()> {
        ensure!(program.is_file(), "there is no program {}", program.display());
        let _ = std::fs::remove_file(&self.0);
        std::os::unix::fs::symlink(program, &self.0).with_context(|| format!("linking {}", program.display()))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Has the management cluster have the definitions of a source, as whoever installs a version does.
async fn define(bed: &Bed, source: &Path) -> Result<()> {
    let directory = source.join("crds/yaml").display().to_string();
    bed.kubectl(&["apply", "--server-side", "--force-conflicts", "--validate=ignore", "-f", &directory])
        .await
        .map(drop)
}

/// Further clusters, small ones: the default template on one machine.
async fn further(bed: &Bed) -> Result<Vec<Cluster>> {
    let count: usize = match std::env::var(CLUSTERS) {
        Ok(text) => text.parse().with_context(|| format!("{CLUSTERS} is no number"))?,
        Err(_) => 2,
    };
    let all: Vec<Cluster> =
        (2..count).map(|number| Cluster::new("default", &format!("further-{number}"), 1, 0)).collect();
    for some in all.chunks(AT_ONCE) {
        try_join_all(some.iter().map(async |it| {
            it.apply(bed).await?;
            it.wait_until_ready(bed).await?;
            running(bed, it, 2).await.with_context(|| it.name.clone())
        }))
        .await?;
    }
    Ok(all)
}

/// What operators wrote to AWS since a call.
async fn written_to_aws(bed: &Bed, from: u64) -> Result<Vec<String>> {
    let calls = bed.emulator().calls(from).await?.calls;
    let by_operator = |it: &str| it.contains("operator");
    let writes = calls.iter().filter(|it| it.write && it.caller.as_deref().is_some_and(by_operator));
    Ok(writes.map(|it| format!("{} of {}", it.action, it.resources.join(", "))).collect())
}

/// Calico and all that goes with it, without roles.
async fn with_calico(bed: &Bed, cluster: &Cluster) -> Result<()> {
    cluster.apply(bed).await?;
    let all =
        json!({"spec": {"storage": {"ebs": {}, "efs": {}}, "ingress": {"awsLoadBalancerController": {}}}});
    cluster.patch(bed, "clusterplugin", &cluster.name, &all.to_string()).await?;
    cluster.wait_until_ready(bed).await?;
    running(bed, cluster, 5).await?;
    used(bed, cluster, &["ebs"]).await
}

/// The Amazon VPC CNI and all that goes with it, each as its own role.
async fn with_amazon_vpc(bed: &Bed, cluster: &Cluster) -> Result<()> {
    prepare(bed, None).await?;
    // What drivers do with tags, and which rights that takes, is no default.
    bed.apply(&manifest(bed, cluster).await?.replace("  additionalTags: {team: storage}\n", "")).await?;
    cluster.wait_until_ready(bed).await?;
    let efs = json!({"roleARN": format!("arn:aws:iam::{ACCOUNT}:role/full-efs"), "fileSystemID": file_system(bed, cluster).await?});
    cluster
        .patch(bed, "clusterplugin", &cluster.name, &json!({"spec": {"storage": {"efs": efs}}}).to_string())
        .await?;
    running(bed, cluster, 5).await?;
    used(bed, cluster, &["ebs", "efs"]).await
}

/// Volumes of these classes, and load balancers of a Service and of an Ingress.
async fn used(bed: &Bed, cluster: &Cluster, classes: &[&str]) -> Result<()> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let claim = |class: &&str| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": class, "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": "1Gi"}}}})
    };
    let volume = |class: &&str| json!({"name": class, "persistentVolumeClaim": {"claimName": class}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "c"}], "volumes": classes.iter().map(volume).collect::<Value>()}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}});
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"ingressClassName": "alb", "rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]}});
    let items: Vec<Value> = classes.iter().map(claim).chain([pod, service, ingress]).collect();
    workload.apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()).await?;
    bed.wait_for("volumes and load balancers to be there", MOMENT * 2, async || {
        let all = workload.kubectl_json(&["get", "pvc,services,ingresses"]).await?;
        let is_there = |object: &&Value| {
            let name = &object["status"]["loadBalancer"]["ingress"][0]["hostname"];
            object["status"]["phase"] == "Bound"
                || name.is_string()
                || object["metadata"]["name"] == "kubernetes"
        };
        let (all, there) = (items_of(&all).count(), items_of(&all).filter(is_there).count());
        ensure!(all == classes.len() + 3 && there == all, "{there} of {all}");
        Ok(())
    })
    .await
}

/// Waits until all runs and nothing is changed any more. What was told on the way that is not good.
async fn settled(bed: &Bed, cluster: &Cluster) -> Result<BTreeSet<String>> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let (mut told, mut last, mut since, end) =
        (BTreeSet::new(), Vec::new(), Instant::now(), Instant::now() + MOMENT * 3);
    while since.elapsed() < QUIET {
        let object = plugin(bed, cluster).await?;
        for it in object["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|it| is_good_news(it) && it["status"] != "True")
        {
            told.insert(format!("{} is {}: {}: {}", it["type"], it["status"], it["reason"], it["message"]));
        }
        for it in
            object["status"]["plugins"].as_array().into_iter().flatten().filter(|it| it["phase"] == "Failed")
        {
            told.insert(format!("Failed: {it}"));
        }
        let all =
            workload.kubectl_json(&["get", "daemonsets,deployments,configmaps", "--all-namespaces"]).await?;
        let now: Vec<Value> = items_of(&all).map(|it| it["metadata"]["resourceVersion"].clone()).collect();
        if now != last || condition(&object, "Ready") != "True" {
            (last, since) = (now, Instant::now());
        }
        ensure!(Instant::now() < end, "{} does not settle: {told:#?}", cluster.name);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(told)
}

fn items_of(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

/// The add-ons of a cluster that this operator could upgrade, each with what that would change.
async fn available(bed: &Bed, cluster: &Cluster) -> Result<Vec<String>> {
    let object = plugin(bed, cluster).await?;
    let all = object["status"]["plugins"].as_array().into_iter().flatten();
    let available = all.filter(|it| it["available"].is_object());
    Ok(available
        .map(|it| format!("{}: {} {}", cluster.name, it["name"], it["available"]["changes"]))
        .collect())
}

/// Consents to all upgrades and waits until they are made. What was told on the way that is not good.
async fn upgraded(bed: &Bed, cluster: &Cluster) -> Result<BTreeSet<String>> {
    let consent = json!({"spec": {"upgradePolicy": "Automatic"}});
    cluster.patch(bed, "clusterplugin", &cluster.name, &consent.to_string()).await?;
    // One cluster after the other.
    bed.wait_for("all upgrades to be made", MOMENT * 4, async || {
        let object = plugin(bed, cluster).await?;
        let all = object["status"]["plugins"].as_array().into_iter().flatten();
        let waiting: Vec<&Value> =
            all.filter(|it| !it["available"].is_null() || it["phase"] != "Running").collect();
        ensure!(waiting.is_empty(), "{waiting:#?}");
        Ok(())
    })
    .await?;
    let told = settled(bed, cluster).await?;
    let stored = ["get", "configmaps", "--namespace=kube-system", "--selector=cluster.kurator.dev/component"];
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let stored = items_of(&workload.kubectl_json(&stored).await?).count();
    ensure!(stored == 5, "{stored} components are stored for five add-ons");
    Ok(told)
}

/// What an earlier version installed is changed by this one.
async fn settings_can_be_changed(bed: &Bed, cluster: &Cluster, settings: Value) -> Result<()> {
    let generation = plugin(bed, cluster).await?["metadata"]["generation"].clone();
    cluster.patch(bed, "clusterplugin", &cluster.name, &json!({"spec": settings}).to_string()).await?;
    bed.wait_for("changed settings to be applied", MOMENT * 2, async || {
        let object = plugin(bed, cluster).await?;
        let ready = find_condition(&object, "Ready").context("it says nothing")?;
        let is_newer = ready["observedGeneration"].as_i64() > generation.as_i64();
        ensure!(is_newer && ready["status"] == "True", "Ready says {ready}");
        Ok(())
    })
    .await
}
