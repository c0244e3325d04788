//! Where issuers of a cluster were published, so that nothing stays behind when the spec names another place.
//! It is kept in an annotation, since status is not moved by `clusterctl move`; users can write that, so it
//! is only a hint where to look: whose it is, only what lies there says.

use serde::{Deserialize, Serialize};

use super::RETIREMENT;
use crate::issuer::Publication;
use model::Timestamp;

/// As many are remembered. Each is kept for a year, and each costs three calls.
pub const MOST: usize = 10;

/// One place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    pub bucket: String,
    pub prefix: String,
    /// Since when no token can be of its issuer that is not signed yet; absent while it is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Timestamp>,
}

/// All places of an AWSCluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places(Vec<Place>);

impl Place {
    pub fn new(bucket: &str, prefix: &str) -> Place {
        Place { bucket: bucket.to_owned(), prefix: prefix.to_owned(), left: None }
    }

    /// The issuer there; `None` where somebody wrote down what can be none.
    pub fn publication(&self, region: &str) -> Option<Publication> {
        Publication::in_bucket("", &self.bucket, &self.prefix, region).ok()
    }

    /// Whether it is the same one, whenever it was left.
    pub fn is(&self, other: &Place) -> bool {
        (&self.bucket, &self.prefix) == (&other.bucket, &other.prefix)
    }
}

impl Places {
    /// What an annotation says. What cannot be read, because somebody overwrote it, is forgotten: it was only
    /// a hint.
    pub fn of(annotation: Option<&str>) -> Places {
        let all: Vec<Place> = annotation.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
        let mut res = Places::default();
        for place in all {
            if res.0.len() < MOST && !res.contains(&place) {
                res.0.push(place);
            }
        }
        res
    }

    /// The annotation; `None`: there is nothing to remember.
    pub fn annotation(&self) -> Option<String> {
        // Texts and numbers always serialize.
        (!self.0.is_empty()).then(|| serde_json::to_string(&self.0).unwrap_or_default())
    }

    pub fn all(&self) -> &[Place] {
        &self.0
    }

    fn contains(&self, place: &Place) -> bool {
        self.0.iter().any(|it| it.is(place))
    }

    /// Something is about to be written there. False: too many places are remembered, and nothing may be.
    #[must_use]
    pub fn enter(&mut self, place: &Place) -> bool {
        if !self.contains(place) {
            if self.0.len() >= MOST {
                return false;
            }
            self.0.push(place.clone());
        }
        true
    }

    /// Says of each place whether it is still in use, and if not, since when.
    pub fn update(&mut self, in_use: impl Fn(&Place) -> bool, now: Timestamp) {
        for place in &mut self.0 {
            place.left = if in_use(place) { None } else { Some(place.left.unwrap_or(now.round())) };
        }
    }

    /// Those whose issuer no token can be of any more that is still good: [`RETIREMENT`] is longer than a
    /// token lasts.
    pub fn over(&self, now: Timestamp) -> Vec<Place> {
        self.0
            .iter()
            .filter(|it| it.left.is_some_and(|left| now - left >= RETIREMENT.as_secs_f64()))
            .cloned()
            .collect()
    }

    /// Nothing of ours is there any more.
    pub fn forget(&mut self, place: &Place) {
        self.0.retain(|it| !it.is(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_over_a_year_after_its_last_use() {
        let (old, new) = (Place::new("issuers", "default/prod"), Place::new("other", "default/prod"));
        let mut places = Places::default();
        assert!(places.enter(&old) && places.enter(&old));
        places.update(|it| it.is(&old), 100.0);
        assert_eq!(places.all(), std::slice::from_ref(&old));
        assert!(places.enter(&new));
        // Its API servers still issue tokens of the old one.
        places.update(|_| true, 200.0);
        assert_eq!(places.over(1e12), []);
        places.update(|it| it.is(&new), 300.0);
        places.update(|it| it.is(&new), 400.0);
        let written = Places::of(places.annotation().as_deref());
        assert_eq!(written, places);
        assert_eq!(written.over(300.0 + RETIREMENT.as_secs_f64() - 1.0), []);
        assert_eq!(
            written.over(300.0 + RETIREMENT.as_secs_f64()),
            [Place { left: Some(300.0), ..old.clone() }]
        );
        // Gone back to.
        places.update(|it| it.is(&old), 500.0);
        assert_eq!(places.over(300.0 + RETIREMENT.as_secs_f64()), []);
        places.forget(&old);
        places.forget(&new);
        assert_eq!(places.annotation(), None);
    }

    #[test]
    fn what_somebody_wrote_over_it_is_no_harm() {
        for text in ["", "null", "[", "{}", r#"[{"bucket": 1}]"#, r#"["default/prod"]"#] {
            assert_eq!(Places::of(Some(text)), Places::default(), "{text}");
        }
        let many: Vec<Place> = (0..1000).map(|it| Place::new("issuers", &format!("default/{it}"))).collect();
        let mut places = Places::of(Some(&serde_json::to_string(&many).expect("a text")));
        assert_eq!(places.all().len(), MOST);
        assert!(!places.enter(&Place::new("issuers", "default/prod")));
        assert_eq!(Place::new("../..", "x").publication("us-east-1"), None);
    }
}
