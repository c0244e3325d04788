//! Who stands in the way of an apply, by what the API server says of each field in conflict, and whether
//! such fields may be taken over.

/// How Kubernetes calls the cause of a refused apply that names a field and its manager.
const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";

/// One cause of a refused apply, in the API server's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    pub reason: String,
    pub message: String,
}

/// Whether every field in conflict is held only by one of these managers, and because it wrote it (operation
/// Update). Whoever applied a field says that it is his; whoever only wrote it may have filled in what was
/// open. What is not understood is nobody's to take.
pub fn may_take_over(causes: &[Cause], managers: &[&str]) -> bool {
    !causes.is_empty()
        && causes.iter().all(|cause| managers.iter().any(|manager| is_written_by(cause, manager)))
}

/// Such as `conflict with "tigera-operator" using operator.tigera.io/v1`, or with ` at <time>` behind it.
/// Quotes in a manager's name are escaped there, so that a name cannot look like another; one that applied
/// has no `using`, and one of a subresource has it before.
fn is_written_by(cause: &Cause, manager: &str) -> bool {
    let begin = format!("conflict with {manager:?} using ");
    let rest = cause.message.strip_prefix(&begin).filter(|_| cause.reason == FIELD_MANAGER_CONFLICT);
    let is_version = |text: &str| {
        !text.is_empty() && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"./-:".contains(&it))
    };
    rest.is_some_and(|rest| rest.split(" at ").all(is_version))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATOR: [&str; 1] = ["tigera-operator"];

    fn causes(messages: &[&str]) -> Vec<Cause> {
        let cause =
            |message: &&str| Cause { reason: FIELD_MANAGER_CONFLICT.into(), message: (*message).to_owned() };
        messages.iter().map(cause).collect()
    }

    fn may(messages: &[&str]) -> bool {
        may_take_over(&causes(messages), &OPERATOR)
    }

    #[test]
    fn what_an_operator_filled_in_is_taken_over() {
        assert!(may(&[r#"conflict with "tigera-operator" using operator.tigera.io/v1"#]));
        assert!(may(&[
            r#"conflict with "tigera-operator" using operator.tigera.io/v1 at 2026-11-22T10:00:00Z"#
        ]));
        assert!(may(&[r#"conflict with "tigera-operator" using operator.tigera.io/v1"#; 2]));
    }

    #[test]
    fn what_somebody_else_holds_too_is_not() {
        let operator = r#"conflict with "tigera-operator" using operator.tigera.io/v1"#;
        for other in [
            r#"conflict with "kubectl-edit" using operator.tigera.io/v1"#,
            r#"conflict with "tigera-operator-2" using operator.tigera.io/v1"#,
            r#"conflict with "a\" conflict with \"tigera-operator" using v1"#,
            // It applied the field.
            r#"conflict with "tigera-operator""#,
            r#"conflict with "tigera-operator" with subresource "status" using operator.tigera.io/v1"#,
            r#"conflict with "tigera-operator" using "#,
            r#"conflict with "tigera-operator" using v1 and "kubectl" using v1"#,
            "",
        ] {
            assert!(!may(&[other]), "{other}");
            assert!(!may(&[operator, other]), "{other}");
        }
        assert!(!may(&[]), "no cause is named");
        let of_another_kind = [Cause { reason: "FieldValueInvalid".into(), message: operator.into() }];
        assert!(!may_take_over(&of_another_kind, &OPERATOR));
        assert!(!may_take_over(&causes(&[operator]), &[]), "nothing is granted");
    }
}
