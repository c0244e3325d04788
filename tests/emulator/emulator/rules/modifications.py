"""EBS volumes that are modified: one change at a time, which takes effect while it lasts.

Sources: EBS user guide, "Monitor the progress of Amazon EBS volume modifications" and "Requirements for Amazon EBS volume
modifications"; EC2 API reference, "ModifyVolume", "DescribeVolumesModifications" and "Error codes for the Amazon EC2 API".
"""

from datetime import datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.models.elastic_block_store import Volume, VolumeModification

from emulator import clock
from emulator.hooks import Call, Proceed, around
from emulator.settings import settings

#: What can be changed, by the parameter, and the volume's attribute.
_CHANGED = {
    "Size": "size",
    "VolumeType": "volume_type",
    "Iops": "iops",
    "Throughput": "throughput",
    "MultiAttachEnabled": "multi_attach_enabled",
}
#: How often a volume can be modified in a day.
_PER_DAY, _DAY = 4, 24 * 3600.0


class Modification(VolumeModification):
    """A modification that goes from `modifying` by `optimizing` to `completed`; moto's is over at once."""

    modification_state = "modifying"
    progress = 0
    end_time: datetime | None = None

    def __init__(self, volume: Volume, wanted: dict[str, Any]):
        self.volume = volume
        self.begun = clock.now()
        self.start_time = utcnow()
        for attribute in _CHANGED.values():
            held = getattr(volume, attribute)
            setattr(self, f"original_{attribute}", held)
            setattr(self, f"target_{attribute}", wanted.get(attribute, held))

    def take_effect(self) -> None:
        """The volume is what was asked for, and made fast meanwhile."""
        self.modification_state, self.progress = "optimizing", 50
        for attribute in _CHANGED.values():
            setattr(self.volume, attribute, getattr(self, f"target_{attribute}"))

    def complete(self) -> None:
        """All is done."""
        self.modification_state, self.progress, self.end_time = "completed", 100, utcnow()


@around("ec2", "ModifyVolume")
def one_at_a_time(call: Call, proceed: Proceed) -> Any:
    """Larger only, not while it is made or modified, and only so often a day."""
    if call.get("DryRun"):
        return proceed()
    volume = call.ec2.get_volume(call.get("VolumeId"))
    wanted = {attribute: call.get(name) for name, attribute in _CHANGED.items() if call.get(name) is not None}
    if not wanted:
        raise call.refuse("MissingParameter", "The request must contain at least one of size, type, iops, throughput")
    size = int(wanted.get("size", volume.size))
    if size < volume.size:
        message = f"New size cannot be smaller than existing size: {volume.size}GiB"
        raise call.refuse("InvalidParameterValue", message)
    if volume.status not in ("available", "in-use"):
        raise call.refuse("IncorrectState", f"Volume {volume.id} is in state {volume.status}, and cannot be modified")
    running = [one.modification_state for one in volume.modifications if one.modification_state != "completed"]
    if running:
        message = f"Cannot modify volume {volume.id}: it is currently {running[0]}"
        raise call.refuse("IncorrectModificationState", message)
    if sum(one.begun > clock.now() - _DAY for one in volume.modifications) >= _PER_DAY:
        message = f"You've reached the maximum modification rate per volume limit: {_PER_DAY} in 24 hours"
        raise call.refuse("VolumeModificationRateExceeded", message)
    if "size" in wanted:
        wanted["size"] = size
    modification = Modification(volume, wanted)
    volume.modifications.append(modification)
    clock.later(settings.delay, modification.take_effect)
    clock.later(2 * settings.delay, modification.complete)
    # moto changes the volume at once, so it is not asked.
    return ActionResult({"VolumeModification": modification})


@around("ec2", "DescribeVolumesModifications")
def the_latest_of_each(call: Call, proceed: Proceed) -> Any:
    """The last modification of every volume; one that is named and has none is an error."""
    for volume_id in call.get("VolumeIds") or []:
        if not call.ec2.get_volume(volume_id).modifications:
            message = f"Modification for volume '{volume_id}' does not exist."
            raise call.refuse("InvalidVolumeModification.NotFound", message)
    answer = proceed()
    latest = {one.volume_id: one for one in answer.result["VolumesModifications"]}
    answer.result["VolumesModifications"] = list(latest.values())
    return answer
