"""NAT gateways, internet gateways and elastic addresses: they take time, and they hold on to one another.

A NAT gateway is pending, then available; without an internet gateway it fails. Deleting, it keeps its interface
and its address until it is deleted; then the address is free, still allocated.
"""

from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models import EC2Backend, nat_gateways
from moto.ec2.models.nat_gateways import NatGateway

from emulator import clock
from emulator.hooks import Call, Proceed, around, before
from emulator.rules.interfaces import ManagedInterface, remove
from emulator.rules.speed import matches
from emulator.settings import settings

# The gateway's address comes from its subnet, when the interface is made.
nat_gateways.random_private_ip = lambda: None


def has_internet_gateway(ec2: Any, vpc_id: str) -> bool:
    """Whether an internet gateway is attached to the VPC."""
    return any(gateway.vpc and gateway.vpc.id == vpc_id for gateway in ec2.internet_gateways.values())


def _create(self: EC2Backend, *args: Any, **kwargs: Any) -> NatGateway:
    gateway = _moto_create(self, *args, **kwargs)
    interface = gateway._eni
    interface.__class__ = ManagedInterface
    interface.description = f"Interface for NAT Gateway {gateway.id}"
    interface.interface_type = "nat_gateway"
    interface.requester_managed = True
    interface.requester_id = interface.manager
    interface.status = "in-use"
    interface.attachment_id = f"ela-attach-{gateway.id[4:]}"
    interface.attach_time = utcnow()
    interface._group_set = []
    gateway.private_ip = interface.private_ip_address
    gateway.state = "pending"
    clock.later(settings.delay, lambda: _settled(self, gateway))
    return gateway


def _settled(ec2: Any, gateway: NatGateway) -> None:
    if gateway.state != "pending":
        return
    if gateway.connectivity_type != "private" and not has_internet_gateway(ec2, gateway.vpc_id):
        gateway.failure_code = "Gateway.NotAttached"
        gateway.failure_message = f"Network {gateway.vpc_id} has no Internet gateway attached"
        _gone(ec2, gateway, "failed")
    else:
        gateway.state = "available"


def _delete(self: EC2Backend, nat_gateway_id: str) -> NatGateway:
    gateway = self.nat_gateways[nat_gateway_id]
    if gateway.state == "failed":
        _gone(self, gateway, "deleted")
    elif gateway.state not in ("deleting", "deleted"):
        gateway.state = "deleting"
        clock.later(settings.delay, lambda: _gone(self, gateway, "deleted"))
    return gateway


def _gone(ec2: Any, gateway: NatGateway, state: str) -> None:
    gateway.state = state
    gateway.delete_time = utcnow()
    for address in ec2.addresses:
        if address.eni is gateway._eni:
            address.eni = address.instance = address.association_id = None
    remove(ec2, gateway._eni)
    clock.later(settings.vanish_after, lambda: _vanish(ec2, gateway))


def _vanish(ec2: Any, gateway: NatGateway) -> None:
    ec2.nat_gateways.pop(gateway.id, None)
    ec2.tags.pop(gateway.id, None)


_moto_create = EC2Backend.create_nat_gateway
EC2Backend.create_nat_gateway = _create
EC2Backend.delete_nat_gateway = _delete


@before("ec2", "CreateNatGateway")
def free_address(call: Call) -> None:
    """A public gateway needs a subnet and an address that nobody else uses."""
    call.ec2.get_subnet(call.get("SubnetId"))
    if call.get("ConnectivityType") == "private":
        return
    if not call.get("AllocationId"):
        raise call.refuse("MissingParameter", "The request must include the AllocationId parameter.")
    address = call.ec2.address_by_allocation([call.get("AllocationId")])[0]
    if address.association_id:
        raise call.refuse(
            "Resource.AlreadyAssociated",
            f"Elastic IP address [{address.allocation_id}] is already associated",
        )


@before("ec2", "DeleteNatGateway")
def known_gateway(call: Call) -> None:
    """moto fails on an unknown gateway."""
    _known(call, [call.get("NatGatewayId")])


def _known(call: Call, ids: list[str]) -> None:
    for gateway_id in ids:
        if gateway_id not in call.ec2.nat_gateways:
            raise call.refuse("NatGatewayNotFound", f"The Nat Gateway {gateway_id} was not found")


_FILTERS = {"nat-gateway-id": "id", "state": "state", "subnet-id": "subnet_id", "vpc-id": "vpc_id"}


@around("ec2", "DescribeNatGateways")
def described_by_any_filter(call: Call, proceed: Proceed) -> Any:
    """All of EC2's filters count (moto ignores tags), and unknown ids are an error."""
    _known(call, call.get("NatGatewayIds") or [])
    answer = proceed()
    filters = {one["Name"]: one.get("Values", []) for one in call.get("Filter") or call.get("Filters") or []}
    found = answer.result["NatGateways"]
    for name, patterns in filters.items():
        if name in _FILTERS:
            found = [one for one in found if matches(getattr(one, _FILTERS[name]), patterns)]
        elif name.startswith("tag:") or name == "tag-key":
            found = [one for one in found if matches(one.get_filter_value(name), patterns)]
        else:
            raise call.refuse("InvalidParameterValue", f"The filter '{name}' is invalid")
    answer.result["NatGateways"] = found
    return answer


@before("ec2", "AttachInternetGateway")
def one_internet_gateway_each(call: Call) -> None:
    """A VPC has at most one internet gateway."""
    gateway_id, vpc_id = call.get("InternetGatewayId"), call.get("VpcId")
    for gateway in call.ec2.internet_gateways.values():
        if gateway.vpc and gateway.vpc.id == vpc_id and gateway.id != gateway_id:
            raise call.refuse(
                "InvalidParameterValue", f"Network {vpc_id} already has an internet gateway attached"
            )


@before("ec2", "AssociateAddress")
def address_needs_internet_gateway(call: Call) -> None:
    """An elastic address works only in a VPC with an internet gateway."""
    if call.get("InstanceId"):
        vpc_id = call.ec2.get_instance(call.get("InstanceId")).vpc_id
    elif call.get("NetworkInterfaceId"):
        vpc_id = call.ec2.get_network_interface(call.get("NetworkInterfaceId")).vpc_id
    else:
        return
    if not has_internet_gateway(call.ec2, vpc_id) and not call.ec2.get_vpc(vpc_id).is_default:
        raise call.refuse("Gateway.NotAttached", f"Network {vpc_id} is not attached to any internet gateway")


@before("ec2", "DisassociateAddress")
def managed_addresses_stay(call: Call) -> None:
    """The address of a NAT gateway is the gateway's until that is deleted."""
    for address in call.ec2.addresses:
        named = call.get("AssociationId") and address.association_id == call.get("AssociationId")
        if (named or address.public_ip == call.get("PublicIp")) and isinstance(address.eni, ManagedInterface):
            raise call.refuse("AuthFailure", "You do not have permission to access the specified resource.")
