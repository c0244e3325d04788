"""Interfaces as a VPC CNI uses them: attached, given addresses and prefixes, left behind."""

import ipaddress

import pytest
from conftest import refused, settle

TAGS = [{"ResourceType": "network-interface", "Tags": [{"Key": "node.k8s.amazonaws.com/instance_id", "Value": "i-1"}]}]


@pytest.fixture
def instance(launch):
    """A t3.large that runs: three interfaces of twelve addresses at most."""
    made = launch()["InstanceId"]
    settle()
    return made


def _interface(aws, network, subnet=None, **fields):
    wanted = {"SubnetId": subnet or network.subnet, "Groups": [network.group], "TagSpecifications": TAGS, **fields}
    return aws.ec2.create_network_interface(**wanted)["NetworkInterface"]


def _attach(aws, interface, instance, index=1):
    wanted = {"NetworkInterfaceId": interface["NetworkInterfaceId"], "InstanceId": instance, "DeviceIndex": index}
    return aws.ec2.attach_network_interface(**wanted)["AttachmentId"]


def _shown(aws, interface):
    names = [interface["NetworkInterfaceId"]]
    return aws.ec2.describe_network_interfaces(NetworkInterfaceIds=names)["NetworkInterfaces"][0]


def _free(aws, network):
    return aws.ec2.describe_subnets(SubnetIds=[network.subnet])["Subnets"][0]["AvailableIpAddressCount"]


def test_an_interface_of_a_cni_outlives_its_instance_and_holds_its_network(aws, network, instance):
    interface = _interface(aws, network)
    _attach(aws, interface, instance)
    assert _shown(aws, interface)["Attachment"]["DeleteOnTermination"] is False
    aws.ec2.terminate_instances(InstanceIds=[instance])
    settle()
    filters = [
        {"Name": "status", "Values": ["available"]},
        {"Name": "tag-key", "Values": ["node.k8s.amazonaws.com/instance_id"]},
    ]
    left = aws.ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]
    assert [one["NetworkInterfaceId"] for one in left] == [interface["NetworkInterfaceId"]]
    refused("DependencyViolation", aws.ec2.delete_subnet, SubnetId=network.subnet)
    refused("DependencyViolation", aws.ec2.delete_security_group, GroupId=network.group)
    aws.ec2.delete_network_interface(NetworkInterfaceId=interface["NetworkInterfaceId"])
    aws.ec2.delete_subnet(SubnetId=network.subnet)
    aws.ec2.delete_security_group(GroupId=network.group)


def test_an_interface_can_be_told_to_go_with_its_instance(aws, network, instance):
    interface = _interface(aws, network)
    change = {"AttachmentId": _attach(aws, interface, instance), "DeleteOnTermination": True}
    name = interface["NetworkInterfaceId"]
    aws.ec2.modify_network_interface_attribute(NetworkInterfaceId=name, Attachment=change)
    assert _shown(aws, interface)["Attachment"]["DeleteOnTermination"] is True
    wrong = {**change, "AttachmentId": "eni-attach-00000000000000000"}
    refused(
        "InvalidAttachmentID.NotFound",
        aws.ec2.modify_network_interface_attribute,
        NetworkInterfaceId=name,
        Attachment=wrong,
    )
    aws.ec2.terminate_instances(InstanceIds=[instance])
    settle()
    refused("InvalidNetworkInterfaceID.NotFound", _shown, aws, interface)


def test_what_cannot_be_attached_is_refused(aws, network, instance, launch):
    interface = _interface(aws, network)
    refused("InvalidParameterValue", _attach, aws, interface, instance, 0)
    _attach(aws, interface, instance)
    refused("InvalidNetworkInterface.InUse", _attach, aws, interface, instance, 2)
    elsewhere = _interface(aws, network, network.subnets[1])
    refused("InvalidParameterCombination", _attach, aws, elsewhere, instance, 2)
    _attach(aws, _interface(aws, network), instance, 2)
    refused("AttachmentLimitExceeded", _attach, aws, _interface(aws, network), instance, 3)
    other = launch()["InstanceId"]
    aws.ec2.terminate_instances(InstanceIds=[other])
    refused("IncorrectInstanceState", _attach, aws, _interface(aws, network), other)


def test_detaching_takes_time(aws, network, instance):
    interface = _interface(aws, network)
    attachment = _attach(aws, interface, instance)
    aws.ec2.detach_network_interface(AttachmentId=attachment)
    shown = _shown(aws, interface)
    assert (shown["Status"], shown["Attachment"]["Status"]) == ("in-use", "detaching")
    name = interface["NetworkInterfaceId"]
    refused("InvalidParameterValue", aws.ec2.delete_network_interface, NetworkInterfaceId=name)
    settle()
    assert _shown(aws, interface)["Status"] == "available"
    aws.ec2.delete_network_interface(NetworkInterfaceId=name)


def test_the_primary_interface_cannot_be_detached(aws, network, instance):
    _attach(aws, _interface(aws, network), instance)
    filters = [{"Name": "attachment.device-index", "Values": ["0"]}]
    primary = aws.ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"][0]
    attachment = primary["Attachment"]["AttachmentId"]
    refused("OperationNotPermitted", aws.ec2.detach_network_interface, AttachmentId=attachment)


def test_addresses_come_from_the_subnet_and_go_back(aws, network):
    before = _free(aws, network)
    interface = _interface(aws, network, SecondaryPrivateIpAddressCount=2)
    name = interface["NetworkInterfaceId"]
    made = aws.ec2.assign_private_ip_addresses(NetworkInterfaceId=name, SecondaryPrivateIpAddressCount=3)
    fresh = [one["PrivateIpAddress"] for one in made["AssignedPrivateIpAddresses"]]
    held = [one["PrivateIpAddress"] for one in _shown(aws, interface)["PrivateIpAddresses"]]
    assert len(fresh) == 3 and len(set(held)) == 6 and set(fresh) < set(held)
    assert all(ipaddress.ip_address(one) in ipaddress.ip_network("10.0.0.0/24") for one in held)
    assert _free(aws, network) == before - 6
    refused(
        "InvalidParameterValue",
        aws.ec2.assign_private_ip_addresses,
        NetworkInterfaceId=_interface(aws, network)["NetworkInterfaceId"],
        PrivateIpAddresses=[fresh[0]],
    )
    aws.ec2.unassign_private_ip_addresses(NetworkInterfaceId=name, PrivateIpAddresses=fresh)
    assert len(_shown(aws, interface)["PrivateIpAddresses"]) == 3
    primary = interface["PrivateIpAddress"]
    refused(
        "InvalidParameterValue",
        aws.ec2.unassign_private_ip_addresses,
        NetworkInterfaceId=name,
        PrivateIpAddresses=[primary],
    )


def test_an_instance_type_bears_so_many_addresses(aws, network, instance):
    interface = _interface(aws, network)
    _attach(aws, interface, instance)
    name = interface["NetworkInterfaceId"]
    aws.ec2.assign_private_ip_addresses(NetworkInterfaceId=name, SecondaryPrivateIpAddressCount=11)
    refused(
        "PrivateIpAddressLimitExceeded",
        aws.ec2.assign_private_ip_addresses,
        NetworkInterfaceId=name,
        SecondaryPrivateIpAddressCount=1,
    )


def test_prefixes_are_delegated_and_given_back(aws, network):
    before = _free(aws, network)
    interface = _interface(aws, network)
    name = interface["NetworkInterfaceId"]
    made = aws.ec2.assign_private_ip_addresses(NetworkInterfaceId=name, Ipv4PrefixCount=2)["AssignedIpv4Prefixes"]
    assert _shown(aws, interface)["Ipv4Prefixes"] == made and _free(aws, network) == before - 1 - 32
    blocks = [ipaddress.ip_network(one["Ipv4Prefix"]) for one in made]
    assert all(one.prefixlen == 28 and one.subnet_of(ipaddress.ip_network("10.0.0.0/24")) for one in blocks)
    aws.ec2.unassign_private_ip_addresses(NetworkInterfaceId=name, Ipv4Prefixes=[made[0]["Ipv4Prefix"]])
    assert _shown(aws, interface)["Ipv4Prefixes"] == made[1:]
    aws.ec2.delete_network_interface(NetworkInterfaceId=name)
    assert _free(aws, network) == before


def test_a_fragmented_subnet_has_no_prefixes(aws, network):
    small = aws.ec2.create_subnet(VpcId=network.vpc, CidrBlock="10.0.200.0/27")["Subnet"]["SubnetId"]
    name = _interface(aws, network, small)["NetworkInterfaceId"]
    refused("InsufficientCidrBlocks", aws.ec2.assign_private_ip_addresses, NetworkInterfaceId=name, Ipv4PrefixCount=1)
