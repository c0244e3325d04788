//! Reads roles of IAM, anew each time, and the account that we are in.

use futures::future::try_join_all;
use iam::check::{Readings, Role};
use iam::permissions::Policy;
use iam::role::RoleArn;
use model::Problem;
use model::finding::Reading;

use crate::api::Api;
use crate::errors::{Failure, reading};
use crate::open_id;
use crate::region::Region;

const WHO: &str = "sts:GetCallerIdentity";
const ROLE: &str = "iam:GetRole";
const PROFILE: &str = "iam:GetInstanceProfile";
const POLICY: &str = "iam:GetPolicy";
const POLICY_VERSION: &str = "iam:GetPolicyVersion";

impl Region {
    /// The account of the identity that calls: twelve digits. Asked for once.
    ///
    /// # Errors
    /// When AWS does not say.
    pub async fn account(&self) -> Result<String, Problem> {
        let api = &self.context.api;
        let ask = || async {
            let answer = api.read(WHO, api.sts.get_caller_identity().send()).await?;
            answer.account.ok_or_else(|| Failure::incomplete(WHO))
        };
        api.account.get_or_try_init(ask).await.cloned().map_err(Failure::problem)
    }

    /// Everything that a role is judged by, read anew: the role, its policies and boundary, and the OIDC
    /// provider if one is given. Where the role does not exist, nothing else is asked.
    pub async fn role(&self, role: &RoleArn, provider_arn: Option<&str>) -> Readings {
        let api = &self.context.api;
        let found = reading(get_role(api, &role.name).await);
        if found == Reading::Absent {
            return Readings {
                role: Reading::Absent,
                provider: None,
                attached: Reading::Absent,
                inline: Reading::Absent,
                boundary: None,
            };
        }
        let (role_reading, boundary_arn) = split(found);
        let boundary = async {
            match &boundary_arn {
                Some(arn) => Some(reading(managed(api, arn).await)),
                None => None,
            }
        };
        let provider = async {
            match provider_arn {
                Some(arn) => Some(open_id::read(api, arn).await),
                None => None,
            }
        };
        let (attached, inline, boundary, provider) =
            futures::join!(attached(api, &role.name), inline(api, &role.name), boundary, provider);
        Readings {
            role: role_reading,
            provider,
            attached: reading(attached),
            inline: reading(inline),
            boundary,
        }
    }

    /// The ARN of the role in an instance profile, by the profile's name, read anew; `None` when it has no
    /// role.
    pub async fn instance_profile_role(&self, name: &str) -> Reading<Option<String>> {
        reading(instance_profile_role(&self.context.api, name).await)
    }
}

/// The role and the ARN of its boundary.
fn split(found: Reading<(Role, Option<String>)>) -> (Reading<Role>, Option<String>) {
    match found {
        Reading::Found((role, boundary)) => (Reading::Found(role), boundary),
        Reading::Absent => (Reading::Absent, None),
        Reading::AccessDenied { permission } => (Reading::AccessDenied { permission }, None),
        Reading::Failed { message } => (Reading::Failed { message }, None),
    }
}

async fn get_role(api: &Api, name: &str) -> Result<(Role, Option<String>), Failure> {
    let answer = api.read(ROLE, api.iam.get_role().role_name(name).send()).await?;
    let role = answer.role.ok_or_else(|| Failure::incomplete(ROLE))?;
    let boundary = role.permissions_boundary.and_then(|it| it.permissions_boundary_arn);
    let trust_policy = role.assume_role_policy_document.ok_or_else(|| Failure::incomplete(ROLE))?;
    Ok((Role { arn: role.arn, trust_policy }, boundary))
}

async fn instance_profile_role(api: &Api, name: &str) -> Result<Option<String>, Failure> {
    let answer = api.read(PROFILE, api.iam.get_instance_profile().instance_profile_name(name).send()).await?;
    let profile = answer.instance_profile.ok_or_else(|| Failure::incomplete(PROFILE))?;
    // IAM lets a profile have one role at most.
    Ok(profile.roles.into_iter().next().map(|role| role.arn))
}

async fn attached(api: &Api, role: &str) -> Result<Vec<Policy>, Failure> {
    let pages = api.iam.list_attached_role_policies().role_name(role).into_paginator().send();
    let pages = api.pages("iam:ListAttachedRolePolicies", pages).await?;
    let arns: Vec<String> = pages
        .into_iter()
        .flat_map(|it| it.attached_policies.unwrap_or_default())
        .filter_map(|it| it.policy_arn)
        .collect();
    try_join_all(arns.iter().map(|it| managed(api, it))).await
}

/// A managed policy as it is in force: its default version.
async fn managed(api: &Api, arn: &str) -> Result<Policy, Failure> {
    let answer = api.read(POLICY, api.iam.get_policy().policy_arn(arn).send()).await?;
    let version =
        answer.policy.and_then(|it| it.default_version_id).ok_or_else(|| Failure::incomplete(POLICY))?;
    let call = api.iam.get_policy_version().policy_arn(arn).version_id(version);
    let answer = api.read(POLICY_VERSION, call.send()).await?;
    let document = answer
        .policy_version
        .and_then(|it| it.document)
        .ok_or_else(|| Failure::incomplete(POLICY_VERSION))?;
    Ok(Policy { name: arn.to_owned(), document })
}

async fn inline(api: &Api, role: &str) -> Result<Vec<Policy>, Failure> {
    let pages = api.iam.list_role_policies().role_name(role).into_paginator().send();
    let pages = api.pages("iam:ListRolePolicies", pages).await?;
    let names: Vec<String> = pages.into_iter().flat_map(|it| it.policy_names).collect();
    let one = |name: String| async move {
        let call = api.iam.get_role_policy().role_name(role).policy_name(&name);
        let answer = api.read("iam:GetRolePolicy", call.send()).await?;
        Ok(Policy { name, document: answer.policy_document })
    };
    try_join_all(names.into_iter().map(one)).await
}
