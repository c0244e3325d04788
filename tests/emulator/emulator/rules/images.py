"""Machine images: one that its owner has deprecated is found by those who name it, or who ask for deprecated ones too.

Source: EC2's user guide, "Deprecate an Amazon EC2 AMI". In the file of images, such a one has a `deprecation_time`.
"""

from typing import Any

from moto.ec2.models.amis import Ami

from emulator.hooks import Call, Proceed, around

_moto_init = Ami.__init__


def _init(self: Ami, *args: Any, deprecation_time: str | None = None, **kwargs: Any) -> None:
    _moto_init(self, *args, **kwargs)
    self.deprecation_time = deprecation_time


Ami.__init__ = _init


@around("ec2", "DescribeImages")
def deprecated_images_are_left_out(call: Call, proceed: Proceed) -> Any:
    """The owner sees them all the same."""
    answer = proceed()
    if not call.get("ImageIds") and not call.get("IncludeDeprecated"):
        shown = [one for one in answer.result["Images"] if one.deprecation_time is None or one.owner_id == call.account]
        answer.result["Images"] = shown
    return answer
