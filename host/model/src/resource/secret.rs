//! The secret that holds an instance's bootstrap data until it has booted.

use std::fmt;

use crate::{Guard, Key, ResourceKind};

/// Bootstrap data in Secrets Manager, split into parts. Recorded on the AWSMachine before it is made; AWS is
/// not asked for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Secret {
    /// Its role: the name of the AWSMachine.
    pub name: String,
    /// `aws.cluster.x-k8s.io/<uuid>`; the parts are `<prefix>-0`, `<prefix>-1`, ...
    pub prefix: String,
    /// What each part holds; empty as seen.
    pub parts: Vec<Sensitive>,
    /// How many parts there are.
    pub count: usize,
}

/// Bytes that reach no log: they may hold certificates, keys and join tokens.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Sensitive(pub Vec<u8>);

impl fmt::Debug for Sensitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} bytes>", self.0.len())
    }
}

impl ResourceKind for Secret {
    const GUARD: Guard = Guard::NameAndIntent;

    fn after(&self) -> Vec<Key> {
        Vec::new()
    }

    fn satisfied_by(&self, observed: &Self) -> bool {
        self.prefix == observed.prefix
    }

    fn details(&self) -> String {
        format!(" {} parts", self.count)
    }
}
