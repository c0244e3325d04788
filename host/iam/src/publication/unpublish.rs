//! What is to be removed of a place where an issuer was published. What is another's stays, and so does what
//! nobody can tell whose it is.

use super::ownership::{DocumentOwner, Owner, Possession, Readings};
use crate::issuer::Publication;
use model::finding::{Finding, Reading};

/// One removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The document as it was read, and no other that may lie there by then.
    Document {
        key: String,
        version: String,
    },
    Provider,
}

/// What to remove, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpublication {
    pub removals: Vec<Removal>,
    /// What stays although it may have been made for this cluster.
    pub left: Option<String>,
}

/// Says what is removed at a place where something was published, or may have been.
///
/// # Errors
/// Something there could not be read, so that nobody can tell whose it is.
pub fn unpublish(
    publication: &Publication,
    owner: &Owner,
    readings: &Readings,
) -> Result<Unpublication, Finding> {
    let possession = owner.possession(publication, readings)?;
    let mut res = Unpublication::default();
    if matches!(possession, Possession::Unmarked | Possession::Foreign) {
        let Publication { issuer, jwks_key, discovery_key, .. } = publication;
        res.left = Some(format!(
            "what lies at {jwks_key} and {discovery_key} of issuer {issuer}: it does not say whose it is"
        ));
    }
    // Whoever finds the discovery document must find what it names. The provider says whose both are, if they
    // do not: it goes last.
    let documents =
        [(&publication.discovery_key, &readings.discovery), (&publication.jwks_key, &readings.key_set)];
    for (key, reading) in documents.into_iter().filter(|_| possession == Possession::Ours) {
        if let Reading::Found(object) = reading {
            res.removals.push(Removal::Document { key: key.clone(), version: object.version.clone() });
        }
    }
    if matches!(&readings.provider, Reading::Found(it) if owner.of_provider(it) == DocumentOwner::Ours) {
        res.removals.push(Removal::Provider);
    }
    Ok(res)
}
