//! What another plan of an add-on would change: what users are shown before they consent to an upgrade.

use std::collections::{BTreeMap, BTreeSet};

use contract::{AddOnPlan, Step, StepSpec};
use serde_json::Value;

use super::outline::rule_text;
use super::{Inventory, ObjectRef, objects, prune};

/// Fields of one object that are named; more are counted.
const FIELDS: usize = 4;

/// Lines about what changes, the same for the same plans: first objects, then what is needed of AWS, then
/// certificates and images. A line begins with `+` for what is added, `-` for what is removed and `~` for
/// what is changed.
pub fn changes(installed: &Inventory, before: &AddOnPlan, after: &AddOnPlan) -> Vec<String> {
    let (old, new) = (contents(&before.steps), contents(&after.steps));
    let mut lines = Vec::new();
    for (key, (object, content)) in &new {
        match old.get(key) {
            None => lines.push(format!("+ {object}")),
            Some((_, previous)) if previous == content => (),
            Some((_, previous)) => lines.push(format!("~ {object}: {}", fields(previous, content))),
        }
    }
    lines.extend(prune(installed, after).iter().map(|object| format!("- {object}")));
    lines.extend(differences(&rules(&before.steps), &rules(&after.steps)));
    lines.extend(differences(&roles(&before.steps), &roles(&after.steps)));
    lines.extend(differences(&certificates(&before.steps), &certificates(&after.steps)));
    lines.extend(image_changes(&images(&old), &images(&new)));
    lines
}

/// The same where only the record of the installed add-on is known and not its plan: which objects come and
/// go, and none of what changes within them.
pub fn changes_of_record(installed: &Inventory, after: &AddOnPlan) -> Vec<String> {
    let is_new = |object: &&ObjectRef| !installed.objects.iter().any(|known| known.same_object(object));
    let applied = objects(&after.steps);
    let mut lines: Vec<String> = applied.iter().filter(is_new).map(|object| format!("+ {object}")).collect();
    lines.extend(prune(installed, after).iter().map(|object| format!("- {object}")));
    let known = installed.rules.iter().map(rule_line).collect();
    lines.extend(differences(&known, &rules(&after.steps)));
    let kept = applied.len() - applied.iter().filter(is_new).count();
    if kept > 0 {
        lines.push(format!("~ {kept} objects are applied anew; what changes in them is not known"));
    }
    lines
}

/// The same where nothing is installed: all of the plan.
pub fn changes_of_first(after: &AddOnPlan) -> Vec<String> {
    let (none, new) = (BTreeSet::new(), contents(&after.steps));
    let mut lines: Vec<String> = new.values().map(|(object, _)| format!("+ {object}")).collect();
    lines.extend(differences(&none, &rules(&after.steps)));
    lines.extend(differences(&none, &roles(&after.steps)));
    lines.extend(differences(&none, &certificates(&after.steps)));
    lines.extend(image_changes(&Images::new(), &images(&new)));
    lines
}

/// Objects by their text, which leaves the version of their API out: another one is the same object.
type Contents<'a> = BTreeMap<String, (ObjectRef, &'a Value)>;

fn contents(steps: &[Step]) -> Contents<'_> {
    let mut res = Contents::new();
    for step in steps {
        let Some(all) = step.spec.get("objects").and_then(Value::as_array) else { continue };
        for content in all {
            let Some(object) = ObjectRef::of(content) else { continue };
            let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
            res.insert(format!("{object} {group}"), (object, content));
        }
    }
    res
}

/// The fields that differ, by their paths.
fn fields(before: &Value, after: &Value) -> String {
    let mut paths = BTreeSet::new();
    collect(before, after, &mut String::new(), &mut paths);
    let named: Vec<&str> = paths.iter().take(FIELDS).map(String::as_str).collect();
    match paths.len().saturating_sub(FIELDS) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn collect(before: &Value, after: &Value, path: &mut String, paths: &mut BTreeSet<String>) {
    let length = path.len();
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
                path.push('.');
                path.push_str(name);
                let null = &Value::Null;
                collect(old.get(name).unwrap_or(null), new.get(name).unwrap_or(null), path, paths);
                path.truncate(length);
            }
        }
        (Value::Array(old), Value::Array(new)) if is_named(old) && is_named(new) => {
            for name in names(old).chain(names(new)).collect::<BTreeSet<_>>() {
                path.push_str(&format!("[{name}]"));
                let null = &Value::Null;
                collect(element(old, name).unwrap_or(null), element(new, name).unwrap_or(null), path, paths);
                path.truncate(length);
            }
        }
        _ if before == after => (),
        _ => {
            paths.insert(path.clone());
        }
    }
}

/// Whether elements have names that tell them apart, as containers, volumes and environment variables have.
fn is_named(all: &[Value]) -> bool {
    let unique: BTreeSet<&str> = names(all).collect();
    !all.is_empty() && unique.len() == all.len()
}

fn names(all: &[Value]) -> impl Iterator<Item = &str> {
    all.iter().filter_map(|element| element["name"].as_str())
}

fn element<'a>(all: &'a [Value], name: &str) -> Option<&'a Value> {
    all.iter().find(|element| element["name"].as_str() == Some(name))
}

fn differences(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Vec<String> {
    let added = after.difference(before).map(|line| format!("+ {line}"));
    added.chain(before.difference(after).map(|line| format!("- {line}"))).collect()
}

fn rules(steps: &[Step]) -> BTreeSet<String> {
    super::rules(steps).iter().map(rule_line).collect()
}

fn rule_line(rule: &contract::SecurityGroupRuleSpec) -> String {
    format!("security-group rule {}", rule_text(rule))
}

/// What has to be allowed, action by action.
fn roles(steps: &[Step]) -> BTreeSet<String> {
    let mut res = BTreeSet::new();
    for step in steps {
        match step.typed() {
            Ok(StepSpec::IamRole(spec)) => {
                let lines = spec.actions.iter().map(|it| format!("{} allows {}", spec.role_arn, it.action));
                res.extend(lines);
            }
            Ok(StepSpec::InstanceRoles(spec)) => {
                res.extend(spec.actions.iter().map(|action| format!("roles of instances allow {action}")));
            }
            _ => (),
        }
    }
    res
}

fn certificates(steps: &[Step]) -> BTreeSet<String> {
    let certificate = |step: &Step| match step.typed() {
        Ok(StepSpec::Certificate(spec)) => Some(format!(
            "certificate in Secret {}/{} for {}",
            spec.namespace,
            spec.secret_name,
            spec.dns_names.join(", ")
        )),
        _ => None,
    };
    steps.iter().filter_map(certificate).collect()
}

/// Tags of images by their repositories.
fn images(all: &Contents<'_>) -> BTreeMap<String, BTreeSet<String>> {
    let mut res = BTreeMap::new();
    for (_, content) in all.values() {
        collect_images(content, &mut res);
    }
    res
}

fn collect_images(value: &Value, found: &mut BTreeMap<String, BTreeSet<String>>) {
    match value {
        Value::Object(fields) => {
            if let (Some(image), true) =
                (fields.get("image").and_then(Value::as_str), fields.contains_key("name"))
            {
                let place = image.rfind('/').unwrap_or_default();
                let (repository, tag) = match image[place..].find([':', '@']) {
                    Some(at) => (&image[..place + at], &image[place + at + 1..]),
                    None => (image, "latest"),
                };
                found.entry(repository.to_owned()).or_default().insert(tag.to_owned());
            }
            fields.values().for_each(|field| collect_images(field, found));
        }
        Value::Array(all) => all.iter().for_each(|element| collect_images(element, found)),
        _ => (),
    }
}

type Images = BTreeMap<String, BTreeSet<String>>;

fn image_changes(before: &Images, after: &Images) -> Vec<String> {
    let text = |tags: &BTreeSet<String>| tags.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let mut lines = Vec::new();
    for repository in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        match (before.get(repository), after.get(repository)) {
            (Some(old), Some(new)) if old == new => (),
            (Some(old), Some(new)) => {
                lines.push(format!("~ image {repository}: {} -> {}", text(old), text(new)));
            }
            (None, Some(new)) => lines.push(format!("+ image {repository}: {}", text(new))),
            (Some(old), None) => lines.push(format!("- image {repository}: {}", text(old))),
            (None, None) => (),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(kind: &str, spec: Value) -> Step {
        Step { id: format!("{kind} {spec}"), kind: kind.into(), spec, after: vec![] }
    }

    fn plan(objects: &[Value], others: Vec<Step>) -> AddOnPlan {
        let mut steps = others;
        steps.push(step("k8s.apply/v1", json!({"objects": objects})));
        AddOnPlan { steps, removal: vec![], diagnostics: vec![], extra: json!({}) }
    }

    fn deployment(image: &str, arguments: &[&str]) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "kube-system"},
            "spec": {"template": {"spec": {"containers": [
                {"name": "side", "image": "b.example/side:1"}, {"name": "main", "image": image, "args": arguments}]}}}})
    }

    fn object(kind: &str, name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
    }

    fn record(plan: &AddOnPlan) -> Inventory {
        let record = json!({"module": "a", "version": "1", "digest": "", "config": {}, "planHash": "", "complete": true,
            "objects": objects(&plan.steps), "rules": super::super::rules(&plan.steps), "removal": []});
        serde_json::from_value(record).expect("a record")
    }

    fn role(actions: &[&str]) -> Step {
        let spec = json!({"roleArn": "arn:aws:iam::123456789012:role/r", "trust": "irsa", "namespace": "kube-system",
            "serviceAccount": "a", "actions": actions, "mode": "check"});
        step("aws.iam-role/v1", spec)
    }

    fn rule(port: u16) -> Step {
        let spec = json!({"group": "node", "protocol": "tcp", "fromPort": port, "toPort": port, "peer": "control-plane",
            "description": "webhook"});
        step("aws.sg-rule/v1", spec)
    }

    #[test]
    fn whoever_upgrades_sees_objects_rules_roles_and_images_that_change() {
        let before = plan(
            &[
                deployment("a.example/main:1.0", &["--a"]),
                object("ConfigMap", "gone"),
                object("ConfigMap", "same"),
            ],
            vec![rule(443), role(&["ec2:AttachVolume"])],
        );
        let after = plan(
            &[
                deployment("a.example/main:1.1", &["--b"]),
                object("ConfigMap", "new"),
                object("ConfigMap", "same"),
            ],
            vec![rule(9443), role(&["ec2:AttachVolume", "ec2:ModifyVolume"])],
        );
        expect_test::expect![[r#"
            + ConfigMap new
            ~ Deployment kube-system/a: .spec.template.spec.containers[main].args, .spec.template.spec.containers[main].image
            - ConfigMap gone
            + security-group rule tcp 9443 from control plane to nodes: webhook
            - security-group rule tcp 443 from control plane to nodes: webhook
            + arn:aws:iam::123456789012:role/r allows ec2:ModifyVolume
            ~ image a.example/main: 1.0 -> 1.1"#]]
        .assert_eq(&changes(&record(&before), &before, &after).join("\n"));
        assert_eq!(changes(&record(&after), &after, &after), Vec::<String>::new());
    }

    #[test]
    fn without_the_installed_plan_it_is_said_what_is_not_known() {
        let before = plan(&[object("ConfigMap", "gone"), object("ConfigMap", "same")], vec![rule(443)]);
        let after = plan(&[object("ConfigMap", "new"), object("ConfigMap", "same")], vec![rule(443)]);
        expect_test::expect![[r#"
            + ConfigMap new
            - ConfigMap gone
            ~ 1 objects are applied anew; what changes in them is not known"#]]
        .assert_eq(&changes_of_record(&record(&before), &after).join("\n"));
    }

    #[test]
    fn many_fields_of_one_object_are_counted() {
        let data = |values: [u32; 6]| {
            let data: BTreeMap<String, u32> =
                values.iter().enumerate().map(|(n, it)| (n.to_string(), *it)).collect();
            json!({"data": data})
        };
        assert_eq!(fields(&data([0; 6]), &data([1; 6])), ".data.0, .data.1, .data.2, .data.3 and 2 more");
    }
}
