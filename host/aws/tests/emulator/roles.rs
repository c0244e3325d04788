//! What is read of roles, OIDC providers and file systems, and what is written of them.

use iam::check::{Provider, Readings};
use iam::permissions::Policy;
use iam::role::{self, RoleArn};
use model::Tags;
use model::finding::Reading;
use serde_json::json;

use crate::bed::{Bed, REGION};

pub const ACCOUNT: &str = "123456789012";
pub const ISSUER: &str = "https://documents.s3.us-east-1.amazonaws.com/prod";
/// One that every account of the emulator has, with a role of its name.
pub const PROFILE: &str = "nodes.cluster-api-provider-aws.sigs.k8s.io";
const TRUST: &str = "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\
    \"Principal\":{\"Service\":\"ec2.amazonaws.com\"},\"Action\":\"sts:AssumeRole\"}]}";
const ALLOW: &str =
    r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:AttachVolume","Resource":"*"}]}"#;
const NOTHING: &str =
    r#"{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"*","Resource":"*"}]}"#;

pub fn arn(name: &str) -> RoleArn {
    role::check("test", &format!("arn:aws:iam::{ACCOUNT}:role/{name}"), REGION).unwrap()
}

/// As IAM returns documents.
fn plain(document: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = document.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        match first {
            b'%' => {
                bytes.push(u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn parsed(document: &str) -> serde_json::Value {
    serde_json::from_str(&plain(document)).unwrap()
}

fn found<T: std::fmt::Debug>(reading: Reading<T>) -> T {
    match reading {
        Reading::Found(it) => it,
        other => panic!("{other:?}"),
    }
}

/// A role with a boundary, a policy whose second version is in force, and an inline one.
pub async fn make_role(bed: &Bed) -> (String, String) {
    let iam = aws_sdk_iam::Client::new(&bed.administrator().config);
    let policy = |name: &'static str, document: &'static str| {
        let call = iam.create_policy().policy_name(name).policy_document(document);
        async move { call.send().await.unwrap().policy.unwrap().arn.unwrap() }
    };
    let (attached, boundary) = (policy("storage", NOTHING).await, policy("boundary", ALLOW).await);
    iam.create_policy_version()
        .policy_arn(&attached)
        .policy_document(ALLOW)
        .set_as_default(true)
        .send()
        .await
        .unwrap();
    let call = iam.create_role().role_name("ebs").path("/team/").assume_role_policy_document(TRUST);
    call.permissions_boundary(&boundary).send().await.unwrap();
    iam.attach_role_policy().role_name("ebs").policy_arn(&attached).send().await.unwrap();
    iam.put_role_policy().role_name("ebs").policy_name("own").policy_document(NOTHING).send().await.unwrap();
    (attached, boundary)
}

#[tokio::test]
async fn the_account_is_asked_for_once() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    assert_eq!((region.account().await, region.account().await), (Ok(ACCOUNT.into()), Ok(ACCOUNT.into())));
    assert_eq!(bed.calls().await, ["GetCallerIdentity"]);
}

#[tokio::test]
async fn a_role_is_read_with_everything_that_it_may_do() {
    let bed = Bed::start(&[]).await;
    let (attached, boundary) = make_role(&bed).await;
    let region = bed.region().await;
    let readings = region.role(&arn("team/ebs"), None).await;
    let role = found(readings.role);
    assert_eq!(
        (role.arn.as_str(), parsed(&role.trust_policy)),
        ("arn:aws:iam::123456789012:role/team/ebs", parsed(TRUST))
    );
    let documents = |policies: Vec<Policy>| {
        policies.into_iter().map(|it| (it.name, parsed(&it.document))).collect::<Vec<_>>()
    };
    assert_eq!(documents(found(readings.attached)), [(attached, parsed(ALLOW))], "the version in force");
    assert_eq!(documents(found(readings.inline)), [("own".to_owned(), parsed(NOTHING))]);
    assert_eq!(documents(vec![found(readings.boundary.unwrap())]), [(boundary, parsed(ALLOW))]);
    assert_eq!(readings.provider, None);
}

#[tokio::test]
async fn the_role_of_an_instance_profile_is_read_by_the_profiles_name() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let role = format!("arn:aws:iam::{ACCOUNT}:role/{PROFILE}");
    assert_eq!(region.instance_profile_role(PROFILE).await, Reading::Found(Some(role)));
    assert_eq!(region.instance_profile_role("nobody").await, Reading::Absent);
    let iam = aws_sdk_iam::Client::new(&bed.administrator().config);
    iam.create_instance_profile().instance_profile_name("bare").send().await.unwrap();
    assert_eq!(region.instance_profile_role("bare").await, Reading::Found(None));
    bed.faults(json!([{"kind": "access-denied", "service": "iam", "action": "GetInstanceProfile"}])).await;
    let denied = Reading::AccessDenied { permission: "iam:GetInstanceProfile".to_owned() };
    assert_eq!(region.instance_profile_role(PROFILE).await, denied);
}

#[tokio::test]
async fn all_policies_of_a_role_are_read_page_by_page() {
    let bed = Bed::start(&["--page-size", "2"]).await;
    make_role(&bed).await;
    let iam = aws_sdk_iam::Client::new(&bed.administrator().config);
    for it in 0..4 {
        iam.put_role_policy()
            .role_name("ebs")
            .policy_name(format!("p{it}"))
            .policy_document(ALLOW)
            .send()
            .await
            .unwrap();
        let call = iam.create_policy().policy_name(format!("m{it}")).policy_document(ALLOW);
        let policy = call.send().await.unwrap().policy.unwrap().arn.unwrap();
        iam.attach_role_policy().role_name("ebs").policy_arn(policy).send().await.unwrap();
    }
    let readings = bed.region().await.role(&arn("team/ebs"), None).await;
    assert_eq!((found(readings.attached).len(), found(readings.inline).len()), (5, 5));
}

#[tokio::test]
async fn of_a_role_that_does_not_exist_nothing_more_is_asked() {
    let bed = Bed::start(&[]).await;
    let readings = bed
        .region()
        .await
        .role(&arn("nobody"), Some("arn:aws:iam::123456789012:oidc-provider/x.example"))
        .await;
    let absent = Readings {
        role: Reading::Absent,
        provider: None,
        attached: Reading::Absent,
        inline: Reading::Absent,
        boundary: None,
    };
    assert_eq!(readings, absent);
    assert_eq!(bed.calls().await, ["GetRole"]);
}

#[tokio::test]
async fn each_permission_that_is_missing_is_named_and_hides_nothing_else() {
    let bed = Bed::start(&[]).await;
    make_role(&bed).await;
    let region = bed.region().await;
    let denied = |action: &str| json!({"kind": "access-denied", "service": "iam", "action": action});
    bed.faults(json!([
        denied("GetPolicyVersion"),
        denied("ListRolePolicies"),
        denied("GetOpenIDConnectProvider")
    ]))
    .await;
    let readings =
        region.role(&arn("team/ebs"), Some("arn:aws:iam::123456789012:oidc-provider/x.example")).await;
    found(readings.role);
    let forbidden = |permission: &str| permission.to_owned();
    assert_eq!(readings.attached, Reading::AccessDenied { permission: forbidden("iam:GetPolicyVersion") });
    assert_eq!(readings.inline, Reading::AccessDenied { permission: forbidden("iam:ListRolePolicies") });
    assert_eq!(
        readings.boundary,
        Some(Reading::AccessDenied { permission: forbidden("iam:GetPolicyVersion") })
    );
    assert_eq!(
        readings.provider,
        Some(Reading::AccessDenied { permission: forbidden("iam:GetOpenIDConnectProvider") })
    );
    bed.faults(json!([denied("GetRole"), {"kind": "error", "action": "ListRolePolicies"}])).await;
    let readings = region.role(&arn("team/ebs"), None).await;
    assert_eq!(readings.role, Reading::AccessDenied { permission: forbidden("iam:GetRole") });
    assert_eq!(found(readings.attached).len(), 1);
    assert!(
        matches!(&readings.inline, Reading::Failed { message } if message.contains("iam:ListRolePolicies")),
        "{:?}",
        readings.inline
    );
}

#[tokio::test]
async fn an_oidc_provider_is_made_once_changed_and_removed() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let arn = format!("arn:aws:iam::{ACCOUNT}:oidc-provider/documents.s3.us-east-1.amazonaws.com/prod");
    assert_eq!(region.open_id_provider(&arn).await, Reading::Absent);
    let tags = Tags::from([("cluster.kurator.dev/id".to_owned(), "0f4a8a0e".to_owned())]);
    for _ in 0..2 {
        assert_eq!(
            region.create_open_id_provider(ISSUER, &["sts.amazonaws.com".to_owned()], &tags).await,
            Ok(())
        );
    }
    let url = ISSUER.trim_start_matches("https://");
    let shown = |client_ids: &[&str]| {
        Reading::Found(Provider {
            url: url.into(),
            client_ids: client_ids.iter().map(|it| it.to_string()).collect(),
            tags: tags.clone(),
        })
    };
    assert_eq!(region.open_id_provider(&arn).await, shown(&["sts.amazonaws.com"]));
    let other = Tags::from([("cluster.kurator.dev/id".to_owned(), "other".to_owned())]);
    let problem = region.create_open_id_provider(ISSUER, &[], &other).await.unwrap_err();
    assert!(
        problem.message.contains("was not made for this") && !problem.message.contains("0f4a8a0e"),
        "{problem:?}"
    );
    for _ in 0..2 {
        assert_eq!(region.add_client_id(&arn, "amazonaws.com").await, Ok(()));
    }
    assert_eq!(region.open_id_provider(&arn).await, shown(&["sts.amazonaws.com", "amazonaws.com"]));
    let owner = Tags::from([("cluster.kurator.dev/owner".to_owned(), "default/prod".to_owned())]);
    assert_eq!(region.tag_open_id_provider(&arn, &owner).await, Ok(()));
    let both: Tags = tags.iter().chain(&owner).map(|(key, value)| (key.clone(), value.clone())).collect();
    assert_eq!(found(region.open_id_provider(&arn).await).tags, both);
    for _ in 0..2 {
        assert_eq!(region.delete_open_id_provider(&arn).await, Ok(()));
    }
    assert_eq!(region.open_id_provider(&arn).await, Reading::Absent);
}

#[tokio::test]
async fn a_file_system_is_read_with_its_mount_targets() {
    let bed = Bed::start(&[]).await;
    let config = bed.administrator().config;
    let (ec2, efs) = (aws_sdk_ec2::Client::new(&config), aws_sdk_efs::Client::new(&config));
    let region = bed.region().await;
    assert_eq!(region.file_system("fs-0123456789abcdef0").await, Reading::Absent);
    let vpc = ec2.create_vpc().cidr_block("10.0.0.0/16").send().await.unwrap().vpc.unwrap().vpc_id.unwrap();
    let call = ec2.create_subnet().vpc_id(&vpc).cidr_block("10.0.1.0/24").availability_zone("us-east-1b");
    let subnet = call.send().await.unwrap().subnet.unwrap().subnet_id.unwrap();
    let id = efs.create_file_system().creation_token("one").send().await.unwrap().file_system_id;
    let mut shown = found(region.file_system(&id).await);
    while shown.state != "available" {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        shown = found(region.file_system(&id).await);
    }
    assert_eq!((shown.id.as_str(), shown.mount_targets.len()), (id.as_str(), 0));
    efs.create_mount_target().file_system_id(&id).subnet_id(&subnet).send().await.unwrap();
    let target = found(region.file_system(&id).await).mount_targets.remove(0);
    assert_eq!((target.subnet_id, target.zone, target.vpc_id), (subnet, "us-east-1b".to_owned(), vpc));
    bed.faults(json!([{"kind": "access-denied", "action": "DescribeMountTargets"}])).await;
    let permission = "elasticfilesystem:DescribeMountTargets".to_owned();
    assert_eq!(region.file_system(&id).await, Reading::AccessDenied { permission });
}

#[tokio::test]
async fn all_file_systems_are_listed_with_their_tags_page_by_page() {
    let bed = Bed::start(&["--page-size", "2"]).await;
    let efs = aws_sdk_efs::Client::new(&bed.administrator().config);
    let region = bed.region().await;
    assert_eq!(region.file_systems().await, Reading::Found(vec![]));
    let tag =
        |key: &str, value: &str| aws_sdk_efs::types::Tag::builder().key(key).value(value).build().unwrap();
    for it in 0..3 {
        let call = efs.create_file_system().creation_token(format!("{it}")).tags(tag("team", "a"));
        let call = if it == 0 { call.tags(tag("Name", "data")) } else { call };
        call.send().await.unwrap();
    }
    let before = bed.count("DescribeFileSystems").await;
    let mut all = found(region.file_systems().await);
    assert_eq!(bed.count("DescribeFileSystems").await, before + 2);
    all.sort_by(|a, b| b.name.cmp(&a.name));
    let tags = |all: &[(&str, &str)]| {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Tags>()
    };
    let shown: Vec<(&str, &Tags)> = all.iter().map(|it| (it.name.as_str(), &it.tags)).collect();
    let (named, plain) = (tags(&[("Name", "data"), ("team", "a")]), tags(&[("team", "a")]));
    assert_eq!(shown, [("data", &named), ("", &plain), ("", &plain)]);
    let is_shown =
        |id: &str, state: &str| id.starts_with("fs-") && ["creating", "available"].contains(&state);
    assert!(all.iter().all(|it| is_shown(&it.id, &it.state)), "{all:?}");
    bed.faults(json!([{"kind": "access-denied", "action": "DescribeFileSystems"}])).await;
    assert_eq!(
        region.file_systems().await,
        Reading::AccessDenied { permission: "elasticfilesystem:DescribeFileSystems".into() }
    );
}
