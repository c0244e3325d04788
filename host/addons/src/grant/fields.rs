//! Judges an object field by field, as the tables say. What they do not know is denied.

use serde_json::{Map, Value};

use super::cover::{self, At};
use super::judge::{Judge, Place, Segment, object_grant};
use super::tables::{self, KindVerdict, Rule, Verdict};
use super::{metadata, pods, rights, values, webhooks};
use crds::plugin_module::Grants;

/// Judges what an object says that is applied.
pub(super) fn check_object<'a>(judge: &mut Judge<'a>, object: &'a Value) {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let (api_version, kind) = (text("/apiVersion").unwrap_or(""), text("/kind").unwrap_or(""));
    let namespace = text("/metadata/namespace");
    let at = (api_version, kind, namespace, text("/metadata/name").unwrap_or(""));
    let Some(fields) = object.as_object() else { return };
    let verdict = tables::kind(cover::group_of(api_version), kind);
    judge.begin_object(at);
    match verdict {
        Some(KindVerdict::Unread) | None => needs_unread(judge, at),
        _ => judge.needs_object(at),
    };
    let place = Place { kind, namespace, makes_pods: true, pod: None, parent: fields };
    match verdict {
        Some(KindVerdict::Never) => (),
        Some(KindVerdict::See(of)) => check_type(judge, of, fields, place),
        Some(KindVerdict::Unread | KindVerdict::Installation) | None => {
            let place = Place { makes_pods: false, ..place };
            if let Some(Value::Object(metadata)) = fields.get("metadata") {
                judge.within(Segment::Field("metadata"), |judge| {
                    check_type(judge, "ObjectMeta", metadata, place)
                });
            }
            if verdict == Some(KindVerdict::Installation) {
                values::check_installation(judge, object);
            }
            for (name, value) in fields.iter().filter(|(name, _)| *name != "metadata") {
                judge.within(Segment::Field(name), |judge| check_lookalikes(judge, value, place));
            }
        }
    }
}

fn needs_unread(judge: &mut Judge<'_>, at: At<'_>) -> bool {
    let is_granted = cover::covers_unread(&judge.grants.objects, at);
    let is_known = cover::covers(&judge.grants.objects, at);
    let mut grant = object_grant(at);
    grant.unread = true;
    let grants = Grants { objects: vec![grant], ..Grants::default() };
    if is_known && !is_granted {
        let kind = super::denial::named(at.1);
        judge.deny("unread", format!("{kind} is granted, but nobody reads what it says"), grants);
    } else {
        judge.deny_object(is_granted, at, |_| grants);
    }
    is_granted
}

/// Judges what looks like a Pod, or like a template of one, wherever it is in an object that nobody reads.
fn check_lookalikes<'a>(judge: &mut Judge<'a>, value: &'a Value, place: Place<'a>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                judge.within(Segment::Index(index), |judge| check_lookalikes(judge, item, place));
            }
        }
        Value::Object(fields) if pods::is_lookalike(fields, judge) => {
            check_type(judge, "PodSpec", fields, place);
        }
        Value::Object(fields) => {
            for (name, item) in fields {
                judge.within(Segment::Field(name), |judge| check_lookalikes(judge, item, place));
            }
        }
        _ => (),
    }
}

/// Judges the fields of a type.
fn check_type<'a>(judge: &mut Judge<'a>, of: &'static str, fields: &'a Map<String, Value>, place: Place<'a>) {
    let pod = if of == "PodSpec" { Some(fields) } else { place.pod };
    let place = Place { parent: fields, pod, ..place };
    match of {
        "PodSpec" => pods::check_identity(judge, fields, place),
        "Secret" => values::check_secret(judge, fields, place),
        "ValidatingWebhook" | "MutatingWebhook" => webhooks::check_failure_policy(judge, fields),
        _ => (),
    }
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        judge.within(Segment::Field(name), |judge| check_field(judge, of, value, place));
    }
}

fn check_field<'a>(judge: &mut Judge<'a>, of: &'static str, value: &'a Value, place: Place<'a>) {
    let is_lookalike = !place.makes_pods && place.pod.is_some();
    let Some(verdict) = tables::field(of, judge.field()) else {
        if is_lookalike {
            return check_lookalikes(judge, value, place);
        }
        let message = format!("{} is not known", judge.path());
        return judge.deny("unknown fields", message, None);
    };
    match verdict.verdict {
        Verdict::Harmless | Verdict::HarmlessWhole => (),
        Verdict::Never if !is_set(value) || judge.field() == "status" && is_empty(value) => (),
        Verdict::Never => {
            let message = format!("{} is not granted", judge.path());
            judge.deny("fields", message, None);
        }
        Verdict::PodField(name) if is_set(value) => judge.needs_pod_field(name),
        Verdict::Field(name) if is_set(value) => judge.needs_field(name),
        Verdict::PodField(_) | Verdict::Field(_) => (),
        Verdict::Reference(kind) => {
            if let Some(name) = value.as_str().filter(|it| !it.is_empty()) {
                judge.needs_read(("v1", kind, place.namespace, name));
            }
        }
        Verdict::Rule(rule) => check_rule(judge, rule, value, place),
    }
    if let Some(of) = verdict.see {
        check_inner(judge, of, value, place);
    }
}

fn check_inner<'a>(judge: &mut Judge<'a>, of: &'static str, value: &'a Value, place: Place<'a>) {
    match value {
        Value::Object(fields) => check_type(judge, of, fields, place),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                judge.within(Segment::Index(index), |judge| check_inner(judge, of, item, place));
            }
        }
        Value::Null => (),
        // It only looked like one.
        _ if !place.makes_pods && place.pod.is_some() => (),
        _ => {
            let message = format!("{} is no {of}", judge.path());
            judge.deny("unknown fields", message, None);
        }
    }
}

fn check_rule<'a>(judge: &mut Judge<'a>, rule: Rule, value: &'a Value, place: Place<'a>) {
    match rule {
        Rule::Annotations => metadata::check_annotations(judge, value, place),
        Rule::Labels => metadata::check_labels(judge, value, place),
        Rule::Owners => metadata::check_owners(judge, value, place),
        Rule::AskedAbout => webhooks::check_asked_about(judge, value, place),
        Rule::AskedService => webhooks::check_asked(judge, value),
        Rule::Reinvocation => webhooks::check_reinvocation(judge, value),
        Rule::WebhookTimeout => webhooks::check_timeout(judge, value),
        Rule::BoundRole => rights::check_bound_role(judge, value, place),
        Rule::Rights => rights::check_rules(judge, value, place),
        Rule::Subjects => rights::check_subjects(judge, value),
        Rule::Capabilities => pods::check_capabilities(judge, value),
        Rule::HostPath => pods::check_host_path(judge, value, place),
        Rule::Image => pods::check_image(judge, value),
        Rule::MountPropagation => pods::check_mount_propagation(judge, value),
        Rule::NodeLabels => pods::check_node_labels(judge, value),
        Rule::NodeRequirements => pods::check_node_requirements(judge, value),
        Rule::PriorityClass => pods::check_priority_class(judge, value),
        Rule::ProcMount => pods::check_usual(judge, value, "Default"),
        Rule::Scheduler => pods::check_usual(judge, value, "default-scheduler"),
        Rule::Profile => pods::check_profile(judge, value),
        Rule::PullSecrets => pods::check_pull_secrets(judge, value, place),
        Rule::Secret => pods::check_secret(judge, value, place),
        Rule::TokenAudience => pods::check_token_audience(judge, value),
        Rule::Tolerations => pods::check_tolerations(judge, value),
        Rule::ClusterIp => values::check_cluster_ip(judge, value),
        Rule::ServiceType => values::check_service_type(judge, value),
        Rule::StorageParameters => values::check_storage_parameters(judge, value),
        // Judged with what they are in, also where they are absent.
        Rule::FailurePolicy | Rule::SecretType | Rule::ServiceAccount => (),
    }
}

/// Whether a value says something: it is not what the field has by itself.
pub(super) fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(true) | Value::Object(_) => true,
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}
