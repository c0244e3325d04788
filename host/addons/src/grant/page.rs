//! The tables by which plans are judged, for readers: a part of `docs/plugin-security.md`.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::metadata::HARMLESS_KEYS;
use super::pods::HARMLESS_NODE_LABELS;
use super::tables::{self, FieldVerdict, KindVerdict, Verdict};

/// The tables in Markdown.
pub fn tables() -> String {
    let mut res = String::from(
        "### Kinds\n\nA kind that is not in this table is a custom resource, and needs `unread: true`.\n\n\
         | verdict | kinds |\n|---|---|\n",
    );
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, text) in tables::lines(tables::KINDS_TEXT) {
        let said = match tables::kind_verdict(text) {
            Some(KindVerdict::See(_)) => "each field is judged",
            Some(KindVerdict::Unread) => "nobody reads what it says: needs `unread: true` in its grant",
            Some(KindVerdict::Installation) => "its registries, Secrets and templates of Pods are judged",
            Some(KindVerdict::Never) | None => "nothing grants it",
        };
        kinds.entry(said).or_default().push(name);
    }
    for (said, names) in kinds {
        row(&mut res, said, &names);
    }
    res.push_str("\n### Fields that need a grant\n\n| what it needs | fields |\n|---|---|\n");
    let mut needs: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut harmless: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, text) in tables::lines(tables::FIELDS_TEXT) {
        match tables::field_verdict(text) {
            Some(FieldVerdict { verdict: Verdict::Harmless, see: Some(_) }) => (),
            Some(FieldVerdict { verdict: Verdict::Harmless | Verdict::HarmlessWhole, .. }) => {
                let (of, field) = name.split_once('.').unwrap_or((name, ""));
                harmless.entry(of).or_default().push(field);
            }
            other => needs.entry(needed(other)).or_default().push(name),
        }
    }
    for (said, names) in needs {
        row(&mut res, &said, &names);
    }
    let list = |names: &[&str]| names.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
    let _ = write!(
        res,
        "\nLabels and annotations of the domains `kubernetes.io`, `k8s.io` and `x-k8s.io` need a grant, but for {}. Machines can be \
         chosen by {} without one.\n\n### Fields that need no grant of their own\n\n| type | fields |\n|---|---|\n",
        list(&HARMLESS_KEYS),
        list(&HARMLESS_NODE_LABELS)
    );
    for (of, fields) in harmless {
        row(&mut res, &format!("`{of}`"), &fields);
    }
    res
}

fn needed(verdict: Option<FieldVerdict>) -> String {
    match verdict.map(|it| it.verdict) {
        Some(Verdict::PodField(name)) => format!("`pods.fields: [{name}]`"),
        Some(Verdict::Field(name)) => format!("`fields: [{name}]`"),
        Some(Verdict::Reference(kind)) => format!("the {kind} that it names, in `objects` or `reads`"),
        Some(Verdict::Rule(rule)) => rule.needs().to_owned(),
        _ => "nothing grants it".to_owned(),
    }
}

fn row(res: &mut String, said: &str, names: &[&str]) {
    let names = names.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
    let _ = writeln!(res, "| {said} | {names} |");
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    const BEGIN: &str = "<!-- The tables are written by the test of grants. -->\n";
    const END: &str = "<!-- End of the tables. -->\n";

    #[test]
    fn the_page_shows_the_tables_by_which_plans_are_judged() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plugin-security.md");
        let stored = std::fs::read_to_string(&file).expect("the page reads");
        let (before, rest) = stored.split_once(BEGIN).expect("the page has a place for the tables");
        let (_, after) = rest.split_once(END).expect("the tables end");
        let written = format!("{before}{BEGIN}{}{END}{after}", super::tables());
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, &written).expect("the page is written");
        } else {
            let stale = "docs/plugin-security.md is stale: UPDATE=1 cargo test -p addons writes it anew";
            assert!(stored == written, "{stale}");
        }
    }
}
