"""EBS volumes: creating, attaching and detaching take time, and an attached volume stays.

What an attachment needs is checked, that is zone, state and device, and how fast a volume may be. Sources: EC2 API reference,
"CreateVolume", "AttachVolume", "DetachVolume", "DeleteVolume" and "Error codes for the Amazon EC2 API"; EBS user guide, "Amazon EBS
volume types"; EC2 user guide, "Device names for volumes on Amazon EC2 instances".
"""

import re
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.elastic_block_store import Volume, VolumeAttachment

from emulator import clock
from emulator.hooks import Call, Proceed, around, before
from emulator.settings import settings


#: The most operations per second of each type that can be told how many it shall have.
_MOST_IOPS = {"gp3": 80000, "io1": 64000, "io2": 256000}
_DEVICE = re.compile(r"/dev/(sd[a-z][1-9]?\d?|xvd[a-d]?[a-z]|hd[a-z])")


def _status(self: Volume) -> str:
    if self.attachment:
        return "in-use"
    # By the time, not by a transition: a replayed client token answers with a copy of the volume.
    return "creating" if clock.now() < getattr(self, "ready", 0.0) else "available"


Volume.status = property(_status)


@before("ec2", "CreateVolume")
def known_zone(call: Call) -> None:
    """The zone must exist, and the size be one."""
    zone, size = call.get("AvailabilityZone"), call.get("Size")
    if zone not in {one.name for one in call.ec2.zones.get(call.region, [])}:
        raise call.refuse("InvalidZone.NotFound", f"The zone '{zone}' does not exist.")
    if size is not None and int(size) < 1:
        raise call.refuse("InvalidParameterValue", f"Volume of {size}GiB is too small; minimum is 1GiB.")


@before("ec2", "CreateVolume")
def known_speed(call: Call) -> None:
    """Only some types take a number of operations per second, and not any. Looked at also where nothing is to be made."""
    kind, wanted = call.get("VolumeType") or "gp2", call.get("Iops")
    if wanted is None:
        return
    if kind not in _MOST_IOPS:
        message = f"The parameter iops is not supported for {kind} volumes."
        raise call.refuse("InvalidParameterCombination", message)
    if int(wanted) > _MOST_IOPS[kind]:
        message = f"Volume iops of {wanted} is too high; maximum is {_MOST_IOPS[kind]}."
        raise call.refuse("InvalidParameterValue", message)


@around("ec2", "CreateVolume")
def created_in_time(call: Call, proceed: Proceed) -> Any:
    """A new volume is `creating` for a while."""
    answer = proceed()
    answer.result.ready = clock.now() + settings.delay
    return answer


@around("ec2", "AttachVolume")
def attached_in_time(call: Call, proceed: Proceed) -> Any:
    """An available volume, a running or stopped instance in its zone, and a free device."""
    volume, instance = call.ec2.get_volume(call.get("VolumeId")), call.ec2.get_instance(call.get("InstanceId"))
    device = call.get("Device")
    if not device:
        raise call.refuse("MissingParameter", "The request must contain the parameter device")
    if not _DEVICE.fullmatch(device):
        message = f"Value ({device}) for parameter device is invalid. {device} is not a valid EBS device name."
        raise call.refuse("InvalidParameterValue", message)
    if volume.attachment:
        raise call.refuse("VolumeInUse", f"{volume.id} is already attached to an instance")
    if volume.status != "available":
        raise call.refuse("IncorrectState", f"{volume.id} is not 'available'.")
    if instance.state not in ("running", "stopped"):
        raise call.refuse("IncorrectState", f"Instance '{instance.id}' is not 'running'.")
    if volume.availability_zone != instance.availability_zone:
        message = f"The volume '{volume.id}' is not in the same availability zone as instance '{instance.id}'"
        raise call.refuse("InvalidVolume.ZoneMismatch", message)
    if device in instance.block_device_mapping:
        message = f"Invalid value '{device}' for unixDevice. Attachment point {device} is already in use"
        raise call.refuse("InvalidParameterValue", message)
    answer = proceed()
    _mark(volume.attachment, "attaching")
    clock.later(settings.delay, lambda attachment=volume.attachment: _attached(attachment))
    return answer


def _mark(attachment: VolumeAttachment, status: str) -> None:
    attachment.status = status
    device = attachment.instance.block_device_mapping.get(attachment.device)
    if device is not None:
        device.status = status


def _attached(attachment: VolumeAttachment) -> None:
    if attachment.status == "attaching":
        _mark(attachment, "attached")


@around("ec2", "DetachVolume")
def detached_in_time(call: Call, proceed: Proceed) -> Any:
    """A volume is `detaching` for a while; asking again changes nothing. The root volume of what runs stays."""
    volume = call.ec2.get_volume(call.get("VolumeId"))
    attachment = volume.attachment
    if attachment is None:
        raise call.refuse("IncorrectState", f"Volume '{volume.id}' is in the '{volume.status}' state.")
    instance = attachment.instance
    given, device = call.get("InstanceId"), call.get("Device")
    if given not in (None, instance.id) or device not in (None, attachment.device):
        message = f"The volume '{volume.id}' is not attached to instance '{given}' as device '{device}'"
        raise call.refuse("InvalidAttachment.NotFound", message)
    if attachment.device == instance.root_device_name and instance.state != "stopped":
        message = f"Unable to detach root volume '{volume.id}' from instance '{instance.id}'"
        raise call.refuse("OperationNotPermitted", message)
    if attachment.status != "detaching":
        _mark(attachment, "detaching")
        clock.later(settings.delay, lambda: _detached(call.ec2, volume, attachment))
    # moto detaches at once, so it is not asked.
    return ActionResult(
        {
            "VolumeId": volume.id,
            "InstanceId": instance.id,
            "Device": attachment.device,
            "State": "detaching",
            "AttachTime": attachment.attach_time,
        }
    )


def _detached(ec2: Any, volume: Volume, attachment: VolumeAttachment) -> None:
    if volume.attachment is attachment:
        ec2.detach_volume(volume.id, attachment.instance.id, attachment.device)


@before("ec2", "DeleteVolume")
def free_volume_only(call: Call) -> None:
    """Refused while attached, or not made yet."""
    volume = call.ec2.get_volume(call.get("VolumeId"))
    if volume.attachment:
        message = f"Volume {volume.id} is currently attached to {volume.attachment.instance.id}"
        raise call.refuse("VolumeInUse", message)
    if volume.status != "available":
        raise call.refuse("IncorrectState", f"Volume '{volume.id}' is in the '{volume.status}' state.")
