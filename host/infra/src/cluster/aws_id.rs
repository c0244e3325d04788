//! Which names of subnets are ids that AWS gave.

use crds::network::SubnetSpec;

/// What of the names that a listed subnet has is an id that AWS gave. Names of subnets that are to be made
/// may begin alike.
pub(super) fn aws_ids(spec: &SubnetSpec) -> impl Iterator<Item = &String> {
    [&spec.resource_id, &spec.id].into_iter().filter(|it| is_aws_id(it))
}

fn is_aws_id(text: &str) -> bool {
    let number = text.strip_prefix("subnet-").unwrap_or_default();
    (8..=17).contains(&number.len()) && number.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_aws_gave_is_an_id() {
        for id in ["subnet-0a1b2c3d", "subnet-0123456789abcdef0"] {
            assert!(is_aws_id(id), "{id}");
        }
        for name in [
            "subnet-zone-1-private",
            "subnet-a",
            "subnet-0A1B2C3D",
            "subnet-",
            "private-a",
            "subnet-0123456789abcdef01",
        ] {
            assert!(!is_aws_id(name), "{name}");
        }
    }
}
