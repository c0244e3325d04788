//! Trust policies and what becomes of them. The expected texts follow AWS's documentation of policy elements and of how they are evaluated.

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

/// Statements with `PROVIDER`, `ISSUER`, `WEB` (the action), `SUB` and `EXACT` (the conditions that should be) written out.
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
        &format!(r#"{{"Effect": "Allow", "Principal": {{"Federated": "PROVIDER"}}, "Action": "WEB", "Condition": {{{condition}}}}}"#),
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
    check_condition("EXACT", expect![[""]]);
    check_condition(r#""StringLike": {"ISSUER:sub": "SUB", "ISSUER:aud": "sts.amazonaws.com"}"#, expect![[""]]);
    check_condition(r#"AUD, "ForAnyValue:StringEquals": {"ISSUER:sub": "SUB"}"#, expect![[""]]);
    check_condition(r#"AUD, "ForAllValues:StringEquals": {"ISSUER:sub": "SUB"}"#, expect![[""]]);
    check_condition(r#"AUD, "StringEqualsIfExists": {"ISSUER:sub": "SUB"}"#, expect![[""]]);
}

#[test]
fn any_value_of_a_key_is_enough_and_every_key_is_needed() {
    check_condition(
        r#""StringEquals": {"ISSUER:sub": ["system:serviceaccount:kube-system:efs-csi", "SUB"], "ISSUER:aud": ["other", "sts.amazonaws.com"]}"#,
        expect![[""]],
    );
    check_condition(r#""StringEquals": {"ISSUER:sub": "SUB", "ISSUER:aud": "vault"}"#, expect![[""]]);
    check_condition(r#"AUD, "StringLike": {"ISSUER:sub": "system:serviceaccount:prod:*"}"#, expect![[""]]);
    check_condition(r#"EXACT, "StringLike": {"ISSUER:sub": ["system:serviceaccount:a:*", "system:serviceaccount:b:*"]}"#, expect![[""]]);
}

#[test]
fn another_subject_is_denied_with_what_the_policy_takes() {
    check_condition(r#"AUD, "StringLike": {"ISSUER:sub": "system:serviceaccount:default:ebs-csi"}"#, expect![[""]]);
    check_condition(r#"AUD, "StringLike": {"ISSUER:sub": "system:serviceaccount:Kube-System:*"}"#, expect![[""]]);
    check_condition(r#""StringEquals": {"ISSUER:aud": "sts.amazonaws.com", "ISSUER:sub": []}"#, expect![[""]]);
}

#[test]
fn equals_takes_wildcards_as_plain_characters() {
    check_condition(r#""StringEquals": {"ISSUER:aud": "sts.amazonaws.com", "ISSUER:sub": "system:serviceaccount:kube-system:*"}"#, expect![[""]]);
    check_condition(r#"AUD, "StringLike": {"ISSUER:sub": "system:serviceaccount:kube-system:${*}"}"#, expect![[""]]);
}

#[test]
fn case_counts_in_values_but_not_in_keys() {
    check_condition(
        r#""StringEquals": {"OIDC.Example.com/PROD:Sub": "system:serviceaccount:kube-system:ebs-csi", "ISSUER:AUd": "sts.amazonaws.com"}"#,
        expect![[""]],
    );
    check_condition(r#"AUD, "StringEqualsIgnoreCase": {"ISSUER:sub": "System:ServiceAccount:Kube-System:EBS-CSI"}"#, expect![[""]]);
    check_condition(
        r#""StringEquals": {"ISSUER:aud": "STS.amazonaws.com", "ISSUER:sub": "SUB"}"#,
        expect![[""]],
    );
}

#[test]
fn a_wildcard_in_the_subject_lets_others_in() {
    check_condition(r#"AUD, "StringLike": {"ISSUER:sub": "system:serviceaccount:kube-system:*"}"#, expect![[""]]);
    check_condition(r#"AUD, "StringLike": {"ISSUER:sub": "system:serviceaccount:*:ebs-cs?"}"#, expect![[""]]);
    check_condition(r#"AUD, "ForAnyValue:StringLike": {"ISSUER:sub": ["SUB", "system:serviceaccount:dev:*"]}"#, expect![[""]]);
    // Another condition that is exact takes the width away.
    check_condition(r#"EXACT, "StringLike": {"ISSUER:sub": "system:*"}"#, expect![[""]]);
}

#[test]
fn what_limits_nothing_lets_all_in() {
    check_condition("AUD", expect![[""]]);
    check_condition(r#""StringEquals": {"ISSUER:sub": "SUB"}"#, expect![[""]]);
    check_condition("", expect![[""]]);
    check_condition(r#"AUD, "StringNotEquals": {"ISSUER:sub": "system:serviceaccount:default:default"}"#, expect![[""]]);
    check_condition(r#""StringLike": {"ISSUER:sub": "SUB", "ISSUER:aud": "*"}"#, expect![[""]]);
}

#[test]
fn negated_operators_exclude() {
    check_condition(r#"EXACT, "StringNotEquals": {"ISSUER:sub": ["x", "SUB"]}"#, expect![[""]]);
    check_condition(r#"EXACT, "StringNotLike": {"ISSUER:sub": "system:serviceaccount:kube-*"}"#, expect![[""]]);
    check_condition(r#"EXACT, "StringNotLike": {"ISSUER:sub": "system:serviceaccount:default:*"}"#, expect![[""]]);
    check_condition(r#"EXACT, "StringNotEqualsIgnoreCase": {"ISSUER:aud": "STS.AMAZONAWS.COM"}"#, expect![[""]]);
}

#[test]
fn keys_that_the_token_does_not_carry() {
    check_condition(r#"EXACT, "ForAnyValue:StringLike": {"ISSUER:amr": "authenticated"}"#, expect![[""]]);
    check_condition(r#"EXACT, "ForAllValues:StringLike": {"ISSUER:amr": "authenticated"}"#, expect![[""]]);
    check_condition(r#"EXACT, "StringLikeIfExists": {"ISSUER:amr": "authenticated"}"#, expect![[""]]);
    check_condition(r#"EXACT, "StringNotEquals": {"ISSUER:email": "x@example.com"}"#, expect![[""]]);
    check_condition(r#"EXACT, "ForAnyValue:StringNotEquals": {"ISSUER:amr": "x"}"#, expect![[""]]);
    check_condition(r#"EXACT, "Null": {"ISSUER:amr": "true"}"#, expect![[""]]);
    check_condition(r#"EXACT, "Null": {"ISSUER:sub": true}"#, expect![[""]]);
}

#[test]
fn keys_of_another_issuer_are_never_there() {
    check_condition(r#""StringEquals": {"oidc.example.com/staging:sub": "SUB", "oidc.example.com/staging:aud": "sts.amazonaws.com"}"#, expect![[""]]);
    check_condition(r#""StringEquals": {"https://ISSUER:sub": "SUB", "ISSUER:aud": "sts.amazonaws.com"}"#, expect![[""]]);
    check_condition(r#""StringEqualsIfExists": {"oidc.example.com/staging:sub": "SUB", "ISSUER:aud": "sts.amazonaws.com"}"#, expect![[""]]);
}

#[test]
fn what_cannot_be_evaluated_is_named() {
    check_condition(r#"EXACT, "IpAddress": {"aws:SourceIp": "10.0.0.0/8"}"#, expect![[""]]);
    check_condition(r#""StringEquals": {"ISSUER:sub": "SUB", "ISSUER:aud": "sts.amazonaws.com", "aws:RequestedRegion": "eu-west-1"}"#, expect![[""]]);
    check_condition(r#"EXACT, "StringLike": {"sts:RoleSessionName": "ebs-*"}"#, expect![[""]]);
    check_condition(r#"AUD, "StringLike": {"ISSUER:sub": "system:serviceaccount:${aws:PrincipalTag/team}:*"}"#, expect![[""]]);
    check_condition(r#"EXACT, "StringMatches": {"ISSUER:sub": "x"}"#, expect![[""]]);
    check_condition(r#"EXACT, "ForSomeValues:StringLike": {"ISSUER:sub": "x"}"#, expect![[""]]);
    check_condition(r#""StringEquals": {"ISSUER:sub": "SUB", "ISSUER:aud": "sts.amazonaws.com", "ISSUER:team": "x"}"#, expect![[""]]);
    // One that fails for certain decides.
    check_condition(
        r#""StringLike": {"ISSUER:sub": "system:serviceaccount:default:*", "sts:RoleSessionName": "ebs-*"}"#,
        expect![[""]],
    );
    check_condition(r#"EXACT, "Bool": {"aws:SecureTransport": "true"}"#, expect![[""]]);
}

#[test]
fn actions_are_matched_by_wildcard_and_without_case() {
    check_who(r#""Principal": {"Federated": "PROVIDER"}, "Action": ["sts:TagSession", "STS:assumerolewithwebidentity"]"#, expect![[""]]);
    check_who(r#""Principal": {"Federated": "PROVIDER"}, "Action": "sts:AssumeRole*""#, expect![[""]]);
    check_who(r#""Principal": {"Federated": "PROVIDER"}, "Action": "sts:AssumeRole""#, expect![[""]]);
    check_who(r#""Principal": {"Federated": "PROVIDER"}, "NotAction": "sts:TagSession""#, expect![[""]]);
    check_who(r#""Principal": {"Federated": "PROVIDER"}, "NotAction": ["sts:*"]"#, expect![[""]]);
}

#[test]
fn principals_must_name_the_provider() {
    check_who(r#""Principal": {"Federated": ["arn:aws:iam::123456789012:saml-provider/corp", "PROVIDER"]}, "Action": "WEB""#, expect![[""]]);
    check_who(r#""Principal": {"Federated": "arn:aws:iam::123456789012:oidc-provider/oidc.example.com/staging"}, "Action": "WEB""#, expect![[""]]);
    check_who(r#""Principal": {"Federated": "arn:aws-cn:iam::123456789012:oidc-provider/ISSUER"}, "Action": "WEB""#, expect![[""]]);
    check_who(r#""Principal": {"Federated": "arn:aws:iam::123456789012:oidc-provider/https://ISSUER"}, "Action": "WEB""#, expect![[""]]);
    check_who(r#""Principal": {"AWS": "arn:aws:iam::123456789012:root"}, "Action": "WEB""#, expect![[""]]);
    check_who(r#""Principal": {"Service": "ec2.amazonaws.com"}, "Action": "WEB""#, expect![[""]]);
    check_who(r#""Principal": {"Planet": "earth"}, "Action": "WEB""#, expect![[""]]);
}

#[test]
fn everyone_is_let_in_with_a_warning() {
    check_who(r#""Principal": "*", "Action": "WEB""#, expect![[""]]);
    check_who(r#""Principal": {"AWS": "*"}, "Action": "WEB""#, expect![[""]]);
    check_who(r#""Principal": {"Federated": "*"}, "Action": "WEB""#, expect![[""]]);
    check_who(r#""NotPrincipal": {"AWS": "arn:aws:iam::123456789012:user/eve"}, "Action": "WEB""#, expect![[""]]);
    check_who(r#""NotPrincipal": {"Federated": "PROVIDER"}, "Action": "WEB""#, expect![[""]]);
}

#[test]
fn deny_wins() {
    check_deny(r#""Principal": "*", "Action": "*""#, expect![[""]]);
    check_deny(r#""Principal": {"Federated": "PROVIDER"}, "Action": "sts:*", "Condition": {"StringLike": {"ISSUER:sub": "*:kube-system:*"}}"#, expect![[""]]);
    check_deny(r#""Principal": "*", "Action": "WEB", "Condition": {"StringNotEquals": {"ISSUER:aud": "vault"}}"#, expect![[""]]);
    check_deny(r#""NotPrincipal": {"Service": "ec2.amazonaws.com"}, "Action": "WEB""#, expect![[""]]);
    check_deny(r#""Principal": "*", "NotAction": "sts:TagSession""#, expect![[""]]);
}

#[test]
fn deny_of_others_does_not_matter() {
    check_deny(r#""Principal": "*", "Action": "sts:AssumeRole""#, expect![[""]]);
    check_deny(r#""Principal": {"AWS": "123456789012"}, "Action": "*""#, expect![[""]]);
    check_deny(r#""Principal": "*", "Action": "*", "Condition": {"StringNotEquals": {"ISSUER:sub": "SUB"}}"#, expect![[""]]);
    check_deny(r#""NotPrincipal": {"Federated": "PROVIDER"}, "Action": "WEB""#, expect![[""]]);
}

#[test]
fn deny_that_cannot_be_evaluated_makes_an_allow_unknown() {
    check_deny(r#""Principal": "*", "Action": "*", "Condition": {"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}}"#, expect![[""]]);
    check(
        r#"{"Effect": "Deny", "Principal": "*", "Action": "*", "Condition": {"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}"#,
        expect![[""]],
    );
}

#[test]
fn any_statement_may_allow_and_the_nearest_say_why_not() {
    let nodes = r#"{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}"#;
    let staging = r#"{"Sid": "Staging", "Effect": "Allow", "Principal": {"Federated": "arn:aws:iam::123456789012:oidc-provider/oidc.example.com/staging"},
        "Action": "WEB", "Condition": {"StringEquals": {"oidc.example.com/staging:sub": "SUB"}}}"#;
    let other = r#"{"Sid": "Other", "Effect": "Allow", "Principal": {"Federated": "PROVIDER"}, "Action": "WEB",
        "Condition": {"StringEquals": {"ISSUER:sub": "system:serviceaccount:kube-system:efs-csi"}}}"#;
    let ours = r#"{"Effect": "Allow", "Principal": {"Federated": "PROVIDER"}, "Action": "WEB", "Condition": {EXACT}}"#;
    check(&[nodes, staging, other, ours].join(","), expect![[""]]);
    check(&[nodes, staging, other].join(","), expect![[""]]);
    check(&[nodes, staging].join(","), expect![[""]]);
    check(nodes, expect![[""]]);
    check("", expect![[""]]);
}

#[test]
fn documents_come_in_several_forms() {
    let policy = expand(
        r#"{"Statement": {"Effect": "Allow", "Principal": {"Federated": "PROVIDER"}, "Action": "WEB", "Condition": {EXACT}}}"#,
    );
    expect![[""]].assert_eq(&said(&policy, &driver()));
    let encoded: String = policy.bytes().map(|byte| format!("%{byte:02X}")).collect();
    expect![[""]].assert_eq(&said(&encoded, &driver()));
    let usual = policy.replace('{', "%7B").replace('}', "%7D").replace('"', "%22").replace(' ', "%20").replace('/', "%2f");
    expect![[""]].assert_eq(&said(&usual, &driver()));
}

#[test]
fn variables_are_plain_text_in_the_old_version() {
    let policy = expand(
        r#"{"Version": "2008-10-17", "Statement": {"Effect": "Allow", "Principal": {"Federated": "PROVIDER"}, "Action": "WEB",
            "Condition": {AUD, "StringLike": {"ISSUER:sub": "${aws:username}"}}}}"#,
    );
    expect![[""]].assert_eq(&said(&policy, &driver()));
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
    expect![[""]].assert_eq(&all.join("\n"));
}

#[test]
fn the_fix_is_allowed_and_nothing_more() {
    let text = fix(&driver());
    assert_eq!(said(&text, &driver()), "Allowed");
    expect![[""]].assert_eq(&text);
    let other = identity();
    for other in [
        WebIdentity { service_account: "ebs-csi-2".to_owned(), ..other.clone() },
        WebIdentity { namespace: "default".to_owned(), ..other.clone() },
        WebIdentity { audience: "vault".to_owned(), ..other.clone() },
        WebIdentity { issuer: "https://oidc.example.com/staging".to_owned(), ..other.clone() },
        WebIdentity { provider_arn: provider_arn("aws-cn", "123456789012", &other.issuer), ..other },
    ] {
        assert!(matches!(judge(&text, &Assumer::ServiceAccount(other.clone())).verdict, Verdict::Denied { .. }), "{other:?}");
    }
}

#[test]
fn the_fix_is_of_the_partition() {
    for partition in ["aws", "aws-cn", "aws-us-gov"] {
        let issuer = "https://oidc.example.com/prod".to_owned();
        let provider_arn = provider_arn(partition, "123456789012", &issuer);
        assert!(provider_arn.starts_with(&format!("arn:{partition}:iam::123456789012:oidc-provider/oidc.")));
        let assumer = Assumer::ServiceAccount(WebIdentity { issuer, provider_arn: provider_arn.clone(), ..identity() });
        assert!(fix(&assumer).contains(&provider_arn));
        assert_eq!(said(&fix(&assumer), &assumer), "Allowed");
    }
}

#[test]
fn instances_assume_by_the_service_of_their_partition() {
    let instances = |partition: &str| Assumer::Instances { partition: partition.to_owned() };
    expect![[""]].assert_eq(&fix(&instances("aws-cn")));
    for partition in ["aws", "aws-cn", "aws-us-gov"] {
        assert_eq!(said(&fix(&instances(partition)), &instances(partition)), "Allowed");
        assert_eq!(said(&fix(&instances("aws")), &instances(partition)), "Allowed");
    }
    expect![[""]].assert_eq(&said(&fix(&instances("aws-cn")), &instances("aws")));
    expect![[""]].assert_eq(&said(&fix(&driver()), &instances("aws")));
}
