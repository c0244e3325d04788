//! ARNs of roles: takes them apart, and checks that a cluster of a region can use them. Whether a role exists
//! is not asked here.

use std::fmt;

use super::partition;

/// The ARN of a role, such as `arn:aws:iam::123456789012:role/path/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleArn {
    pub partition: String,
    /// Twelve digits.
    pub account: String,
    /// Begins and ends with a slash; `/` where the ARN has none.
    pub path: String,
    /// What calls such as GetRole take.
    pub name: String,
}

impl fmt::Display for RoleArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "arn:{}:iam::{}:role{}{}", self.partition, self.account, self.path, self.name)
    }
}

/// Why a text is not the ARN of a role that the cluster can use. Each says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoleArnError {
    #[error("{field}: {value:?} is not the ARN of a role; write arn:{partition}:iam::<account>:role/<name>")]
    Shape { field: String, value: String, partition: &'static str },
    #[error(
        "{field}: {value:?} is the ARN of {what}; write that of the role, arn:{partition}:iam::<account>:role/<name>"
    )]
    NotARole { field: String, value: String, what: &'static str, partition: &'static str },
    #[error("{field}: {account:?} in {value:?} is not an account; write its twelve digits")]
    Account { field: String, value: String, account: String },
    #[error(
        "{field}: {name:?} in {value:?} cannot be the path and name of a role; names have 1 to 64 letters, digits or characters of +=,.@_-"
    )]
    Name { field: String, value: String, name: String },
    #[error(
        "{field}: {value:?} is of a service; only AWS itself can let anyone assume it, so make a role of your own"
    )]
    ServiceLinked { field: String, value: String },
    #[error(
        "{field}: {value:?} is of another partition than region {region}, which is in {partition}, and roles do not reach across; \
         write {fixed}, of an account there"
    )]
    Partition { field: String, value: String, region: String, partition: &'static str, fixed: String },
}

/// Takes the ARN of a role apart that a cluster in a region is to use. The field path is the one of the
/// user's object.
///
/// # Errors
/// It is no ARN of a role, of another partition than the region's, or of a role that only AWS can use.
pub fn check(field: &str, value: &str, region: &str) -> Result<RoleArn, RoleArnError> {
    let partition = partition::of_region(region);
    let (field, text) = (field.to_owned(), value.to_owned());
    let parts: Vec<&str> = value.splitn(6, ':').collect();
    let ["arn", found, service, arn_region, account, resource] = parts[..] else {
        return Err(RoleArnError::Shape { field, value: text, partition });
    };
    if let Some(what) = other_kind(service, resource) {
        return Err(RoleArnError::NotARole { field, value: text, what, partition });
    }
    let Some(name) = resource
        .strip_prefix("role/")
        .filter(|_| service == "iam" && arn_region.is_empty() && !found.is_empty())
    else {
        return Err(RoleArnError::Shape { field, value: text, partition });
    };
    if account.len() != 12 || !account.bytes().all(|it| it.is_ascii_digit()) {
        return Err(RoleArnError::Account { field, value: text, account: account.to_owned() });
    }
    let (path, role) =
        name.rsplit_once('/').map_or(("/".to_owned(), name), |(path, role)| (format!("/{path}/"), role));
    if !is_name(role) || !is_path(&path) {
        return Err(RoleArnError::Name { field, value: text, name: name.to_owned() });
    }
    if path.starts_with("/aws-service-role/") {
        return Err(RoleArnError::ServiceLinked { field, value: text });
    }
    let arn =
        RoleArn { partition: found.to_owned(), account: account.to_owned(), path, name: role.to_owned() };
    if found != partition {
        let fixed =
            RoleArn { partition: partition.to_owned(), account: "<account>".to_owned(), ..arn }.to_string();
        return Err(RoleArnError::Partition {
            field,
            value: text,
            region: region.to_owned(),
            partition,
            fixed,
        });
    }
    Ok(arn)
}

/// What people paste in place of a role.
fn other_kind(service: &str, resource: &str) -> Option<&'static str> {
    let kind = resource.split('/').next().unwrap_or_default();
    match (service, kind) {
        ("iam", "instance-profile") => Some("an instance profile"),
        ("iam", "policy") => Some("a policy"),
        ("iam", "user") => Some("a user"),
        ("iam", "oidc-provider") => Some("an OIDC provider"),
        ("sts", "assumed-role") => Some("a session"),
        _ => None,
    }
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.chars().all(|it| it.is_ascii_alphanumeric() || "+=,.@_-".contains(it))
}

/// IAM takes printable ASCII in paths.
fn is_path(path: &str) -> bool {
    path.len() <= 512 && !path.contains("//") && path.bytes().all(|it| (b'!'..=b'~').contains(&it))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn said(value: &str, region: &str) -> String {
        match check("spec.storage.ebs.roleARN", value, region) {
            Ok(arn) => format!("{arn:?}"),
            Err(error) => error.to_string(),
        }
    }

    fn check_text(value: &str, region: &str, expected: Expect) {
        expected.assert_eq(&said(value, region));
    }

    #[test]
    fn arns_are_taken_apart_and_put_together_again() {
        for (value, region) in [
            ("arn:aws:iam::123456789012:role/ebs", "eu-west-1"),
            ("arn:aws-cn:iam::123456789012:role/team/storage/ebs", "cn-north-1"),
            ("arn:aws-us-gov:iam::123456789012:role/a.b+c=d,e@f_g-h", "us-gov-west-1"),
        ] {
            assert_eq!(check("f", value, region).map(|it| it.to_string()), Ok(value.to_owned()));
        }
        let arn = check("f", "arn:aws:iam::123456789012:role/team/storage/ebs", "eu-west-1").unwrap();
        assert_eq!((arn.path.as_str(), arn.name.as_str()), ("/team/storage/", "ebs"));
    }

    #[test]
    fn a_role_of_another_partition_is_refused_with_what_to_write() {
        check_text(
            "arn:aws:iam::123456789012:role/k8s/ebs",
            "cn-north-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "arn:aws:iam::123456789012:role/k8s/ebs" is of another partition than region cn-north-1, which is in aws-cn, and roles do not reach across; write arn:aws-cn:iam::<account>:role/k8s/ebs, of an account there"#
            ]],
        );
        check_text(
            "arn:aws-us-gov:iam::123456789012:role/ebs",
            "eu-west-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "arn:aws-us-gov:iam::123456789012:role/ebs" is of another partition than region eu-west-1, which is in aws, and roles do not reach across; write arn:aws:iam::<account>:role/ebs, of an account there"#
            ]],
        );
    }

    #[test]
    fn what_is_no_role_is_refused_with_what_to_write() {
        check_text(
            "ebs",
            "eu-west-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "ebs" is not the ARN of a role; write arn:aws:iam::<account>:role/<name>"#
            ]],
        );
        check_text(
            "",
            "eu-west-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "" is not the ARN of a role; write arn:aws:iam::<account>:role/<name>"#
            ]],
        );
        check_text(
            "arn:aws:iam::123456789012:instance-profile/nodes",
            "eu-west-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "arn:aws:iam::123456789012:instance-profile/nodes" is the ARN of an instance profile; write that of the role, arn:aws:iam::<account>:role/<name>"#
            ]],
        );
        check_text(
            "arn:aws:sts::123456789012:assumed-role/ebs/session",
            "cn-north-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "arn:aws:sts::123456789012:assumed-role/ebs/session" is the ARN of a session; write that of the role, arn:aws-cn:iam::<account>:role/<name>"#
            ]],
        );
        check_text(
            "arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy",
            "eu-west-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy" is the ARN of a policy; write that of the role, arn:aws:iam::<account>:role/<name>"#
            ]],
        );
        check_text(
            "arn:aws:iam:eu-west-1:123456789012:role/ebs",
            "eu-west-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "arn:aws:iam:eu-west-1:123456789012:role/ebs" is not the ARN of a role; write arn:aws:iam::<account>:role/<name>"#
            ]],
        );
        check_text(
            "arn:aws:s3:::role/ebs",
            "eu-west-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "arn:aws:s3:::role/ebs" is not the ARN of a role; write arn:aws:iam::<account>:role/<name>"#
            ]],
        );
    }

    #[test]
    fn accounts_and_names_that_cannot_be_are_refused() {
        check_text(
            "arn:aws:iam::1234:role/ebs",
            "eu-west-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "1234" in "arn:aws:iam::1234:role/ebs" is not an account; write its twelve digits"#
            ]],
        );
        check_text(
            "arn:aws:iam::123456789012:role/",
            "eu-west-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "" in "arn:aws:iam::123456789012:role/" cannot be the path and name of a role; names have 1 to 64 letters, digits or characters of +=,.@_-"#
            ]],
        );
        check_text(
            "arn:aws:iam::123456789012:role/my role",
            "eu-west-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "my role" in "arn:aws:iam::123456789012:role/my role" cannot be the path and name of a role; names have 1 to 64 letters, digits or characters of +=,.@_-"#
            ]],
        );
        check_text(
            "arn:aws:iam::123456789012:role//ebs",
            "eu-west-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "/ebs" in "arn:aws:iam::123456789012:role//ebs" cannot be the path and name of a role; names have 1 to 64 letters, digits or characters of +=,.@_-"#
            ]],
        );
        check_text(
            &format!("arn:aws:iam::123456789012:role/{}", "x".repeat(65)),
            "eu-west-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" in "arn:aws:iam::123456789012:role/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" cannot be the path and name of a role; names have 1 to 64 letters, digits or characters of +=,.@_-"#
            ]],
        );
    }

    #[test]
    fn roles_of_services_are_refused() {
        check_text(
            "arn:aws:iam::123456789012:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
            "eu-west-1",
            expect![[
                r#"spec.storage.ebs.roleARN: "arn:aws:iam::123456789012:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling" is of a service; only AWS itself can let anyone assume it, so make a role of your own"#
            ]],
        );
    }
}
