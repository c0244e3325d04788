"""Deletes that AWS refuses while something still depends on the thing, and moto carries out.

A network interface, whoever made it, holds its subnet, its groups and, with a public address, the internet
gateway; so most refusals follow from the interfaces alone.
"""

from typing import Any

from emulator.hooks import Call, Proceed, around, before
from emulator.rules import interfaces


def _dependency(call: Call, kind: str, name: str) -> Exception:
    return call.refuse("DependencyViolation", f"The {kind} '{name}' has dependencies and cannot be deleted.")


@around("ec2", "DeleteVpc")
def empty_vpc_only(call: Call, proceed: Proceed) -> Any:
    """Refused while anything but the default group, main route table and default network ACL is left in it."""
    vpc_id = call.get("VpcId")
    ec2 = call.ec2
    ec2.get_vpc(vpc_id)
    holders = [
        *(one for zone in ec2.subnets.values() for one in zone.values() if one.vpc_id == vpc_id),
        *(one for one in ec2.groups.get(vpc_id, {}).values() if not one.is_default),
        *(one for one in ec2.route_tables.values() if one.vpc_id == vpc_id and not one.main_association_id),
        *(one for one in ec2.internet_gateways.values() if one.vpc and one.vpc.id == vpc_id),
        *(one for one in ec2.egress_only_internet_gateways.values() if one.vpc_id == vpc_id),
        *(one for one in ec2.vpc_end_points.values() if one.vpc_id == vpc_id),
        *(one for one in ec2.carrier_gateways.values() if one.vpc_id == vpc_id),
        *(one for one in ec2.enis.values() if one.vpc_id == vpc_id),
    ]
    if holders:
        raise _dependency(call, "vpc", vpc_id)
    for table in list(ec2.route_tables.values()):
        if table.vpc_id == vpc_id:
            table._associations.clear()
    answer = proceed()
    # moto deletes the default group only where it finds it by name in the right VPC, and keeps the ACL.
    ec2.groups.pop(vpc_id, None)
    for acl in [one for one in ec2.network_acls.values() if one.vpc_id == vpc_id]:
        del ec2.network_acls[acl.id]
    return answer


@before("ec2", "DeleteSubnet")
def unused_subnet_only(call: Call) -> None:
    """Refused while an interface is in it: of an instance, a NAT gateway, a load balancer, or of its own."""
    subnet = call.ec2.get_subnet(call.get("SubnetId"))
    if any(one.subnet.id == subnet.id for one in call.ec2.enis.values()):
        raise _dependency(call, "subnet", subnet.id)


@around("ec2", "DeleteSubnet")
def associations_go_along(call: Call, proceed: Proceed) -> Any:
    """A deleted subnet leaves its route table."""
    answer = proceed()
    for table in call.ec2.route_tables.values():
        for association, subnet_id in list(table._associations.items()):
            if subnet_id == call.get("SubnetId"):
                del table._associations[association]
    return answer


@before("ec2", "DeleteRouteTable")
def not_the_main_table(call: Call) -> None:
    """The main route table goes with its VPC only."""
    table = call.ec2.get_route_table(call.get("RouteTableId"))
    if table.main_association_id:
        raise _dependency(call, "routeTable", table.id)


@before("ec2", "DeleteSecurityGroup")
def unused_group_only(call: Call) -> None:
    """Refused for the default group, and while an interface or a rule of another group names it."""
    name = call.get("GroupId") or call.get("GroupName")
    group = call.ec2.get_security_group_by_name_or_id(name)
    if group is None:
        raise call.refuse("InvalidGroup.NotFound", f"The security group '{name}' does not exist")
    if group.is_default:
        raise call.refuse(
            "CannotDelete", f'the specified group: "{group.id}" name: "{group.name}" cannot be deleted by a user'
        )
    if any(group in one.group_set for one in call.ec2.enis.values()) or _named_by_others(call, group):
        raise call.refuse("DependencyViolation", f"resource {group.id} has a dependent object")


def _named_by_others(call: Call, group: Any) -> bool:
    return any(
        rule.source_group and rule.source_group.get("GroupId") == group.id
        for groups in call.ec2.groups.values()
        for other in groups.values()
        if other is not group
        for rule in [*other.ingress_rules, *other.egress_rules]
    )


@before("ec2", "ReleaseAddress")
def free_address_only(call: Call) -> None:
    """An associated address must be disassociated first, or its NAT gateway deleted."""
    for address in call.ec2.addresses:
        named = address.allocation_id == call.get("AllocationId") or address.public_ip == call.get("PublicIp")
        if named and address.association_id:
            raise call.refuse("InvalidIPAddress.InUse", f"Address {address.public_ip} is in use.")


@before("ec2", "DetachInternetGateway")
def no_public_addresses_left(call: Call) -> None:
    """Refused while an interface in the VPC has a public address."""
    vpc_id = call.get("VpcId")
    held = {one.eni.id for one in call.ec2.addresses if one.eni}
    for interface in call.ec2.enis.values():
        if interface.vpc_id == vpc_id and (interface.public_ip or interface.id in held):
            raise call.refuse(
                "DependencyViolation",
                f"Network {vpc_id} has some mapped public address(es). Please unmap those public address(es) before "
                "detaching the gateway.",
            )


@before("ec2", "DeleteInternetGateway")
def detached_gateway_only(call: Call) -> None:
    """AWS's wording; moto refuses too."""
    gateway = call.ec2.get_internet_gateway(call.get("InternetGatewayId"))
    if gateway.vpc:
        raise call.refuse(
            "DependencyViolation", f"The internetGateway '{gateway.id}' has dependencies and cannot be deleted."
        )


@before("ec2", "DeleteNetworkInterface")
def detached_interface_only(call: Call) -> None:
    """An interface in use must be detached first."""
    interface = call.ec2.get_network_interface(call.get("NetworkInterfaceId"))
    if interface.status == "in-use":
        raise call.refuse("InvalidParameterValue", f"Network interface '{interface.id}' is currently in use.")


@around("ec2", "DeleteNetworkInterface")
def address_is_free_again(call: Call, proceed: Proceed) -> Any:
    """The addresses of a deleted interface can be used again."""
    interface = call.ec2.get_network_interface(call.get("NetworkInterfaceId"))
    answer = proceed()
    for address in interface.private_ip_addresses:
        interface.subnet.del_subnet_ip(address["PrivateIpAddress"])
    interfaces.release_prefixes(interface)
    return answer


@before("ec2", "DisassociateRouteTable")
def main_association_stays(call: Call) -> None:
    """The main association can be replaced, not removed."""
    for table in call.ec2.route_tables.values():
        if table.main_association_id and table.main_association_id == call.get("AssociationId"):
            raise call.refuse(
                "InvalidParameterValue", f"cannot disassociate the main route table association {call.get('AssociationId')}"
            )
