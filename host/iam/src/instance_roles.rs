//! Whether the roles of a cluster's instances allow what an add-on does as them: puts what was found of each
//! role into one finding.

use std::collections::{BTreeMap, BTreeSet};

use crds::conditions::reason;
use model::FoundInstance;
use model::finding::{Finding, Reading, Status};

/// Ids of instances that run or are about to, by the ARN of their instance profile; empty for those without
/// one.
pub type Profiles = BTreeMap<String, BTreeSet<String>>;

/// The instance profiles of these instances, of those that are not on their way out.
pub fn profiles<'a>(instances: impl Iterator<Item = &'a FoundInstance>) -> Profiles {
    let mut res = Profiles::new();
    for instance in
        instances.filter(|instance| !matches!(instance.status.state.as_str(), "shutting-down" | "terminated"))
    {
        res.entry(instance.profile.clone().unwrap_or_default()).or_default().insert(instance.id.clone());
    }
    res
}

/// The name that GetInstanceProfile takes: the last part of the ARN.
pub fn profile_name(arn: &str) -> &str {
    arn.rsplit('/').next().unwrap_or(arn)
}

/// What is said of instances that act as no role; `None` when all have a profile.
pub fn without_profile(profiles: &Profiles) -> Option<Finding> {
    let ids: Vec<&str> = profiles.get("")?.iter().map(String::as_str).collect();
    let message = format!(
        "{} {} no instance profile, so Pods there can do nothing in AWS",
        ids.join(", "),
        if ids.len() == 1 { "has" } else { "have" }
    );
    Some(finding(Status::False, reason::ROLE_NOT_FOUND, message))
}

/// What is said of a profile of which no role is known.
pub fn without_role(profile: &str, reading: &Reading<Option<String>>) -> Finding {
    let name = profile_name(profile);
    match reading {
        Reading::Found(_) => {
            finding(Status::False, reason::ROLE_NOT_FOUND, format!("instance profile {name} has no role"))
        }
        Reading::Absent => finding(
            Status::False,
            reason::ROLE_NOT_FOUND,
            format!("instance profile {name} does not exist any more"),
        ),
        Reading::AccessDenied { permission } => {
            let message = format!(
                "which role instance profile {name} has cannot be read: grant {permission} to this operator, or check it yourself"
            );
            finding(Status::Unknown, reason::ACCESS_DENIED, message)
        }
        Reading::Failed { message } => {
            let message = format!(
                "which role instance profile {name} has could not be read and will be tried again: {message}"
            );
            finding(Status::Unknown, reason::READ_FAILED, message)
        }
    }
}

/// One finding of several: the worst, with what all of them say.
pub fn together(findings: Vec<Finding>) -> Finding {
    let rank = |status: Status| match status {
        Status::False => 0,
        Status::Unknown => 1,
        Status::True => 2,
    };
    let Some(worst) = findings.iter().min_by_key(|finding| rank(finding.status)) else {
        return finding(Status::True, reason::ROLE_READY, String::new());
    };
    let (status, reason) = (worst.status, worst.reason);
    // Roles of an account may all be unreadable for the same reason.
    let messages: BTreeSet<&str> =
        findings.iter().map(|finding| finding.message.as_str()).filter(|text| !text.is_empty()).collect();
    let message = messages.into_iter().collect::<Vec<_>>().join(". ");
    let fix = findings.iter().find_map(|finding| finding.fix.clone());
    // What every role allows.
    let in_all = |action: &String| findings.iter().all(|finding| finding.allowed.contains(action));
    let allowed = findings[0].allowed.iter().filter(|action| in_all(action)).cloned().collect();
    Finding { status, reason, message, fix, allowed }
}

fn finding(status: Status, reason: &'static str, message: String) -> Finding {
    Finding { status, reason, message, fix: None, allowed: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_counts_and_all_are_said() {
        let good = Finding {
            allowed: vec!["a".into(), "b".into()],
            ..finding(Status::True, reason::ROLE_READY, String::new())
        };
        let unread = without_role(
            "arn:aws:iam::1:instance-profile/p/nodes",
            &Reading::AccessDenied { permission: "iam:GetInstanceProfile".into() },
        );
        let lacks = Finding {
            allowed: vec!["a".into()],
            ..finding(Status::False, reason::PERMISSIONS_MISSING, "role r lacks b".into())
        };
        let all = together(vec![good.clone(), unread, lacks.clone()]);
        assert_eq!((all.status, all.reason), (Status::False, reason::PERMISSIONS_MISSING));
        assert_eq!(
            all.message,
            "role r lacks b. which role instance profile nodes has cannot be read: grant iam:GetInstanceProfile to this operator, or check it yourself"
        );
        assert_eq!(together(vec![good, lacks]).allowed, ["a"]);
    }

    #[test]
    fn a_cluster_without_instances_lacks_nothing() {
        assert_eq!(together(Vec::new()).status, Status::True);
        assert_eq!(without_profile(&Profiles::new()), None);
    }

    #[test]
    fn instances_without_a_role_are_named() {
        let profiles = Profiles::from([(String::new(), ["i-1".to_owned(), "i-2".to_owned()].into())]);
        let found = without_profile(&profiles).unwrap();
        assert_eq!(found.message, "i-1, i-2 have no instance profile, so Pods there can do nothing in AWS");
        assert_eq!(
            without_role("arn:aws:iam::1:instance-profile/a", &Reading::Found(None)).message,
            "instance profile a has no role"
        );
    }
}
