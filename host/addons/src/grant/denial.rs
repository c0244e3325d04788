//! What a plan asks for and is not granted, and how that is said: with what would grant it, to be pasted.

use std::fmt::Write;

use crds::plugin_module::Grants;
use serde_json::Value;

/// Denials that are told; of others only how many there are.
const TOLD: usize = 20;
/// Characters of what a plugin wrote that are told.
const SHOWN: usize = 160;

/// One thing that a plan asks for and that is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Id of the step.
    pub step: String,
    /// Kind and name of the object that it is in, if it is in one.
    pub object: Option<String>,
    /// The rule that denies it.
    pub rule: &'static str,
    /// What is denied.
    pub message: String,
    /// The least that would grant it. Nothing grants it when absent.
    pub grant: Option<Box<Grants>>,
}

impl Denial {
    /// A denial of a whole step, which nothing grants.
    pub fn of_step(step: &str, rule: &'static str, message: String) -> Denial {
        Denial { step: step.to_owned(), object: None, rule, message, grant: None }
    }

    /// In one line.
    pub fn text(&self) -> String {
        let object = self.object.as_ref().map_or(String::new(), |it| format!(", {it}"));
        let grant = match &self.grant {
            Some(grants) => fragment(grants),
            None => "nothing grants it".to_owned(),
        };
        format!("step {}{object}: {} (rule {}; {grant})", shown(&self.step), self.message, self.rule)
    }
}

/// All of them in one line, the first few by what they say.
pub fn text(denials: &[Denial]) -> String {
    let told: Vec<String> = denials.iter().take(TOLD).map(Denial::text).collect();
    let rest = denials.len().saturating_sub(TOLD);
    let more = if rest == 0 { String::new() } else { format!("; and {rest} more") };
    format!("{}{more}", told.join("; "))
}

/// What a plugin wrote, in quotes, in one line and shortened.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The same without quotes where it is a name.
pub fn named(text: &str) -> String {
    let is_name = text.chars().all(|it| it.is_ascii_alphanumeric() || "-_.:/@".contains(it));
    if is_name && text.len() <= SHOWN { text.to_owned() } else { shown(text) }
}

/// Grants as they are written in the spec of a PluginModule, in YAML's short form.
pub fn fragment(grants: &Grants) -> String {
    let Ok(Value::Object(all)) = serde_json::to_value(grants) else { return String::new() };
    let one = |(name, value): (&String, &Value)| {
        let (mut path, mut value) = (format!("grants.{name}"), value);
        while let Value::Object(fields) = value
            && fields.len() == 1
            && let Some((name, inner)) = fields.iter().next()
        {
            path.push('.');
            path.push_str(name);
            value = inner;
        }
        let mut text = path + ": ";
        write_flow(value, &mut text);
        text
    };
    by_name(&all).into_iter().map(one).collect::<Vec<_>>().join(", ")
}

fn by_name(fields: &serde_json::Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut res: Vec<_> = fields.iter().collect();
    res.sort_by_key(|(name, _)| *name);
    res
}

fn write_flow(value: &Value, text: &mut String) {
    let comma = |text: &mut String, place: usize| {
        if place > 0 {
            text.push_str(", ");
        }
    };
    match value {
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                comma(text, place);
                write_flow(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (place, (name, field)) in by_name(fields).into_iter().enumerate() {
                comma(text, place);
                text.push_str(name);
                text.push_str(": ");
                write_flow(field, text);
            }
            text.push('}');
        }
        Value::String(said) if is_plain(said) => text.push_str(said),
        other => drop(write!(text, "{other}")),
    }
}

/// Whether YAML takes it as text without quotes.
fn is_plain(text: &str) -> bool {
    let begins = text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '/');
    let goes_on = text.chars().all(|it| it.is_ascii_alphanumeric() || "-_./".contains(it));
    begins && goes_on && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text)
}

#[cfg(test)]
mod tests {
    use crds::plugin_module::{ObjectGrant, PodGrants};

    use super::*;

    #[test]
    fn what_would_grant_it_can_be_pasted() {
        let pods = PodGrants { fields: vec!["hostNetwork".into()], ..PodGrants::default() };
        let mut grants = Grants { pods, ..Grants::default() };
        assert_eq!(fragment(&grants), "grants.pods.fields: [hostNetwork]");
        grants.pods.control_plane = true;
        assert_eq!(fragment(&grants), "grants.pods: {controlPlane: true, fields: [hostNetwork]}");
        let object = ObjectGrant {
            group: "apps".into(),
            kinds: vec!["Deployment".into()],
            names: vec!["a: b".into(), "no".into(), "1".into()],
            ..ObjectGrant::default()
        };
        let grants = Grants { objects: vec![object], ..Grants::default() };
        assert_eq!(
            fragment(&grants),
            r#"grants.objects: [{group: apps, kinds: [Deployment], names: ["a: b", "no", "1"]}]"#
        );
    }

    #[test]
    fn all_are_told_of_as_far_as_a_reader_goes() {
        let denial = |place: usize| Denial::of_step(&format!("{place}"), "steps", "it is not granted".into());
        let many: Vec<Denial> = (0..25).map(denial).collect();
        let said = text(&many);
        assert!(said.starts_with(r#"step "0": it is not granted (rule steps; nothing grants it); step "1""#));
        assert!(
            said.ends_with("; and 5 more") && said.contains(r#"step "19""#) && !said.contains(r#"step "20""#)
        );
        assert_eq!(shown(&"ä\n".repeat(1000)).chars().filter(|it| *it == 'ä').count(), SHOWN / 2);
        assert!(!shown("a\nb").contains('\n'));
    }
}
