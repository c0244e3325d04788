//! Checks what add-ons need of AWS before they are installed, IAM roles and file systems, and caches what was
//! found. The decisions are in `iam` and `addons::efs`; nothing here changes anything in AWS.

use std::collections::{BTreeMap, BTreeSet};

use addons::efs;
use addons::{DesiredAddOn, Inventory};
use contract::{EfsFileSystemSpec, IamRoleSpec, InstanceRolesSpec, RoleAction, RoleTrust, StepSpec};
use crds::conditions::reason;
use iam::check::{self, RoleCheck};
use iam::instance_roles;
use iam::issuer::check_argument;
use iam::permissions::RequiredAction;
use iam::publication::{AUDIENCE, finding};
use iam::trust::{self, Assumer, WebIdentity};
use iam::{partition, role};
use model::finding::{Finding, Reading, Status};
use tokio::time::Instant;

use super::facts::ClusterFacts;
use super::ttl_cache::{GOOD, TtlCache};
use crate::controller::issuer;

/// Findings by what was asked. Two clusters that ask the same of a role share one.
#[derive(Default)]
pub struct Checks {
    findings: TtlCache<Finding>,
}

/// What was found about the steps of a plan, by their ids, and when each is checked again.
pub type Findings = BTreeMap<String, (Finding, Instant)>;

impl Checks {
    /// Checks everything that the steps of a plan need of AWS.
    pub async fn of_plan(
        &self,
        desired: &DesiredAddOn,
        installed: Option<&Inventory>,
        steps: &[contract::Step],
        facts: &ClusterFacts<'_>,
        region: Option<&aws::Region>,
    ) -> Findings {
        let mut findings = Findings::new();
        for step in steps {
            let found = match step.typed() {
                Ok(StepSpec::IamRole(spec)) => self.role(desired, installed, &spec, facts, region).await,
                Ok(StepSpec::InstanceRoles(spec)) => self.instance_roles(desired, &spec, facts, region).await,
                Ok(StepSpec::EfsFileSystem(spec)) => self.file_system(desired, &spec, facts, region).await,
                _ => continue,
            };
            findings.insert(step.id.clone(), found);
        }
        findings
    }

    async fn role(
        &self,
        desired: &DesiredAddOn,
        installed: Option<&Inventory>,
        spec: &IamRoleSpec,
        facts: &ClusterFacts<'_>,
        region: Option<&aws::Region>,
    ) -> (Finding, Instant) {
        let (Some(aws_cluster), Some(region)) = (facts.aws_cluster, region) else { return no_cluster() };
        let field = format!("{}.roleARN", desired.path);
        let own_account = region.account().await.ok();
        let partition = partition::of_region(&aws_cluster.spec.region);
        let arn = match role::check(&field, &spec.role_arn, &aws_cluster.spec.region) {
            Ok(arn) => arn,
            Err(error) => {
                return at_once(finding(Status::False, reason::INVALID_ROLE_ARN, error.to_string()));
            }
        };
        let assumer = match spec.trust {
            RoleTrust::Node => Assumer::Instances { partition: partition.to_owned() },
            RoleTrust::Irsa => match self.identity(spec, facts, &arn, own_account.as_deref()) {
                Ok(identity) => Assumer::ServiceAccount(identity),
                Err(found) => return at_once(found),
            },
        };
        let question = RoleCheck {
            field,
            role_arn: spec.role_arn.clone(),
            region: aws_cluster.spec.region.clone(),
            own_account,
            assumer,
            actions: spec.actions.iter().map(demand).collect(),
            allowed_before: installed.and_then(|it| it.allowed_before(&desired.config)),
        };
        let provider = match &question.assumer {
            Assumer::ServiceAccount(identity) => Some(identity.provider_arn.clone()),
            Assumer::Instances { .. } => None,
        };
        self.cached(format!("{question:?}"), async {
            let readings = region.role(&arn, provider.as_deref()).await;
            check::check_role(&question, &readings)
        })
        .await
    }

    /// The roles of all the cluster's instances, each read once.
    async fn instance_roles(
        &self,
        desired: &DesiredAddOn,
        spec: &InstanceRolesSpec,
        facts: &ClusterFacts<'_>,
        region: Option<&aws::Region>,
    ) -> (Finding, Instant) {
        let (Some(aws_cluster), Some(region)) = (facts.aws_cluster, region) else { return no_cluster() };
        let profiles = match &facts.profiles {
            Ok(profiles) => profiles,
            Err(message) => return at_once(finding(Status::Unknown, reason::READ_FAILED, message.clone())),
        };
        let own_account = region.account().await.ok();
        let mut findings: Vec<Finding> = instance_roles::without_profile(profiles).into_iter().collect();
        let mut next = Instant::now() + GOOD;
        for profile in profiles.keys().filter(|profile| !profile.is_empty()) {
            let field = format!(
                "{}: the role of instance profile {}",
                desired.path,
                instance_roles::profile_name(profile)
            );
            let question = |role_arn: String| RoleCheck {
                field: field.clone(),
                role_arn,
                region: aws_cluster.spec.region.clone(),
                own_account: own_account.clone(),
                assumer: Assumer::Instances {
                    partition: partition::of_region(&aws_cluster.spec.region).to_owned(),
                },
                actions: spec.actions.iter().cloned().map(RoleAction::from).map(|it| demand(&it)).collect(),
                allowed_before: None,
            };
            let read = async {
                let reading = region.instance_profile_role(instance_roles::profile_name(profile)).await;
                let Reading::Found(Some(role_arn)) = &reading else {
                    return instance_roles::without_role(profile, &reading);
                };
                match role::check(&field, role_arn, &aws_cluster.spec.region) {
                    Ok(arn) => check::check_role(&question(role_arn.clone()), &region.role(&arn, None).await),
                    Err(error) => finding(Status::Unknown, reason::INVALID_ROLE_ARN, error.to_string()),
                }
            };
            let (found, until) = self.cached(format!("{profile} {:?}", question(String::new())), read).await;
            findings.push(found);
            next = next.min(until);
        }
        (instance_roles::together(findings), next)
    }

    /// The service account as IAM sees it: of the issuer that the AWSCluster names, or else of the one that
    /// its API servers have.
    fn identity(
        &self,
        spec: &IamRoleSpec,
        facts: &ClusterFacts<'_>,
        arn: &role::RoleArn,
        own_account: Option<&str>,
    ) -> Result<WebIdentity, Finding> {
        const REASON: &str = reason::ISSUER_UNKNOWN;
        let arguments = facts.control_plane.map(|it| it.spec.service_account_issuers()).unwrap_or_default();
        let named = match facts.aws_cluster {
            Some(it) => {
                issuer::named(it, &facts.cluster_name()).map_err(|it| finding(Status::False, REASON, it))?
            }
            None => None,
        };
        let issuer = match (named, arguments.first()) {
            (Some(issuer), _) => {
                if facts.control_plane.is_some() {
                    check_argument(&issuer, &arguments)
                        .map_err(|it| finding(Status::False, REASON, it.to_string()))?;
                }
                issuer
            }
            (None, Some(argument)) if argument.starts_with("https://") => (*argument).to_owned(),
            (None, _) => {
                let message = "the service account cannot assume a role: tokens are of an issuer that AWS \
                               cannot reach. Set spec.serviceAccountIssuer of the AWSCluster, and the \
                               argument service-account-issuer of the KubeadmControlPlane to the same";
                return Err(finding(Status::False, REASON, message.to_owned()));
            }
        };
        let account = own_account.unwrap_or(&arn.account);
        Ok(WebIdentity {
            provider_arn: trust::provider_arn(&arn.partition, account, &issuer),
            issuer,
            namespace: spec.namespace.clone().unwrap_or_default(),
            service_account: spec.service_account.clone().unwrap_or_default(),
            audience: AUDIENCE.to_owned(),
        })
    }

    async fn file_system(
        &self,
        desired: &DesiredAddOn,
        spec: &EfsFileSystemSpec,
        facts: &ClusterFacts<'_>,
        region: Option<&aws::Region>,
    ) -> (Finding, Instant) {
        let (Some(aws_cluster), Some(region)) = (facts.aws_cluster, region) else { return no_cluster() };
        let network = aws_cluster.status.as_ref().map(|it| &it.network_status);
        let vpc_id = network.and_then(|it| it.vpc.as_ref()).map(|it| it.id.clone()).unwrap_or_default();
        let subnets = network.map(|it| it.subnets.as_slice()).unwrap_or_default();
        let zones: BTreeSet<String> = subnets.iter().map(|it| it.availability_zone.clone()).collect();
        // What the user wrote: an id that was found by tags is in no field.
        let has_tags = desired.config.get("fileSystemTags").is_some();
        let name = if has_tags { "fileSystemTags" } else { "fileSystemID" };
        let field = format!("{}.{name}", desired.path);
        let id = &spec.file_system_id;
        self.cached(format!("{field} {id} {vpc_id} {zones:?} {}", aws_cluster.spec.region), async {
            efs::check(&field, id, &region.file_system(id).await, &vpc_id, &zones)
        })
        .await
    }

    async fn cached(&self, key: String, read: impl Future<Output = Finding>) -> (Finding, Instant) {
        self.findings.get_or_read(key, |it| it.status == Status::True, read).await
    }
}

fn demand(role_action: &RoleAction) -> RequiredAction {
    let RoleAction { action, tags, create_action, advice } = role_action.clone();
    RequiredAction { action, tags, create_action, advice }
}

fn no_cluster() -> (Finding, Instant) {
    at_once(finding(Status::Unknown, reason::READ_FAILED, "the AWSCluster is not there".to_owned()))
}

/// What takes no call to AWS is not cached; a change of an object has it checked again.
fn at_once(found: Finding) -> (Finding, Instant) {
    (found, Instant::now() + GOOD)
}

/// What keeps steps from being carried out: the first finding that refuses, with the way out.
pub fn refusal(findings: &Findings, step: &str) -> Option<(&'static str, String)> {
    let (found, _) = findings.get(step).filter(|(it, _)| it.status == Status::False)?;
    let fix =
        found.fix.as_ref().map(|it| format!(". A trust policy that would do:\n{it}")).unwrap_or_default();
    Some((found.reason, format!("{}{fix}", found.message)))
}

/// What the roles of an add-on were found to allow; `None` when nothing was asked of any, or it is not known.
pub fn allowed(findings: &Findings) -> Option<Vec<String>> {
    let allowed: BTreeSet<&String> = findings.values().flat_map(|(it, _)| &it.allowed).collect();
    (!allowed.is_empty()).then(|| allowed.into_iter().cloned().collect())
}

/// When the first of them is checked again; `None` when there are none.
pub fn next(findings: &Findings) -> Option<Instant> {
    findings.values().map(|(_, until)| *until).min()
}

/// What is not known, or is good and should be read nevertheless.
pub fn warnings(findings: &Findings) -> Vec<String> {
    findings
        .values()
        .map(|(it, _)| it)
        .filter(|it| it.status != Status::False && !it.message.is_empty())
        .map(|it| it.message.clone())
        .collect()
}
