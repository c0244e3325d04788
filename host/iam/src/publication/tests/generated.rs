//! Values of other owners in everything that a user writes about an issuer: bucket, prefix, the annotations
//! of places and of the id, the public key in the Secret. Nothing of theirs may change, and nothing of theirs
//! be told.

use super::*;
use infra::cluster::copied_from;

const CASES: u64 = 10_000;

/// Xorshift: the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 as usize % bound
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

const VICTIMS: [(&str, &str); 3] =
    [("team/one", "id-of-one-0123"), ("team/two", "id-of-two-4567"), ("default/one", "id-of-three-89")];

/// Others' issuers as this and earlier operators, and their users, left them; whether of each something says
/// the owner.
fn others(random: &mut Random) -> (Account, Vec<(Place, bool)>) {
    let (mut account, mut places) = (Account::default(), Vec::new());
    for (name, id) in VICTIMS {
        let free = ["prod".to_owned(), "shared/issuer".to_owned(), format!("{name}/v2")];
        let prefix = if random.chance(50) { name.to_owned() } else { random.of(&free).clone() };
        let place = Place::new(random.of::<&str>(&["issuers", "other-issuers"]), &prefix);
        let is_taken = places.iter().any(|(it, _): &(Place, bool)| *it == place);
        let pem = *random.of(&[FIRST, SECOND]);
        if is_taken || account.publish(&owner(name, id), &prefix, &place, pem).is_err() {
            continue;
        }
        let mut says_owner = true;
        match random.below(8) {
            0 => {
                account.forget_owners(&place, &[OWNER_TAG]);
                says_owner = false;
            }
            1 => account.forget_owners(&place, &[]),
            // The user made it, or removed it.
            2 => account.forget_owners(&place, &[ID_TAG, OWNER_TAG]),
            3 => {
                account.forget_owners(&place, &[ID_TAG, OWNER_TAG]);
                account.remove_provider(&place);
            }
            4 => account.remove_provider(&place),
            // Of what a user made, or this operator, the documents are lost.
            5 | 6 => {
                let it = issuer(&place);
                account.objects.retain(|key, _| {
                    ![&it.jwks_key, &it.discovery_key]
                        .iter()
                        .any(|it| *key == format!("{}/{it}", place.bucket))
                });
                let tags = &mut account.providers.get_mut(issuer_host(&it.issuer)).expect("a provider").tags;
                tags.retain(|_, _| random.chance(50));
                says_owner = tags.contains_key(OWNER_TAG) || !tags.contains_key(ID_TAG);
            }
            _ => (),
        }
        places.push((place, says_owner));
    }
    (account, places)
}

/// One case: an AWSCluster of somebody, with others' values in all its fields, is published, moves on and is
/// deleted.
fn case(seed: u64) -> usize {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut account, places) = others(&mut random);
    if places.is_empty() {
        return 0;
    }
    let before = account.clone();
    let name = *random.of(&["evil/mallory", "evil/one", "team/mallory"]);
    let id = if random.chance(40) { random.of(&VICTIMS).1 } else { "id-of-mallory" };
    let mallory = aws_cluster(name, id);
    // Of two with one id, the controller holds the later one: nothing is decided for it.
    let victims: Vec<crds::AWSCluster> = VICTIMS.iter().map(|(name, id)| aws_cluster(name, id)).collect();
    let is_held = victims.iter().any(|victim| {
        let (mut victim, mut mallory) = (victim.clone(), mallory.clone());
        let time = |text: &str| serde_json::from_value(serde_json::json!(text)).expect("a time");
        victim.metadata.creation_timestamp = time("2027-01-15T08:00:00Z");
        mallory.metadata.creation_timestamp = time("2027-01-15T09:00:00Z");
        copied_from(&mallory, [&victim, &mallory], None).is_some()
    });
    let owner = Owner::of(&mallory).expect("an owner");
    let written: Vec<Place> = places.iter().map(|(it, _)| Place { left: Some(0.0), ..it.clone() }).collect();
    let annotation = serde_json::to_string(&written).expect("a text");
    let mut told = Vec::new();
    for _ in 0..3 {
        let (place, says_owner) = random.of(&places).clone();
        if is_held && !says_owner {
            continue;
        }
        let pem = *random.of(&[FIRST, SECOND]);
        match account.publish(&owner, name, &place, pem) {
            Ok(work) => panic!("seed {seed}: {name} writes at {place:?}: {:?}", work.acts),
            Err(finding) => told.push(finding.message),
        }
        for place in Places::of(Some(&annotation)).over(RETIREMENT.as_secs_f64()) {
            let is_said = |(it, says_owner): &(Place, bool)| {
                (&it.bucket, &it.prefix) == (&place.bucket, &place.prefix) && *says_owner
            };
            if is_held && !places.iter().any(is_said) {
                continue;
            }
            let unpublish = account.retract(&owner, &place).expect("everything can be read");
            assert_eq!(unpublish.removals, [], "seed {seed}: {name} removes at {place:?}");
            told.extend(unpublish.left);
        }
    }
    assert_eq!(account, before, "seed {seed}");
    let kids = [keys(FIRST)[0].kid().to_owned(), keys(SECOND)[0].kid().to_owned()];
    let secret =
        VICTIMS.iter().map(|(_, id)| (*id).to_owned()).chain(kids).chain(["id-of-mallory".to_owned()]);
    let found: Vec<String> = secret.filter(|it| told.iter().any(|message| message.contains(it))).collect();
    assert!(found.is_empty(), "seed {seed}: {found:?} is told in {told:?}");
    told.len()
}

#[test]
fn nothing_of_another_owner_is_touched_or_told_whatever_users_write() {
    let refusals: usize = (0..CASES).map(case).sum();
    assert!(refusals as u64 > CASES, "only {refusals} attempts were refused: the generator reaches nothing");
}
