//! Policies and what they lack. The expected texts follow AWS's documentation of policy elements and of how
//! they are evaluated.

use expect_test::{Expect, expect};

use super::*;

fn policy(name: &str, statements: &str) -> Policy {
    Policy {
        name: name.to_owned(),
        document: format!(r#"{{"Version": "2012-10-17", "Statement": [{statements}]}}"#),
    }
}

fn said(policies: &[Policy], boundary: Option<&Policy>, needed: &[&str]) -> String {
    let needed: Vec<RequiredAction> = needed.iter().map(|it| RequiredAction::from(*it)).collect();
    told(policies, boundary, &needed)
}

fn told(policies: &[Policy], boundary: Option<&Policy>, needed: &[RequiredAction]) -> String {
    let res = evaluate(policies, boundary, needed);
    let missing =
        if res.missing.is_empty() { "nothing missing".to_owned() } else { missing_text(&res.missing) };
    let notes = res.notes.iter().map(|it| format!("\n! {it}"));
    let unreadable = res.unreadable.iter().map(|it| format!("\n? {it}"));
    missing + &notes.chain(unreadable).collect::<String>()
}

/// One policy named `p`, for attaching and describing volumes.
#[track_caller]
fn check(statements: &str, expected: Expect) {
    expected.assert_eq(&said(&[policy("p", statements)], None, &["ec2:AttachVolume", "ec2:DescribeVolumes"]));
}

/// A policy that allows everything, and one that denies by this statement.
#[track_caller]
fn check_deny(deny: &str, expected: Expect) {
    let allow = policy("all", r#"{"Effect": "Allow", "Action": "*", "Resource": "*"}"#);
    let deny = policy("guard", &format!(r#"{{"Sid": "No", "Effect": "Deny", {deny}}}"#));
    expected.assert_eq(&said(&[deny, allow], None, &["ec2:AttachVolume", "ec2:DescribeVolumes"]));
}

/// A policy that allows everything, within a boundary.
#[track_caller]
fn check_boundary(statements: &str, expected: Expect) {
    let allow = policy("all", r#"{"Effect": "Allow", "Action": "*", "Resource": "*"}"#);
    expected.assert_eq(&said(
        &[allow],
        Some(&policy("limit", statements)),
        &["ec2:AttachVolume", "ec2:DescribeVolumes"],
    ));
}

#[test]
fn actions_are_allowed_by_name_wildcard_and_without_case() {
    check(
        r#"{"Effect": "Allow", "Action": ["ec2:AttachVolume", "ec2:DescribeVolumes"], "Resource": "*"}"#,
        expect!["nothing missing"],
    );
    check(r#"{"Effect": "Allow", "Action": "EC2:*volume*", "Resource": ["*"]}"#, expect!["nothing missing"]);
    check(
        r#"{"Effect": "Allow", "Action": ["ec2:AttachVolum?", "ec2:DescribeVolume?"], "Resource": "*"}"#,
        expect!["nothing missing"],
    );
    check(r#"{"Effect": "Allow", "Action": "*", "Resource": "*"}"#, expect!["nothing missing"]);
}

#[test]
fn what_no_statement_allows_is_missing() {
    check(
        r#"{"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"}"#,
        expect!["no policy allows ec2:AttachVolume"],
    );
    check(
        r#"{"Effect": "Allow", "Action": "ec2:AttachVolume?", "Resource": "*"}"#,
        expect!["no policy allows ec2:AttachVolume, ec2:DescribeVolumes"],
    );
    check(
        r#"{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}"#,
        expect!["no policy allows ec2:AttachVolume, ec2:DescribeVolumes"],
    );
    check("", expect!["no policy allows ec2:AttachVolume, ec2:DescribeVolumes"]);
    expect!["no policy allows ec2:AttachVolume"].assert_eq(&said(&[], None, &["ec2:AttachVolume"]));
}

#[test]
fn not_action_allows_what_it_does_not_name() {
    check(r#"{"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}"#, expect!["nothing missing"]);
    check(
        r#"{"Effect": "Allow", "NotAction": ["iam:*", "EC2:attach*"], "Resource": "*"}"#,
        expect!["no policy allows ec2:AttachVolume"],
    );
}

#[test]
fn limits_of_an_allow_are_noted() {
    check(
        r#"{"Effect": "Allow", "Action": "ec2:*", "Resource": "arn:aws:ec2:*:*:volume/*"}"#,
        expect![[r#"
        nothing missing
        ! ec2:AttachVolume, ec2:DescribeVolumes: allowed only on arn:aws:ec2:*:*:volume/* (p, statement 1)"#]],
    );
    check(
        r#"{"Effect": "Allow", "Action": "ec2:*", "NotResource": "arn:aws:ec2:*:*:volume/vol-1"}"#,
        expect![[r#"
        nothing missing
        ! ec2:AttachVolume, ec2:DescribeVolumes: allowed only on all but arn:aws:ec2:*:*:volume/vol-1 (p, statement 1)"#]],
    );
    check(
        r#"{"Effect": "Allow", "Action": "ec2:*", "Resource": "*", "Condition": {"StringEquals": {"aws:RequestTag/team": ["a", "b"]}}}"#,
        expect![[r#"
            nothing missing
            ! ec2:AttachVolume, ec2:DescribeVolumes: allowed only if StringEquals aws:RequestTag/team a or b (p, statement 1)"#]],
    );
    check(
        r#"{"Effect": "Allow", "Action": "ec2:Attach*", "Resource": ["arn:a", "arn:b"], "Condition": {"Bool": {"aws:SecureTransport": true}}},
           {"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"}"#,
        expect![[r#"
            nothing missing
            ! ec2:AttachVolume: allowed only on arn:a, arn:b if Bool aws:SecureTransport true (p, statement 1)"#]],
    );
}

#[test]
fn an_allow_without_limits_outweighs_one_with() {
    check(
        r#"{"Effect": "Allow", "Action": "ec2:*", "Resource": "arn:aws:ec2:*:*:volume/*"}, {"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}"#,
        expect!["nothing missing"],
    );
    check(
        r#"{"Effect": "Allow", "Action": "ec2:*", "Resource": "*", "Condition": {}}"#,
        expect!["nothing missing"],
    );
}

#[test]
fn deny_on_everything_wins_in_any_order() {
    check_deny(
        r#""Action": "ec2:Attach*", "Resource": "*""#,
        expect!["guard, statement 1 (No), denies ec2:AttachVolume"],
    );
    check_deny(
        r#""Action": "*", "Resource": ["arn:aws:s3:::x", "*"]"#,
        expect!["guard, statement 1 (No), denies ec2:AttachVolume, ec2:DescribeVolumes"],
    );
    check_deny(
        r#""NotAction": "ec2:Describe*", "Resource": "*""#,
        expect!["guard, statement 1 (No), denies ec2:AttachVolume"],
    );
}

#[test]
fn deny_with_limits_is_noted() {
    check_deny(
        r#""Action": "ec2:Attach*", "Resource": "arn:aws:ec2:*:*:volume/vol-1""#,
        expect![[r#"
        nothing missing
        ! ec2:AttachVolume: denied on arn:aws:ec2:*:*:volume/vol-1 (guard, statement 1 (No))"#]],
    );
    check_deny(
        r#""Action": "*", "NotResource": "arn:aws:ec2:*:*:*""#,
        expect![[r#"
        nothing missing
        ! ec2:AttachVolume, ec2:DescribeVolumes: denied on all but arn:aws:ec2:*:*:* (guard, statement 1 (No))"#]],
    );
    check_deny(
        r#""NotAction": "iam:*", "Resource": "*", "Condition": {"StringNotEquals": {"aws:RequestedRegion": "eu-west-1"}}"#,
        expect![[r#"
        nothing missing
        ! ec2:AttachVolume, ec2:DescribeVolumes: denied if StringNotEquals aws:RequestedRegion eu-west-1 (guard, statement 1 (No))"#]],
    );
    check_deny(r#""Action": "s3:*", "Resource": "*""#, expect!["nothing missing"]);
}

#[test]
fn a_boundary_must_allow_too() {
    check_boundary(r#"{"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}"#, expect!["nothing missing"]);
    check_boundary(
        r#"{"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"}"#,
        expect!["the permissions boundary limit does not allow ec2:AttachVolume"],
    );
    check_boundary(
        r#"{"Effect": "Allow", "Action": "ec2:*", "Resource": "arn:aws:ec2:eu-west-1:*:*"}"#,
        expect![[r#"
        nothing missing
        ! ec2:AttachVolume, ec2:DescribeVolumes: allowed only on arn:aws:ec2:eu-west-1:*:* (limit, statement 1)"#]],
    );
    check_boundary(
        r#"{"Effect": "Allow", "Action": "*", "Resource": "*"}, {"Effect": "Deny", "Action": "ec2:AttachVolume", "Resource": "*"}"#,
        expect!["limit, statement 2, denies ec2:AttachVolume"],
    );
    check_boundary(
        "",
        expect!["the permissions boundary limit does not allow ec2:AttachVolume, ec2:DescribeVolumes"],
    );
}

#[test]
fn a_boundary_allows_nothing_by_itself() {
    let limit = policy("limit", r#"{"Effect": "Allow", "Action": "*", "Resource": "*"}"#);
    expect!["no policy allows ec2:AttachVolume"].assert_eq(&said(&[], Some(&limit), &["ec2:AttachVolume"]));
}

#[test]
fn policies_add_up() {
    let attach = policy("attach", r#"{"Effect": "Allow", "Action": "ec2:AttachVolume", "Resource": "*"}"#);
    let describe = policy("describe", r#"{"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"}"#);
    expect!["no policy allows ec2:CreateTags"].assert_eq(&said(
        &[attach, describe],
        None,
        &["ec2:AttachVolume", "ec2:DescribeVolumes", "ec2:CreateTags", "EC2:createtags"],
    ));
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_counts() {
    let describe = policy("describe", r#"{"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"}"#);
    let trust = policy("trust", r#"{"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}"#);
    let cut = Policy { name: "cut".to_owned(), document: r#"{"Statement": ["#.to_owned() };
    let no_resource = policy("lacking", r#"{"Effect": "Allow", "Action": "*"}"#);
    let all = [describe.clone(), trust, cut.clone(), no_resource];
    expect![[r#"
        no policy allows ec2:AttachVolume
        ? policy trust cannot be read: statement 1 has a Principal, which only trust policies have
        ? policy cut cannot be read: it is not JSON: EOF while parsing a list at line 1 column 15
        ? policy lacking cannot be read: statement 1 has no Resource"#]]
    .assert_eq(&said(&all, None, &["ec2:DescribeVolumes", "ec2:AttachVolume"]));
    expect![[r#"
        nothing missing
        ? policy cut cannot be read: it is not JSON: EOF while parsing a list at line 1 column 15"#]]
    .assert_eq(&said(&[describe], Some(&cut), &["ec2:DescribeVolumes"]));
}

#[test]
fn encoded_documents_are_read() {
    let document = r#"%7B%22Statement%22%3A%7B%22Effect%22%3A%22Allow%22%2C%22Action%22%3A%22ec2%3A%2A%22%2C%22Resource%22%3A%22%2A%22%7D%7D"#;
    let encoded = Policy { name: "p".to_owned(), document: document.to_owned() };
    expect!["no policy allows s3:GetObject"].assert_eq(&said(
        &[encoded],
        None,
        &["ec2:AttachVolume", "s3:GetObject"],
    ));
}

/// AWS's policy for the EFS CSI driver (AmazonEFSCSIDriverPolicy, version 1), what of it is about access
/// points.
const EFS: &str = r#"
    {"Sid": "AllowCreateAccessPoint", "Effect": "Allow", "Action": "elasticfilesystem:CreateAccessPoint", "Resource": "*", "Condition": {
        "Null": {"aws:RequestTag/efs.csi.aws.com/cluster": "false"},
        "ForAllValues:StringEquals": {"aws:TagKeys": "efs.csi.aws.com/cluster"}}},
    {"Sid": "AllowTagNewAccessPoints", "Effect": "Allow", "Action": "elasticfilesystem:TagResource", "Resource": "*", "Condition": {
        "StringEquals": {"elasticfilesystem:CreateAction": "CreateAccessPoint"},
        "Null": {"aws:RequestTag/efs.csi.aws.com/cluster": "false"},
        "ForAllValues:StringEquals": {"aws:TagKeys": "efs.csi.aws.com/cluster"}}}"#;

fn tagging(action: &str, tags: &[(&str, Option<&str>)]) -> RequiredAction {
    let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect();
    RequiredAction { tags: Some(tags), ..RequiredAction::from(action) }
}

#[track_caller]
fn check_access_points(tags: &[(&str, Option<&str>)], expected: Expect) {
    let tag = RequiredAction {
        create_action: Some("CreateAccessPoint".to_owned()),
        ..tagging("elasticfilesystem:TagResource", tags)
    };
    let needed = [tagging("elasticfilesystem:CreateAccessPoint", tags), tag];
    expected.assert_eq(&told(&[policy("AmazonEFSCSIDriverPolicy", EFS)], None, &needed));
}

#[test]
fn tags_that_a_policy_does_not_let_be_set_are_named() {
    let own = ("efs.csi.aws.com/cluster", Some("true"));
    check_access_points(&[own], expect!["nothing missing"]);
    check_access_points(
        &[own, ("team", Some("a"))],
        expect![
            "no policy allows elasticfilesystem:CreateAccessPoint with the tags that are set: AmazonEFSCSIDriverPolicy, statement 1 (AllowCreateAccessPoint), does so if ForAllValues:StringEquals aws:TagKeys efs.csi.aws.com/cluster, and set are efs.csi.aws.com/cluster, team; no policy allows elasticfilesystem:TagResource with the tags that are set: AmazonEFSCSIDriverPolicy, statement 2 (AllowTagNewAccessPoints), does so if ForAllValues:StringEquals aws:TagKeys efs.csi.aws.com/cluster, and set are efs.csi.aws.com/cluster, team"
        ],
    );
    check_access_points(
        &[],
        expect![
            "no policy allows elasticfilesystem:CreateAccessPoint with the tags that are set: AmazonEFSCSIDriverPolicy, statement 1 (AllowCreateAccessPoint), does so if Null aws:RequestTag/efs.csi.aws.com/cluster false, and set are none; no policy allows elasticfilesystem:TagResource with the tags that are set: AmazonEFSCSIDriverPolicy, statement 2 (AllowTagNewAccessPoints), does so if Null aws:RequestTag/efs.csi.aws.com/cluster false, and set are none"
        ],
    );
}

#[test]
fn what_is_not_known_of_tags_is_noted() {
    let needed = [RequiredAction::from("elasticfilesystem:CreateAccessPoint")];
    expect![[r#"
        nothing missing
        ! elasticfilesystem:CreateAccessPoint: allowed only if ForAllValues:StringEquals aws:TagKeys efs.csi.aws.com/cluster and Null aws:RequestTag/efs.csi.aws.com/cluster false (AmazonEFSCSIDriverPolicy, statement 1 (AllowCreateAccessPoint))"#]].assert_eq(&told(&[policy("AmazonEFSCSIDriverPolicy", EFS)], None, &needed));
}

/// A policy that allows `ec2:CreateVolume` under this condition, asked for with a tag whose value is known
/// and one whose value is not.
#[track_caller]
fn check_condition(condition: &str, expected: Expect) {
    let statement = format!(
        r#"{{"Effect": "Allow", "Action": "ec2:CreateVolume", "Resource": "*", "Condition": {{{condition}}}}}"#
    );
    let demand = tagging("ec2:CreateVolume", &[("a", Some("1")), ("Name", None)]);
    let demand = RequiredAction { create_action: Some("CreateVolume".to_owned()), ..demand };
    expected.assert_eq(&told(&[policy("p", &statement)], None, &[demand]));
}

#[test]
fn conditions_on_tags_are_evaluated_as_iam_does() {
    for holds in [
        r#""ForAllValues:StringEquals": {"aws:TagKeys": ["a", "Name", "other"]}"#,
        r#""ForAllValues:StringLike": {"AWS:tagkeys": ["a*", "N?me"]}"#,
        r#""ForAnyValue:StringEquals": {"aws:TagKeys": "a"}"#,
        r#""ForAllValues:StringNotEquals": {"aws:TagKeys": ["b", "c"]}"#,
        r#""Null": {"aws:TagKeys": "false"}"#,
        r#""StringEquals": {"aws:RequestTag/a": ["1", "2"]}"#,
        r#""Null": {"aws:RequestTag/a": "false", "aws:RequestTag/Name": "false", "aws:RequestTag/b": "true"}"#,
        r#""StringEqualsIfExists": {"aws:RequestTag/b": "1"}"#,
        r#""StringEquals": {"ec2:CreateAction": ["CreateSnapshot", "CreateVolume"]}"#,
    ] {
        check_condition(holds, expect!["nothing missing"]);
    }
    for fails in [
        r#""ForAllValues:StringEquals": {"aws:TagKeys": "a"}"#,
        r#""ForAnyValue:StringEquals": {"aws:TagKeys": "b"}"#,
        r#""ForAllValues:StringNotEquals": {"aws:TagKeys": ["a"]}"#,
        r#""Null": {"aws:TagKeys": "true"}"#,
        r#""StringEquals": {"aws:RequestTag/a": "2"}"#,
        r#""StringEquals": {"aws:RequestTag/b": "1"}"#,
        r#""StringEquals": {"ec2:CreateAction": "CreateSnapshot"}"#,
    ] {
        let statement = format!(
            r#"{{"Effect": "Allow", "Action": "ec2:CreateVolume", "Resource": "*", "Condition": {{{fails}}}}}"#
        );
        let demand = tagging("ec2:CreateVolume", &[("a", Some("1")), ("Name", None)]);
        let demand = RequiredAction { create_action: Some("CreateVolume".to_owned()), ..demand };
        let res = evaluate(&[policy("p", &statement)], None, &[demand]);
        assert!(matches!(res.missing[..], [Missing { cause: Cause::OtherTags(_), .. }]), "{fails}: {res:?}");
    }
    // A value that nobody knows, one of several without a word for it, and what only AWS knows.
    for open in [
        r#""StringLike": {"aws:RequestTag/Name": "prod-*"}"#,
        r#""StringEquals": {"aws:TagKeys": "a"}"#,
        r#""StringEquals": {"aws:RequestedRegion": "us-east-1"}"#,
    ] {
        let statement = format!(
            r#"{{"Effect": "Allow", "Action": "ec2:CreateVolume", "Resource": "*", "Condition": {{{open}}}}}"#
        );
        let demand = tagging("ec2:CreateVolume", &[("a", Some("1")), ("Name", None)]);
        let res = evaluate(&[policy("p", &statement)], None, &[demand]);
        assert!(res.missing.is_empty() && res.notes.len() == 1, "{open}: {res:?}");
    }
}

#[test]
fn a_statement_for_other_tags_denies_nothing_and_one_for_these_does() {
    let allow = policy("all", r#"{"Effect": "Allow", "Action": "*", "Resource": "*"}"#);
    let deny = |key: &str| {
        let condition = format!(r#""Condition": {{"ForAnyValue:StringEquals": {{"aws:TagKeys": "{key}"}}}}"#);
        policy(
            "guard",
            &format!(r#"{{"Effect": "Deny", "Action": "ec2:CreateVolume", "Resource": "*", {condition}}}"#),
        )
    };
    let needed = [tagging("ec2:CreateVolume", &[("team", Some("a"))])];
    expect!["nothing missing"].assert_eq(&told(&[allow.clone(), deny("owner")], None, &needed));
    expect!["guard, statement 1, denies ec2:CreateVolume"].assert_eq(&told(
        &[allow, deny("team")],
        None,
        &needed,
    ));
}

#[test]
fn what_is_needed_only_at_times_is_not_missing() {
    let needed = [RequiredAction {
        advice: Some("when a claim is a copy".to_owned()),
        ..RequiredAction::from("ec2:CopyVolumes")
    }];
    let res = evaluate(&[], None, &needed);
    assert!(res.missing.is_empty());
    assert_eq!(res.advised.iter().map(|it| it.action.as_str()).collect::<Vec<_>>(), ["ec2:CopyVolumes"]);
}
