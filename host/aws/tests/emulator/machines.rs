//! What changes of a machine that is there: the groups and tags that its user adds and takes away.

use std::collections::BTreeSet;

use model::{Action, Instance, Outcome, Read, SecurityGroup, Tags, Vpc};

use crate::bed::{Bed, ZONE, act, awaiting, snapshot, until};
use crate::cluster::*;

/// A running instance with its volume and interface.
async fn running(region: &aws::Region, ids: &model::Ids) -> model::FoundInstance {
    assert_eq!(act(region, create(instance("m1"), ids, Some("m1"))).await, Outcome::Done);
    region.interest("test", awaiting([Read::Instances]));
    let is_whole = |it: &model::FoundInstance| it.status.state == "running" && it.status.parts.len() == 2;
    until(region, |it| it.instances.iter().any(is_whole)).await.instances[0].clone()
}

#[tokio::test]
async fn tags_reach_an_instance_its_volume_and_its_interface() {
    let bed = Bed::start(&[]).await;
    let (region, administrator) = (bed.swept().await, bed.administrator());
    let ids = network(&region).await;
    let found = running(&region, &ids).await;
    let driver = administrator.attach_volume(&found.id, ZONE).await;
    let tag = |tags: &[(&str, &str)], untag: &[&str]| Action::Tag {
        key: Instance::key("m1"),
        id: found.id.clone(),
        parts: found.status.parts.clone(),
        tags: tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        untag: untag.iter().map(|it| (*it).to_owned()).collect(),
    };
    assert_eq!(act(&region, tag(&[("team", "a"), ("stage", "test")], &[])).await, Outcome::Done);
    assert_eq!(act(&region, tag(&[("team", "b")], &["stage"])).await, Outcome::Done);
    assert_eq!(
        (bed.count("CreateTags").await, bed.count("DeleteTags").await),
        (2, 1),
        "one call for all of them"
    );
    let of_user = |tags: &Tags| -> Tags {
        tags.iter()
            .filter(|(key, _)| ["team", "stage"].contains(&key.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    };
    let expected = Tags::from([("team".into(), "b".into())]);
    for id in found.status.parts.iter().chain([&found.id]) {
        let tags = administrator.tags(id).await;
        assert_eq!(of_user(&tags), expected, "{id}");
        assert!(tags.contains_key("Name"), "what was there stays on {id}");
    }
    assert_eq!(of_user(&snapshot(&region).instances[0].tags), expected);
    assert_eq!(administrator.tags(&driver).await, Tags::new());
    let other = bed.swept().await;
    assert_eq!(
        snapshot(&other).instances[0].status.parts,
        found.status.parts,
        "what a storage driver attached is not the machine's"
    );
}

#[tokio::test]
async fn groups_that_a_user_took_away_go_and_others_stay() {
    let bed = Bed::start(&[]).await;
    let (region, administrator) = (bed.swept().await, bed.administrator());
    let ids = network(&region).await;
    let found = running(&region, &ids).await;
    let theirs = administrator.group(&ids[&Vpc::key("main")], "theirs", ("by", "hand")).await;
    let (node, more) =
        (ids[&SecurityGroup::key("node")].clone(), ids[&SecurityGroup::key("apiserver-lb")].clone());
    let bare = Instance { launch: None, ..instance("m1") };
    let both = Instance { additional_groups: [more.clone(), theirs.clone()].into(), ..bare.clone() };
    assert_eq!(act(&region, update(&found.id, both.clone(), bare.clone(), &ids)).await, Outcome::Done);
    let less = Instance { removed_groups: [more].into(), ..bare };
    assert_eq!(act(&region, update(&found.id, less, both, &ids)).await, Outcome::Done);
    let expected: BTreeSet<String> = [node, theirs].into();
    assert_eq!(snapshot(&region).instances[0].groups, expected);
    let other = bed.swept().await;
    assert_eq!(snapshot(&other).instances[0].groups, expected, "as AWS shows it");
}

#[tokio::test]
async fn why_an_instance_ends_is_shown_and_of_one_that_runs_nothing() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    let found = running(&region, &ids).await;
    assert_eq!(found.status.reason, None);
    assert_eq!(act(&region, delete(&found.id, instance("m1"), &ids)).await, Outcome::Done);
    let shown = until(&region, |it| it.instances.iter().any(|it| it.status.reason.is_some())).await;
    let reason = shown.instances[0].status.reason.clone().expect("AWS said why");
    assert_eq!(reason.to_string(), "Client.UserInitiatedShutdown: User initiated shutdown");
}
