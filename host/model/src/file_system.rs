//! File systems of EFS as they are read.

use crate::Tags;

/// A file system as DescribeFileSystems and DescribeMountTargets show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// `fs-...`
    pub id: String,
    /// EFS's word, such as `available`.
    pub state: String,
    /// The only zone that it can be mounted in, if it is a One Zone file system.
    pub zone: Option<String>,
    /// At most one in each availability zone; empty when none was made yet.
    pub mount_targets: Vec<MountTarget>,
}

/// A file system as a list of all shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFileSystem {
    /// `fs-...`
    pub id: String,
    /// Value of its tag `Name`; empty when it has none.
    pub name: String,
    /// All of its tags, `Name` among them.
    pub tags: Tags,
    /// EFS's word, such as `available`.
    pub state: String,
}

impl ListedFileSystem {
    /// Whether it has all of these tags, and is there to stay.
    pub fn has(&self, tags: &Tags) -> bool {
        !is_going(&self.state) && tags.iter().all(|(key, value)| self.tags.get(key) == Some(value))
    }
}

/// Where a file system can be mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountTarget {
    /// `fsmt-...`
    pub id: String,
    /// The subnet in which it has its address.
    pub subnet_id: String,
    /// Name of the availability zone.
    pub zone: String,
    /// The VPC of that subnet.
    pub vpc_id: String,
    /// EFS's word, such as `available`.
    pub state: String,
}

/// Whether a file system or mount target in this state is on its way out.
pub fn is_going(state: &str) -> bool {
    ["deleting", "deleted"].contains(&state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_has_tags_when_it_has_all_of_them_and_stays() {
        let tags = |all: &[(&str, &str)]| {
            all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Tags>()
        };
        let listed = |state: &str| ListedFileSystem {
            id: "fs-1".into(),
            name: "data".into(),
            tags: tags(&[("Name", "data"), ("team", "a")]),
            state: state.into(),
        };
        for (desired, expected) in [
            (tags(&[("team", "a")]), true),
            (tags(&[("team", "a"), ("Name", "data")]), true),
            (tags(&[("team", "b")]), false),
            (tags(&[("team", "a"), ("stage", "")]), false),
        ] {
            assert_eq!(listed("available").has(&desired), expected, "{desired:?}");
        }
        let team = tags(&[("team", "a")]);
        assert_eq!(
            ["creating", "updating", "error", "deleting", "deleted"].map(|it| listed(it).has(&team)),
            [true, true, true, false, false]
        );
    }
}
