//! Actions, principals and effects of statements, and how statements add up.

use expect_test::expect;

use super::*;

#[test]
fn actions_are_matched_by_wildcard_and_without_case() {
    check_who(
        r#""Principal": {"Federated": "PROVIDER"}, "Action": ["sts:TagSession", "STS:assumerolewithwebidentity"]"#,
        expect!["Allowed"],
    );
    check_who(r#""Principal": {"Federated": "PROVIDER"}, "Action": "sts:AssumeRole*""#, expect!["Allowed"]);
    check_who(
        r#""Principal": {"Federated": "PROVIDER"}, "Action": "sts:AssumeRole""#,
        expect![[r#"
        Denied
        - statement 1: Action is sts:AssumeRole, not sts:AssumeRoleWithWebIdentity"#]],
    );
    check_who(
        r#""Principal": {"Federated": "PROVIDER"}, "NotAction": "sts:TagSession""#,
        expect![[r#"
        Allowed
        ! statement 1: NotAction allows every action that it does not name"#]],
    );
    check_who(
        r#""Principal": {"Federated": "PROVIDER"}, "NotAction": ["sts:*"]"#,
        expect![[r#"
        Denied
        - statement 1: NotAction sts:* leaves out sts:AssumeRoleWithWebIdentity"#]],
    );
}

#[test]
fn principals_must_name_the_provider() {
    check_who(
        r#""Principal": {"Federated": ["arn:aws:iam::123456789012:saml-provider/corp", "PROVIDER"]}, "Action": "WEB""#,
        expect!["Allowed"],
    );
    check_who(
        r#""Principal": {"Federated": "arn:aws:iam::123456789012:oidc-provider/oidc.example.com/staging"}, "Action": "WEB""#,
        expect![[r#"
        Denied
        - statement 1: Principal is Federated arn:aws:iam::123456789012:oidc-provider/oidc.example.com/staging, not Federated arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod"#]],
    );
    check_who(
        r#""Principal": {"Federated": "arn:aws-cn:iam::123456789012:oidc-provider/ISSUER"}, "Action": "WEB""#,
        expect![[r#"
        Denied
        - statement 1: Principal is Federated arn:aws-cn:iam::123456789012:oidc-provider/oidc.example.com/prod, not Federated arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod"#]],
    );
    check_who(
        r#""Principal": {"Federated": "arn:aws:iam::123456789012:oidc-provider/https://ISSUER"}, "Action": "WEB""#,
        expect![[r#"
        Denied
        - statement 1: Principal is Federated arn:aws:iam::123456789012:oidc-provider/https://oidc.example.com/prod, not Federated arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod; write the ARN without https://"#]],
    );
    check_who(
        r#""Principal": {"AWS": "arn:aws:iam::123456789012:root"}, "Action": "WEB""#,
        expect![[r#"
        Denied
        - statement 1: Principal is AWS arn:aws:iam::123456789012:root, not Federated arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod"#]],
    );
    check_who(
        r#""Principal": {"Service": "ec2.amazonaws.com"}, "Action": "WEB""#,
        expect![[r#"
        Denied
        - statement 1: Principal is Service ec2.amazonaws.com, not Federated arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod"#]],
    );
    check_who(
        r#""Principal": {"Planet": "earth"}, "Action": "WEB""#,
        expect![[r#"
        Unknown
        - statement 1: principal type Planet is not one that can be evaluated here"#]],
    );
}

#[test]
fn everyone_is_let_in_with_a_warning() {
    check_who(
        r#""Principal": "*", "Action": "WEB""#,
        expect![[r#"
        Allowed
        ! statement 1: Principal "*" lets in identities of any provider and account"#]],
    );
    check_who(
        r#""Principal": {"AWS": "*"}, "Action": "WEB""#,
        expect![[r#"
        Allowed
        ! statement 1: Principal "*" lets in identities of any provider and account"#]],
    );
    check_who(
        r#""Principal": {"Federated": "*"}, "Action": "WEB""#,
        expect![[r#"
        Allowed
        ! statement 1: Principal "*" lets in identities of any provider and account"#]],
    );
    check_who(
        r#""NotPrincipal": {"AWS": "arn:aws:iam::123456789012:user/eve"}, "Action": "WEB""#,
        expect![[r#"
        Allowed
        ! statement 1: NotPrincipal lets in everyone that it does not name"#]],
    );
    check_who(
        r#""NotPrincipal": {"Federated": "PROVIDER"}, "Action": "WEB""#,
        expect![[r#"
        Denied
        - statement 1: NotPrincipal leaves out arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod"#]],
    );
}

#[test]
fn deny_wins() {
    check_deny(
        r#""Principal": "*", "Action": "*""#,
        expect![[r#"
        Denied
        - statement 2 (No) denies it"#]],
    );
    check_deny(
        r#""Principal": {"Federated": "PROVIDER"}, "Action": "sts:*", "Condition": {"StringLike": {"ISSUER:sub": "*:kube-system:*"}}"#,
        expect![[r#"
        Denied
        - statement 2 (No) denies it"#]],
    );
    check_deny(
        r#""Principal": "*", "Action": "WEB", "Condition": {"StringNotEquals": {"ISSUER:aud": "vault"}}"#,
        expect![[r#"
        Denied
        - statement 2 (No) denies it"#]],
    );
    check_deny(
        r#""NotPrincipal": {"Service": "ec2.amazonaws.com"}, "Action": "WEB""#,
        expect![[r#"
        Denied
        - statement 2 (No) denies it"#]],
    );
    check_deny(
        r#""Principal": "*", "NotAction": "sts:TagSession""#,
        expect![[r#"
        Denied
        - statement 2 (No) denies it"#]],
    );
}

#[test]
fn deny_of_others_does_not_matter() {
    check_deny(r#""Principal": "*", "Action": "sts:AssumeRole""#, expect!["Allowed"]);
    check_deny(r#""Principal": {"AWS": "123456789012"}, "Action": "*""#, expect!["Allowed"]);
    check_deny(
        r#""Principal": "*", "Action": "*", "Condition": {"StringNotEquals": {"ISSUER:sub": "SUB"}}"#,
        expect!["Allowed"],
    );
    check_deny(r#""NotPrincipal": {"Federated": "PROVIDER"}, "Action": "WEB""#, expect!["Allowed"]);
}

#[test]
fn deny_that_cannot_be_evaluated_makes_an_allow_unknown() {
    check_deny(
        r#""Principal": "*", "Action": "*", "Condition": {"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}}"#,
        expect![[r#"
        Unknown
        - statement 2 (No) may deny it: condition operator NotIpAddress on aws:SourceIp is not one that can be evaluated here"#]],
    );
    check(
        r#"{"Effect": "Deny", "Principal": "*", "Action": "*", "Condition": {"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}"#,
        expect![[r#"
            Denied
            - no statement allows anything"#]],
    );
}

#[test]
fn any_statement_may_allow_and_the_nearest_say_why_not() {
    let nodes =
        r#"{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}"#;
    let staging = r#"{"Sid": "Staging", "Effect": "Allow", "Principal": {"Federated": "arn:aws:iam::123456789012:oidc-provider/oidc.example.com/staging"},
        "Action": "WEB", "Condition": {"StringEquals": {"oidc.example.com/staging:sub": "SUB"}}}"#;
    let other = r#"{"Sid": "Other", "Effect": "Allow", "Principal": {"Federated": "PROVIDER"}, "Action": "WEB",
        "Condition": {"StringEquals": {"ISSUER:sub": "system:serviceaccount:kube-system:efs-csi"}}}"#;
    let ours = r#"{"Effect": "Allow", "Principal": {"Federated": "PROVIDER"}, "Action": "WEB", "Condition": {EXACT}}"#;
    check(&[nodes, staging, other, ours].join(","), expect!["Allowed"]);
    check(
        &[nodes, staging, other].join(","),
        expect![[r#"
        Denied
        - statement 3 (Other): StringEquals on oidc.example.com/prod:sub takes "system:serviceaccount:kube-system:efs-csi", but the token has "system:serviceaccount:kube-system:ebs-csi""#]],
    );
    check(
        &[nodes, staging].join(","),
        expect![[r#"
        Denied
        - statement 2 (Staging): Principal is Federated arn:aws:iam::123456789012:oidc-provider/oidc.example.com/staging, not Federated arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod"#]],
    );
    check(
        nodes,
        expect![[r#"
        Denied
        - statement 1: Action is sts:AssumeRole, not sts:AssumeRoleWithWebIdentity"#]],
    );
    check(
        "",
        expect![[r#"
        Denied
        - no statement allows anything"#]],
    );
}
