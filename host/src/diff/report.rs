//! What `cluster-operator diff` says of one cluster, as text and as JSON. Nothing here reads or compares.

use std::fmt::{self, Write};

use serde::Serialize;

use crate::controller::addon::ComparedAddOn;

/// What would become of one cluster.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub cluster: String,
    pub namespace: String,
    pub aws: Vec<AwsChange>,
    pub add_ons: Vec<ComparedAddOn>,
    /// What keeps something from being changed, and what else is worth knowing.
    pub notes: Vec<String>,
    /// What could not be read: then the rest is not whole.
    pub errors: Vec<String>,
    /// Whether the operator would change anything by itself.
    pub changes: bool,
}

/// Something to be done in AWS, to be waited for, or that somebody has to move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AwsChange {
    /// `create`, `update`, `tag`, `delete`, `confirm`, `wait`, `blocked`, `held`, `invalid` or `later`.
    pub action: &'static str,
    /// Such as `subnet/private-us-east-1a`.
    pub resource: String,
    pub detail: String,
}

impl AwsChange {
    /// Whether the operator does it, or goes on once what it waits for is there. What somebody has to move, it
    /// leaves as it is.
    fn is_change(&self) -> bool {
        !["blocked", "held", "invalid"].contains(&self.action)
    }
}

impl Report {
    pub fn add_add_ons(&mut self, compared: Vec<ComparedAddOn>) {
        self.changes |= compared.iter().any(|it| it.is_set_back || !it.changes.is_empty());
        self.add_ons.extend(compared);
    }

    pub fn add_aws(&mut self, changes: Vec<AwsChange>) {
        self.changes |= changes.iter().any(AwsChange::is_change);
        self.aws.extend(changes);
    }

    /// Everything that could not be read.
    pub fn all_errors(&self) -> impl Iterator<Item = String> {
        let of_add_ons =
            self.add_ons.iter().filter_map(|it| Some(format!("{}: {}", it.name, it.error.as_ref()?)));
        self.errors.iter().cloned().chain(of_add_ons)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let is_whole = self.all_errors().next().is_none();
        let nothing = if self.aws.is_empty() && is_whole { ": nothing would change" } else { "" };
        writeln!(text, "Cluster {}/{}", self.namespace, self.cluster)?;
        lines(&mut text, "  note: ", &self.notes)?;
        lines(&mut text, "  error: ", &self.errors)?;
        writeln!(text, "AWS{nothing}")?;
        for AwsChange { action, resource, detail } in &self.aws {
            let gap = if detail.is_empty() || detail.starts_with([' ', ':']) { "" } else { ": " };
            writeln!(text, "  {action:<8}{resource}{gap}{detail}")?;
        }
        for add_on in &self.add_ons {
            add_on.write(&mut text)?;
        }
        // What a cluster says must not move the cursor of whoever reads it.
        let plain: String =
            text.chars().map(|it| if it.is_control() && it != '\n' { '?' } else { it }).collect();
        f.write_str(&plain)
    }
}

impl ComparedAddOn {
    fn write(&self, text: &mut String) -> fmt::Result {
        write!(text, "Add-on {}", self.name)?;
        if !self.version.is_empty() {
            write!(text, " {}", self.version)?;
        }
        if !self.digest.is_empty() {
            write!(text, " ({})", self.digest)?;
        }
        let is_same = self.changes.is_empty() && self.drift.is_empty() && self.error.is_none();
        writeln!(text, "{}", if is_same { ": nothing would change" } else { "" })?;
        lines(text, "  ", &self.changes)?;
        lines(text, "  drift: ", &self.drift)?;
        lines(text, "  note: ", &self.notes)?;
        lines(text, "  error: ", self.error.as_slice())?;
        if let Some(available) = &self.available {
            writeln!(text, "  available, with consent: {} ({})", available.version, available.digest)?;
            lines(text, "    ", &available.changes)?;
        }
        Ok(())
    }
}

/// One line for each; what has several lines is one.
fn lines(text: &mut String, prefix: &str, all: &[String]) -> fmt::Result {
    all.iter().try_for_each(|line| writeln!(text, "{prefix}{}", line.replace('\n', " ")))
}

#[cfg(test)]
mod tests {
    use crds::cluster_plugin::AvailablePlugin;

    use super::*;

    fn add_on(name: &str) -> ComparedAddOn {
        ComparedAddOn {
            name: name.to_owned(),
            version: "1.63.1".to_owned(),
            digest: "sha256:5f6c".to_owned(),
            ..ComparedAddOn::default()
        }
    }

    fn report() -> Report {
        Report { cluster: "prod".to_owned(), namespace: "default".to_owned(), ..Report::default() }
    }

    fn available() -> AvailablePlugin {
        let changes = vec!["~ image a.example/a: 1 -> 2".to_owned()];
        AvailablePlugin { version: "1.63.2".to_owned(), digest: "sha256:9a01".to_owned(), changes }
    }

    fn change(action: &'static str, detail: &str) -> AwsChange {
        AwsChange { action, resource: "vpc/main".to_owned(), detail: detail.to_owned() }
    }

    #[test]
    fn a_settled_cluster_says_so_and_what_could_be_upgraded() {
        let mut report = report();
        let settled = ComparedAddOn { available: Some(available()), ..add_on("aws-ebs-csi") };
        report.add_add_ons(vec![settled, add_on("calico")]);
        assert!(!report.changes, "an upgrade needs consent");
        expect_test::expect![[r#"
            Cluster default/prod
            AWS: nothing would change
            Add-on aws-ebs-csi 1.63.1 (sha256:5f6c): nothing would change
              available, with consent: 1.63.2 (sha256:9a01)
                ~ image a.example/a: 1 -> 2
            Add-on calico 1.63.1 (sha256:5f6c): nothing would change
        "#]]
        .assert_eq(&report.to_string());
    }

    #[test]
    fn what_would_change_is_said_by_what_it_is_about() {
        let mut report = report();
        report.add_aws(vec![change("update", " (vpc-1) cidr 10.0.0.0/16"), change("wait", "creating")]);
        let changed = ComparedAddOn {
            changes: vec!["~ Deployment kube-system/a: .spec.replicas".to_owned()],
            notes: vec!["waits for a control\nplane".to_owned()],
            ..add_on("aws-ebs-csi")
        };
        let drifted = ComparedAddOn {
            drift: vec![".data.a of ConfigMap a was changed by \"x\u{1b}[2J\": applied again".to_owned()],
            is_set_back: true,
            ..add_on("calico")
        };
        report.add_add_ons(vec![changed, drifted]);
        assert!(report.changes);
        expect_test::expect![[r#"
            Cluster default/prod
            AWS
              update  vpc/main (vpc-1) cidr 10.0.0.0/16
              wait    vpc/main: creating
            Add-on aws-ebs-csi 1.63.1 (sha256:5f6c)
              ~ Deployment kube-system/a: .spec.replicas
              note: waits for a control plane
            Add-on calico 1.63.1 (sha256:5f6c)
              drift: .data.a of ConfigMap a was changed by "x?[2J": applied again
        "#]]
        .assert_eq(&report.to_string());
    }

    #[test]
    fn what_could_not_be_read_is_not_said_to_be_unchanged() {
        let mut report = report();
        report.errors.push("AWS: us-east-1 cannot be read: AccessDenied".to_owned());
        let unread =
            ComparedAddOn { error: Some("the workload cluster: refused".to_owned()), ..add_on("calico") };
        report.add_add_ons(vec![unread]);
        expect_test::expect![[r#"
            Cluster default/prod
              error: AWS: us-east-1 cannot be read: AccessDenied
            AWS
            Add-on calico 1.63.1 (sha256:5f6c)
              error: the workload cluster: refused
        "#]]
        .assert_eq(&report.to_string());
        let all: Vec<String> = report.all_errors().collect();
        assert_eq!(
            all,
            ["AWS: us-east-1 cannot be read: AccessDenied", "calico: the workload cluster: refused"]
        );
    }

    #[test]
    fn what_the_operator_leaves_alone_does_not_count() {
        for (found, counts) in [
            (change("blocked", "found more than one"), false),
            (change("held", "in use"), false),
            (change("invalid", "spec.region"), false),
            (change("wait", "creating"), true),
            (change("confirm", " (vpc-1)"), true),
        ] {
            let mut report = report();
            report.add_aws(vec![found.clone()]);
            assert_eq!(report.changes, counts, "{found:?}");
        }
        let mut report = report();
        let warned =
            ComparedAddOn { drift: vec!["left, since spec.drift is Warn".to_owned()], ..add_on("a") };
        report.add_add_ons(vec![warned]);
        assert!(!report.changes);
    }

    #[test]
    fn scripts_are_given_the_same_as_json() {
        let mut report = report();
        report.add_aws(vec![change("create", "cidr 10.0.0.0/16")]);
        report.add_add_ons(vec![ComparedAddOn { available: Some(available()), ..add_on("calico") }]);
        expect_test::expect![[r#"
            {
              "cluster": "prod",
              "namespace": "default",
              "aws": [
                {
                  "action": "create",
                  "resource": "vpc/main",
                  "detail": "cidr 10.0.0.0/16"
                }
              ],
              "addOns": [
                {
                  "name": "calico",
                  "version": "1.63.1",
                  "digest": "sha256:5f6c",
                  "changes": [],
                  "drift": [],
                  "available": {
                    "version": "1.63.2",
                    "digest": "sha256:9a01",
                    "changes": [
                      "~ image a.example/a: 1 -> 2"
                    ]
                  },
                  "notes": [],
                  "error": null
                }
              ],
              "notes": [],
              "errors": [],
              "changes": true
            }"#]]
        .assert_eq(&serde_json::to_string_pretty(&report).expect("it is JSON"));
    }
}
