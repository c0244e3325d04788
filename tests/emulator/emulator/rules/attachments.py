"""Interfaces as a VPC CNI uses them: attached to instances, given addresses and prefixes, taken away again.

Limits are those of the instance type; an interface that nothing is attached to has none. Sources: EC2 API reference,
"AttachNetworkInterface", "AssignPrivateIpAddresses"; EC2 User Guide, "Prefix delegation".
"""

import ipaddress
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.elastic_network_interfaces import Attachment, NetworkInterface
from moto.ec2.models.instance_types import INSTANCE_TYPES

from emulator import clock
from emulator.hooks import Call, Proceed, around
from emulator.rules import interfaces
from emulator.settings import settings

#: Bits of a delegated prefix.
_PREFIX = 28


def _new_attachment(self: Attachment, interface: NetworkInterface) -> None:
    _moto_attachment(self, interface)
    self.status = getattr(interface, "attachment_status", "attached")


_moto_attachment = Attachment.__init__
Attachment.__init__ = _new_attachment


def _limit(interface: NetworkInterface, name: str) -> int:
    kind = INSTANCE_TYPES.get(interface.instance.instance_type, {}) if interface.instance else {}
    return kind.get("NetworkInfo", {}).get(name, 10**9)


@around("ec2", "AttachNetworkInterface")
def attached(call: Call, proceed: Proceed) -> Any:
    """A free interface, an instance in its zone with a free place for it; by default it outlives the instance."""
    interface = call.ec2.get_network_interface(call.get("NetworkInterfaceId"))
    instance, index = call.ec2.get_instance(call.get("InstanceId")), int(call.get("DeviceIndex"))
    if instance.state in ("shutting-down", "terminated"):
        raise call.refuse("IncorrectInstanceState", f"The instance '{instance.id}' is not in a state to attach to.")
    if interface.status != "available":
        raise call.refuse("InvalidNetworkInterface.InUse", f"Interface: [{interface.id}] in use.")
    if interface.availability_zone != instance.availability_zone:
        raise call.refuse(
            "InvalidParameterCombination",
            "You may not attach a network interface to an instance if they are not in the same availability zone",
        )
    if index in instance.nics:
        message = f"Instance '{instance.id}' already has an interface attached at device index '{index}'."
        raise call.refuse("InvalidParameterValue", message)
    most = INSTANCE_TYPES.get(instance.instance_type, {}).get("NetworkInfo", {}).get("MaximumNetworkInterfaces", 2)
    if len(instance.nics) >= most:
        message = f"Interface count {len(instance.nics) + 1} exceeds the limit for {instance.instance_type}"
        raise call.refuse("AttachmentLimitExceeded", message)
    answer = proceed()
    interface.delete_on_termination = False
    return answer


@around("ec2", "DetachNetworkInterface")
def detached_in_time(call: Call, proceed: Proceed) -> Any:
    """An interface is `detaching` for a while; the primary one cannot be detached."""
    name = call.get("AttachmentId")
    interface = next((one for one in call.ec2.enis.values() if name and one.attachment_id == name), None)
    if interface is None:
        return proceed()
    if interface.device_index == 0:
        message = "The network interface at device index 0 and networkCard index 0 cannot be detached."
        raise call.refuse("OperationNotPermitted", message)
    interface.attachment_status = "detaching"
    clock.later(settings.delay, lambda: _detached(interface, name))
    return ActionResult({})


def _detached(interface: NetworkInterface, attachment: str) -> None:
    if interface.attachment_id == attachment:
        interface.instance.detach_eni(interface)
    interface.__dict__.pop("attachment_status", None)


@around("ec2", "ModifyNetworkInterfaceAttribute")
def end_with_the_instance(call: Call, proceed: Proceed) -> Any:
    """Whether an attached interface goes with its instance; moto forgets it."""
    interface = call.ec2.get_network_interface(call.get("NetworkInterfaceId"))
    change = call.get("Attachment") or {}
    if change.get("AttachmentId") not in (None, interface.attachment_id):
        raise call.refuse("InvalidAttachmentID.NotFound", f"The attachment '{change['AttachmentId']}' does not exist")
    answer = proceed()
    if change.get("DeleteOnTermination") is not None:
        interface.delete_on_termination = str(change["DeleteOnTermination"]).lower() == "true"
    return answer


@around("ec2", "CreateNetworkInterface")
def created_with_addresses(call: Call, proceed: Proceed) -> Any:
    """Further addresses and prefixes come from the subnet; moto invents addresses that may be taken."""
    count = int(call.params.pop("SecondaryPrivateIpAddressCount", None) or 0)
    prefixes = int(call.params.pop("Ipv4PrefixCount", None) or 0)
    answer = proceed()
    interface = answer.result["NetworkInterface"]
    try:
        _assign(call, interface, count, [], prefixes)
    except Exception:
        interfaces.remove(call.ec2, interface)
        raise
    return answer


@around("ec2", "AssignPrivateIpAddresses")
def assigned(call: Call, proceed: Proceed) -> Any:
    """Addresses and prefixes of the subnet, as many as the instance type bears; the answer has the new ones only."""
    interface = call.ec2.get_network_interface(call.get("NetworkInterfaceId"))
    if isinstance(interface, interfaces.ManagedInterface):
        raise call.refuse("OperationNotPermitted", "You do not have permission to access the specified resource.")
    count = int(call.get("SecondaryPrivateIpAddressCount") or 0)
    wanted = list(call.get("PrivateIpAddresses") or [])
    addresses, prefixes = _assign(call, interface, count, wanted, int(call.get("Ipv4PrefixCount") or 0))
    return ActionResult(
        {
            "NetworkInterfaceId": interface.id,
            "AssignedPrivateIpAddresses": [{"PrivateIpAddress": one} for one in addresses],
            "AssignedIpv4Prefixes": [{"Ipv4Prefix": one} for one in prefixes],
        }
    )


def _assign(
    call: Call, interface: NetworkInterface, count: int, wanted: list[str], prefixes: int
) -> tuple[list[str], list[str]]:
    held = interface.private_ip_addresses
    used = len(held) + len(interface.ipv4_prefixes)
    if used + count + len(wanted) + prefixes > _limit(interface, "Ipv4AddressesPerInterface"):
        raise call.refuse("PrivateIpAddressLimitExceeded", "Number of private addresses will exceed limit.")
    if interface.subnet.available_ip_address_count < count + len(wanted):
        message = f"The specified subnet '{interface.subnet.id}' does not have enough free addresses."
        raise call.refuse("InsufficientFreeAddressesInSubnet", message)
    blocks = _free_blocks(call, interface, prefixes)
    for one in wanted:
        _take(call, interface, one)
    wanted = [*wanted, *(interface.subnet.get_available_subnet_ip(interface) for _ in range(count))]
    held.extend({"Primary": False, "PrivateIpAddress": one} for one in wanted)
    for block in blocks:
        interface.subnet._subnet_ips.update({str(one): interface for one in block})
    interface.ipv4_prefixes = [*interface.ipv4_prefixes, *({"Ipv4Prefix": str(one)} for one in blocks)]
    return wanted, [str(one) for one in blocks]


def _take(call: Call, interface: NetworkInterface, address: str) -> None:
    subnet = interface.subnet
    if ipaddress.ip_address(address) not in subnet.cidr:
        raise call.refuse("InvalidParameterValue", "Address does not fall within the subnet's address range")
    if address in subnet._subnet_ips:
        raise call.refuse("InvalidParameterValue", f"[{address}] assigned but move is not allowed.")
    subnet._subnet_ips[address] = interface


def _free_blocks(call: Call, interface: NetworkInterface, count: int) -> list[ipaddress.IPv4Network]:
    """Blocks of the subnet in which no address is used or kept by AWS."""
    if not count:
        return []
    subnet = interface.subnet
    blocks = list(subnet.cidr.subnets(new_prefix=_PREFIX))[1:-1] if subnet.cidr.prefixlen < _PREFIX else []
    free = (one for one in blocks if not any(str(address) in subnet._subnet_ips for address in one))
    found = [one for one, _ in zip(free, range(count), strict=False)]
    if len(found) < count:
        message = "The specified subnet does not have enough free cidr blocks to satisfy the request."
        raise call.refuse("InsufficientCidrBlocks", message)
    return found


@around("ec2", "UnassignPrivateIpAddresses")
def unassigned(call: Call, proceed: Proceed) -> Any:
    """What is given back is free again; the primary address stays."""
    interface = call.ec2.get_network_interface(call.get("NetworkInterfaceId"))
    addresses, prefixes = call.get("PrivateIpAddresses") or [], call.get("Ipv4Prefixes") or []
    held = {one["PrivateIpAddress"] for one in interface.private_ip_addresses if not one.get("Primary")}
    delegated = {one["Ipv4Prefix"] for one in interface.ipv4_prefixes}
    if not set(addresses) <= held or not set(prefixes) <= delegated:
        message = f"Some of the specified addresses are not assigned to interface {interface.id}"
        raise call.refuse("InvalidParameterValue", message)
    for one in addresses:
        interface.subnet.del_subnet_ip(one)
    rest = [one for one in interface.private_ip_addresses if one["PrivateIpAddress"] not in addresses]
    interface.private_ip_addresses = rest
    interfaces.release_prefixes(interface, prefixes)
    return ActionResult({})
