"""File systems: how they come and go, and what their mount targets hold."""

import pytest
from conftest import refused, settle

from emulator.settings import configure


@pytest.fixture
def system(aws):
    """A file system that is available."""
    made = aws.efs.create_file_system(CreationToken="one", Tags=[{"Key": "Name", "Value": "data"}])["FileSystemId"]
    settle()
    return made


@pytest.fixture
def target(aws, network, system):
    """Its mount target in the first subnet, available."""
    made = aws.efs.create_mount_target(FileSystemId=system, SubnetId=network.subnet, SecurityGroups=[network.group])
    settle()
    return made["MountTargetId"]


def _state(aws, system):
    return aws.efs.describe_file_systems(FileSystemId=system)["FileSystems"][0]["LifeCycleState"]


def _targets(aws, system):
    return aws.efs.describe_mount_targets(FileSystemId=system)["MountTargets"]


def _interfaces(aws, network):
    filters = [{"Name": "vpc-id", "Values": [network.vpc]}]
    return aws.ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]


def test_a_file_system_takes_time_to_come_and_to_go(aws):
    made = aws.efs.create_file_system(CreationToken="one")
    system = made["FileSystemId"]
    assert made["LifeCycleState"] == "creating" == _state(aws, system)
    settle()
    assert _state(aws, system) == "available"
    aws.efs.delete_file_system(FileSystemId=system)
    assert _state(aws, system) == "deleting"
    settle()
    refused("FileSystemNotFound", aws.efs.describe_file_systems, FileSystemId=system)
    assert aws.efs.create_file_system(CreationToken="one")["FileSystemId"] != system


def test_a_token_makes_one_file_system(aws, system):
    error = refused("FileSystemAlreadyExists", aws.efs.create_file_system, CreationToken="one")
    assert error.response["FileSystemId"] == system
    assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 409


def test_only_an_available_file_system_takes_targets_and_access_points(aws, network):
    system = aws.efs.create_file_system(CreationToken="one")["FileSystemId"]
    wanted = {"FileSystemId": system, "SubnetId": network.subnet}
    refused("IncorrectFileSystemLifeCycleState", aws.efs.create_mount_target, **wanted)
    refused("IncorrectFileSystemLifeCycleState", aws.efs.create_access_point, FileSystemId=system)
    settle()
    aws.efs.create_mount_target(**wanted)
    aws.efs.create_access_point(FileSystemId=system)
    absent = "fs-00000000000000000"
    refused("FileSystemNotFound", aws.efs.create_mount_target, FileSystemId=absent, SubnetId=network.subnet)
    refused("FileSystemNotFound", aws.efs.create_access_point, FileSystemId=absent)


def test_mount_targets_take_time_and_keep_their_file_system(aws, network, system):
    made = aws.efs.create_mount_target(FileSystemId=system, SubnetId=network.subnet)
    assert made["LifeCycleState"] == "creating"
    settle()
    assert [one["LifeCycleState"] for one in _targets(aws, system)] == ["available"]
    refused("FileSystemInUse", aws.efs.delete_file_system, FileSystemId=system)
    aws.efs.delete_mount_target(MountTargetId=made["MountTargetId"])
    assert [one["LifeCycleState"] for one in _targets(aws, system)] == ["deleting"]
    refused("FileSystemInUse", aws.efs.delete_file_system, FileSystemId=system)
    settle()
    assert _targets(aws, system) == []
    refused("MountTargetNotFound", aws.efs.delete_mount_target, MountTargetId=made["MountTargetId"])
    aws.efs.delete_file_system(FileSystemId=system)


def test_one_mount_target_in_each_zone_of_one_vpc(aws, network, system, target):
    same_zone = aws.ec2.create_subnet(VpcId=network.vpc, CidrBlock="10.0.9.0/24", AvailabilityZone="us-east-1a")
    same_zone = same_zone["Subnet"]["SubnetId"]
    other_vpc = aws.ec2.create_vpc(CidrBlock="10.5.0.0/16")["Vpc"]["VpcId"]
    foreign = aws.ec2.create_subnet(VpcId=other_vpc, CidrBlock="10.5.0.0/24", AvailabilityZone="us-east-1b")
    for subnet in (same_zone, foreign["Subnet"]["SubnetId"]):
        refused("MountTargetConflict", aws.efs.create_mount_target, FileSystemId=system, SubnetId=subnet)
    refused("SubnetNotFound", aws.efs.create_mount_target, FileSystemId=system, SubnetId="subnet-00000000000000000")
    aws.efs.create_mount_target(FileSystemId=system, SubnetId=network.subnets[1])


def test_groups_of_a_mount_target_belong_to_its_vpc(aws, network, system):
    other_vpc = aws.ec2.create_vpc(CidrBlock="10.5.0.0/16")["Vpc"]["VpcId"]
    foreign = aws.ec2.create_security_group(GroupName="f", Description="f", VpcId=other_vpc)["GroupId"]
    wanted = {"FileSystemId": system, "SubnetId": network.subnet}
    for group in (foreign, "sg-00000000000000000"):
        refused("SecurityGroupNotFound", aws.efs.create_mount_target, **wanted, SecurityGroups=[group])
    made = aws.efs.create_mount_target(**wanted)["MountTargetId"]
    change = {"MountTargetId": made, "SecurityGroups": [network.group]}
    refused("IncorrectMountTargetState", aws.efs.modify_mount_target_security_groups, **change)
    settle()
    aws.efs.modify_mount_target_security_groups(**change)
    assert aws.efs.describe_mount_target_security_groups(MountTargetId=made)["SecurityGroups"] == [network.group]
    refused(
        "SecurityGroupNotFound",
        aws.efs.modify_mount_target_security_groups,
        MountTargetId=made,
        SecurityGroups=[foreign],
    )


def test_the_interface_of_a_mount_target_holds_subnet_and_group(aws, network, system, target):
    held = _interfaces(aws, network)
    assert [one["Description"] for one in held] == [f"EFS mount target for {system} ({target})"]
    assert held[0]["RequesterManaged"] and held[0]["Status"] == "in-use"
    assert [one["GroupId"] for one in held[0]["Groups"]] == [network.group]
    assert held[0]["PrivateIpAddress"] == _targets(aws, system)[0]["IpAddress"]
    assert held[0]["NetworkInterfaceId"] == _targets(aws, system)[0]["NetworkInterfaceId"]
    name = held[0]["NetworkInterfaceId"]
    refused("InvalidParameterValue", aws.ec2.delete_network_interface, NetworkInterfaceId=name)
    refused("OperationNotPermitted", aws.ec2.modify_network_interface_attribute, NetworkInterfaceId=name, Groups=[])
    attachment = held[0]["Attachment"]["AttachmentId"]
    refused("OperationNotPermitted", aws.ec2.detach_network_interface, AttachmentId=attachment)
    refused("DependencyViolation", aws.ec2.delete_subnet, SubnetId=network.subnet)
    refused("DependencyViolation", aws.ec2.delete_security_group, GroupId=network.group)
    aws.efs.delete_mount_target(MountTargetId=target)
    refused("DependencyViolation", aws.ec2.delete_subnet, SubnetId=network.subnet)
    settle()
    assert _interfaces(aws, network) == []
    aws.ec2.delete_subnet(SubnetId=network.subnet)
    aws.ec2.delete_security_group(GroupId=network.group)


def test_a_full_subnet_takes_no_mount_target_and_none_is_left(aws, network, launch, system):
    small = aws.ec2.create_subnet(VpcId=network.vpc, CidrBlock="10.0.200.0/28")["Subnet"]["SubnetId"]
    interface = {"DeviceIndex": 0, "SubnetId": small, "Groups": [network.group]}
    launch(NetworkInterfaces=[interface], MinCount=11, MaxCount=11)
    refused("NoFreeAddressesInSubnet", aws.efs.create_mount_target, FileSystemId=system, SubnetId=small)
    assert _targets(aws, system) == []
    aws.efs.delete_file_system(FileSystemId=system)


def test_mount_targets_are_found_by_what_they_serve(aws, system, target):
    point = aws.efs.create_access_point(FileSystemId=system, ClientToken="a")["AccessPointId"]
    for wanted in ({"FileSystemId": system}, {"MountTargetId": target}, {"AccessPointId": point}):
        found = aws.efs.describe_mount_targets(**wanted)["MountTargets"]
        assert [one["MountTargetId"] for one in found] == [target]
    refused("BadRequest", aws.efs.describe_mount_targets)
    refused("BadRequest", aws.efs.describe_mount_targets, FileSystemId=system, MountTargetId=target)
    refused("AccessPointNotFound", aws.efs.describe_mount_targets, AccessPointId="fsap-00000000000000000")


def test_access_points_come_once_for_each_token_and_go(aws, system):
    made = aws.efs.create_access_point(FileSystemId=system, ClientToken="a", RootDirectory={"Path": "/pv"})
    point = made["AccessPointId"]
    assert made["LifeCycleState"] == "creating"
    error = refused("AccessPointAlreadyExists", aws.efs.create_access_point, FileSystemId=system, ClientToken="a")
    assert error.response["AccessPointId"] == point
    settle()
    shown = aws.efs.describe_access_points(AccessPointId=point)["AccessPoints"][0]
    assert shown["LifeCycleState"] == "available" and shown["RootDirectory"]["Path"] == "/pv"
    aws.efs.delete_access_point(AccessPointId=point)
    assert aws.efs.describe_access_points(AccessPointId=point)["AccessPoints"][0]["LifeCycleState"] == "deleting"
    settle()
    refused("AccessPointNotFound", aws.efs.describe_access_points, AccessPointId=point)
    refused("AccessPointNotFound", aws.efs.delete_access_point, AccessPointId=point)


def test_the_path_of_an_access_point_is_neither_too_long_nor_too_deep(aws, system):
    def made(token, path):
        return {"FileSystemId": system, "ClientToken": token, "RootDirectory": {"Path": path}}

    aws.efs.create_access_point(**made("a", "/" + "a" * 99))
    aws.efs.create_access_point(**made("b", "/a/b/c/d/e"))
    refused("ValidationException", aws.efs.create_access_point, **made("c", "/" + "a" * 100))
    refused("BadRequest", aws.efs.create_access_point, **made("d", "/a/b/c/d/e/f"))


def test_access_points_go_with_their_file_system(aws, system):
    point = aws.efs.create_access_point(FileSystemId=system, ClientToken="a")["AccessPointId"]
    aws.efs.delete_file_system(FileSystemId=system)
    settle()
    refused("AccessPointNotFound", aws.efs.describe_access_points, AccessPointId=point)


def test_lists_come_in_pages(aws, system):
    systems = [system, *(aws.efs.create_file_system(CreationToken=f"n{n}")["FileSystemId"] for n in range(4))]
    points = [aws.efs.create_access_point(FileSystemId=system, ClientToken=f"{n}")["AccessPointId"] for n in range(5)]
    pages = aws.efs.get_paginator("describe_file_systems").paginate(PaginationConfig={"PageSize": 2})
    shown = [[one["FileSystemId"] for one in page["FileSystems"]] for page in pages]
    assert shown == [systems[:2], systems[2:4], systems[4:]]
    first = aws.efs.describe_access_points(FileSystemId=system, MaxResults=3)
    rest = aws.efs.describe_access_points(FileSystemId=system, NextToken=first["NextToken"])
    assert [one["AccessPointId"] for one in first["AccessPoints"] + rest["AccessPoints"]] == points
    assert "NextToken" not in rest
    refused("BadRequest", aws.efs.describe_file_systems, Marker="nonsense")


def test_pages_are_as_small_as_the_test_wants(aws, network, system):
    for subnet in network.subnets:
        aws.efs.create_mount_target(FileSystemId=system, SubnetId=subnet)
    configure(page_size=1)
    pages = aws.efs.get_paginator("describe_mount_targets").paginate(FileSystemId=system)
    assert [len(page["MountTargets"]) for page in pages] == [1, 1]
