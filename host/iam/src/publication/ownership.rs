//! DocumentOwner the documents and the OIDC provider of an issuer are, by what lies in AWS alone: a bucket, a prefix
//! and annotations are written by users, and name what anybody likes. Nothing here decides what is done about
//! it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use crds::AWSCluster;
use crds::names::{ID_ANNOTATION, ID_TAG, OWNER_TAG};
use sha2::{Digest, Sha256};

use super::known;
use crate::check::Provider;
use crate::issuer::{KeySet, Publication};
use model::Tags;
use model::finding::{Finding, Reading};
use model::is_marked;
use model::owner;

/// Key of the metadata that says whose a document is; S3 has it as header
/// `x-amz-meta-cluster-operator-owner`.
pub const OWNER_METADATA: &str = "cluster-operator-owner";

/// A document as GetObject returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub body: String,
    /// `ETag`: what a write or a removal may be made to depend on.
    pub version: String,
    pub metadata: Tags,
}

/// What was read at the place of a published issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readings {
    pub discovery: Reading<Object>,
    pub key_set: Reading<Object>,
    pub provider: Reading<Provider>,
}

/// The AWSCluster that something is published for.
#[derive(Clone)]
pub struct Owner {
    id: String,
    name: String,
}

/// DocumentOwner a document or a provider is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentOwner {
    Ours,
    /// It does not say.
    Unmarked,
    Another,
}

/// DocumentOwner the place of an issuer is, by everything that lies there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Possession {
    /// No document lies there, and no provider there has an owner.
    Free,
    Ours,
    /// There are documents, and nothing says whose.
    Unmarked,
    /// There are documents that this operator did not write.
    Foreign,
    Another,
}

impl Owner {
    /// `None` as long as the AWSCluster has no id: nothing can be its own then.
    pub fn of(aws_cluster: &AWSCluster) -> Option<Owner> {
        let id = aws_cluster.metadata.annotations.as_ref()?.get(ID_ANNOTATION).filter(|it| !it.is_empty())?;
        Some(Owner { id: id.clone(), name: owner(aws_cluster) })
    }

    /// What documents of an issuer carry as [`OWNER_METADATA`]. All the world reads it, so it is a digest: of
    /// it nobody can tell the id, and copied to another place it says nothing.
    pub fn mark(&self, issuer: &str) -> String {
        let text = serde_json::json!([self.id, self.name, issuer]).to_string();
        URL_SAFE_NO_PAD.encode(Sha256::digest(text))
    }

    /// What a provider carries.
    pub fn tags(&self) -> Tags {
        Tags::from([(ID_TAG.to_owned(), self.id.clone()), (OWNER_TAG.to_owned(), self.name.clone())])
    }

    /// DocumentOwner a document of an issuer is.
    pub fn of_object(&self, issuer: &str, object: &Object) -> DocumentOwner {
        match object.metadata.get(OWNER_METADATA) {
            None => DocumentOwner::Unmarked,
            Some(mark) if *mark == self.mark(issuer) => DocumentOwner::Ours,
            Some(_) => DocumentOwner::Another,
        }
    }

    /// DocumentOwner a provider is. What was made before owners were written says only the id.
    pub fn of_provider(&self, provider: &Provider) -> DocumentOwner {
        match &provider.tags {
            tags if is_marked(tags, &self.id, &self.name) => DocumentOwner::Ours,
            tags if tags.contains_key(ID_TAG) || tags.contains_key(OWNER_TAG) => DocumentOwner::Another,
            _ => DocumentOwner::Unmarked,
        }
    }

    /// DocumentOwner the place of an issuer is. One thing of another owner makes it that owner's. Documents that say
    /// nothing, as they were written before they had metadata, are of whom the provider is, or the other
    /// document: who wrote these wrote them too.
    ///
    /// # Errors
    /// Something there could not be read, so that nobody can tell.
    pub fn possession(&self, publication: &Publication, readings: &Readings) -> Result<Possession, Finding> {
        let at = |key: &str| format!("key {key} of the bucket");
        let key_set = known(&readings.key_set, &at(&publication.jwks_key))?;
        let discovery = known(&readings.discovery, &at(&publication.discovery_key))?;
        let provider = known(&readings.provider, "the IAM OIDC provider")?;
        let of_object = |it: &Object| self.of_object(&publication.issuer, it);
        let documents = key_set.into_iter().chain(discovery).map(of_object);
        let all: Vec<DocumentOwner> = documents.chain(provider.map(|it| self.of_provider(it))).collect();
        let is_foreign = |it: Option<&Object>, reads: fn(&Publication, &str) -> bool| {
            it.is_some_and(|it| of_object(it) == DocumentOwner::Unmarked && !reads(publication, &it.body))
        };
        Ok(if all.contains(&DocumentOwner::Another) {
            Possession::Another
        } else if is_foreign(key_set, is_key_set) || is_foreign(discovery, is_discovery) {
            Possession::Foreign
        } else if all.contains(&DocumentOwner::Ours) {
            Possession::Ours
        } else if key_set.is_none() && discovery.is_none() {
            Possession::Free
        } else {
            Possession::Unmarked
        })
    }
}

fn is_key_set(_: &Publication, text: &str) -> bool {
    KeySet::read(text).is_ok()
}

fn is_discovery(publication: &Publication, text: &str) -> bool {
    let read: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    read["issuer"] == *publication.issuer && read["jwks_uri"] == *publication.jwks_url
}
