//! Who may publish where, and what is removed, against a pretend bucket and a pretend IAM that refuse what S3
//! refuses.

mod takeover;

use super::place::{Place, Places};
use super::unpublish::{Removal, Unpublication, unpublish};
use super::*;
use model::Tags;

const FIRST: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEAyXewZJQyNnIlC6VS2fe2A1k80Qi
xNPyTBHMjH+Lwstvu61f/EN3uttwX2rAdp1givKy2huUPFhAL25JIN3pSQ==
-----END PUBLIC KEY-----
";
const SECOND: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEc3AeT5gRz/aIQ4d/JmncBTCq/q0t
i9HdGl43ombLvqrEjj7B6SRkMW1bbvQkgmnxEzTOkEiZhpH81YvwpegTgw==
-----END PUBLIC KEY-----
";
const REGION: &str = "eu-west-1";
const OURS: &str = "default/prod";

fn aws_cluster(name: &str, id: &str) -> crds::AWSCluster {
    let (namespace, name) = name.split_once('/').expect("a namespace");
    let object = serde_json::json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
        "metadata": {"namespace": namespace, "name": name, "annotations": {ID_ANNOTATION: id}}, "spec": {"region": REGION},
    });
    serde_json::from_value(object).expect("an AWSCluster")
}

fn owner(name: &str, id: &str) -> Owner {
    Owner::of(&aws_cluster(name, id)).expect("an owner")
}

fn keys(pem: &str) -> Vec<PublicKey> {
    PublicKey::from_pem(pem).expect("keys")
}

fn home(name: &str) -> Place {
    Place::new("issuers", name)
}

fn issuer(place: &Place) -> Publication {
    place.publication(REGION).expect("an issuer")
}

/// S3 and IAM.
#[derive(Clone, Debug, Default, PartialEq)]
struct Account {
    /// By bucket and key.
    objects: BTreeMap<String, Object>,
    /// By issuer, without scheme.
    providers: BTreeMap<String, Provider>,
    writes: usize,
}

impl Account {
    fn readings(&self, place: &Place) -> Readings {
        let it = issuer(place);
        let object = |key: &str| {
            self.objects
                .get(&format!("{}/{key}", place.bucket))
                .cloned()
                .map_or(Reading::Absent, Reading::Found)
        };
        let provider =
            self.providers.get(issuer_host(&it.issuer)).cloned().map_or(Reading::Absent, Reading::Found);
        Readings { discovery: object(&it.discovery_key), key_set: object(&it.jwks_key), provider }
    }

    fn decide(&self, owner: &Owner, cluster: &str, place: &Place, pem: &str) -> Result<Publishing, Finding> {
        decide(&self.readings(place), owner, cluster, place, pem)
    }

    /// One look, with everything carried out.
    fn publish(
        &mut self,
        owner: &Owner,
        cluster: &str,
        place: &Place,
        pem: &str,
    ) -> Result<Publishing, Finding> {
        let work = self.decide(owner, cluster, place, pem)?;
        self.carry_out(owner, place, &work);
        Ok(work)
    }

    fn carry_out(&mut self, owner: &Owner, place: &Place, work: &Publishing) {
        let it = issuer(place);
        for act in &work.acts {
            let provider = self.providers.get_mut(issuer_host(&it.issuer));
            match act {
                Write::Put { document, over } => {
                    self.writes += 1;
                    let metadata =
                        Tags::from([(ownership::OWNER_METADATA.to_owned(), owner.mark(&it.issuer))]);
                    let object =
                        Object { body: document.body.clone(), version: self.writes.to_string(), metadata };
                    let before = self.objects.insert(format!("{}/{}", place.bucket, document.key), object);
                    assert_eq!(
                        &before.map(|it| it.version),
                        over,
                        "S3 refuses what depends on another version"
                    );
                }
                Write::CreateProvider => {
                    let (url, client_ids) = (issuer_host(&it.issuer).to_owned(), vec![AUDIENCE.to_owned()]);
                    let before =
                        self.providers.insert(url.clone(), Provider { url, client_ids, tags: owner.tags() });
                    assert_eq!(before, None, "IAM has each once");
                }
                Write::TagProvider => provider.expect("a provider").tags.extend(owner.tags()),
                Write::AddAudience => provider.expect("a provider").client_ids.push(AUDIENCE.to_owned()),
            }
        }
    }

    fn retract(&mut self, owner: &Owner, place: &Place) -> Result<Unpublication, Finding> {
        let it = issuer(place);
        let res = unpublish(&it, owner, &self.readings(place))?;
        for removal in &res.removals {
            match removal {
                Removal::Document { key, version } => {
                    let removed =
                        self.objects.remove(&format!("{}/{key}", place.bucket)).expect("a document");
                    assert_eq!(removed.version, *version);
                }
                Removal::Provider => assert!(self.providers.remove(issuer_host(&it.issuer)).is_some()),
            }
        }
        Ok(res)
    }

    /// What lies at a place, as it was published before documents and providers said whose they are.
    fn forget_owners(&mut self, place: &Place, tags: &[&str]) {
        let it = issuer(place);
        for key in [&it.jwks_key, &it.discovery_key] {
            self.objects.get_mut(&format!("{}/{key}", place.bucket)).expect("a document").metadata.clear();
        }
        let provider = self.providers.get_mut(issuer_host(&it.issuer)).expect("a provider");
        tags.iter().for_each(|tag| drop(provider.tags.remove(*tag)));
    }

    fn remove_provider(&mut self, place: &Place) {
        assert!(self.providers.remove(issuer_host(&issuer(place).issuer)).is_some());
    }
}

fn decide(
    readings: &Readings,
    owner: &Owner,
    cluster: &str,
    place: &Place,
    pem: &str,
) -> Result<Publishing, Finding> {
    let (publication, keys, retired) = (issuer(place), keys(pem), Retired::new());
    work(&Input {
        publication: &publication,
        owner,
        cluster,
        keys: &keys,
        readings,
        retired: &retired,
        now: 0.0,
    })
}

/// An account in which our issuer is published.
fn published() -> (Account, Owner) {
    let (mut account, us) = (Account::default(), owner(OURS, "our-id"));
    account.publish(&us, OURS, &home(OURS), FIRST).expect("work");
    (account, us)
}

fn said(result: Result<Publishing, Finding>) -> (Status, &'static str) {
    let finding = result.expect_err("nothing is written");
    (finding.status, finding.reason)
}

fn described(act: &Write) -> String {
    match act {
        Write::Put { document, .. } => document.key.clone(),
        other => format!("{other:?}"),
    }
}

#[test]
fn the_key_set_comes_before_what_names_it_and_the_provider_last() {
    let (mut account, us) = (Account::default(), owner(OURS, "our-id"));
    let work = account.publish(&us, OURS, &home(OURS), FIRST).expect("work");
    let acts: Vec<String> = work.acts.iter().map(described).collect();
    assert_eq!(
        acts,
        ["default/prod/openid/v1/jwks", "default/prod/.well-known/openid-configuration", "CreateProvider"]
    );
    let settled = account.publish(&us, OURS, &home(OURS), FIRST).expect("work");
    assert_eq!(
        (settled.acts, settled.retired, settled.finding.reason),
        (vec![], Retired::new(), reason::ISSUER_PUBLISHED)
    );
}

#[test]
fn a_key_that_no_longer_signs_stays_until_no_token_can_be_of_it() {
    let (mut account, us) = published();
    let publication = issuer(&home(OURS));
    let (old, new) = (keys(FIRST)[0].kid().to_owned(), keys(SECOND)[0].kid().to_owned());
    let mut look = |retired: &Retired, now: Timestamp| {
        let readings = account.readings(&home(OURS));
        let input = Input {
            publication: &publication,
            owner: &us,
            cluster: OURS,
            keys: &keys(SECOND),
            readings: &readings,
            retired,
            now,
        };
        let work = work(&input).expect("work");
        account.carry_out(&us, &home(OURS), &work);
        let Some(Write::Put { document, .. }) = work.acts.first() else { panic!("the key set is written") };
        let ids: Vec<String> = KeySet::read(&document.body)
            .expect("a set")
            .keys()
            .iter()
            .map(|it| it.kid().to_owned())
            .collect();
        (ids, work.retired)
    };
    let (ids, retired) = look(&Retired::new(), 100.0);
    assert_eq!((ids, &retired), (vec![new.clone(), old.clone()], &Retired::from([(old, 100.0)])));
    assert_eq!(look(&retired, 100.0 + RETIREMENT.as_secs_f64()), (vec![new], Retired::new()));
}

#[test]
fn a_new_prefix_ends_in_namespace_and_name_of_the_cluster() {
    let us = owner(OURS, "our-id");
    for prefix in ["default/prod", "eu/default/prod"] {
        assert!(Account::default().publish(&us, OURS, &home(prefix), FIRST).is_ok(), "{prefix}");
    }
    // The last is that of Cluster prod/west, too.
    for prefix in ["prod", "team/theirs", "xdefault/prod", "default/prods", "default", "default/prod/west"] {
        let finding = Account::default().publish(&us, OURS, &home(prefix), FIRST).expect_err("a finding");
        assert_eq!((finding.status, finding.reason), (Status::False, reason::INVALID_ISSUER), "{prefix}");
        assert!(finding.message.contains("/default/prod"), "{}", finding.message);
    }
}

#[test]
fn the_discovery_document_is_removed_first_and_the_provider_last() {
    let (mut account, us) = published();
    account.forget_owners(&home(OURS), &[]);
    let removals = account.retract(&us, &home(OURS)).expect("removed").removals;
    let kinds: Vec<&str> = removals
        .iter()
        .map(|it| match it {
            Removal::Document { key, .. } => key.as_str(),
            Removal::Provider => "provider",
        })
        .collect();
    assert_eq!(
        kinds,
        ["default/prod/.well-known/openid-configuration", "default/prod/openid/v1/jwks", "provider"]
    );
    assert_eq!(account.retract(&us, &home(OURS)), Ok(Unpublication::default()));
}

#[test]
fn documents_reveal_neither_the_id_nor_another_place() {
    let (account, us) = published();
    let Reading::Found(object) = account.readings(&home(OURS)).key_set else { panic!("a document") };
    assert!(!format!("{object:?}").contains("our-id"));
    assert_eq!(us.of_object(&issuer(&home(OURS)).issuer, &object), DocumentOwner::Ours);
    assert_eq!(us.of_object(&issuer(&home("default/copy")).issuer, &object), DocumentOwner::Another);
    assert_ne!(owner("a/b", "c").mark("d"), owner("a/b", "d").mark("d"));
}

#[test]
fn an_issuer_of_the_user_is_only_judged() {
    let found = |client_ids: &[&str]| {
        let client_ids = client_ids.iter().map(|it| (*it).to_owned()).collect();
        check_provider(
            "https://issuer.example.com",
            &Reading::Found(Provider { url: "issuer.example.com".into(), client_ids, tags: Tags::new() }),
        )
        .reason
    };
    assert_eq!((found(&[AUDIENCE]), found(&["other"])), (reason::ISSUER_FOUND, reason::PROVIDER_MISMATCH));
    assert_eq!(
        check_provider("https://issuer.example.com", &Reading::Absent).reason,
        reason::PROVIDER_NOT_FOUND
    );
}

mod generated;
