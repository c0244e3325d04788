//! Trust policies and what becomes of them. The expected texts follow AWS's documentation of policy elements
//! and of how they are evaluated.

mod conditions;
mod statements;

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
    let Evaluation { verdict, warnings } = evaluate(policy, assumer);
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
            matches!(
                evaluate(&text, &Assumer::ServiceAccount(other.clone())).verdict,
                Verdict::Denied { .. }
            ),
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
