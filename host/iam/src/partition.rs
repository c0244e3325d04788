//! Partitions of AWS: the groups of regions that share accounts, ARNs and host names.

/// The partition of a region, such as `aws-cn` for `cn-north-1`. A region that is not known is taken for one
/// of `aws`.
pub fn of_region(region: &str) -> &'static str {
    let prefixes = [
        ("cn-", "aws-cn"),
        ("us-gov-", "aws-us-gov"),
        ("us-iso-", "aws-iso"),
        ("us-isob-", "aws-iso-b"),
        ("eu-isoe-", "aws-iso-e"),
        ("us-isof-", "aws-iso-f"),
        ("eusc-", "aws-eusc"),
    ];
    prefixes.iter().find(|(prefix, _)| region.starts_with(prefix)).map_or("aws", |(_, partition)| partition)
}

/// What the host names of a partition's services end in.
pub fn dns_suffix(partition: &str) -> &'static str {
    match partition {
        "aws-cn" => "amazonaws.com.cn",
        "aws-iso" => "c2s.ic.gov",
        "aws-iso-b" => "sc2s.sgov.gov",
        "aws-iso-e" => "cloud.adc-e.uk",
        "aws-iso-f" => "csp.hci.ic.gov",
        "aws-eusc" => "amazonaws.eu",
        _ => "amazonaws.com",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_belong_to_the_partition_of_their_prefix() {
        let regions = [
            "eu-west-1",
            "cn-northwest-1",
            "us-gov-east-1",
            "us-iso-east-1",
            "us-isob-east-1",
            "eusc-de-east-1",
        ];
        let partitions: Vec<&str> = regions.iter().map(|it| of_region(it)).collect();
        assert_eq!(partitions, ["aws", "aws-cn", "aws-us-gov", "aws-iso", "aws-iso-b", "aws-eusc"]);
    }

    #[test]
    fn services_in_china_have_a_host_name_of_their_own() {
        assert_eq!(
            [dns_suffix("aws"), dns_suffix("aws-us-gov"), dns_suffix("aws-cn")],
            ["amazonaws.com", "amazonaws.com", "amazonaws.com.cn"]
        );
    }
}
