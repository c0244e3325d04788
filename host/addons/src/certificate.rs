//! Serving certificates of webhooks: when one is made anew, when the authority that vouches for it is, and
//! whose bundle clients are given. All is decided by what is written down beside certificates.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use model::Timestamp;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long an authority is good.
pub const AUTHORITY_LIFETIME: Duration = DAY.saturating_mul(3650);
/// How long a serving certificate is good. It is renewed when a third of that is left.
pub const LIFETIME: Duration = DAY.saturating_mul(365);
/// Clocks differ: certificates are good from this long before they are made.
pub const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// What is written down beside a certificate, as JSON in an annotation of its Secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    /// Names that a serving certificate is for; none for an authority.
    #[serde(default)]
    pub dns_names: Vec<String>,
    /// Hex SHA-256 of the certificate in PEM: whoever replaced it did not write this.
    pub digest: String,
    /// That of the authority that signed it; its own for an authority.
    pub authority: String,
}

/// Why a certificate must be made; `None` when the one that is there will do. `digest` is that of the
/// certificate that is there.
pub fn must_be_made(
    held: Option<(&Record, &str)>,
    dns_names: &[String],
    authority: &str,
    now: Timestamp,
) -> Option<&'static str> {
    let Some((record, digest)) = held else { return Some("there is none") };
    let names = |it: &[String]| it.iter().cloned().collect::<std::collections::BTreeSet<_>>();
    if record.digest != digest {
        Some("somebody replaced it")
    } else if names(&record.dns_names) != names(dns_names) {
        Some("it is for other names")
    } else if record.authority != authority {
        Some("its authority was renewed")
    } else {
        is_ending(record, now).then_some("it ends soon")
    }
}

/// Whether an authority must be made: none is there, or the rest of its life is too short for the
/// certificates that it would sign.
pub fn authority_must_be_made(held: Option<(&Record, &str)>, now: Timestamp) -> bool {
    held.is_none_or(|(record, digest)| {
        record.digest != digest || record.not_after - now < 2.0 * LIFETIME.as_secs_f64()
    })
}

/// Whether two thirds of the time are over.
fn is_ending(record: &Record, now: Timestamp) -> bool {
    let length = record.not_after - record.not_before;
    record.not_after - now < length / 3.0
}

/// Puts the bundle of authorities, base64 of PEM, into every `clientConfig` of the objects that has none of
/// its own.
pub fn with_bundle(objects: &[Value], bundle: &str) -> Vec<Value> {
    let mut objects = objects.to_vec();
    objects.iter_mut().for_each(|it| fill(it, bundle));
    objects
}

fn fill(value: &mut Value, bundle: &str) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::Object(client)) = fields.get_mut("clientConfig") {
                client.entry("caBundle").or_insert_with(|| bundle.into());
            }
            fields.values_mut().for_each(|it| fill(it, bundle));
        }
        Value::Array(items) => items.iter_mut().for_each(|it| fill(it, bundle)),
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record() -> Record {
        Record {
            not_before: 0.0,
            not_after: LIFETIME.as_secs_f64(),
            dns_names: vec!["a.kube-system.svc".into()],
            digest: "d".into(),
            authority: "a".into(),
        }
    }

    #[test]
    fn a_certificate_is_renewed_before_it_ends_and_not_sooner() {
        let names = record().dns_names;
        let at =
            |share: f64| must_be_made(Some((&record(), "d")), &names, "a", LIFETIME.as_secs_f64() * share);
        assert_eq!(
            (at(0.1), at(0.6), at(0.7), at(2.0)),
            (None, None, Some("it ends soon"), Some("it ends soon"))
        );
        assert_eq!(must_be_made(None, &names, "a", 0.0), Some("there is none"));
    }

    #[test]
    fn a_certificate_that_is_not_what_was_made_is_made_again() {
        let names = record().dns_names;
        assert_eq!(must_be_made(Some((&record(), "x")), &names, "a", 1.0), Some("somebody replaced it"));
        assert_eq!(must_be_made(Some((&record(), "d")), &names, "b", 1.0), Some("its authority was renewed"));
        assert_eq!(
            must_be_made(Some((&record(), "d")), &["b".to_owned()], "a", 1.0),
            Some("it is for other names")
        );
    }

    #[test]
    fn an_authority_outlives_what_it_signs() {
        let end = AUTHORITY_LIFETIME.as_secs_f64();
        let authority = Record { not_after: end, ..record() };
        assert!(!authority_must_be_made(Some((&authority, "d")), 0.0));
        assert!(authority_must_be_made(Some((&authority, "d")), end - LIFETIME.as_secs_f64()));
        assert!(authority_must_be_made(Some((&authority, "x")), 0.0));
        assert!(authority_must_be_made(None, 0.0));
    }

    #[test]
    fn webhooks_are_given_the_bundle_and_other_objects_are_left_alone() {
        let webhooks = json!({"kind": "ValidatingWebhookConfiguration", "webhooks": [{"clientConfig": {"service": {}}}, {"clientConfig": {"caBundle": "own"}}]});
        let filled = with_bundle(&[webhooks, json!({"kind": "Service"})], "QQ==");
        assert_eq!(filled[0]["webhooks"][0]["clientConfig"], json!({"service": {}, "caBundle": "QQ=="}));
        assert_eq!(filled[0]["webhooks"][1]["clientConfig"], json!({"caBundle": "own"}));
        assert_eq!(filled[1], json!({"kind": "Service"}));
    }
}
