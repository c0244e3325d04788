//! Whether a file system can be mounted by the nodes of a cluster: it exists, its mount targets are in
//! the cluster's VPC, and there is one in each zone, because its name resolves nowhere else. What could
//! not be read makes a finding unknown, never false.

use std::collections::BTreeSet;

use crds::conditions::reason;
use model::FileSystem;
use model::finding::{Finding, Reading, Status};

const AVAILABLE: &str = "available";
const CREATING: &str = "creating";

/// Says whether nodes in `zones` of the VPC can mount the file system `id`. The field path is the one of the
/// user's object.
pub fn check(
    field: &str,
    id: &str,
    reading: &Reading<FileSystem>,
    vpc_id: &str,
    zones: &BTreeSet<String>,
) -> Finding {
    let (status, reason, message) = match reading {
        Reading::Found(found) => check_file_system(id, found, vpc_id, zones),
        Reading::Absent => {
            let message =
                format!("file system {id} does not exist in this region; create it, or name another");
            (Status::False, reason::FILE_SYSTEM_NOT_FOUND, message)
        }
        Reading::AccessDenied { permission } => {
            let message = format!(
                "file system {id} cannot be read: grant {permission} to this operator, or check it yourself"
            );
            (Status::Unknown, reason::ACCESS_DENIED, message)
        }
        Reading::Failed { message } => {
            let message = format!("file system {id} could not be read and will be tried again: {message}");
            (Status::Unknown, reason::READ_FAILED, message)
        }
    };
    let message = if message.is_empty() { message } else { format!("{field}: {message}") };
    Finding { status, reason, message, fix: None, allowed: Vec::new() }
}

fn check_file_system(
    id: &str,
    found: &FileSystem,
    vpc_id: &str,
    zones: &BTreeSet<String>,
) -> (Status, &'static str, String) {
    match found.state.as_str() {
        AVAILABLE | "updating" => mount_targets(id, found, vpc_id, zones),
        CREATING => {
            let message = format!("file system {id} is still being created");
            (Status::Unknown, reason::FILE_SYSTEM_NOT_AVAILABLE, message)
        }
        state => {
            let message = format!("file system {id} is not available, it is {state}; name another");
            (Status::False, reason::FILE_SYSTEM_NOT_AVAILABLE, message)
        }
    }
}

fn mount_targets(
    id: &str,
    found: &FileSystem,
    vpc_id: &str,
    zones: &BTreeSet<String>,
) -> (Status, &'static str, String) {
    let alive = || found.mount_targets.iter().filter(|it| !model::is_going(&it.state));
    if let Some(other) = alive().find(|it| it.vpc_id != vpc_id) {
        let message = format!(
            "file system {id} has its mount targets in {}, and the cluster is in {vpc_id}; a file system has \
             them in one VPC at a time: \
             name one of {vpc_id}, or remove its mount targets and create them there",
            other.vpc_id
        );
        return (Status::False, reason::FILE_SYSTEM_IN_OTHER_VPC, message);
    }
    let in_state = |state: &str| -> BTreeSet<&String> {
        alive().filter(|it| it.state == state).map(|it| &it.zone).collect()
    };
    let (available, creating) = (in_state(AVAILABLE), in_state(CREATING));
    let lacking = |there: &[&BTreeSet<&String>]| -> Vec<&str> {
        zones.iter().filter(|zone| !there.iter().any(|it| it.contains(zone))).map(String::as_str).collect()
    };
    let missing = lacking(&[&available, &creating]);
    if !missing.is_empty() {
        return (Status::False, reason::MOUNT_TARGETS_MISSING, missing_text(id, found, vpc_id, &missing));
    }
    let unfinished = lacking(&[&available]);
    if !unfinished.is_empty() {
        let message =
            format!("mount targets of file system {id} in {} are still being created", unfinished.join(", "));
        return (Status::Unknown, reason::MOUNT_TARGETS_CREATING, message);
    }
    (Status::True, reason::FILE_SYSTEM_READY, String::new())
}

fn missing_text(id: &str, found: &FileSystem, vpc_id: &str, missing: &[&str]) -> String {
    let zones = missing.join(", ");
    match &found.zone {
        Some(only) if missing.iter().any(|it| it != only) => {
            format!(
                "file system {id} can be mounted in {only} alone, and the cluster is in {zones} too; name \
                 one that is not bound to a zone"
            )
        }
        _ => format!(
            "file system {id} has no mount target that is available in {zones}; create one there in a subnet \
             of {vpc_id}, with a security \
             group that lets TCP port 2049 in from the nodes"
        ),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use model::MountTarget;

    use super::*;

    fn target(zone: &str, vpc_id: &str, state: &str) -> MountTarget {
        let (id, subnet_id) = (format!("fsmt-{zone}"), format!("subnet-{zone}"));
        MountTarget { id, subnet_id, zone: zone.into(), vpc_id: vpc_id.into(), state: state.into() }
    }

    fn file_system(mount_targets: Vec<MountTarget>) -> FileSystem {
        FileSystem { id: "fs-1".into(), state: "available".into(), zone: None, mount_targets }
    }

    fn check_text(reading: &Reading<FileSystem>, expected: Expect) {
        let zones = ["a", "b"].map(str::to_owned).into();
        let found = check("spec.storage.efs.fileSystemID", "fs-1", reading, "vpc-1", &zones);
        expected.assert_eq(&format!("{:?} {} {}", found.status, found.reason, found.message));
    }

    #[test]
    fn a_mount_target_in_each_zone_is_what_it_takes() {
        let targets = vec![
            target("a", "vpc-1", "available"),
            target("b", "vpc-1", "available"),
            target("c", "vpc-1", "creating"),
        ];
        check_text(&Reading::Found(file_system(targets)), expect!["True FileSystemReady "]);
    }

    #[test]
    fn what_does_not_exist_is_the_users_to_make() {
        check_text(
            &Reading::Absent,
            expect![
                "False FileSystemNotFound spec.storage.efs.fileSystemID: file system fs-1 does not exist in this region; create it, or name another"
            ],
        );
    }

    #[test]
    fn a_file_system_of_another_vpc_is_refused() {
        let targets = vec![target("a", "vpc-2", "available"), target("b", "vpc-2", "available")];
        check_text(
            &Reading::Found(file_system(targets)),
            expect![
                "False FileSystemInOtherVPC spec.storage.efs.fileSystemID: file system fs-1 has its mount targets in vpc-2, and the cluster is in vpc-1; a file system has them in one VPC at a time: name one of vpc-1, or remove its mount targets and create them there"
            ],
        );
    }

    #[test]
    fn zones_without_a_mount_target_are_named() {
        let missing = expect![
            "False MountTargetsMissing spec.storage.efs.fileSystemID: file system fs-1 has no mount target that is available in b; create one there in a subnet of vpc-1, with a security group that lets TCP port 2049 in from the nodes"
        ];
        let never_made = Reading::Found(file_system(vec![target("a", "vpc-1", "available")]));
        check_text(&never_made, missing);
        let deleting = vec![target("a", "vpc-1", "available"), target("b", "vpc-1", "deleting")];
        let zones = ["a", "b"].map(str::to_owned).into();
        let of = |reading: &Reading<FileSystem>| check("f", "fs-1", reading, "vpc-1", &zones);
        assert_eq!(of(&Reading::Found(file_system(deleting))), of(&never_made));
        check_text(
            &Reading::Found(file_system(vec![])),
            expect![
                "False MountTargetsMissing spec.storage.efs.fileSystemID: file system fs-1 has no mount target that is available in a, b; create one there in a subnet of vpc-1, with a security group that lets TCP port 2049 in from the nodes"
            ],
        );
    }

    #[test]
    fn a_file_system_of_one_zone_cannot_serve_two() {
        let one_zone =
            FileSystem { zone: Some("a".into()), ..file_system(vec![target("a", "vpc-1", "available")]) };
        check_text(
            &Reading::Found(one_zone),
            expect![
                "False MountTargetsMissing spec.storage.efs.fileSystemID: file system fs-1 can be mounted in a alone, and the cluster is in b too; name one that is not bound to a zone"
            ],
        );
    }

    #[test]
    fn what_comes_by_itself_or_could_not_be_read_is_unknown() {
        let coming = vec![target("a", "vpc-1", "available"), target("b", "vpc-1", "creating")];
        check_text(
            &Reading::Found(file_system(coming)),
            expect![
                "Unknown MountTargetsCreating spec.storage.efs.fileSystemID: mount targets of file system fs-1 in b are still being created"
            ],
        );
        let creating = FileSystem { state: "creating".into(), ..file_system(vec![]) };
        check_text(
            &Reading::Found(creating),
            expect![
                "Unknown FileSystemNotAvailable spec.storage.efs.fileSystemID: file system fs-1 is still being created"
            ],
        );
        check_text(
            &Reading::AccessDenied { permission: "elasticfilesystem:DescribeFileSystems".into() },
            expect![
                "Unknown AccessDenied spec.storage.efs.fileSystemID: file system fs-1 cannot be read: grant elasticfilesystem:DescribeFileSystems to this operator, or check it yourself"
            ],
        );
        check_text(
            &Reading::Failed { message: "elasticfilesystem:DescribeFileSystems: no answer in time".into() },
            expect![
                "Unknown ReadFailed spec.storage.efs.fileSystemID: file system fs-1 could not be read and will be tried again: elasticfilesystem:DescribeFileSystems: no answer in time"
            ],
        );
    }

    #[test]
    fn what_is_gone_for_good_is_refused() {
        let deleting = FileSystem { state: "deleting".into(), ..file_system(vec![]) };
        check_text(
            &Reading::Found(deleting),
            expect![
                "False FileSystemNotAvailable spec.storage.efs.fileSystemID: file system fs-1 is not available, it is deleting; name another"
            ],
        );
    }
}
