//! Calico's Installation on a real kube-apiserver, applied in turn with what its operator writes into it:
//! what the plugin plans, as its golden files have it, and what the operator was seen to do. No controller
//! runs.

use anyhow::{Context, Result, ensure};
use sandbox::cloud::addons::tigera::{defaults, objects};
use sandbox::{Bed, Options, Parts};
use serde_json::{Value, json};

/// How often the same plan is applied.
const TIMES: usize = 100;
const MANAGER: &str = "cluster-operator-calico";
const OPERATOR: &str = "tigera-operator";

#[tokio::test]
async fn on_a_bed_what_the_operator_fills_in_is_never_in_the_way() -> Result<()> {
    let bed = Bed::up(Options { name: "installation".into(), parts: Parts::ApiServer, ..Options::default() })
        .await?;
    for definition in objects::definitions() {
        bed.apply(&definition.to_string()).await?;
    }
    let established = [
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        "customresourcedefinition/installations.operator.tigera.io",
    ];
    bed.kubectl(&established).await?;
    the_same_plan_changes_nothing(&bed).await?;
    settings_are_changed_and_changed_back(&bed).await?;
    an_installation_of_before_is_in_conflict_with_its_operator_alone(&bed).await
}

async fn the_same_plan_changes_nothing(bed: &Bed) -> Result<()> {
    let planned = planned("calico")?;
    apply(bed, &planned, &[]).await?;
    operator_writes(bed).await?;
    let first = installation(bed).await?;
    for _ in 0..TIMES {
        apply(bed, &planned, &[]).await?;
        operator_writes(bed).await?;
    }
    let last = installation(bed).await?;
    ensure!(
        last["metadata"]["generation"] == first["metadata"]["generation"],
        "{} is not {}",
        last["metadata"],
        first["metadata"]
    );
    ensure!(holders(&last, "f:ipPools") == [MANAGER], "{:?} hold the pools", holders(&last, "f:ipPools"));
    ensure!(
        holders(&last, "f:hostPorts") == [OPERATOR],
        "the operator wrote nothing: {:?}",
        holders(&last, "f:hostPorts")
    );
    Ok(())
}

async fn settings_are_changed_and_changed_back(bed: &Bed) -> Result<()> {
    for name in ["calico-settings", "calico", "calico-ipip-mirror", "calico"] {
        let planned = planned(name)?;
        take_over(bed, &planned).await.with_context(|| format!("applying {name}"))?;
        operator_writes(bed).await?;
        let stored = installation(bed).await?;
        let pools = |it: &Value| it["spec"]["calicoNetwork"]["ipPools"].clone();
        ensure!(pools(&stored) == pools(&planned), "{name}: {} is not {}", pools(&stored), pools(&planned));
    }
    Ok(())
}

/// As it was planned before every field of the pools was: the operator holds the list.
async fn an_installation_of_before_is_in_conflict_with_its_operator_alone(bed: &Bed) -> Result<()> {
    bed.kubectl(&["delete", "installations.operator.tigera.io", "default"]).await?;
    let planned = planned("calico")?;
    let mut before = planned.clone();
    let pool = json!({"cidr": "192.168.0.0/16", "encapsulation": "VXLAN", "natOutgoing": "Enabled", "nodeSelector": "all()"});
    before["spec"]["calicoNetwork"]["ipPools"] = json!([pool]);
    apply(bed, &before, &[]).await?;
    operator_writes(bed).await?;
    let mut wanted = planned.clone();
    wanted["spec"]["calicoNetwork"]["ipPools"][0]["encapsulation"] = json!("IPIP");
    for object in [&before, &wanted] {
        let refused = apply(bed, object, &[]).await.err().context("it is no conflict")?;
        let text = format!("{refused:#}");
        // The words by which the operator's fields are known.
        let words =
            "conflict with \"tigera-operator\" using operator.tigera.io/v1: .spec.calicoNetwork.ipPools";
        ensure!(text.contains("failed with 1 conflict") && text.contains(words), "{text}");
    }
    // A version that is pinned keeps out whoever comes in between.
    let stale = installation(bed).await?["metadata"]["resourceVersion"].clone();
    bed.kubectl(&["annotate", "installations.operator.tigera.io", "default", "changed=true"]).await?;
    let pinned = |version: &Value| {
        let mut pinned = wanted.clone();
        pinned["metadata"]["resourceVersion"] = version.clone();
        pinned
    };
    let refused = apply(bed, &pinned(&stale), &["--force-conflicts"])
        .await
        .err()
        .context("it is applied over a change")?;
    ensure!(format!("{refused:#}").contains("the object has been modified"), "{refused:#}");
    let current = installation(bed).await?["metadata"]["resourceVersion"].clone();
    apply(bed, &pinned(&current), &["--force-conflicts"]).await?;
    operator_writes(bed).await?;
    apply(bed, &wanted, &[]).await?;
    apply(bed, &planned, &[]).await?;
    ensure!(
        holders(&installation(bed).await?, "f:ipPools") == [MANAGER],
        "the operator still holds the pools"
    );
    Ok(())
}

/// The Installation of a golden plan.
fn planned(name: &str) -> Result<Value> {
    let file = sandbox::paths::source().join(format!("host/plugin/tests/golden/{name}.json"));
    let plan: Value = serde_json::from_slice(
        &std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?,
    )?;
    let steps = plan["steps"].as_array().context("a plan has steps")?;
    let step = steps.iter().find(|it| it["id"] == "installation").context("there is an installation")?;
    Ok(step["spec"]["objects"][0].clone())
}

async fn apply(bed: &Bed, object: &Value, more: &[&str]) -> Result<()> {
    let mut arguments = vec!["apply", "--server-side", "--field-manager", MANAGER, "-f", "-"];
    arguments.extend(more);
    bed.running().exec("kubectl", &arguments, Some(&object.to_string())).await.map(drop)
}

/// As the add-on is applied: what the operator alone filled in is taken over, at the version that was looked
/// at.
async fn take_over(bed: &Bed, object: &Value) -> Result<()> {
    let Err(refused) = apply(bed, object, &[]).await else { return Ok(()) };
    let text = format!("{refused:#}");
    let conflicts: Vec<&str> = text.matches("conflict with \"").collect();
    let with_operator: Vec<&str> = text.matches("conflict with \"tigera-operator\"").collect();
    ensure!(!with_operator.is_empty() && conflicts.len() == with_operator.len(), "{text}");
    let mut pinned = object.clone();
    pinned["metadata"]["resourceVersion"] = installation(bed).await?["metadata"]["resourceVersion"].clone();
    apply(bed, &pinned, &["--force-conflicts"]).await
}

async fn installation(bed: &Bed) -> Result<Value> {
    bed.kubectl_json(&["get", "installations.operator.tigera.io", "default", "--show-managed-fields"]).await
}

/// Both of its controllers look at the Installation, and write what is open.
async fn operator_writes(bed: &Bed) -> Result<()> {
    type Filled = fn(&Value) -> Value;
    let controllers: [Filled; 2] = [defaults::defaulted, |spec| defaults::with_pools(spec, &[])];
    for filled in controllers {
        let spec = installation(bed).await?["spec"].clone();
        if let Some(patch) = defaults::merge_patch(&spec, &filled(&spec)) {
            let patch = json!({"spec": patch}).to_string();
            let name = [
                "patch",
                "installations.operator.tigera.io",
                "default",
                "--type=merge",
                "--field-manager",
                OPERATOR,
                "--patch",
                &patch,
            ];
            bed.kubectl(&name).await?;
        }
    }
    Ok(())
}

/// Managers that hold a field of `spec.calicoNetwork`.
fn holders(object: &Value, field: &str) -> Vec<String> {
    let all = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let holds = |it: &&Value| it["fieldsV1"]["f:spec"]["f:calicoNetwork"].get(field).is_some();
    all.filter(holds).filter_map(|it| it["manager"].as_str().map(str::to_owned)).collect()
}
