//! Trust policies and what becomes of them. The expected texts follow AWS's documentation of policy elements
//! and of how they are evaluated.

use expect_test::{Expect, expect};

use super::*;

const PROVIDER: &str = "arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod";

fn identity() -> WebIdentity {
    WebIdentity {
        issuer: "https://oidc.example.com/prod".to_owned(),
        provider_arn: PROVIDER.to_owned(),
        namespace: "kube-system".to_owned(),
        service_account: "ebs-csi".to_owned(),
        audience: DEFAULT_AUDIENCE.to_owned(),
    }
}

fn driver() -> Assumer {
    Assumer::ServiceAccount(identity())
}

fn said(policy: &str, assumer: &Assumer) -> String {
    let Judgement { verdict, warnings } = judge(policy, assumer);
    let (mut text, reasons) = match verdict {
        Verdict::Allowed => ("Allowed".to_owned(), Vec::new()),
        Verdict::Denied { reasons } => ("Denied".to_owned(), reasons),
        Verdict::Unknown { reasons } => ("Unknown".to_owned(), reasons),
    };
    reasons.iter().for_each(|it| text += &format!("\n- {it}"));
    warnings.iter().for_each(|it| text += &format!("\n! {it}"));
    text
}

/// Statements with `PROVIDER`, `ISSUER`, `WEB` (the action), `SUB` and `EXACT` (the conditions that should
/// be) written out.
fn expand(statements: &str) -> String {
    statements
        .replace("EXACT", r#""StringEquals": {"ISSUER:aud": "sts.amazonaws.com", "ISSUER:sub": "SUB"}"#)
        .replace("AUD", r#""StringEquals": {"ISSUER:aud": "sts.amazonaws.com"}"#)
        .replace("PROVIDER", PROVIDER)
        .replace("ISSUER", "oidc.example.com/prod")
        .replace("WEB", "sts:AssumeRoleWithWebIdentity")
        .replace("SUB", "system:serviceaccount:kube-system:ebs-csi")
}

#[track_caller]
fn check(statements: &str, expected: Expect) {
    let policy = format!(r#"{{"Version": "2012-10-17", "Statement": [{}]}}"#, expand(statements));
    expected.assert_eq(&said(&policy, &driver()));
}

/// A policy whose one statement allows the provider under a condition.
#[track_caller]
fn check_condition(condition: &str, expected: Expect) {
    check(
        &format!(
            r#"{{"Effect": "Allow", "Principal": {{"Federated": "PROVIDER"}}, "Action": "WEB", "Condition": {{{condition}}}}}"#
        ),
        expected,
    );
}

/// A policy that allows as it should, and denies by one more statement.
#[track_caller]
fn check_deny(deny: &str, expected: Expect) {
    let allow = r#"{"Effect": "Allow", "Principal": {"Federated": "PROVIDER"}, "Action": "WEB", "Condition": {EXACT}}"#;
    check(&format!(r#"{allow}, {{"Sid": "No", "Effect": "Deny", {deny}}}"#), expected);
}

/// A policy that allows an action to a principal under the conditions that should be.
#[track_caller]
fn check_who(who: &str, expected: Expect) {
    check(&format!(r#"{{"Effect": "Allow", {who}, "Condition": {{EXACT}}}}"#), expected);
}

#[test]
fn exactly_the_service_account_and_audience_are_allowed() {
    check_condition("EXACT", expect!["Allowed"]);
    check_condition(
        r#""StringLike": {"ISSUER:sub": "SUB", "ISSUER:aud": "sts.amazonaws.com"}"#,
        expect!["Allowed"],
    );
    check_condition(r#"AUD, "ForAnyValue:StringEquals": {"ISSUER:sub": "SUB"}"#, expect!["Allowed"]);
    check_condition(r#"AUD, "ForAllValues:StringEquals": {"ISSUER:sub": "SUB"}"#, expect!["Allowed"]);
    check_condition(r#"AUD, "StringEqualsIfExists": {"ISSUER:sub": "SUB"}"#, expect!["Allowed"]);
}

#[test]
fn any_value_of_a_key_is_enough_and_every_key_is_needed() {
    check_condition(
        r#""StringEquals": {"ISSUER:sub": ["system:serviceaccount:kube-system:efs-csi", "SUB"], "ISSUER:aud": ["other", "sts.amazonaws.com"]}"#,
        expect!["Allowed"],
    );
    check_condition(
        r#""StringEquals": {"ISSUER:sub": "SUB", "ISSUER:aud": "vault"}"#,
        expect![[r#"
        Denied
        - statement 1: StringEquals on oidc.example.com/prod:aud takes "vault", but the token has "sts.amazonaws.com""#]],
    );
    check_condition(
        r#"AUD, "StringLike": {"ISSUER:sub": "system:serviceaccount:prod:*"}"#,
        expect![[r#"
        Denied
        - statement 1: StringLike on oidc.example.com/prod:sub takes "system:serviceaccount:prod:*", but the token has "system:serviceaccount:kube-system:ebs-csi""#]],
    );
    check_condition(
        r#"EXACT, "StringLike": {"ISSUER:sub": ["system:serviceaccount:a:*", "system:serviceaccount:b:*"]}"#,
        expect![[r#"
        Denied
        - statement 1: StringLike on oidc.example.com/prod:sub takes "system:serviceaccount:a:*", "system:serviceaccount:b:*", but the token has "system:serviceaccount:kube-system:ebs-csi""#]],
    );
}

#[test]
fn another_subject_is_denied_with_what_the_policy_takes() {
    check_condition(
        r#"AUD, "StringLike": {"ISSUER:sub": "system:serviceaccount:default:ebs-csi"}"#,
        expect![[r#"
        Denied
        - statement 1: StringLike on oidc.example.com/prod:sub takes "system:serviceaccount:default:ebs-csi", but the token has "system:serviceaccount:kube-system:ebs-csi""#]],
    );
    check_condition(
        r#"AUD, "StringLike": {"ISSUER:sub": "system:serviceaccount:Kube-System:*"}"#,
        expect![[r#"
        Denied
        - statement 1: StringLike on oidc.example.com/prod:sub takes "system:serviceaccount:Kube-System:*", but the token has "system:serviceaccount:kube-system:ebs-csi""#]],
    );
    check_condition(
        r#""StringEquals": {"ISSUER:aud": "sts.amazonaws.com", "ISSUER:sub": []}"#,
        expect![[r#"
            Denied
            - statement 1: StringEquals on oidc.example.com/prod:sub takes nothing, but the token has "system:serviceaccount:kube-system:ebs-csi""#]],
    );
}

#[test]
fn equals_takes_wildcards_as_plain_characters() {
    check_condition(
        r#""StringEquals": {"ISSUER:aud": "sts.amazonaws.com", "ISSUER:sub": "system:serviceaccount:kube-system:*"}"#,
        expect![[r#"
        Denied
        - statement 1: StringEquals on oidc.example.com/prod:sub takes "system:serviceaccount:kube-system:*", but the token has "system:serviceaccount:kube-system:ebs-csi"; it takes * and ? as plain characters, StringLike does not"#]],
    );
    check_condition(
        r#"AUD, "StringLike": {"ISSUER:sub": "system:serviceaccount:kube-system:${*}"}"#,
        expect![[r#"
        Denied
        - statement 1: StringLike on oidc.example.com/prod:sub takes "system:serviceaccount:kube-system:${*}", but the token has "system:serviceaccount:kube-system:ebs-csi""#]],
    );
}

#[test]
fn case_counts_in_values_but_not_in_keys() {
    check_condition(
        r#""StringEquals": {"OIDC.Example.com/PROD:Sub": "system:serviceaccount:kube-system:ebs-csi", "ISSUER:AUd": "sts.amazonaws.com"}"#,
        expect!["Allowed"],
    );
    check_condition(
        r#"AUD, "StringEqualsIgnoreCase": {"ISSUER:sub": "System:ServiceAccount:Kube-System:EBS-CSI"}"#,
        expect!["Allowed"],
    );
    check_condition(
        r#""StringEquals": {"ISSUER:aud": "STS.amazonaws.com", "ISSUER:sub": "SUB"}"#,
        expect![[r#"
            Denied
            - statement 1: StringEquals on oidc.example.com/prod:aud takes "STS.amazonaws.com", but the token has "sts.amazonaws.com"; case counts"#]],
    );
}

#[test]
fn a_wildcard_in_the_subject_lets_others_in() {
    check_condition(
        r#"AUD, "StringLike": {"ISSUER:sub": "system:serviceaccount:kube-system:*"}"#,
        expect![[r#"
        Allowed
        ! statement 1: subject "system:serviceaccount:kube-system:*" lets in other service accounts"#]],
    );
    check_condition(
        r#"AUD, "StringLike": {"ISSUER:sub": "system:serviceaccount:*:ebs-cs?"}"#,
        expect![[r#"
        Allowed
        ! statement 1: subject "system:serviceaccount:*:ebs-cs?" lets in other service accounts"#]],
    );
    check_condition(
        r#"AUD, "ForAnyValue:StringLike": {"ISSUER:sub": ["SUB", "system:serviceaccount:dev:*"]}"#,
        expect![[r#"
        Allowed
        ! statement 1: subject "system:serviceaccount:dev:*" lets in other service accounts"#]],
    );
    // Another condition that is exact takes the width away.
    check_condition(r#"EXACT, "StringLike": {"ISSUER:sub": "system:*"}"#, expect!["Allowed"]);
}

#[test]
fn what_limits_nothing_lets_all_in() {
    check_condition(
        "AUD",
        expect![[r#"
        Allowed
        ! statement 1: no condition limits the subject, so every service account of the cluster gets in"#]],
    );
    check_condition(
        r#""StringEquals": {"ISSUER:sub": "SUB"}"#,
        expect![[r#"
        Allowed
        ! statement 1: no condition limits the audience, so tokens made for other services get in"#]],
    );
    check_condition(
        "",
        expect![[r#"
        Allowed
        ! statement 1: no condition limits the subject, so every service account of the cluster gets in
        ! statement 1: no condition limits the audience, so tokens made for other services get in"#]],
    );
    check_condition(
        r#"AUD, "StringNotEquals": {"ISSUER:sub": "system:serviceaccount:default:default"}"#,
        expect![[r#"
        Allowed
        ! statement 1: no condition limits the subject, so every service account of the cluster gets in"#]],
    );
    check_condition(
        r#""StringLike": {"ISSUER:sub": "SUB", "ISSUER:aud": "*"}"#,
        expect![[r#"
        Allowed
        ! statement 1: audience "*" takes tokens made for other services"#]],
    );
}

#[test]
fn negated_operators_exclude() {
    check_condition(
        r#"EXACT, "StringNotEquals": {"ISSUER:sub": ["x", "SUB"]}"#,
        expect![[r#"
        Denied
        - statement 1: StringNotEquals excludes oidc.example.com/prod:sub "system:serviceaccount:kube-system:ebs-csi""#]],
    );
    check_condition(
        r#"EXACT, "StringNotLike": {"ISSUER:sub": "system:serviceaccount:kube-*"}"#,
        expect![[r#"
        Denied
        - statement 1: StringNotLike excludes oidc.example.com/prod:sub "system:serviceaccount:kube-system:ebs-csi""#]],
    );
    check_condition(
        r#"EXACT, "StringNotLike": {"ISSUER:sub": "system:serviceaccount:default:*"}"#,
        expect!["Allowed"],
    );
    check_condition(
        r#"EXACT, "StringNotEqualsIgnoreCase": {"ISSUER:aud": "STS.AMAZONAWS.COM"}"#,
        expect![[r#"
        Denied
        - statement 1: StringNotEqualsIgnoreCase excludes oidc.example.com/prod:aud "sts.amazonaws.com""#]],
    );
}

#[test]
fn keys_that_the_token_does_not_carry() {
    check_condition(
        r#"EXACT, "ForAnyValue:StringLike": {"ISSUER:amr": "authenticated"}"#,
        expect![[r#"
        Denied
        - statement 1: ForAnyValue:StringLike is on oidc.example.com/prod:amr, which the token does not carry"#]],
    );
    check_condition(
        r#"EXACT, "ForAllValues:StringLike": {"ISSUER:amr": "authenticated"}"#,
        expect!["Allowed"],
    );
    check_condition(r#"EXACT, "StringLikeIfExists": {"ISSUER:amr": "authenticated"}"#, expect!["Allowed"]);
    check_condition(r#"EXACT, "StringNotEquals": {"ISSUER:email": "x@example.com"}"#, expect!["Allowed"]);
    check_condition(
        r#"EXACT, "ForAnyValue:StringNotEquals": {"ISSUER:amr": "x"}"#,
        expect![[r#"
        Denied
        - statement 1: ForAnyValue:StringNotEquals is on oidc.example.com/prod:amr, which the token does not carry"#]],
    );
    check_condition(r#"EXACT, "Null": {"ISSUER:amr": "true"}"#, expect!["Allowed"]);
    check_condition(
        r#"EXACT, "Null": {"ISSUER:sub": true}"#,
        expect![[r#"
            Denied
            - statement 1: Null on oidc.example.com/prod:sub fails: the token carries it"#]],
    );
}

#[test]
fn keys_of_another_issuer_are_never_there() {
    check_condition(
        r#""StringEquals": {"oidc.example.com/staging:sub": "SUB", "oidc.example.com/staging:aud": "sts.amazonaws.com"}"#,
        expect![[r#"
        Denied
        - statement 1: StringEquals is on oidc.example.com/staging:aud, which the token does not carry; StringEquals is on oidc.example.com/staging:sub, which the token does not carry"#]],
    );
    check_condition(
        r#""StringEquals": {"https://ISSUER:sub": "SUB", "ISSUER:aud": "sts.amazonaws.com"}"#,
        expect![[r#"
        Denied
        - statement 1: StringEquals is on https://oidc.example.com/prod:sub, which the token does not carry; write the key without https://"#]],
    );
    check_condition(
        r#""StringEqualsIfExists": {"oidc.example.com/staging:sub": "SUB", "ISSUER:aud": "sts.amazonaws.com"}"#,
        expect![[r#"
        Allowed
        ! statement 1: no condition limits the subject, so every service account of the cluster gets in"#]],
    );
}

#[test]
fn what_cannot_be_evaluated_is_named() {
    check_condition(
        r#"EXACT, "IpAddress": {"aws:SourceIp": "10.0.0.0/8"}"#,
        expect![[r#"
        Unknown
        - statement 1: condition operator IpAddress on aws:SourceIp is not one that can be evaluated here"#]],
    );
    check_condition(
        r#""StringEquals": {"ISSUER:sub": "SUB", "ISSUER:aud": "sts.amazonaws.com", "aws:RequestedRegion": "eu-west-1"}"#,
        expect![[r#"
        Unknown
        - statement 1: condition StringEquals is on aws:RequestedRegion, which only AWS knows at the time of the call"#]],
    );
    check_condition(
        r#"EXACT, "StringLike": {"sts:RoleSessionName": "ebs-*"}"#,
        expect![[r#"
        Unknown
        - statement 1: condition StringLike is on sts:RoleSessionName, which only AWS knows at the time of the call"#]],
    );
    check_condition(
        r#"AUD, "StringLike": {"ISSUER:sub": "system:serviceaccount:${aws:PrincipalTag/team}:*"}"#,
        expect![[r#"
        Unknown
        - statement 1: condition StringLike on oidc.example.com/prod:sub uses ${aws:PrincipalTag/team}, which only AWS can fill in"#]],
    );
    check_condition(
        r#"EXACT, "StringMatches": {"ISSUER:sub": "x"}"#,
        expect![[r#"
        Unknown
        - statement 1: condition operator StringMatches on oidc.example.com/prod:sub is not one that can be evaluated here"#]],
    );
    check_condition(
        r#"EXACT, "ForSomeValues:StringLike": {"ISSUER:sub": "x"}"#,
        expect![[r#"
        Unknown
        - statement 1: condition operator ForSomeValues:StringLike on oidc.example.com/prod:sub is not one that can be evaluated here"#]],
    );
    check_condition(
        r#""StringEquals": {"ISSUER:sub": "SUB", "ISSUER:aud": "sts.amazonaws.com", "ISSUER:team": "x"}"#,
        expect![[r#"
        Unknown
        - statement 1: condition StringEquals is on oidc.example.com/prod:team, which only AWS knows at the time of the call"#]],
    );
    // One that fails for certain decides.
    check_condition(
        r#""StringLike": {"ISSUER:sub": "system:serviceaccount:default:*", "sts:RoleSessionName": "ebs-*"}"#,
        expect![[r#"
            Denied
            - statement 1: StringLike on oidc.example.com/prod:sub takes "system:serviceaccount:default:*", but the token has "system:serviceaccount:kube-system:ebs-csi""#]],
    );
    check_condition(r#"EXACT, "Bool": {"aws:SecureTransport": "true"}"#, expect!["Allowed"]);
}

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

#[test]
fn documents_come_in_several_forms() {
    let policy = expand(
        r#"{"Statement": {"Effect": "Allow", "Principal": {"Federated": "PROVIDER"}, "Action": "WEB", "Condition": {EXACT}}}"#,
    );
    expect!["Allowed"].assert_eq(&said(&policy, &driver()));
    let encoded: String = policy.bytes().map(|byte| format!("%{byte:02X}")).collect();
    expect!["Allowed"].assert_eq(&said(&encoded, &driver()));
    let usual = policy
        .replace('{', "%7B")
        .replace('}', "%7D")
        .replace('"', "%22")
        .replace(' ', "%20")
        .replace('/', "%2f");
    expect!["Allowed"].assert_eq(&said(&usual, &driver()));
}

#[test]
fn variables_are_plain_text_in_the_old_version() {
    let policy = expand(
        r#"{"Version": "2008-10-17", "Statement": {"Effect": "Allow", "Principal": {"Federated": "PROVIDER"}, "Action": "WEB",
            "Condition": {AUD, "StringLike": {"ISSUER:sub": "${aws:username}"}}}}"#,
    );
    expect![[r#"
        Denied
        - statement 1: StringLike on oidc.example.com/prod:sub takes "${aws:username}", but the token has "system:serviceaccount:kube-system:ebs-csi""#]].assert_eq(&said(&policy, &driver()));
}

#[test]
fn malformed_documents_are_unknown_and_say_where() {
    let allow = r#""Effect": "Allow", "Principal": "*", "Action": "*""#;
    let texts = [
        "".to_owned(),
        "%7".to_owned(),
        "%FF%FE".to_owned(),
        "[]".to_owned(),
        "{".to_owned(),
        r#"{"Version": "2012-10-17"}"#.to_owned(),
        format!(r#"{{"Version": "2020-01-01", "Statement": {{{allow}}}}}"#),
        format!(r#"{{"Statement": {{{allow}, "Effects": "Allow"}}}}"#),
        r#"{"Statement": [{"Effect": "allow", "Principal": "*", "Action": "*"}]}"#.to_owned(),
        r#"{"Statement": [{"Effect": "Allow", "Principal": "*"}]}"#.to_owned(),
        r#"{"Statement": [{"Effect": "Allow", "Action": "*"}]}"#.to_owned(),
        r#"{"Statement": [{"Effect": "Allow", "Principal": "me", "Action": "*"}]}"#.to_owned(),
        format!(r#"{{"Statement": {{{allow}, "NotAction": "sts:*"}}}}"#),
        format!(r#"{{"Statement": {{{allow}, "Resource": "*"}}}}"#),
        format!(r#"{{"Statement": {{{allow}, "Condition": {{"StringEquals": "x"}}}}}}"#),
        format!(r#"{{"Statement": {{{allow}, "Condition": {{"StringEquals": {{"k": {{}}}}}}}}}}"#),
    ];
    let all: Vec<String> = texts.iter().map(|it| said(it, &driver())).collect();
    expect![[r#"
        Unknown
        - the trust policy cannot be read: it is not JSON: EOF while parsing a value at line 1 column 0
        Unknown
        - the trust policy cannot be read: it is not percent-encoded UTF-8
        Unknown
        - the trust policy cannot be read: it is not percent-encoded UTF-8
        Unknown
        - the trust policy cannot be read: policy: is not an object
        Unknown
        - the trust policy cannot be read: it is not JSON: EOF while parsing an object at line 1 column 1
        Unknown
        - the trust policy cannot be read: Statement: is missing
        Unknown
        - the trust policy cannot be read: Version: is neither 2012-10-17 nor 2008-10-17
        Unknown
        - the trust policy cannot be read: Statement[0].Effects: is not an element of a statement
        Unknown
        - the trust policy cannot be read: Statement[0].Effect: is neither Allow nor Deny
        Unknown
        - the trust policy cannot be read: Statement[0].Action: is missing
        Unknown
        - the trust policy cannot be read: statement 1 has no Principal
        Unknown
        - the trust policy cannot be read: Statement[0].Principal: is neither "*" nor an object
        Unknown
        - the trust policy cannot be read: Statement[0]: has both Action and NotAction
        Unknown
        - the trust policy cannot be read: statement 1 has a Resource, which a trust policy cannot have
        Unknown
        - the trust policy cannot be read: Statement[0].Condition.StringEquals: is not an object
        Unknown
        - the trust policy cannot be read: Statement[0].Condition.StringEquals.k: is neither a string nor a list of strings"#]]
    .assert_eq(&all.join("\n"));
}

#[test]
fn the_fix_is_allowed_and_nothing_more() {
    let text = fix(&driver());
    assert_eq!(said(&text, &driver()), "Allowed");
    expect![[r#"
        {
          "Version": "2012-10-17",
          "Statement": [
            {
              "Effect": "Allow",
              "Principal": { "Federated": "arn:aws:iam::123456789012:oidc-provider/oidc.example.com/prod" },
              "Action": "sts:AssumeRoleWithWebIdentity",
              "Condition": {
                "StringEquals": {
                  "oidc.example.com/prod:aud": "sts.amazonaws.com",
                  "oidc.example.com/prod:sub": "system:serviceaccount:kube-system:ebs-csi"
                }
              }
            }
          ]
        }"#]]
    .assert_eq(&text);
    let other = identity();
    for other in [
        WebIdentity { service_account: "ebs-csi-2".to_owned(), ..other.clone() },
        WebIdentity { namespace: "default".to_owned(), ..other.clone() },
        WebIdentity { audience: "vault".to_owned(), ..other.clone() },
        WebIdentity { issuer: "https://oidc.example.com/staging".to_owned(), ..other.clone() },
        WebIdentity { provider_arn: provider_arn("aws-cn", "123456789012", &other.issuer), ..other },
    ] {
        assert!(
            matches!(judge(&text, &Assumer::ServiceAccount(other.clone())).verdict, Verdict::Denied { .. }),
            "{other:?}"
        );
    }
}

#[test]
fn the_fix_is_of_the_partition() {
    for partition in ["aws", "aws-cn", "aws-us-gov"] {
        let issuer = "https://oidc.example.com/prod".to_owned();
        let provider_arn = provider_arn(partition, "123456789012", &issuer);
        assert!(provider_arn.starts_with(&format!("arn:{partition}:iam::123456789012:oidc-provider/oidc.")));
        let assumer =
            Assumer::ServiceAccount(WebIdentity { issuer, provider_arn: provider_arn.clone(), ..identity() });
        assert!(fix(&assumer).contains(&provider_arn));
        assert_eq!(said(&fix(&assumer), &assumer), "Allowed");
    }
}

#[test]
fn instances_assume_by_the_service_of_their_partition() {
    let instances = |partition: &str| Assumer::Instances { partition: partition.to_owned() };
    expect![[r#"
        {
          "Version": "2012-10-17",
          "Statement": [
            {
              "Effect": "Allow",
              "Principal": { "Service": "ec2.amazonaws.com.cn" },
              "Action": "sts:AssumeRole"
            }
          ]
        }"#]]
    .assert_eq(&fix(&instances("aws-cn")));
    for partition in ["aws", "aws-cn", "aws-us-gov"] {
        assert_eq!(said(&fix(&instances(partition)), &instances(partition)), "Allowed");
        assert_eq!(said(&fix(&instances("aws")), &instances(partition)), "Allowed");
    }
    expect![[r#"
        Denied
        - statement 1: Principal is Service ec2.amazonaws.com.cn, not Service ec2.amazonaws.com"#]]
    .assert_eq(&said(&fix(&instances("aws-cn")), &instances("aws")));
    expect![[r#"
        Denied
        - statement 1: Action is sts:AssumeRoleWithWebIdentity, not sts:AssumeRole"#]]
    .assert_eq(&said(&fix(&driver()), &instances("aws")));
}
