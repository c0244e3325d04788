//! Good and bad objects, sent by kubectl to a real kube-apiserver that has this project's definitions and
//! admission policies. The cases are data, in `crds/tests/cases`; the answer has to be word for word the one
//! that is written there. Who may approve of plans is asked as several users. No controller runs.

use anyhow::{Context, Result, bail, ensure};
use end_to_end::MOMENT;
use sandbox::{Bed, Options, Parts};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The cases of one kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// What every case begins with.
    object: Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    /// Merged into the object before it is created; null removes.
    #[serde(default)]
    create: Value,
    /// Merged into the stored object afterwards.
    update: Option<Value>,
    /// Whether the update is a dry run.
    #[serde(default)]
    dry_run: bool,
    /// What kubectl does about unknown fields.
    #[serde(default = "strict")]
    validate: String,
    /// The answer when it is no: one, or several.
    #[serde(default)]
    error: Answers,
    /// Part of what is stored when the answer is yes; null is what is not there.
    stored: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(untagged)]
enum Answers {
    #[default]
    None,
    One(String),
    Several(Vec<String>),
}

impl Answers {
    fn sorted(&self) -> Vec<String> {
        let mut answers = match self {
            Self::None => Vec::new(),
            Self::One(answer) => vec![answer.clone()],
            Self::Several(answers) => answers.clone(),
        };
        answers.sort();
        answers
    }
}

fn strict() -> String {
    "strict".into()
}

#[tokio::test]
async fn on_a_bed_the_api_server_answers_as_the_tables_say() -> Result<()> {
    let bed = Bed::up(Options { name: "api".into(), parts: Parts::ApiServer, ..Options::default() }).await?;
    let directory = sandbox::paths::source().join("crds/tests/cases");
    let mut wrong = Vec::new();
    let mut checked = 0;
    for entry in std::fs::read_dir(&directory).context("reading the tables")? {
        let file = entry?.path();
        let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let table: Table =
            serde_saphyr::from_str(&text).with_context(|| format!("reading {}", file.display()))?;
        for (number, case) in table.cases.iter().enumerate() {
            checked += 1;
            if let Err(error) = check(&bed, &table.object, case, &format!("case-{number}")).await {
                let file = file.file_name().unwrap_or_default().to_string_lossy();
                wrong.push(format!("{file}: {}: {error:#}", case.name));
            }
        }
    }
    ensure!(checked > 0, "there are no cases in {}", directory.display());
    ensure!(
        wrong.is_empty(),
        "{} of {checked} answers are others than the tables say:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    Ok(())
}

/// Whoever may edit ClusterPlugins.
const EDITOR: &str = "editor";
/// Whoever may approve besides.
const APPROVER: &str = "approver";
const OPERATOR: &str = "system:serviceaccount:cluster-operator-system:cluster-operator";
const APPROVE: &str = "cluster.kurator.dev/approve";

/// Edits of a ClusterPlugin with `approval: Manual`, one after the other: who makes it, the annotation and the
/// rest of a merge patch, and what is said of it.
fn edits() -> Vec<(&'static str, Value, &'static str)> {
    let approves = |text: &str| json!({"metadata": {"annotations": {APPROVE: text}}});
    let no_verb = "metadata.annotations[cluster.kurator.dev/approve]: approving of plans needs the verb approve on this ClusterPlugin";
    let no_end =
        "spec.approval: that plans need no approval any more needs the verb approve on this ClusterPlugin";
    let (one, two) = ("calico@sha256:1", "calico@sha256:1, aws-ebs-csi@sha256:2");
    vec![
        (EDITOR, json!({"spec": {"storage": {"ebs": {}}}}), ""),
        (EDITOR, json!({"metadata": {"annotations": {"cluster.kurator.dev/upgrade": one}}}), ""),
        (EDITOR, approves(one), no_verb),
        (OPERATOR, approves(one), no_verb),
        (EDITOR, json!({"spec": {"approval": "Automatic"}}), no_end),
        (EDITOR, json!({"spec": {"approval": null}}), no_end),
        (APPROVER, approves(two), ""),
        (EDITOR, approves(&format!("{two},aws-efs-csi@sha256:3")), no_verb),
        (EDITOR, approves("calico@sha256:3,aws-ebs-csi@sha256:2"), no_verb),
        (EDITOR, approves("aws-ebs-csi@sha256:2,calico@sha256:1"), ""),
        (EDITOR, json!({"spec": {"drift": "Warn"}}), ""),
        (OPERATOR, approves("aws-ebs-csi@sha256:2"), ""),
        (OPERATOR, json!({"metadata": {"annotations": {APPROVE: null}}}), ""),
        (EDITOR, approves("aws-ebs-csi@sha256:2"), no_verb),
        (APPROVER, json!({"spec": {"approval": "Automatic"}}), ""),
        (EDITOR, json!({"spec": {"approval": "Manual"}}), ""),
    ]
}

#[tokio::test]
async fn on_a_bed_approving_and_ending_approval_need_the_verb() -> Result<()> {
    let bed =
        Bed::up(Options { name: "approval".into(), parts: Parts::ApiServer, ..Options::default() }).await?;
    let verbs = "--verb=get,list,create,update,patch,delete";
    bed.kubectl(&["create", "role", EDITOR, verbs, "--resource=clusterplugins.cluster.kurator.dev"]).await?;
    for user in [EDITOR, APPROVER] {
        let user_flag = format!("--user={user}");
        bed.kubectl(&["create", "rolebinding", user, &format!("--role={EDITOR}"), &user_flag]).await?;
    }
    let approver = ["--clusterrole=cluster-operator-approver", "--user=approver"];
    bed.kubectl(&[&["create", "rolebinding", "may-approve"][..], &approver].concat()).await?;
    let object = |name: &str, annotations: Value| {
        json!({"apiVersion": "cluster.kurator.dev/v1alpha1", "kind": "ClusterPlugin",
            "metadata": {"name": name, "namespace": "default", "annotations": annotations},
            "spec": {"clusterName": name, "approval": "Manual"}})
        .to_string()
    };
    let create = async |name: &str, user: &str, annotations: Value| {
        let (user, object) = (format!("--as={user}"), object(name, annotations));
        bed.running().exec("kubectl", &["create", "-f", "-", &user], Some(&object)).await
    };
    let approved = json!({APPROVE: "calico@sha256:1"});
    // The API server takes a moment until it asks a policy that is new.
    let refused = bed
        .wait_for("the policy to be asked", MOMENT, async || {
            match create("one", EDITOR, approved.clone()).await {
                Err(refused) => Ok(refused),
                Ok(_) => {
                    bed.kubectl(&["delete", "clusterplugin", "one", "--wait"]).await?;
                    bail!("one that is approved is made")
                }
            }
        })
        .await?;
    ensure!(format!("{refused:#}").contains("needs the verb approve"), "{refused:#}");
    create("other", APPROVER, approved).await?;
    create("one", EDITOR, json!({})).await?;
    for (number, (user, patch, said)) in edits().into_iter().enumerate() {
        let (user, text) = (format!("--as={user}"), patch.to_string());
        let edit = ["patch", "clusterplugin", "one", "--type=merge", "--patch", &text, &user];
        match bed.kubectl(&edit).await {
            Ok(_) => ensure!(said.is_empty(), "edit {number} is taken: {user} {text}"),
            Err(error) => {
                let error = format!("{error:#}");
                ensure!(!said.is_empty() && error.contains(said), "edit {number}: {user} {text}: {error}");
            }
        }
    }
    Ok(())
}

async fn check(bed: &Bed, object: &Value, case: &Case, name: &str) -> Result<()> {
    let mut object = merged(object.clone(), &case.create);
    object["metadata"]["name"] = json!(name);
    let (answers, stored) = match send(bed, &object, case).await {
        Ok(stored) => (Vec::new(), stored),
        Err(error) => (answers(&format!("{error:#}")), Value::Null),
    };
    let wanted = case.error.sorted();
    ensure!(answers == wanted, "\n  wanted {wanted:#?}\n  got {answers:#?}");
    if let Some(part) = &case.stored {
        holds(part, &stored, "")?;
    }
    Ok(())
}

/// Creates the object and updates it; what is stored in the end.
async fn send(bed: &Bed, object: &Value, case: &Case) -> Result<Value> {
    let validate = format!("--validate={}", case.validate);
    let mut create = vec!["create", "-f", "-", "-o", "json", &validate];
    if case.update.is_none() {
        create.push("--dry-run=server");
    }
    let mut stored = bed.running().exec("kubectl", &create, Some(&object.to_string())).await?;
    if let Some(update) = &case.update {
        let group =
            object["apiVersion"].as_str().and_then(|version| version.split('/').next()).unwrap_or_default();
        let kind = format!("{}.{group}", object["kind"].as_str().unwrap_or_default());
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let update = update.to_string();
        let mut patch = vec!["patch", &kind, name, "--type=merge", "--patch", &update, "-o", "json"];
        if case.dry_run {
            patch.push("--dry-run=server");
        }
        stored = bed.kubectl(&patch).await?;
    }
    serde_json::from_str(&stored).context("reading kubectl's JSON")
}

/// A JSON merge patch.
fn merged(object: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else {
        return if patch.is_null() { object } else { patch.clone() };
    };
    let mut fields = match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    for (name, value) in patch {
        let old = fields.remove(name).unwrap_or_default();
        if !value.is_null() {
            fields.insert(name.clone(), merged(old, value));
        }
    }
    fields.into()
}

/// The causes in kubectl's words for a refusal, without the object's name in front.
fn answers(error: &str) -> Vec<String> {
    let causes = ["denied request: ", "is invalid: "]
        .iter()
        .find_map(|end| Some(error.split_once(end)?.1))
        .unwrap_or(error);
    let lines = causes.lines().map(|line| line.trim().trim_start_matches("* "));
    // The server says so beside the causes when rules were not evaluated.
    let mut answers: Vec<String> = lines
        .filter(|line| !line.is_empty() && !line.contains("some validation rules were not checked"))
        .map(String::from)
        .collect();
    answers.sort();
    answers
}

/// Whether `stored` has everything that `part` has, and nothing where `part` has null.
fn holds(part: &Value, stored: &Value, path: &str) -> Result<()> {
    match part {
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
            holds(value, stored.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}"))
        }),
        _ => {
            ensure!(part == stored, "{path} is stored as {stored}, not as {part}");
            Ok(())
        }
    }
}
