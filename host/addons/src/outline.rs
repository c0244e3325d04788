//! An add-on's plan as lines for people: what would be applied, allowed, checked and made.

use std::fmt::Write;

use super::ObjectRef;
use contract::{AddOnPlan, Protocol, Role, SecurityGroupRuleSpec, StepSpec};

/// One line for each object and each thing that is needed of AWS, in the order of the plan. Waits are left
/// out.
pub fn outline(plan: &AddOnPlan) -> String {
    let mut res = String::new();
    for step in &plan.steps {
        match step.typed() {
            Ok(StepSpec::Apply(spec)) => {
                for object in spec.objects.iter().filter_map(ObjectRef::of) {
                    line(&mut res, "apply", &object.to_string());
                }
            }
            Ok(StepSpec::Delete(spec)) => line(&mut res, "delete", &format!("{} {}", spec.kind, spec.name)),
            Ok(StepSpec::SecurityGroupRule(spec)) => line(&mut res, "allow", &rule_text(&spec)),
            Ok(StepSpec::IamRole(spec)) => {
                let who = match (&spec.namespace, &spec.service_account) {
                    (Some(namespace), Some(account)) => format!("service account {namespace}/{account}"),
                    _ => "instances".to_owned(),
                };
                line(
                    &mut res,
                    "check",
                    &format!("{who} can assume {} ({} actions)", spec.role_arn, spec.actions.len()),
                );
            }
            Ok(StepSpec::InstanceRoles(spec)) => {
                line(&mut res, "check", &format!("roles of instances allow {}", spec.actions.join(", ")))
            }
            Ok(StepSpec::EfsFileSystem(spec)) => {
                line(&mut res, "check", &format!("file system {}", spec.file_system_id))
            }
            Ok(StepSpec::Certificate(spec)) => {
                line(
                    &mut res,
                    "certify",
                    &format!(
                        "Secret {}/{} for {}",
                        spec.namespace,
                        spec.secret_name,
                        spec.dns_names.join(", ")
                    ),
                );
            }
            Ok(StepSpec::Wait(_) | StepSpec::FieldWait(_)) => (),
            Err(error) => line(&mut res, "unclear", &error.to_string()),
        }
    }
    res
}

fn line(res: &mut String, verb: &str, what: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(res, "  {verb:<8}{what}");
}

/// A security-group rule as people say it.
pub(crate) fn rule_text(spec: &SecurityGroupRuleSpec) -> String {
    let name = |role: Role| if role == Role::Node { "nodes" } else { "control plane" };
    let protocol = match spec.protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::IpInIp => "IP in IP",
        Protocol::All => "everything",
    };
    let ports = match (spec.from_port, spec.to_port) {
        (Some(from), Some(to)) if from == to => format!(" {from}"),
        (Some(from), Some(to)) => format!(" {from}-{to}"),
        _ => String::new(),
    };
    format!("{protocol}{ports} from {} to {}: {}", name(spec.peer), name(spec.group), spec.description)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use contract::Step;

    #[test]
    fn people_see_what_is_applied_allowed_checked_and_made() {
        let step = |kind: &str, spec: Value| Step { id: kind.into(), kind: kind.into(), spec, after: vec![] };
        let steps = vec![
            step(
                "aws.iam-role/v1",
                json!({"roleArn": "arn:aws:iam::123456789012:role/r", "trust": "irsa", "namespace": "kube-system",
                "serviceAccount": "sa", "actions": ["ec2:AttachVolume"], "mode": "check"}),
            ),
            step(
                "aws.sg-rule/v1",
                json!({"group": "node", "protocol": "tcp", "fromPort": 9443, "toPort": 9443, "peer": "control-plane",
                "description": "webhook"}),
            ),
            step(
                "k8s.apply/v1",
                json!({"objects": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}]}),
            ),
        ];
        let plan = AddOnPlan { steps, removal: vec![], diagnostics: vec![], extra: json!({}) };
        expect_test::expect![[r#"
            add-on
              check   service account kube-system/sa can assume arn:aws:iam::123456789012:role/r (1 actions)
              allow   tcp 9443 from control plane to nodes: webhook
              apply   Namespace a
        "#]]
        .assert_eq(&format!("add-on\n{}", outline(&plan)));
    }
}
