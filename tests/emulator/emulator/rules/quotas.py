"""Quotas that a test can set: how many of a thing an account may have in a region.

Names and what they count: vpc, internet-gateway, elastic-ip, nat-gateway (per zone), instance, subnet (per VPC),
route-table (per VPC), security-group, classic-load-balancer, load-balancer, target-group. None is set by default.
"""

from collections.abc import Callable
from typing import Any

from emulator.hooks import Call, before
from emulator.settings import settings


def _alive(call: Call) -> list[Any]:
    return [
        one
        for reservation in call.ec2.reservations.values()
        for one in reservation.instances
        if one.state in ("pending", "running", "shutting-down", "stopping")
    ]


def _gateways(call: Call) -> list[Any]:
    zone = call.ec2.get_subnet(call.get("SubnetId")).availability_zone
    return [
        one
        for one in call.ec2.nat_gateways.values()
        if one.state in ("pending", "available", "deleting")
        and call.ec2.get_subnet(one.subnet_id).availability_zone == zone
    ]


def _subnets(call: Call) -> list[Any]:
    return [
        one for zone in call.ec2.subnets.values() for one in zone.values() if one.vpc_id == call.get("VpcId")
    ]


def _tables(call: Call) -> list[Any]:
    return [one for one in call.ec2.route_tables.values() if one.vpc_id == call.get("VpcId")]


def _groups(call: Call) -> list[Any]:
    return [one for groups in call.ec2.groups.values() for one in groups.values()]


#: Quota, service, action, AWS's code, and what counts.
_QUOTAS: tuple[tuple[str, str, str, str, Callable[[Call], Any]], ...] = (
    ("vpc", "ec2", "CreateVpc", "VpcLimitExceeded", lambda call: call.ec2.vpcs),
    (
        "internet-gateway",
        "ec2",
        "CreateInternetGateway",
        "InternetGatewayLimitExceeded",
        lambda call: call.ec2.internet_gateways,
    ),
    ("elastic-ip", "ec2", "AllocateAddress", "AddressLimitExceeded", lambda call: call.ec2.addresses),
    ("nat-gateway", "ec2", "CreateNatGateway", "NatGatewayLimitExceeded", _gateways),
    ("subnet", "ec2", "CreateSubnet", "SubnetLimitExceeded", _subnets),
    ("route-table", "ec2", "CreateRouteTable", "RouteTableLimitExceeded", _tables),
    ("security-group", "ec2", "CreateSecurityGroup", "SecurityGroupLimitExceeded", _groups),
    ("classic-load-balancer", "elb", "CreateLoadBalancer", "TooManyLoadBalancers", lambda call: call.elb.load_balancers),
    ("load-balancer", "elbv2", "CreateLoadBalancer", "TooManyLoadBalancers", lambda call: call.elbv2.load_balancers),
    ("target-group", "elbv2", "CreateTargetGroup", "TooManyTargetGroups", lambda call: call.elbv2.target_groups),
)


def _limit(quota: str, service: str, action: str, code: str, counted: Callable[[Call], Any]) -> None:
    @before(service, action)
    def check(call: Call) -> None:
        most = settings.quotas.get(quota)
        if most is not None and len(counted(call)) >= most:
            raise call.refuse(code, f"The maximum number of {quota} resources ({most}) has been reached.")


for _quota in _QUOTAS:
    _limit(*_quota)


@before("ec2", "RunInstances")
def instance_limit(call: Call) -> None:
    """Counts what the call would start; AWS counts vCPUs, here each instance counts as one."""
    most = settings.quotas.get("instance")
    if most is not None and len(_alive(call)) + int(call.get("MaxCount") or 1) > most:
        raise call.refuse(
            "VcpuLimitExceeded",
            f"You have requested more vCPU capacity than your current vCPU limit of {most} allows for the instance "
            "bucket that the specified instance type belongs to.",
        )
