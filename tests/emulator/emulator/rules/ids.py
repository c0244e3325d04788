"""Ids: a malformed one is an error of its own, and tags go only on what exists."""

import re
from typing import Any

from emulator.hooks import Call, before

_FORM = re.compile(r"^[a-z]+-[0-9a-f]{8}(?:[0-9a-f]{9})?$")
#: Parameter, prefix of its ids, and AWS's code for a malformed one.
_MALFORMED = (
    ("InstanceId", "i", "InvalidInstanceID.Malformed"),
    ("ImageId", "ami", "InvalidAMIID.Malformed"),
    ("GroupId", "sg", "InvalidGroupId.Malformed"),
    ("NatGatewayId", "nat", "NatGatewayMalformed"),
    ("NetworkInterfaceId", "eni", "InvalidNetworkInterfaceId.Malformed"),
    ("RouteTableId", "rtb", "InvalidRouteTableId.Malformed"),
    ("VolumeId", "vol", "InvalidVolumeID.Malformed"),
)
_CHECKED = (
    "AssociateRouteTable",
    "AttachVolume",
    "AuthorizeSecurityGroupIngress",
    "CreateRoute",
    "DeleteNatGateway",
    "DeleteNetworkInterface",
    "DeleteRouteTable",
    "DeleteSecurityGroup",
    "DeleteVolume",
    "DescribeImages",
    "DescribeInstanceAttribute",
    "DescribeInstances",
    "DescribeNatGateways",
    "DescribeNetworkInterfaces",
    "DescribeRouteTables",
    "DescribeSecurityGroups",
    "DescribeVolumes",
    "ModifyInstanceAttribute",
    "ModifyNetworkInterfaceAttribute",
    "RevokeSecurityGroupIngress",
    "RunInstances",
    "TerminateInstances",
)


@before("ec2", *_CHECKED)
def well_formed(call: Call) -> None:
    """Ids have their prefix and 8 or 17 hexadecimal digits."""
    for name, prefix, code in _MALFORMED:
        given = [*filter(None, [call.get(name)]), *(call.get(f"{name}s") or [])]
        for one in given:
            if not one.startswith(f"{prefix}-") or not _FORM.match(one):
                raise call.refuse(code, f'Invalid id: "{one}" (expecting "{prefix}-...")')


@before("ec2", "CreateTags")
def existing_resources(call: Call) -> None:
    """moto tags instances, interfaces, gateways and addresses that it never had."""
    for one in call.get("Resources") or []:
        if not _exists(call, one):
            code, kind = _absent(one)
            raise call.refuse(code, f"The {kind} ID '{one}' does not exist")
    for tag in call.get("Tags") or []:
        if tag["Key"].startswith("aws:"):
            raise call.refuse(
                "InvalidParameterValue",
                f"Tag keys starting with 'aws:' are reserved for internal use: {tag['Key']}",
            )


def _exists(call: Call, name: str) -> bool:
    prefix = name.split("-")[0]
    held: dict[str, Any] = {
        "i": lambda: call.ec2.get_instance_by_id(name),
        "eni": lambda: call.ec2.enis.get(name),
        "nat": lambda: call.ec2.nat_gateways.get(name),
        "eipalloc": lambda: any(one.allocation_id == name for one in call.ec2.addresses),
    }
    return bool(held[prefix]()) if prefix in held else True


def _absent(name: str) -> tuple[str, str]:
    return {
        "i": ("InvalidInstanceID.NotFound", "instance"),
        "eni": ("InvalidNetworkInterfaceID.NotFound", "networkInterface"),
        "nat": ("InvalidNatGatewayID.NotFound", "natGateway"),
        "eipalloc": ("InvalidAllocationID.NotFound", "allocation"),
    }[name.split("-")[0]]
