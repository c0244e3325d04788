//! Names for what a cluster is made of: `subnet/private-us-east-1a`. A key comes from the role that a
//! resource plays for its cluster, never from an AWS id or from a `Name` tag. Nothing here knows AWS ids.

use std::fmt;

use crate::Kind;

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A resource's kind and the name of its role in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Which kind of resource.
    pub kind: Kind,
    /// Role, such as `private-us-east-1a`; AWS's id or name for what has no role. Unique within the kind.
    pub name: String,
}

impl Key {
    /// A key of this kind and name.
    pub fn new(kind: Kind, name: impl Into<String>) -> Self {
        Key { kind, name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// What is no key: it has no `/`, or what stands before it is no kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a key such as \"vpc/main\"")]
pub struct NoKey(pub String);

impl std::str::FromStr for Key {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = text.split_once('/').ok_or_else(|| NoKey(text.into()))?;
        let kind = Kind::ALL.iter().find(|it| it.as_str() == kind).ok_or_else(|| NoKey(text.into()))?;
        Ok(Key::new(*kind, name))
    }
}
