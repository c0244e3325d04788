//! Availability zones. Local and wavelength zones, and those that need an opt-in, are left out.

use aws_sdk_ec2::types::{AvailabilityZoneOptInStatus, AvailabilityZoneState};

use crate::api::Api;
use crate::errors::Failure;

/// Names of the zones that anybody can use, sorted.
pub(crate) async fn describe(api: &Api) -> Result<Vec<String>, Failure> {
    let answer =
        api.read("ec2:DescribeAvailabilityZones", api.ec2.describe_availability_zones().send()).await?;
    let mut res: Vec<String> = answer
        .availability_zones
        .unwrap_or_default()
        .into_iter()
        .filter(|it| it.state == Some(AvailabilityZoneState::Available))
        .filter(|it| it.zone_type.as_deref().is_none_or(|it| it == "availability-zone"))
        .filter(|it| {
            it.opt_in_status.as_ref().is_none_or(|it| *it == AvailabilityZoneOptInStatus::OptInNotRequired)
        })
        .filter_map(|it| it.zone_name)
        .collect();
    res.sort();
    Ok(res)
}
