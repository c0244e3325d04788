//! A stand-in for the EBS CSI driver's part on nodes: it registers where the node is and how many volumes it
//! can hold.

use anyhow::Result;

use super::node::{self, Registration};
use crate::cloud::addons::stand_in::StandIn;

/// Volumes and interfaces that an instance of a usual type can have, of which one of each is there from the
/// start: the root, and `eth0`.
const ATTACHMENTS: i32 = 28;

/// Runs the node's part.
///
/// # Errors
/// See [`node::run`].
pub async fn run(stand_in: &StandIn) -> Result<()> {
    let number = |name: &str| {
        stand_in.flag(name).and_then(|value| value.parse().ok()).filter(|number: &i32| *number >= 0)
    };
    let limit = number("volume-attach-limit")
        .unwrap_or_else(|| ATTACHMENTS - number("reserved-volume-attachments").unwrap_or(1));
    node::run(
        stand_in,
        &Registration {
            driver: "ebs.csi.aws.com",
            zone: Some("topology.ebs.csi.aws.com/zone"),
            limit: Some(limit),
        },
    )
    .await
}
