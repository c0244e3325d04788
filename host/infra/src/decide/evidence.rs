//! Which reads show a resource, and what its role is and whose it is.

use model::{Key, Kind, LoadBalancer, Read, Resource};

/// The calls that show a resource.
pub(super) fn reads(kind: Kind, is: Option<&Resource>) -> impl Iterator<Item = Read> + use<> {
    is.map_or(kind.reads(), Resource::reads).iter().copied()
}

/// The calls that show whether a resource is there, what its role is and whose it is: that may follow from
/// other kinds too. Nothing is made anew, given up or taken away before all of them show what was made.
pub(super) fn evidence(kind: Kind, is: Option<&Resource>) -> impl Iterator<Item = Read> + use<> {
    reads(kind, is).chain(kind.evidence().iter().copied())
}

/// The calls that show something recorded by its id.
pub(super) fn reads_of(kind: Kind, id: &str) -> impl Iterator<Item = Read> + use<> {
    let other = match (kind, id.starts_with("arn:")) {
        (Kind::LoadBalancer, true) => Some(Read::ClassicLoadBalancers),
        (Kind::LoadBalancer, false) => Some(Read::LoadBalancers),
        _ => None,
    };
    reads(kind, None).filter(move |it| Some(*it) != other)
}

/// What can be left of something that is gone: a target group stays when somebody removes its load balancer.
/// Deleting it once more takes that.
pub(super) fn remains(key: &Key, id: &str) -> Option<Resource> {
    (key.kind == Kind::LoadBalancer && id.starts_with("arn:"))
        .then(|| LoadBalancer::remains(&key.name, id).into())
}
