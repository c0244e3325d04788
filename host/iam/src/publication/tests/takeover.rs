//! What others put where an issuer is published, and what was published before documents had an owner.

use super::*;

#[test]
fn what_somebody_else_put_there_is_neither_overwritten_nor_removed() {
    let us = owner(OURS, "our-id");
    for text in ["{}", "password: of somebody"] {
        for key in ["openid/v1/jwks", ".well-known/openid-configuration"] {
            for provider in [None, Some(us.tags())] {
                let mut account = Account::default();
                let object = Object { body: text.into(), version: "0".into(), metadata: Tags::new() };
                account.objects.insert(format!("issuers/{OURS}/{key}"), object);
                let url = issuer_host(&issuer(&home(OURS)).issuer).to_owned();
                let provider = provider.map(|tags| Provider { url: url.clone(), client_ids: vec![], tags });
                account.providers.extend(provider.map(|it| (url, it)));
                let before = account.objects.clone();
                let finding = account.publish(&us, OURS, &home(OURS), FIRST).expect_err("a finding");
                assert_eq!((finding.status, finding.reason), (Status::False, reason::DOCUMENT_NOT_OURS));
                assert!(
                    !finding.message.contains("password"),
                    "what is another's is not told: {}",
                    finding.message
                );
                assert!(account.retract(&us, &home(OURS)).expect("an answer").left.is_some());
                assert_eq!(account.objects, before);
            }
        }
    }
}

#[test]
fn the_issuer_of_another_cluster_is_neither_taken_over_nor_removed() {
    let (theirs, place) = (owner("team/theirs", "their-id"), home("team/theirs"));
    let mut original = Account::default();
    original.publish(&theirs, "team/theirs", &place, FIRST).expect("work");
    // Another cluster of any name, also of the same in another management cluster, one with the same key, and
    // a copy with the id.
    for us in [
        owner(OURS, "our-id"),
        owner("team/theirs", "our-id"),
        owner("other/theirs", "their-id"),
        owner(OURS, "their-id"),
    ] {
        for cluster in [OURS, "team/theirs"] {
            for pem in [FIRST, SECOND] {
                let mut account = original.clone();
                assert_eq!(
                    said(account.publish(&us, cluster, &place, pem)),
                    (Status::False, reason::ISSUER_TAKEN)
                );
                assert_eq!(account.retract(&us, &place), Ok(Unpublication::default()));
                // The provider alone, and the documents alone, say it too.
                account.remove_provider(&place);
                assert_eq!(
                    said(account.publish(&us, cluster, &place, pem)),
                    (Status::False, reason::ISSUER_TAKEN)
                );
                account = Account { objects: BTreeMap::new(), ..original.clone() };
                assert_eq!(
                    said(account.publish(&us, cluster, &place, pem)),
                    (Status::False, reason::ISSUER_TAKEN)
                );
                assert_eq!(account.retract(&us, &place), Ok(Unpublication::default()));
            }
        }
    }
}

#[test]
fn nothing_is_written_or_removed_while_something_is_unreadable() {
    let (account, us) = published();
    fn denied<T>(message: &str) -> Reading<T> {
        Reading::AccessDenied { permission: message.to_owned() }
    }
    fn failed<T>() -> Reading<T> {
        Reading::Failed { message: "no answer in time".to_owned() }
    }
    let whole = account.readings(&home(OURS));
    let all = [
        (
            Readings { provider: denied("iam:GetOpenIDConnectProvider"), ..whole.clone() },
            "iam:GetOpenIDConnectProvider",
        ),
        (Readings { key_set: denied("s3:GetObject"), ..whole.clone() }, "s3:GetObject"),
        (Readings { discovery: denied("s3:GetObject"), ..whole.clone() }, "s3:GetObject"),
        (Readings { provider: failed(), ..whole.clone() }, "no answer in time"),
        (Readings { key_set: failed(), ..whole.clone() }, "no answer in time"),
        (Readings { discovery: failed(), ..whole }, "no answer in time"),
    ];
    for (readings, why) in all {
        let published = decide(&readings, &us, OURS, &home(OURS), SECOND).expect_err("a finding");
        let retracted = unpublish(&issuer(&home(OURS)), &us, &readings).expect_err("a finding");
        for finding in [published, retracted] {
            assert_eq!(finding.status, Status::Unknown);
            assert!(finding.message.contains(why), "{}", finding.message);
        }
    }
}

#[test]
fn documents_without_an_owner_go_on_and_get_one() {
    // At a prefix that anybody could have named then.
    for place in [home(OURS), home("free")] {
        let (mut account, us) = (Account::default(), owner(OURS, "our-id"));
        account.publish(&us, place.prefix.as_str(), &place, FIRST).expect("work");
        account.forget_owners(&place, &[OWNER_TAG]);
        let work = account.publish(&us, OURS, &place, SECOND).expect("work");
        assert_eq!(work.acts.iter().map(described).next_back().as_deref(), Some("TagProvider"));
        let set = account.readings(&place).key_set;
        assert!(
            matches!(set, Reading::Found(it) if keys(SECOND).iter().all(|key| KeySet::read(&it.body).unwrap().contains(key.kid())))
        );
        assert_eq!(account.publish(&us, OURS, &place, SECOND).expect("work").acts, []);
        assert_eq!(account.retract(&us, &place).expect("removed").removals.len(), 3);
        assert_eq!((account.objects.len(), account.providers.len()), (0, 0));
    }
}

#[test]
fn documents_without_owner_and_provider_are_ours_only_by_our_key() {
    let us = owner(OURS, "our-id");
    let left_by = |place: &Place, pem: &str| {
        let mut account = Account::default();
        account.publish(&owner(OURS, "any"), &place.prefix, place, pem).expect("work");
        account.forget_owners(place, &[ID_TAG, OWNER_TAG]);
        account.remove_provider(place);
        account
    };
    // Public keys are public: one that was copied into a Secret proves nothing where anybody could have
    // published.
    for (place, pem, ok) in
        [(OURS, FIRST, true), (OURS, SECOND, false), ("free", FIRST, false), ("team/theirs", FIRST, false)]
    {
        let mut account = left_by(&home(place), pem);
        let before = account.clone();
        let unpublish = account.clone().retract(&us, &home(place)).expect("an answer");
        assert_eq!((unpublish.removals.len(), unpublish.left.is_some()), (0, true), "{place}");
        let result = account.publish(&us, OURS, &home(place), FIRST);
        if ok {
            assert_eq!(result.expect("work").acts.len(), 3);
        } else {
            let refused = (Status::False, reason::DOCUMENT_NOT_OURS);
            assert_eq!((said(result), account), (refused, before), "{place}");
        }
    }
}

#[test]
fn a_provider_of_somebody_else_is_used_and_left_alone() {
    let (us, place) = (owner(OURS, "our-id"), home(OURS));
    let url = issuer_host(&issuer(&place).issuer).to_owned();
    for (client_ids, reason) in
        [(vec![AUDIENCE.to_owned()], reason::ISSUER_PUBLISHED), (vec![], reason::PROVIDER_MISMATCH)]
    {
        let mut account = Account::default();
        account.providers.insert(
            url.clone(),
            Provider { url: url.clone(), client_ids, tags: Tags::from([("team".into(), "a".into())]) },
        );
        let before = account.providers.clone();
        for _ in 0..2 {
            assert_eq!(account.publish(&us, OURS, &place, FIRST).expect("work").finding.reason, reason);
        }
        assert_eq!(account.objects.len(), 2);
        assert_eq!(account.retract(&us, &place).expect("removed").removals.len(), 2);
        assert_eq!((account.objects.len(), account.providers), (0, before));
    }
}
