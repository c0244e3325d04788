//! The policies in `deploy/iam` as documents: their statements allow the calls that the crate makes and no
//! others, and the table in their README says what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::bed::policy;

/// AWS takes no more characters in one managed policy, white space aside.
const LARGEST_POLICY: usize = 6144;
/// Actions that no call is named after, and what needs them.
const IMPLIED: [(&str, &str); 5] = [
    ("iam:PassRole", "ec2:RunInstances"),
    ("iam:CreateServiceLinkedRole", "elasticloadbalancing:CreateLoadBalancer"),
    ("iam:TagOpenIDConnectProvider", "iam:CreateOpenIDConnectProvider"),
    ("secretsmanager:TagResource", "secretsmanager:CreateSecret"),
    ("s3:ListBucket", "s3:GetObject"),
];
/// Needs no permission.
const FREE: &str = "sts:GetCallerIdentity";
/// The SDK's clients by their names in the code, and what policies call their services.
const CLIENTS: [(&str, &str); 10] = [
    ("ec2", "ec2"),
    ("ec2_once", "ec2"),
    ("classic", "elasticloadbalancing"),
    ("elb", "elasticloadbalancing"),
    ("secrets", "secretsmanager"),
    ("tagging", "tag"),
    ("iam", "iam"),
    ("sts", "sts"),
    ("efs", "elasticfilesystem"),
    ("s3", "s3"),
];

pub(crate) type Statements = BTreeMap<String, BTreeSet<String>>;

/// Actions by statement.
pub(crate) fn statements(name: &str) -> Statements {
    let document: serde_json::Value = serde_json::from_str(&policy(name)).unwrap();
    let all = document["Statement"].as_array().unwrap().iter();
    let text = |it: &serde_json::Value| it.as_str().unwrap().to_owned();
    let actions = |it: &serde_json::Value| match it.as_array() {
        Some(all) => all.iter().map(text).collect(),
        None => BTreeSet::from([text(it)]),
    };
    all.map(|it| (text(&it["Sid"]), actions(&it["Action"]))).collect()
}

/// What the crate calls, as policies name it but in lower case: each method of one of the SDK's clients.
fn called() -> BTreeSet<String> {
    let mut res = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                called_in(&std::fs::read_to_string(path).unwrap(), &mut res);
            }
        }
    }
    res
}

fn called_in(text: &str, res: &mut BTreeSet<String>) {
    let code: String = text
        .lines()
        .filter(|it| !it.trim_start().starts_with("//"))
        .flat_map(str::split_whitespace)
        .collect();
    for (client, service) in CLIENTS {
        for (_, rest) in
            code.match_indices(&format!("api.{client}.")).map(|(at, found)| code.split_at(at + found.len()))
        {
            let method: String = rest.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect();
            // The macro that reads pages is given the method.
            if !method.is_empty() {
                res.insert(format!("{service}:{}", method.replace('_', "")));
            }
        }
    }
    for (_, rest) in code.match_indices("pages!(").map(|(at, found)| code.split_at(at + found.len())) {
        res.extend(rest.split('"').nth(1).filter(|it| it.starts_with("ec2:")).map(str::to_lowercase));
    }
}

#[test]
fn statements_allow_the_calls_that_are_made_and_no_others() {
    let granted: BTreeSet<String> = ["controller", "issuer"]
        .iter()
        .flat_map(|it| statements(it).into_values().flatten())
        .map(|it| it.to_lowercase())
        .collect();
    let mut needed = called();
    assert!(needed.len() > 60, "the calls are not found: {needed:?}");
    assert!(needed.remove(&FREE.to_lowercase()));
    for (action, by) in IMPLIED {
        assert!(needed.contains(&by.to_lowercase()), "{by} is not called");
        needed.insert(action.to_lowercase());
    }
    assert_eq!(needed, granted);
}

#[test]
fn things_of_another_provider_allow_what_ones_own_allow() {
    assert_eq!(statements("takeover")["TakeOver"], statements("controller")["ChangeOwn"]);
}

#[test]
fn every_policy_is_as_small_as_aws_wants_it() {
    for name in ["controller", "takeover", "issuer"] {
        let document: serde_json::Value = serde_json::from_str(&policy(name)).unwrap();
        let size = document.to_string().len();
        assert!(size <= LARGEST_POLICY, "{name}: {size}");
    }
}

#[test]
fn the_table_of_the_readme_says_which_call_needs_which_statement() {
    let mut sids_of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (sid, actions) in statements("controller").into_iter().chain(statements("issuer")) {
        actions.into_iter().for_each(|it| sids_of.entry(it).or_default().extend([sid.clone()]));
    }
    let mut calls_by: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for (action, sids) in sids_of {
        calls_by
            .entry(sids.into_iter().map(|it| format!("`{it}`")).collect())
            .or_default()
            .push(format!("`{action}`"));
    }
    let rows =
        calls_by.iter().map(|(sids, calls)| format!("| {} | {} |\n", sids.join(", "), calls.join(", ")));
    let table = format!("| statements | calls |\n|---|---|\n{}", rows.collect::<String>());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/iam/README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- calls -->\n", "<!-- /calls -->");
    let (before, rest) = text.split_once(begin).expect("where the table begins");
    let (_, after) = rest.split_once(end).expect("where the table ends");
    let expected = format!("{before}{begin}{table}{end}{after}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    assert!(text == expected, "the table is not what the policies say; UPDATE=1 writes it:\n{table}");
}
