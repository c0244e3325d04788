//! When the latest creation was settled, as an annotation of the object: reads that begin soon after may
//! still lack what it made.
//!
//! It is JSON, as the annotations beside it are. Releases before this one read only the words that came
//! before: three numbers, separated by spaces.

use model::{READ_LAG, Timestamp};
use serde::{Deserialize, Serialize};

/// Annotation of AWSClusters and AWSMachines: a [`Settled`].
pub const CREATED_ANNOTATION: &str = "cluster.kurator.dev/created";

/// Whether the annotation is written as JSON. An operator of an earlier release takes JSON for nothing, and
/// would make things twice after a downgrade: the words are written for one release more. True from the
/// release after that.
const WRITES_JSON: bool = false;

/// When a creation was settled or recorded, and by whom; all in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    pub at: Timestamp,
    /// [`Snapshot::since`](model::Snapshot::since) of the process.
    pub by: Timestamp,
    /// Reads that begin before may lack what processes before that one made; 0 when none does.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(time: &Timestamp) -> bool {
    *time == 0.0
}

impl Settled {
    /// What the annotation says, in either format.
    pub(super) fn parse(text: &str) -> Option<Settled> {
        serde_json::from_str(text).ok().or_else(|| Settled::parse_words(text))
    }

    fn parse_words(text: &str) -> Option<Settled> {
        let mut numbers = text.split(' ').map(|word| word.parse().ok());
        let (at, by) = (numbers.next()??, numbers.next()??);
        Some(Settled { at, by, earlier: numbers.next().flatten().unwrap_or_default() })
    }

    /// What the annotation is to say.
    pub(super) fn text(&self) -> String {
        if WRITES_JSON { self.json() } else { self.words() }
    }

    fn json(&self) -> String {
        // Numbers always serialize.
        serde_json::to_string(self).unwrap_or_default()
    }

    fn words(&self) -> String {
        let Settled { at, by, earlier } = self;
        if *earlier > 0.0 { format!("{at:.0} {by:.3} {earlier:.0}") } else { format!("{at:.0} {by:.3}") }
    }

    /// A creation is settled now, by the process that acts since `by`, after what was written down.
    pub(crate) fn now(at: Timestamp, by: Timestamp, before: Option<Settled>) -> Settled {
        let earlier = before.map_or(0.0, |it| it.trusted_from(by));
        Settled { at: at.ceil(), by, earlier: if earlier > at { earlier } else { 0.0 } }
    }

    /// Whether the process that acts since `since` settled it.
    pub(crate) fn is_by(&self, since: Timestamp) -> bool {
        // As precise as it is written down.
        (self.by - since).abs() < 0.001
    }

    /// From when on reads show the process that acts since `since` what others made before it.
    pub(crate) fn trusted_from(&self, since: Timestamp) -> Timestamp {
        if self.is_by(since) { self.earlier } else { self.earlier.max(self.at + READ_LAG) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_process_made_stays_in_doubt_with_a_later_one() {
        let (first, second, third) = (1000.0, 2000.0, 2010.0);
        let made = Settled::now(1999.5, first, None);
        assert_eq!((made.text().as_str(), made.trusted_from(first)), ("2000 1000.000", 0.0));
        let settled =
            Settled::parse(&Settled::now(2005.0, second, Some(made)).text()).expect("as it was written");
        assert_eq!(settled.trusted_from(second), 2000.0 + READ_LAG, "its own writes it remembers");
        assert_eq!(settled.trusted_from(third), 2005.0 + READ_LAG);
        assert_eq!(Settled::now(2100.0, third, Some(settled)).trusted_from(third), 0.0, "it is long ago");
    }

    #[test]
    fn both_formats_are_read() {
        let settled = Settled { at: 2000.0, by: 1000.125, earlier: 0.0 };
        let after_another = Settled { earlier: 2030.0, ..settled };
        for (text, expected) in [
            ("2000 1000.125", Some(settled)),
            ("2000 1000.125 2030", Some(after_another)),
            (r#"{"at":2000,"by":1000.125}"#, Some(settled)),
            (r#"{"at":2000.0,"by":1000.125,"earlier":2030.0}"#, Some(after_another)),
            ("2000", None),
            ("yesterday", None),
            (r#"{"at":2000}"#, None),
        ] {
            assert_eq!(Settled::parse(text), expected, "{text}");
        }
        assert_eq!(Settled::parse(&after_another.json()), Some(after_another), "{}", after_another.json());
        assert_eq!(Settled::parse(&settled.json()), Some(settled), "{}", settled.json());
    }

    #[test]
    fn earlier_releases_can_read_what_is_written() {
        let settled = Settled { at: 2000.0, by: 1000.125, earlier: 2030.0 };
        assert_eq!(settled.text(), "2000 1000.125 2030");
    }
}
