"""Network interfaces: addresses come from their subnet, managed ones say who manages them.

NAT gateways and load balancers hold interfaces in their subnets, which keep subnets, groups and internet gateways
from being deleted. Others' code makes them through `managed` and removes them through `remove`.
"""

import ipaddress
import random
from types import SimpleNamespace
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import EC2Backend
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.subnets import Subnet
from moto.ec2.utils import random_eni_attach_id, random_public_ip

from emulator.hooks import Call, before
from emulator.rules.instances import check_groups


class ManagedInterface(NetworkInterface):
    """An interface that a NAT gateway or load balancer owns; callers cannot detach or delete it."""

    manager = "amazon-aws"

    @property
    def attachment(self) -> Any:
        """Attached, though to no instance."""
        return SimpleNamespace(
            attach_time=self.attach_time,
            attachment_id=self.attachment_id,
            delete_on_termination=False,
            device_index=1,
            network_card_index=0,
            instance_id=None,
            instance_owner_id=self.manager,
            status="attached",
        )


#: AWS keeps the first four addresses of a subnet, and the last.
_FIRST = 4
_random = random.Random(0)


def _free_address(self: Subnet, instance: Any) -> str:
    """Any address of a subnet, as AWS gives them; those of deleted interfaces only when nothing fresh is left."""
    for _ in range(32):
        address = str(self.cidr.network_address + _FIRST + _random.randrange(self._available_ip_addresses))
        if address not in self._subnet_ips and address not in self._unused_ips:
            self._subnet_ips[address] = instance
            return address
    for address in self._subnet_ip_generator:
        if str(address) not in self._subnet_ips:
            self._subnet_ips[str(address)] = instance
            return str(address)
    if not self._unused_ips:
        raise EC2ClientError(
            "InsufficientFreeAddressesInSubnet",
            f"There are not enough free addresses in subnet '{self.id}' to satisfy the requested number of instances.",
        )
    address = self._unused_ips.pop()
    self._subnet_ips[address] = instance
    return address


def _create(self: EC2Backend, subnet: Any, private_ip_address: Any, *args: Any, **kwargs: Any) -> NetworkInterface:
    subnet = self.get_subnet(subnet) if isinstance(subnet, str) else subnet
    if not private_ip_address and not kwargs.get("private_ip_addresses") and not (args and args[0]):
        private_ip_address = subnet.get_available_subnet_ip(None)
    return _moto_create(self, subnet, private_ip_address, *args, **kwargs)


def _free_count(self: Subnet) -> int:
    used = sum(
        (len(eni.private_ip_addresses) or 1) + 16 * len(eni.ipv4_prefixes)
        for eni in list(self.ec2_backend.enis.values())
        if eni.subnet.id == self.id
    )
    return self._available_ip_addresses - used


def _delete(self: NetworkInterface) -> None:
    """Gives back what it has when its instance ends."""
    _moto_delete(self)
    release_prefixes(self)


def release_prefixes(interface: NetworkInterface, prefixes: list[str] | None = None) -> None:
    """Gives delegated prefixes back to the subnet, all or these."""
    for prefix in [one["Ipv4Prefix"] for one in interface.ipv4_prefixes]:
        if prefixes is None or prefix in prefixes:
            for address in ipaddress.ip_network(prefix):
                interface.subnet._subnet_ips.pop(str(address), None)
            interface.ipv4_prefixes = [one for one in interface.ipv4_prefixes if one["Ipv4Prefix"] != prefix]


#: Filters that moto lacks, and the attribute that each compares.
_FILTERS = {
    "attachment.delete-on-termination": "delete_on_termination",
    "attachment.device-index": "device_index",
    "interface-type": "interface_type",
    "mac-address": "mac_address",
    "owner-id": "owner_id",
    "private-dns-name": "private_dns_name",
    "requester-id": "requester_id",
    "requester-managed": "requester_managed",
    "source-dest-check": "source_dest_check",
    "status": "status",
}


def _filter_value(self: NetworkInterface, name: str, method_name: str | None = None) -> Any:
    if name in _FILTERS:
        return getattr(self, _FILTERS[name], None)
    if name == "addresses.private-ip-address":
        return [one["PrivateIpAddress"] for one in self.private_ip_addresses]
    if name == "attachment.status":
        return self.attachment.status if self.attachment_id else None
    return _moto_filter_value(self, name, method_name)


_moto_create = EC2Backend.create_network_interface
_moto_delete = NetworkInterface.delete
_moto_filter_value = NetworkInterface.get_filter_value
NetworkInterface.delete = _delete
NetworkInterface.get_filter_value = _filter_value
NetworkInterface.ipv4_prefixes = []
EC2Backend.create_network_interface = _create
Subnet.get_available_subnet_ip = _free_address
Subnet.available_ip_address_count = property(_free_count)
# The groups of an interface are its own, not also those of its instance.
NetworkInterface.group_set = property(lambda self: self._group_set)


def managed(
    ec2: Any, subnet_id: str, groups: list[str], description: str, kind: str, manager: str, public: bool
) -> NetworkInterface:
    """Makes an interface that `manager` (an AWS account alias such as `amazon-elb`) owns."""
    interface = ec2.create_network_interface(
        ec2.get_subnet(subnet_id), None, group_ids=groups or None, description=description
    )
    take(interface, kind, manager)
    if not groups:
        interface._group_set = []
    if public:
        interface.public_ip = random_public_ip()
    return interface


def take(interface: NetworkInterface, kind: str, manager: str) -> None:
    """Hands an interface over to `manager`: from now on callers can neither detach nor delete it."""
    interface.__class__ = ManagedInterface
    interface.manager = manager
    interface.requester_managed = True
    interface.requester_id = manager
    interface.interface_type = kind
    interface.status = "in-use"
    interface.attachment_id = random_eni_attach_id()
    interface.attach_time = utcnow()


def remove(ec2: Any, interface: NetworkInterface) -> None:
    """Deletes an interface and frees its addresses; nothing happens if it is gone already."""
    if ec2.enis.pop(interface.id, None) is None:
        return
    for address in interface.private_ip_addresses:
        interface.subnet.del_subnet_ip(address["PrivateIpAddress"])
    release_prefixes(interface)
    ec2.tags.pop(interface.id, None)


@before("ec2", "CreateNetworkInterface")
def known_groups(call: Call) -> None:
    """Groups of a new interface must exist in its VPC."""
    check_groups(call, call.get("Groups") or [], call.get("SubnetId"))


@before("ec2", "ModifyNetworkInterfaceAttribute")
def known_new_groups(call: Call) -> None:
    """Groups must exist in the interface's VPC; a managed interface is its manager's."""
    interface = call.ec2.get_network_interface(call.get("NetworkInterfaceId"))
    if isinstance(interface, ManagedInterface):
        raise call.refuse("OperationNotPermitted", "You do not have permission to access the specified resource.")
    check_groups(call, call.get("Groups") or [], interface.subnet.id)


@before("ec2", "DetachNetworkInterface")
def managed_stay(call: Call) -> None:
    """A managed interface cannot be taken from its manager."""
    for interface in call.ec2.enis.values():
        if interface.attachment_id == call.get("AttachmentId") and isinstance(interface, ManagedInterface):
            raise call.refuse("OperationNotPermitted", "You are not allowed to manage 'ela-attach' attachments.")
