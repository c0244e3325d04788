"""Instances take time: pending to running, shutting-down to terminated, and a while later gone.

Also: interfaces made at launch go with their instance, groups are those of the primary interface, launches with
an unknown image, key, profile, group or instance type, or with too much user data, are refused as EC2 does.
"""

import base64
import binascii
from typing import Any

from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.instances import Instance, InstanceState, StateReason
from moto.ec2.responses._base_response import EC2BaseResponse
from moto.elbv2.models import elbv2_backends
from moto.iam.models import iam_backends

from emulator import clock
from emulator.hooks import Call, Proceed, around, before
from emulator.settings import settings

#: EC2's limit on user data before base64 encoding, in bytes.
USER_DATA_LIMIT = 16384


def find(instance_id: str) -> Instance:
    """The instance of this id in whatever account and region; LookupError when there is none."""
    for regions in ec2_backends.values():
        for ec2 in regions.values():
            instance = ec2.get_instance_by_id(instance_id)
            if instance is not None:
                return instance
    raise LookupError(f"no instance {instance_id}")


class Terminated(Instance):
    """A terminated instance: still described for a while, but without network, groups or place in a VPC."""

    private_ip = private_ip_address = public_ip = public_ip_address = None
    private_dns_name = public_dns_name = ""
    vpc_id = subnet_id = None
    network_interfaces: list[Any] = []
    security_groups: list[Any] = []

    def terminate(self) -> InstanceState:
        """Terminating again succeeds and changes nothing."""
        return self._state


def _groups(self: Instance) -> list[Any]:
    nics = self.__dict__.get("nics")
    if nics and 0 in nics:
        return list(nics[0]._group_set)
    return self.__dict__.get("_launch_groups", [])


def _set_groups(self: Instance, groups: list[Any]) -> None:
    self.__dict__["_launch_groups"] = groups
    nics = self.__dict__.get("nics")
    if nics and 0 in nics:
        nics[0]._group_set = list(groups)


def _move(instance: Instance, name: str, code: int) -> None:
    instance._state = InstanceState(name, code)


def _started(instance: Instance) -> None:
    if instance.state == "pending":
        _move(instance, "running", 16)


def _terminate(self: Instance) -> InstanceState:
    previous = self._state
    if self.state == "shutting-down":
        return previous
    _move(self, "shutting-down", 32)
    self.state_reason = StateReason(
        "Client.UserInitiatedShutdown: User initiated shutdown", "Client.UserInitiatedShutdown"
    )
    elbv2_backends[self.ec2_backend.account_id][self.region_name].notify_terminate_instances([self.id])
    clock.later(settings.delay, lambda: _terminated(self))
    return previous


def _terminated(instance: Instance) -> None:
    interfaces = list(instance.nics.values())
    _moto_terminate(instance)
    # Of what is left, elastic addresses lose their place and interfaces that were to be kept become free.
    for address in instance.ec2_backend.addresses:
        if address.instance is instance or address.eni in interfaces:
            address.instance = address.eni = address.association_id = None
    for interface in interfaces:
        if interface.id in instance.ec2_backend.enis:
            instance.detach_eni(interface)
            interface.public_ip = None
    instance.__dict__.pop("_launch_groups", None)
    instance.__class__ = Terminated
    clock.later(settings.vanish_after, lambda: _vanish(instance))


def _vanish(instance: Instance) -> None:
    ec2 = instance.ec2_backend
    for key, reservation in list(ec2.reservations.items()):
        reservation.instances = [one for one in reservation.instances if one is not instance]
        if not reservation.instances:
            del ec2.reservations[key]
    ec2.tags.pop(instance.id, None)


def _run_instances(self: EC2Backend, image_id: str, count: int, *args: Any, **kwargs: Any) -> Any:
    kept = {int(nic.get("DeviceIndex", 0)) for nic in kwargs.get("nics") or [] if _keeps(nic)}
    interface_tags = (kwargs.get("tags") or {}).get("network-interface", {})
    known = set(self.reservations)
    try:
        reservation = _moto_run_instances(self, image_id, count, *args, **kwargs)
    except Exception:
        # moto files the reservation before it can fail; a failed launch leaves nothing behind.
        for key in set(self.reservations) - known:
            for instance in self.reservations.pop(key).instances:
                _moto_terminate(instance)
        raise
    for instance in reservation.instances:
        _move(instance, "pending", 0)
        clock.later(settings.delay, lambda instance=instance: _started(instance))
        for index, interface in instance.nics.items():
            interface.delete_on_termination = index not in kept
            interface.add_tags(interface_tags)
    return reservation


def _keeps(nic: dict[str, Any]) -> bool:
    """Whether an interface outlives its instance: one that existed before, or that was asked to."""
    if nic.get("NetworkInterfaceId"):
        return True
    return nic.get("DeleteOnTermination") is False


_moto_terminate = Instance.terminate
_moto_run_instances = EC2Backend.run_instances
Instance.terminate = _terminate
Instance.security_groups = property(_groups, _set_groups)
EC2Backend.run_instances = _run_instances
# moto forces `pending` into every answer; a replayed token must show the state as it is.
EC2BaseResponse.RESPONSE_KEY_PATH_TO_TRANSFORMER["RunInstances.Reservation.Instances.Instance.State"] = lambda state: state


@before("ec2", "RunInstances")
def known_launch_inputs(call: Call) -> None:
    """Key pair, instance profile, instance type and user data are checked before anything is made."""
    key = call.get("KeyName")
    if key and key not in call.ec2.key_pairs:
        raise call.refuse("InvalidKeyPair.NotFound", f"The key pair '{key}' does not exist")
    if not call.get("ImageId") and not call.get("LaunchTemplate"):
        raise call.refuse("MissingParameter", "The request must contain the parameter ImageId")
    kind = call.get("InstanceType")
    if kind and kind not in INSTANCE_TYPES:
        raise call.refuse("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType.")
    _check_architecture(call, kind)
    _check_profile(call)
    _check_user_data(call)


def _check_architecture(call: Call, kind: str | None) -> None:
    image = call.ec2.amis.get(call.get("ImageId"))
    if not kind or image is None:
        return
    offered = INSTANCE_TYPES[kind].get("ProcessorInfo", {}).get("SupportedArchitectures", [])
    if offered and image.architecture not in offered:
        raise call.refuse(
            "InvalidParameterValue",
            f"The architecture '{','.join(offered)}' of the specified instance type does not match the architecture "
            f"'{image.architecture}' of the specified AMI. Specify an instance type and an AMI that have matching "
            "architectures, and try again.",
        )


def _check_profile(call: Call) -> None:
    wanted = call.get("IamInstanceProfile") or {}
    profiles = iam_backends[call.account][call.response.partition].instance_profiles.values()
    name, arn = wanted.get("Name"), wanted.get("Arn")
    if name and name not in {one.name for one in profiles}:
        raise call.refuse(
            "InvalidParameterValue",
            f"Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
        )
    if arn and arn not in {one.arn for one in profiles}:
        raise call.refuse(
            "InvalidParameterValue",
            f"Value ({arn}) for parameter iamInstanceProfile.arn is invalid. Invalid IAM Instance Profile ARN",
        )


def _check_user_data(call: Call) -> None:
    encoded = call.get("UserData")
    if not encoded:
        return
    try:
        size = len(base64.b64decode(encoded, validate=True))
    except (binascii.Error, ValueError):
        raise call.refuse("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from None
    if size > USER_DATA_LIMIT:
        raise call.refuse("InvalidParameterValue", f"User data is limited to {USER_DATA_LIMIT} bytes")


@before("ec2", "RunInstances")
def groups_and_subnet_in_one_vpc(call: Call) -> None:
    """Groups must exist and lie in the VPC of the subnet; moto would invent an unknown one."""
    places = [(call.get("SubnetId"), call.get("SecurityGroupIds") or [])]
    places += [(nic.get("SubnetId"), nic.get("Groups") or []) for nic in call.get("NetworkInterfaces") or []]
    for subnet, groups in places:
        check_groups(call, groups, subnet)


def check_groups(call: Call, groups: list[str], subnet_id: str | None) -> None:
    """Refuses unknown groups and groups of another VPC than the subnet's."""
    vpc_id = call.ec2.get_subnet(subnet_id).vpc_id if subnet_id else None
    for group_id in groups:
        group = call.ec2.get_security_group_from_id(group_id)
        if group is None:
            raise call.refuse("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")
        if vpc_id and group.vpc_id != vpc_id:
            raise call.refuse(
                "InvalidParameter", f"Security group {group_id} and subnet {subnet_id} belong to different networks."
            )


@before("ec2", "RunInstances")
def volumes_by_default(call: Call) -> None:
    """What a mapping leaves open comes from the image: the root volume goes with its instance, others stay."""
    image = call.ec2.amis.get(call.get("ImageId"))
    for mapping in call.get("BlockDeviceMappings") or []:
        volume = mapping.get("Ebs")
        if image is None or volume is None:
            continue
        root = mapping.get("DeviceName") == image.root_device_name
        volume.setdefault("DeleteOnTermination", root)
        if root and not volume.get("VolumeSize"):
            volume["VolumeSize"] = image.block_device_mappings[0]["Ebs"]["VolumeSize"]


@around("ec2", "RunInstances")
def launch_options_count(call: Call, proceed: Proceed) -> Any:
    """Protection from termination, and the instance profile of all instances: moto gives it to the first."""
    answer = proceed()
    profile = answer.result.instances[0].iam_instance_profile
    for instance in answer.result.instances:
        instance.disable_api_termination = bool(call.get("DisableApiTermination"))
        instance.iam_instance_profile = profile
    return answer


@before("ec2", "StopInstances", "StartInstances", "RebootInstances", "AttachVolume", "ModifyInstanceAttribute")
def not_while_going(call: Call) -> None:
    """What is shutting down or terminated takes no further orders."""
    for instance_id in [*(call.get("InstanceIds") or []), *filter(None, [call.get("InstanceId")])]:
        instance = call.ec2.get_instance(instance_id)
        if instance.state in ("shutting-down", "terminated"):
            raise call.refuse(
                "IncorrectInstanceState", f"The instance '{instance_id}' is not in a state from which it can do this."
            )


@around("ec2", "TerminateInstances")
def state_in_the_answer(call: Call, proceed: Proceed) -> Any:
    """An instance that is terminated already is said to be so; moto always says shutting-down."""
    answer = proceed()
    for entry in answer.result["TerminatingInstances"]:
        instance = call.ec2.get_instance(entry["InstanceId"])
        entry["CurrentState"] = {"Code": instance.state_code, "Name": instance.state}
    return answer
