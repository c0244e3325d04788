//! Findings about a role, from what was read of it.

use expect_test::{Expect, expect};

use super::super::trust::{DEFAULT_AUDIENCE, WebIdentity, provider_arn};
use super::*;

const ARN: &str = "arn:aws:iam::123456789012:role/k8s/ebs";

fn question() -> RoleCheck {
    let issuer = "https://oidc.example.com/prod".to_owned();
    RoleCheck {
        field: "spec.storage.ebs.roleARN".to_owned(),
        role_arn: ARN.to_owned(),
        region: "eu-west-1".to_owned(),
        own_account: Some("123456789012".to_owned()),
        assumer: Assumer::ServiceAccount(WebIdentity {
            provider_arn: provider_arn("aws", "123456789012", &issuer),
            issuer,
            namespace: "kube-system".to_owned(),
            service_account: "ebs-csi".to_owned(),
            audience: DEFAULT_AUDIENCE.to_owned(),
        }),
        actions: vec!["ec2:AttachVolume".into(), "ec2:DescribeVolumes".into()],
        allowed_before: None,
    }
}

fn policy(statement: &str) -> Policy {
    Policy {
        name: "ebs".to_owned(),
        document: format!(r#"{{"Version": "2012-10-17", "Statement": {statement}}}"#),
    }
}

/// All as it should be.
fn readings() -> Readings {
    let client_ids = vec![DEFAULT_AUDIENCE.to_owned()];
    Readings {
        role: Reading::Found(Role { arn: ARN.to_owned(), trust_policy: trust::fix(&question().assumer) }),
        provider: Some(Reading::Found(Provider {
            url: "oidc.example.com/prod".to_owned(),
            client_ids,
            tags: Tags::new(),
        })),
        attached: Reading::Found(vec![policy(r#"{"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}"#)]),
        inline: Reading::Found(Vec::new()),
        boundary: None,
    }
}

fn denied<T>(permission: &str) -> Reading<T> {
    Reading::AccessDenied { permission: permission.to_owned() }
}

#[track_caller]
fn check_question(question: &RoleCheck, readings: &Readings, expected: Expect) {
    let Finding { status, reason, message, fix, allowed: _ } = check_role(question, readings);
    let fix = if fix.is_some() { "\nwith a fix" } else { "" };
    expected.assert_eq(format!("{status:?} {reason}\n{message}{fix}").trim_end());
}

#[track_caller]
fn check(readings: Readings, expected: Expect) {
    check_question(&question(), &readings, expected);
}

#[test]
fn a_role_that_is_as_it_should_be_is_true() {
    check(readings(), expect!["True RoleReady"]);
}

#[test]
fn limits_and_widths_are_warnings_and_stay_true() {
    let trust_policy =
        trust::fix(&question().assumer).replace("StringEquals", "StringLike").replace(":ebs-csi", ":*");
    let role = Reading::Found(Role { arn: ARN.to_owned(), trust_policy });
    let attached = Reading::Found(vec![policy(
        r#"{"Effect": "Allow", "Action": "ec2:*", "Resource": "arn:aws:ec2:*:*:volume/*"}"#,
    )]);
    check(
        Readings { role, attached, ..readings() },
        expect![[r#"
        True RoleReady
        warning: trust policy, statement 1: subject "system:serviceaccount:kube-system:*" lets in other service accounts. warning: ec2:AttachVolume, ec2:DescribeVolumes: allowed only on arn:aws:ec2:*:*:volume/* (ebs, statement 1)"#]],
    );
}

#[test]
fn a_role_that_is_absent_is_false() {
    check(
        Readings { role: Reading::Absent, ..readings() },
        expect![[r#"
        False RoleNotFound
        spec.storage.ebs.roleARN: role arn:aws:iam::123456789012:role/k8s/ebs does not exist; create it with the trust policy given here, or name another
        with a fix"#]],
    );
    let role = Reading::Found(Role {
        arn: "arn:aws:iam::123456789012:role/ebs".to_owned(),
        trust_policy: String::new(),
    });
    check(
        Readings { role, ..readings() },
        expect![[r#"
        False RoleNotFound
        spec.storage.ebs.roleARN: arn:aws:iam::123456789012:role/k8s/ebs does not exist, but arn:aws:iam::123456789012:role/ebs does; write that, or name another"#]],
    );
}

#[test]
fn an_arn_that_cannot_be_is_false_whatever_was_read() {
    let wrong = RoleCheck { region: "cn-north-1".to_owned(), ..question() };
    check_question(
        &wrong,
        &readings(),
        expect![[r#"
            False InvalidRoleARN
            spec.storage.ebs.roleARN: "arn:aws:iam::123456789012:role/k8s/ebs" is of another partition than region cn-north-1, which is in aws-cn, and roles do not reach across; write arn:aws-cn:iam::<account>:role/k8s/ebs, of an account there"#]],
    );
}

#[test]
fn a_role_of_another_account_is_unknown() {
    let other = RoleCheck { own_account: Some("210987654321".to_owned()), ..question() };
    check_question(
        &other,
        &Readings { role: Reading::Absent, ..readings() },
        expect![[r#"
        Unknown RoleInOtherAccount
        spec.storage.ebs.roleARN: arn:aws:iam::123456789012:role/k8s/ebs is in account 123456789012, but roles can be read in 210987654321 only; it is used unchecked"#]],
    );
    let unknown = RoleCheck { own_account: None, ..question() };
    check_question(&unknown, &readings(), expect!["True RoleReady"]);
    let role = Reading::Found(Role {
        arn: "arn:aws:iam::210987654321:role/k8s/ebs".to_owned(),
        trust_policy: String::new(),
    });
    check_question(
        &unknown,
        &Readings { role, ..readings() },
        expect![[r#"
        Unknown RoleInOtherAccount
        spec.storage.ebs.roleARN: arn:aws:iam::123456789012:role/k8s/ebs is in account 123456789012, but only arn:aws:iam::210987654321:role/k8s/ebs can be read; it is used unchecked"#]],
    );
}

#[test]
fn denied_reads_are_unknown_and_name_the_permission() {
    check(
        Readings { role: denied("iam:GetRole"), ..readings() },
        expect![[r#"
            Unknown AccessDenied
            whether role arn:aws:iam::123456789012:role/k8s/ebs exists and whom it trusts cannot be read: grant iam:GetRole to this operator, or check it yourself
            with a fix"#]],
    );
    check(
        Readings { provider: Some(denied("iam:GetOpenIDConnectProvider")), ..readings() },
        expect![[r#"
        Unknown AccessDenied
        OIDC provider arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod cannot be read: grant iam:GetOpenIDConnectProvider to this operator, or check it yourself"#]],
    );
    check(
        Readings { attached: denied("iam:ListAttachedRolePolicies"), ..readings() },
        expect![[r#"
        Unknown AccessDenied
        the attached policies of arn:aws:iam::123456789012:role/k8s/ebs cannot be read: grant iam:ListAttachedRolePolicies to this operator, or check it yourself"#]],
    );
    check(
        Readings { inline: denied("iam:ListRolePolicies"), ..readings() },
        expect![[r#"
        Unknown AccessDenied
        the inline policies of arn:aws:iam::123456789012:role/k8s/ebs cannot be read: grant iam:ListRolePolicies to this operator, or check it yourself"#]],
    );
    check(
        Readings { boundary: Some(denied("iam:GetPolicyVersion")), ..readings() },
        expect![[r#"
        Unknown AccessDenied
        the permissions boundary of arn:aws:iam::123456789012:role/k8s/ebs cannot be read: grant iam:GetPolicyVersion to this operator, or check it yourself"#]],
    );
    let nothing = Readings {
        role: denied("iam:GetRole"),
        provider: Some(denied("iam:GetOpenIDConnectProvider")),
        attached: denied("iam:ListAttachedRolePolicies"),
        inline: denied("iam:ListRolePolicies"),
        boundary: None,
    };
    check(
        nothing,
        expect![[r#"
            Unknown AccessDenied
            whether role arn:aws:iam::123456789012:role/k8s/ebs exists and whom it trusts cannot be read: grant iam:GetRole to this operator, or check it yourself. OIDC provider arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod cannot be read: grant iam:GetOpenIDConnectProvider to this operator, or check it yourself. the attached policies of arn:aws:iam::123456789012:role/k8s/ebs cannot be read: grant iam:ListAttachedRolePolicies to this operator, or check it yourself. the inline policies of arn:aws:iam::123456789012:role/k8s/ebs cannot be read: grant iam:ListRolePolicies to this operator, or check it yourself
            with a fix"#]],
    );
}

#[test]
fn failed_reads_are_unknown() {
    check(
        Readings { role: Reading::Failed { message: "Throttling: Rate exceeded".to_owned() }, ..readings() },
        expect![[r#"
            Unknown ReadFailed
            whether role arn:aws:iam::123456789012:role/k8s/ebs exists and whom it trusts could not be read and will be tried again: Throttling: Rate exceeded
            with a fix"#]],
    );
    check(
        Readings { inline: Reading::Absent, ..readings() },
        expect![[r#"
        Unknown ReadFailed
        the inline policies of arn:aws:iam::123456789012:role/k8s/ebs changed while it was read; it will be tried again"#]],
    );
}

#[test]
fn a_trust_policy_that_does_not_let_it_in_is_false_with_a_fix() {
    let trust_policy = trust::fix(&question().assumer).replace(":ebs-csi", ":efs-csi");
    let role = Reading::Found(Role { arn: ARN.to_owned(), trust_policy });
    check(
        Readings { role, ..readings() },
        expect![[r#"
        False TrustPolicyDenies
        the trust policy of arn:aws:iam::123456789012:role/k8s/ebs does not let system:serviceaccount:kube-system:ebs-csi with audience sts.amazonaws.com assume it: statement 1: StringEquals on oidc.example.com/prod:sub takes "system:serviceaccount:kube-system:efs-csi", but the token has "system:serviceaccount:kube-system:ebs-csi"
        with a fix"#]],
    );
}

#[test]
fn a_trust_policy_that_cannot_be_evaluated_is_unknown() {
    let trust_policy = trust::fix(&question().assumer)
        .replace("\"StringEquals\"", "\"IpAddress\": {\"aws:SourceIp\": \"10.0.0.0/8\"}, \"StringEquals\"");
    let role = Reading::Found(Role { arn: ARN.to_owned(), trust_policy });
    check(
        Readings { role, ..readings() },
        expect![[r#"
        Unknown TrustPolicyUnclear
        whether the trust policy of arn:aws:iam::123456789012:role/k8s/ebs lets system:serviceaccount:kube-system:ebs-csi with audience sts.amazonaws.com assume it cannot be said: statement 1: condition operator IpAddress on aws:SourceIp is not one that can be evaluated here
        with a fix"#]],
    );
}

#[test]
fn an_absent_or_other_provider_is_false() {
    check(
        Readings { provider: Some(Reading::Absent), ..readings() },
        expect![[r#"
        False OIDCProviderNotFound
        OIDC provider arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod does not exist; create it for https://oidc.example.com/prod with client id sts.amazonaws.com"#]],
    );
    let found = |url: &str, client_id: &str| {
        Some(Reading::Found(Provider {
            url: url.to_owned(),
            client_ids: vec![client_id.to_owned()],
            tags: Tags::new(),
        }))
    };
    check(
        Readings { provider: found("oidc.example.com/staging", DEFAULT_AUDIENCE), ..readings() },
        expect![[r#"
        False OIDCProviderMismatch
        OIDC provider arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod is of issuer oidc.example.com/staging, not of https://oidc.example.com/prod"#]],
    );
    check(
        Readings { provider: found("oidc.example.com/prod", "vault"), ..readings() },
        expect![[r#"
        False OIDCProviderMismatch
        OIDC provider arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod does not list sts.amazonaws.com among its client ids; add it"#]],
    );
}

#[test]
fn missing_permissions_are_false() {
    let describe = policy(r#"{"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"}"#);
    check(
        Readings { attached: Reading::Found(vec![describe.clone()]), ..readings() },
        expect![[r#"
        False PermissionsMissing
        role arn:aws:iam::123456789012:role/k8s/ebs lacks permissions: no policy allows ec2:AttachVolume"#]],
    );
    check(
        Readings { boundary: Some(Reading::Found(describe)), ..readings() },
        expect![[r#"
        False PermissionsMissing
        role arn:aws:iam::123456789012:role/k8s/ebs lacks permissions: the permissions boundary ebs does not allow ec2:AttachVolume"#]],
    );
}

#[test]
fn a_deny_is_false_even_when_other_policies_were_not_read() {
    let deny = policy(r#"{"Effect": "Deny", "Action": "ec2:AttachVolume", "Resource": "*"}"#);
    let inline = Reading::Found(vec![deny]);
    check(
        Readings { inline, attached: denied("iam:GetPolicyVersion"), ..readings() },
        expect![[r#"
        False PermissionsMissing
        role arn:aws:iam::123456789012:role/k8s/ebs lacks permissions: ebs, statement 1, denies ec2:AttachVolume. the attached policies of arn:aws:iam::123456789012:role/k8s/ebs cannot be read: grant iam:GetPolicyVersion to this operator, or check it yourself"#]],
    );
}

#[test]
fn a_policy_that_cannot_be_read_is_unknown() {
    check(
        Readings { attached: Reading::Found(vec![policy("[[]]")]), ..readings() },
        expect![[r#"
        Unknown PolicyUnclear
        policy ebs cannot be read: Statement[0]: is not an object"#]],
    );
    check(
        Readings { boundary: Some(Reading::Found(policy("1"))), ..readings() },
        expect![[r#"
        Unknown PolicyUnclear
        policy ebs cannot be read: Statement: is neither an object nor a list"#]],
    );
}

#[test]
fn several_faults_are_all_said() {
    let trust_policy = trust::fix(&question().assumer).replace("sts.amazonaws.com", "vault");
    let role = Reading::Found(Role { arn: ARN.to_owned(), trust_policy });
    check(
        Readings {
            role,
            provider: Some(Reading::Absent),
            attached: Reading::Found(Vec::new()),
            inline: denied("iam:GetRolePolicy"),
            ..readings()
        },
        expect![[r#"
        False TrustPolicyDenies
        the trust policy of arn:aws:iam::123456789012:role/k8s/ebs does not let system:serviceaccount:kube-system:ebs-csi with audience sts.amazonaws.com assume it: statement 1: StringEquals on oidc.example.com/prod:aud takes "vault", but the token has "sts.amazonaws.com". OIDC provider arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod does not exist; create it for https://oidc.example.com/prod with client id sts.amazonaws.com. the inline policies of arn:aws:iam::123456789012:role/k8s/ebs cannot be read: grant iam:GetRolePolicy to this operator, or check it yourself
        with a fix"#]],
    );
}

#[test]
fn instances_need_no_provider() {
    let assumer = Assumer::Instances { partition: "aws".to_owned() };
    let role = Reading::Found(Role { arn: ARN.to_owned(), trust_policy: trust::fix(&assumer) });
    let question = RoleCheck { assumer, ..question() };
    check_question(&question, &Readings { role, provider: None, ..readings() }, expect!["True RoleReady"]);
    check_question(
        &question,
        &Readings { provider: None, ..readings() },
        expect![[r#"
        False TrustPolicyDenies
        the trust policy of arn:aws:iam::123456789012:role/k8s/ebs does not let instances assume it: statement 1: Action is sts:AssumeRoleWithWebIdentity, not sts:AssumeRole
        with a fix"#]],
    );
}

#[test]
fn new_permissions_of_an_installed_add_on_are_reported_alone() {
    let attached =
        Reading::Found(vec![policy(r#"{"Effect": "Allow", "Action": "ec2:AttachVolume", "Resource": "*"}"#)]);
    let readings = Readings { attached, ..readings() };
    let before = |allowed: &[&str]| {
        let allowed_before = Some(allowed.iter().map(|it| (*it).to_owned()).collect());
        RoleCheck { allowed_before, ..question() }
    };
    check_question(
        &before(&["ec2:AttachVolume"]),
        &readings,
        expect![[r#"
        True RoleReady
        warning: role arn:aws:iam::123456789012:role/k8s/ebs lacks permissions that it was not asked for before, and what needs them will fail: no policy allows ec2:DescribeVolumes"#]],
    );
    check_question(
        &before(&["ec2:AttachVolume", "ec2:DescribeVolumes"]),
        &readings,
        expect![[r#"
        False PermissionsMissing
        role arn:aws:iam::123456789012:role/k8s/ebs lacks permissions: no policy allows ec2:DescribeVolumes"#]],
    );
    assert_eq!(check_role(&question(), &readings).allowed, ["ec2:AttachVolume"]);
    let unread = Readings { inline: denied("iam:ListRolePolicies"), ..readings };
    assert_eq!(check_role(&question(), &unread).allowed, Vec::<String>::new());
}

#[test]
fn what_is_needed_only_at_times_is_told_once_for_each_reason() {
    let only = |action: &str| RequiredAction {
        advice: Some("to delete directories".to_owned()),
        ..RequiredAction::from(action)
    };
    let actions = vec![only("elasticfilesystem:ClientMount"), only("elasticfilesystem:ClientWrite")];
    check_question(
        &RoleCheck { actions, ..question() },
        &readings(),
        expect![[r#"
        True RoleReady
        warning: role arn:aws:iam::123456789012:role/k8s/ebs lacks what is needed only to delete directories: no policy allows elasticfilesystem:ClientMount, elasticfilesystem:ClientWrite"#]],
    );
}
