"""File systems, mount targets and access points: they take time, and hold on to one another and to their network.

A mount target has an interface in its subnet, which keeps the subnet and its groups; it goes with the mount target.
Data is never stored. Sources: Amazon EFS API reference; "Creating and managing mount targets" in its User Guide.
"""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from moto.ec2.exceptions import EC2ClientError, InvalidSubnetIdError
from moto.efs import models
from moto.efs.models import AccessPoint, EFSBackend, FileSystem, MountTarget
from moto.moto_api._internal import mock_random

from emulator import clock
from emulator.hooks import Call, Proceed, Refused, around, before
from emulator.rules import interfaces, paging
from emulator.settings import settings

#: The most that AWS puts on a page.
_PAGE = 100
_NOT_READY = "{kind} '{name}' is in state '{state}'"

# Ids are as long as those of today's AWS.
models.mock_random = SimpleNamespace(get_random_hex=lambda length=17: mock_random.get_random_hex(17))


def _creating(thing: Any) -> None:
    thing.life_cycle_state = "creating"
    clock.later(settings.delay, lambda: _available(thing))


def _available(thing: Any) -> None:
    if thing.life_cycle_state == "creating":
        thing.life_cycle_state = "available"


def _deleting(thing: Any, remove: Callable[[], None]) -> None:
    """Marks a thing; it goes after the usual delay. Asking again changes nothing."""
    if thing.life_cycle_state != "deleting":
        thing.life_cycle_state = "deleting"
        clock.later(settings.delay, remove)


def _point(self: AccessPoint) -> dict[str, Any]:
    return {**_moto_point(self), "LifeCycleState": self.life_cycle_state}


def _create_system(self: EFSBackend, *args: Any, **kwargs: Any) -> FileSystem:
    system = _moto_create_system(self, *args, **kwargs)
    _creating(system)
    return system


def _create_target(self: EFSBackend, *args: Any, **kwargs: Any) -> MountTarget:
    try:
        target = _moto_create_target(self, *args, **kwargs)
    except EC2ClientError as error:
        # moto counts a mount target before it has an address for it.
        system = self.file_systems_by_id[kwargs["file_system_id"]]
        known = self.mount_targets_by_id.values()
        system._mount_targets = {zone: one for zone, one in system._mount_targets.items() if one in known}
        raise Refused("NoFreeAddressesInSubnet", error.message, 409) from error
    interface = self.ec2_backend.enis[target.network_interface_id]
    interface.description = f"EFS mount target for {target.file_system_id} ({target.mount_target_id})"
    interfaces.take(interface, "efs", "amazon-elasticfilesystem")
    target.security_groups = [one.id for one in interface._group_set]
    _creating(target)
    return target


def _delete_target(self: EFSBackend, mount_target_id: str) -> None:
    target = _target(self, mount_target_id)
    _deleting(target, lambda: _remove_target(self, target))


def _remove_target(efs: EFSBackend, target: MountTarget) -> None:
    interface = efs.ec2_backend.enis.get(target.network_interface_id)
    if interface is not None:
        interfaces.remove(efs.ec2_backend, interface)
    target._file_system.remove_mount_target(target._subnet)
    del efs.mount_targets_by_id[target.mount_target_id]


def _target(efs: EFSBackend, name: str) -> MountTarget:
    if name not in efs.mount_targets_by_id:
        raise models.MountTargetNotFound(name)
    return efs.mount_targets_by_id[name]


def _remove_system(efs: EFSBackend, system: FileSystem) -> None:
    for point in [one for one in efs.access_points.values() if one.file_system_id == system.file_system_id]:
        _remove_point(efs, point)
    _moto_delete_system(efs, system.file_system_id)
    efs.tagging_service.delete_all_tags_for_resource(system.file_system_id)


def _delete_system(self: EFSBackend, file_system_id: str) -> None:
    system = self.file_systems_by_id.get(file_system_id)
    if system is None:
        raise models.FileSystemNotFound(file_system_id)
    if system.number_of_mount_targets:
        raise models.FileSystemInUse("The file system has mount targets; delete them first.")
    _deleting(system, lambda: _remove_system(self, system))


def _create_point(self: EFSBackend, *args: Any, **kwargs: Any) -> AccessPoint:
    point = _moto_create_point(self, *args, **kwargs)
    _creating(point)
    return point


def _delete_point(self: EFSBackend, access_point_id: str) -> None:
    point = self.access_points.get(access_point_id)
    if point is None:
        raise models.AccessPointNotFound(access_point_id)
    _deleting(point, lambda: _remove_point(self, point))


def _remove_point(efs: EFSBackend, point: AccessPoint) -> None:
    efs.access_points.pop(point.access_point_id, None)
    efs.tagging_service.delete_all_tags_for_resource(point.access_point_id)


_moto_point = AccessPoint.info_json
_moto_create_system = EFSBackend.create_file_system
_moto_create_target = EFSBackend.create_mount_target
_moto_create_point = EFSBackend.create_access_point
_moto_delete_system = EFSBackend.delete_file_system
AccessPoint.info_json = _point
EFSBackend.create_file_system = _create_system
EFSBackend.create_mount_target = _create_target
EFSBackend.create_access_point = _create_point
EFSBackend.delete_file_system = _delete_system
EFSBackend.delete_mount_target = _delete_target
EFSBackend.delete_access_point = _delete_point


@before("elasticfilesystem", "CreateFileSystem")
def one_for_each_token(call: Call) -> None:
    """A token makes one file system; the refusal names it."""
    for system in call.efs.file_systems_by_id.values():
        if system.creation_token == call.get("CreationToken"):
            raise call.refuse(
                "FileSystemAlreadyExists",
                f"File system '{system.file_system_id}' already exists with creation token '{system.creation_token}'",
                409,
                FileSystemId=system.file_system_id,
            )


@before("elasticfilesystem", "CreateMountTarget", "CreateAccessPoint")
def ready_file_system(call: Call) -> None:
    """Only a file system that is available takes mount targets and access points."""
    system = call.efs.file_systems_by_id.get(call.get("FileSystemId"))
    if system is None:
        raise models.FileSystemNotFound(call.get("FileSystemId"))
    if system.life_cycle_state != "available":
        message = _NOT_READY.format(kind="File system", name=system.file_system_id, state=system.life_cycle_state)
        raise call.refuse("IncorrectFileSystemLifeCycleState", message, 409)


@before("elasticfilesystem", "CreateMountTarget")
def mount_target_fits(call: Call) -> None:
    """One mount target in each zone, all in one VPC, with groups of that VPC."""
    try:
        subnet = call.ec2.get_subnet(call.get("SubnetId"))
    except InvalidSubnetIdError:
        raise call.refuse("SubnetNotFound", f"The subnet ID '{call.get('SubnetId')}' does not exist") from None
    system = call.efs.file_systems_by_id[call.get("FileSystemId")]
    for other in system.iter_mount_targets():
        if other.vpc_id != subnet.vpc_id:
            message = "requested subnet for new mount target is not in the same VPC as existing mount targets"
            raise call.refuse("MountTargetConflict", message, 409)
        if other.availability_zone_name == subnet.availability_zone:
            raise call.refuse("MountTargetConflict", "mount target already exists in this AZ", 409)
    if system.availability_zone_name and system.availability_zone_name != subnet.availability_zone:
        raise call.refuse("AvailabilityZonesMismatch", "The file system and the subnet are in different zones")
    _check_groups(call, call.get("SecurityGroups") or [], subnet.vpc_id)


@before("elasticfilesystem", "ModifyMountTargetSecurityGroups")
def groups_of_a_ready_target(call: Call) -> None:
    """Only an available mount target changes its groups."""
    target = _target(call.efs, call.get("MountTargetId"))
    if target.life_cycle_state != "available":
        message = _NOT_READY.format(kind="Mount target", name=target.mount_target_id, state=target.life_cycle_state)
        raise call.refuse("IncorrectMountTargetState", message, 409)
    _check_groups(call, call.get("SecurityGroups") or [], target.vpc_id)


def _check_groups(call: Call, groups: list[str], vpc_id: str) -> None:
    if len(groups) > 5:
        raise call.refuse("SecurityGroupLimitExceeded", "The maximum number of security groups has been reached")
    for name in groups:
        group = call.ec2.get_security_group_from_id(name)
        if group is None or group.vpc_id != vpc_id:
            raise call.refuse("SecurityGroupNotFound", f"The SecurityGroup ID '{name}' does not exist in {vpc_id}")


@before("elasticfilesystem", "CreateAccessPoint")
def root_directory_fits(call: Call) -> None:
    """A path of a directory and four below it at most, and of 100 characters.

    Source: Amazon EFS API Reference, RootDirectory.
    """
    path = (call.get("RootDirectory") or {}).get("Path") or "/"
    if len(path) > 100 or not path.startswith("/"):
        raise call.refuse("ValidationException", f"Invalid value for 'rootDirectory.path': '{path}'")
    if path.rstrip("/").count("/") > 5:
        raise call.refuse("BadRequest", f"The path '{path}' has more than four subdirectories")


@before("elasticfilesystem", "CreateAccessPoint")
def one_access_point_for_each_token(call: Call) -> None:
    """A token makes one access point; the refusal names it."""
    for point in call.efs.access_points.values():
        if call.get("ClientToken") and point.client_token == call.get("ClientToken"):
            message = f"Access point '{point.access_point_id}' already exists with this client token"
            raise call.refuse("AccessPointAlreadyExists", message, 409, AccessPointId=point.access_point_id)


@around("elasticfilesystem", "DescribeFileSystems")
def file_systems(call: Call, proceed: Proceed) -> Any:
    """By id, by token, or all, in pages."""
    held, name, token = call.efs.file_systems_by_id, call.get("FileSystemId"), call.get("CreationToken")
    if name and token:
        raise call.refuse("BadRequest", "Request cannot contain both a file system ID and a creation token.")
    if name and name not in held:
        raise models.FileSystemNotFound(name)
    found = [one for one in held.values() if (not name or one.file_system_id == name)]
    found = [one for one in found if not token or one.creation_token == token]
    return _page(call, "FileSystems", [(one.info_json(), one.file_system_id) for one in found])


@around("elasticfilesystem", "DescribeMountTargets")
def mount_targets(call: Call, proceed: Proceed) -> Any:
    """Of a file system, of an access point's file system, or one, in pages."""
    names = [call.get(one) for one in ("FileSystemId", "MountTargetId", "AccessPointId")]
    if sum(one is not None for one in names) != 1:
        raise call.refuse("BadRequest", "Must specify exactly one mutually exclusive parameter.")
    system, target, point = names
    if point is not None:
        if point not in call.efs.access_points:
            raise models.AccessPointNotFound(point)
        system = call.efs.access_points[point].file_system_id
    if target is not None:
        found = [_target(call.efs, target)]
    elif system not in call.efs.file_systems_by_id:
        raise models.FileSystemNotFound(system)
    else:
        found = list(call.efs.file_systems_by_id[system].iter_mount_targets())
    return _page(call, "MountTargets", [(one.info_json(), one.mount_target_id) for one in found])


@around("elasticfilesystem", "DescribeAccessPoints")
def access_points(call: Call, proceed: Proceed) -> Any:
    """Of a file system, one, or all, in pages."""
    name, system = call.get("AccessPointId"), call.get("FileSystemId")
    if name and name not in call.efs.access_points:
        raise models.AccessPointNotFound(name)
    if system and system not in call.efs.file_systems_by_id:
        raise models.FileSystemNotFound(system)
    found = [one for one in call.efs.access_points.values() if name in (None, one.access_point_id)]
    found = [one for one in found if system in (None, one.file_system_id)]
    items = [(one.info_json(), one.access_point_id) for one in found]
    return _page(call, "AccessPoints", items, "MaxResults", "NextToken", "NextToken")


def _page(
    call: Call,
    key: str,
    items: list[tuple[dict[str, Any], str]],
    limit: str = "MaxItems",
    token: str = "Marker",
    following: str = "NextMarker",
) -> Any:
    size = min(int(call.get(limit) or _PAGE), _PAGE, settings.page_size or _PAGE)
    start = paging.start(call, call.get(token), items)
    page, rest = items[start : start + size], items[start + size :]
    answer: dict[str, Any] = {key: [one for one, _ in page]}
    if rest and page:
        answer[following] = paging.token(page, start + size)
    return json.dumps(answer), {"Content-Type": "application/json"}
