"""What classic, network and application load balancers have in common: names, interfaces, health.

Their interfaces have descriptions that begin with `ELB `; there is one in each subnet, with the load balancer's
groups.
"""

import random
from typing import Any

from moto.ec2.exceptions import InvalidSubnetIdError
from moto.ec2.models import ec2_backends

from emulator import health
from emulator.hooks import Call
from emulator.rules import interfaces
from emulator.rules.gateways import has_internet_gateway
from emulator.settings import settings

#: The hosted zone that load balancers of us-east-1 belong to.
ZONE_ID = "Z35SXDOTRQ7X7K"
_numbers = random.Random(0)


def ec2_of(backend: Any) -> Any:
    """The EC2 state beside a load balancer state."""
    return ec2_backends[backend.account_id][backend.region_name]


def dns_name(name: str, scheme: str, region: str) -> str:
    """A name as AWS makes it; internal ones begin with `internal-`."""
    prefix = "internal-" if scheme == "internal" else ""
    return f"{prefix}{name}-{_numbers.randrange(10**9, 10**10)}.{region}.elb.amazonaws.com"


def known_subnets(call: Call, ids: list[str]) -> list[Any]:
    """The subnets of these ids; refuses unknown ones and two in one zone."""
    found = []
    for subnet_id in ids:
        try:
            found.append(call.ec2.get_subnet(subnet_id))
        except InvalidSubnetIdError:
            raise call.refuse("SubnetNotFound", f"The subnet ID '{subnet_id}' does not exist") from None
    zones = [one.availability_zone for one in found]
    if len(zones) != len(set(zones)):
        raise call.refuse(
            "InvalidConfigurationRequest",
            "A load balancer cannot be attached to multiple subnets in the same Availability Zone",
        )
    if len({one.vpc_id for one in found}) > 1:
        raise call.refuse("InvalidConfigurationRequest", "Subnets must be in the same VPC")
    return found


def internet_reachable(call: Call, subnets: list[Any]) -> None:
    """An internet-facing load balancer needs an internet gateway."""
    for subnet in subnets:
        if not has_internet_gateway(call.ec2, subnet.vpc_id) and not call.ec2.get_vpc(subnet.vpc_id).is_default:
            raise call.refuse("InvalidSubnet", f"VPC {subnet.vpc_id} has no internet gateway")


def sync(ec2: Any, balancer: Any, description: str, kind: str, subnets: set[str]) -> None:
    """Makes, changes and removes interfaces so that there is one in each subnet, with the right groups."""
    held = balancer.__dict__.setdefault("interfaces", {})
    groups = list(balancer.security_groups or [])
    for subnet_id in set(held) - subnets:
        interfaces.remove(ec2, held.pop(subnet_id))
    for subnet_id in sorted(subnets - set(held)):
        public = balancer.scheme != "internal"
        held[subnet_id] = interfaces.managed(ec2, subnet_id, groups, description, kind, "amazon-elb", public)
    for interface in held.values():
        interface._group_set = [ec2.get_security_group_from_id(one) for one in groups]


def is_healthy(balancer: str, place: str, target: str, port: int) -> bool:
    """What the bed reported, or, where no bed looks, that the usual delay has passed.

    `place` is where the target is registered: the load balancer itself or a target group's ARN.
    """
    if health.ever_reported(balancer):
        return health.reported(balancer, target, port) is True
    return health.age(place, target) >= settings.delay
