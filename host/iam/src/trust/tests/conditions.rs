//! Conditions of a statement.

use expect_test::expect;

use super::*;

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
