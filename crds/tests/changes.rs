//! `docs/changing-a-cluster.md` speaks of every field, once, and says nothing that is not so: what is refused
//! is refused by a rule with that message, and a message of a condition is one that some code has. It runs
//! nothing; what the edits do, the tests of `plan` and the bed show.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// What an edit can do.
const OUTCOMES: [&str; 6] = ["carried out", "new machines", "added only", "held", "refused", "no effect"];
/// What stands in a message for what is not the same each time.
const CUT: &str = "...";
/// How far apart parts of one message are in a source file.
const NEAR: usize = 600;

/// One line of a table.
struct Row {
    line: String,
    /// Names of fields, `a.*` for all below.
    fields: Vec<String>,
    outcomes: Vec<String>,
    messages: Vec<String>,
    conditions: Vec<String>,
}

impl Row {
    fn of(line: &str) -> Row {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').collect();
        let [fields, outcomes, says] = cells.as_slice() else { panic!("no three cells: {line}") };
        let (messages, conditions) = between(says, "`").into_iter().partition(|it| it.contains(' '));
        Row {
            line: line.to_owned(),
            fields: between(fields, "`").iter().flat_map(|it| expanded(it)).collect(),
            outcomes: between(outcomes, "**"),
            messages,
            conditions,
        }
    }

    fn is(&self, outcome: &str) -> bool {
        self.outcomes.iter().any(|it| it == outcome)
    }

    fn names(&self, field: &str) -> bool {
        self.fields.iter().any(|it| match it.strip_suffix(".*") {
            Some(parent) => is_below(field, parent),
            None => it == field,
        })
    }
}

/// A definition as the table of its kind has to have it.
struct Kind {
    name: String,
    spec: Value,
    rows: Vec<Row>,
}

impl Kind {
    fn of(name: &str, text: &str) -> Kind {
        let definitions = crds::definitions().expect("definitions are typed");
        let definition = definitions.into_iter().find(|it| it.spec.names.kind == name).expect("the kind");
        let definition = serde_json::to_value(definition).expect("a definition is JSON");
        let spec =
            definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone();
        let section = text
            .split("\n## ")
            .find(|it| it.lines().next() == Some(name))
            .expect("a section of the kind's name");
        let rows: Vec<Row> = section.lines().filter(|it| it.starts_with("| `")).map(Row::of).collect();
        assert!(!rows.is_empty(), "{name} has no table");
        Kind { name: name.to_owned(), spec, rows }
    }

    /// Every field, and whether it has none below it.
    fn fields(&self) -> Vec<(String, bool)> {
        let mut res = Vec::new();
        collect(&self.spec, "", &mut res);
        res
    }

    fn leaves(&self) -> impl Iterator<Item = String> {
        self.fields().into_iter().filter(|(_, leaf)| *leaf).map(|(path, _)| path)
    }

    /// The schemas of a field and of all that it is in, with what of each leads to the next.
    fn way(&self, field: &str) -> Vec<(&Value, String)> {
        let (mut at, mut res) = (&self.spec, Vec::new());
        for step in field.split('.') {
            let (name, in_list) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
            res.push((at, format!(".{name}")));
            at = &at["properties"][name];
            if in_list {
                res.push((at, String::new()));
                at = &at["items"];
            }
        }
        res.push((at, String::new()));
        res
    }

    /// Messages of the rules that a value of the field can break.
    fn messages_about(&self, field: &str) -> Vec<String> {
        let concerns = |rule: &Value, next: &str| {
            rule["fieldPath"].as_str().is_none_or(|it| next.is_empty() || it == next)
        };
        let rules = self.way(field).into_iter().flat_map(|(schema, next)| {
            rules(schema)
                .filter(move |it| concerns(it, &next))
                .map(|it| it["message"].as_str().unwrap_or_default().to_owned())
        });
        rules.collect()
    }
}

fn rules(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["x-kubernetes-validations"].as_array().into_iter().flatten()
}

fn collect(schema: &Value, path: &str, res: &mut Vec<(String, bool)>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let has_fields = |it: &Value| it["properties"].as_object().is_some_and(|it| !it.is_empty());
        let in_list = has_fields(&field["items"]);
        res.push((path.clone(), !in_list && !has_fields(field)));
        if in_list {
            collect(&field["items"], &format!("{path}[]"), res);
        } else {
            collect(field, &path, res);
        }
    }
}

fn is_below(field: &str, parent: &str) -> bool {
    field.strip_prefix(parent).is_some_and(|it| it.starts_with('.') || it.starts_with("[]"))
}

/// The texts between pairs of a mark.
fn between(text: &str, mark: &str) -> Vec<String> {
    text.split(mark).skip(1).step_by(2).map(str::to_owned).collect()
}

/// `a.{b,c}` is `a.b` and `a.c`.
fn expanded(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else { return vec![text.to_owned()] };
    let (inside, after) = rest.split_once('}').unwrap_or_else(|| panic!("no }} in {text}"));
    inside.split(',').flat_map(|it| expanded(&format!("{before}{it}{after}"))).collect()
}

/// What of a message is the same each time, in order.
fn parts(message: &str) -> Vec<String> {
    let mut text = String::new();
    for (n, part) in message.split('<').enumerate() {
        match part.split_once('>') {
            Some((_, rest)) if n > 0 => text = format!("{text}{CUT}{rest}"),
            _ => text.push_str(part),
        }
    }
    text.split(CUT).map(str::to_owned).collect()
}

/// Whether a whole text is this message.
fn is_said_by(message: &str, text: &str) -> bool {
    let parts = parts(message);
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return false };
    text.starts_with(first.as_str()) && text.ends_with(last.as_str()) && follow(&parts, text)
}

/// Whether a source file has this message, or one like it, in it.
fn is_in(message: &str, source: &str) -> bool {
    let parts: Vec<String> = parts(message).into_iter().filter(|it| !it.is_empty()).collect();
    let Some(first) = parts.first() else { return false };
    let near = |at: usize| {
        (at..=source.len().min(at + NEAR)).rev().find(|end| source.is_char_boundary(*end)).unwrap_or(at)
    };
    source.match_indices(first.as_str()).any(|(at, _)| follow(&parts, &source[at..near(at)]))
}

fn follow(parts: &[String], text: &str) -> bool {
    let mut rest = text;
    parts.iter().all(|part| match rest.find(part.as_str()) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// The sources that conditions are said by: lines of one text joined, and names of texts replaced by them.
fn sources() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for directory in ["host/addons/src", "host/iam/src", "host/infra/src", "host/model/src", "plugins"] {
        rust_files(&root.join(directory), &mut files);
    }
    let texts: Vec<String> =
        files.iter().map(|file| std::fs::read_to_string(file).expect("a source file")).collect();
    let constant = |line: &str| {
        let (_, definition) = line.split_once("const ")?;
        let (name, value) = definition.split_once(": &str = \"")?;
        Some((format!("{{{name}}}"), value.strip_suffix("\";")?.to_owned()))
    };
    // Names of fields are shared by files; other constants are of one file each.
    let is_field = |(_, value): &(String, String)| value.starts_with("spec.");
    let shared: Vec<(String, String)> =
        texts.iter().flat_map(|text| text.lines().filter_map(constant)).filter(is_field).collect();
    let read = |text: &String| {
        let joined = text
            .split("\\\n")
            .enumerate()
            .map(|(n, it)| if n == 0 { it } else { it.trim_start() })
            .collect::<String>();
        let own: Vec<(String, String)> = text.lines().filter_map(constant).collect();
        own.iter().chain(&shared).fold(joined, |text, (name, value)| text.replace(name, value))
    };
    texts.iter().map(read).collect()
}

fn rust_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
}

fn kinds() -> Vec<Kind> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/changing-a-cluster.md");
    let text = std::fs::read_to_string(file).expect("the document");
    ["AWSCluster", "ClusterPlugin"].iter().map(|it| Kind::of(it, &text)).collect()
}

#[test]
fn every_field_has_one_row_and_every_row_has_fields() {
    for kind in kinds() {
        let count = |field: &str| kind.rows.iter().filter(|it| it.names(field)).count();
        let wrong: Vec<(String, usize)> =
            kind.leaves().map(|it| (it.clone(), count(&it))).filter(|(_, count)| *count != 1).collect();
        assert_eq!(wrong, [], "fields of {} that are not in exactly one row", kind.name);
        let fields: BTreeSet<String> = kind.fields().into_iter().map(|(path, _)| path).collect();
        let is_field = |name: &String| match name.strip_suffix(".*") {
            Some(parent) => fields.iter().any(|it| is_below(it, parent)),
            None => fields.contains(name),
        };
        let unknown: Vec<&String> =
            kind.rows.iter().flat_map(|it| &it.fields).filter(|it| !is_field(it)).collect();
        assert_eq!(unknown, Vec::<&String>::new(), "{} has no such fields", kind.name);
    }
}

#[test]
fn what_is_refused_is_refused_with_that_message() {
    for kind in kinds() {
        for row in kind.rows.iter().filter(|it| it.is("refused")) {
            for field in kind.leaves().filter(|it| row.names(it)) {
                let said = kind.messages_about(&field);
                let is_said =
                    row.messages.iter().any(|message| said.iter().any(|it| is_said_by(message, it)));
                assert!(
                    is_said,
                    "no rule about {field} of {} says this: {}\nthey say {said:#?}",
                    kind.name, row.line
                );
            }
        }
        for field in kind.leaves().filter(|it| kind.way(it).iter().any(|(schema, _)| is_unsupported(schema)))
        {
            let row = kind.rows.iter().find(|it| it.names(&field)).expect("a row");
            assert!(
                row.is("refused") || row.is("no effect"),
                "{field} of {} is not supported: {}",
                kind.name,
                row.line
            );
        }
    }
}

fn is_unsupported(schema: &Value) -> bool {
    schema["description"].as_str().is_some_and(|it| it.starts_with("Not supported by cluster-operator"))
}

#[test]
fn every_rule_about_a_change_is_told() {
    for kind in kinds() {
        let mut all: Vec<String> = kind.fields().into_iter().map(|(path, _)| path).collect();
        all.push(String::new());
        let mut found = 0;
        for path in all {
            let schema =
                if path.is_empty() { &kind.spec } else { kind.way(&path).last().expect("a schema").0 };
            for rule in
                rules(schema).filter(|it| it["rule"].as_str().is_some_and(|it| it.contains("oldSelf")))
            {
                found += 1;
                let about = format!("{path}{}", rule["fieldPath"].as_str().unwrap_or_default());
                let about = about.trim_start_matches('.');
                let message = rule["message"].as_str().unwrap_or_default();
                let concerns = |row: &&Row| row.fields.iter().any(|it| it == about || is_below(it, about));
                let is_told =
                    |row: &Row| row.is("refused") && row.messages.iter().any(|it| is_said_by(it, message));
                let is_told = kind.rows.iter().filter(concerns).any(is_told);
                assert!(is_told, "no row says that {about} of {} is refused with {message:?}", kind.name);
            }
        }
        assert!(found > 0, "{} has no rule about changes", kind.name);
    }
}

#[test]
fn every_message_is_one_that_somebody_has() {
    let sources = sources();
    let conditions = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conditions.rs"))
        .expect("the conditions");
    for kind in kinds() {
        for row in &kind.rows {
            assert!(!row.outcomes.is_empty(), "it says nothing: {}", row.line);
            let unknown = row.outcomes.iter().find(|it| !OUTCOMES.contains(&it.as_str()));
            assert_eq!(unknown, None, "{}", row.line);
            let unknown = row.conditions.iter().find(|it| !conditions.contains(&format!("\"{it}\"")));
            assert_eq!(unknown, None, "no such condition: {}", row.line);
            let leaves: Vec<String> = kind.leaves().filter(|it| row.names(it)).collect();
            let by_rule = |message: &str| {
                leaves.iter().flat_map(|it| kind.messages_about(it)).any(|it| is_said_by(message, &it))
            };
            let by_code = |message: &str| sources.iter().any(|it| is_in(message, it));
            let nobody = row.messages.iter().find(|it| !by_rule(it) && !by_code(it));
            assert_eq!(nobody, None, "nobody says this: {}", row.line);
            let is_held_said = !row.conditions.is_empty() && row.messages.iter().any(|it| by_code(it));
            assert!(!row.is("held") || is_held_said, "what is held is said by a condition: {}", row.line);
        }
    }
}
