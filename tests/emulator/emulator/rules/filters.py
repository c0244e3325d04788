"""Filters: only those that EC2 documents for an action, whether or not anything is there to filter, and not too many.

moto looks at a filter's name only once it has something to compare. The names come from the documentation that
botocore ships with its API model, the limit from EC2's user guide, "List and filter using the CLI and API".
"""

import functools
import re

from moto.core.utils import camelcase_to_underscores, get_service_model

from emulator import api_model
from emulator.hooks import RESPONSES, Call, before

_DOCUMENTED = re.compile(r"<code>([^<]+)</code>(?=\s*(?:-|–|—|\())")
#: Older spellings that EC2 still takes, and `tag-value`, which it no longer documents.
_OLD = {"availabilityZone", "cidr", "cidrBlock", "defaultForAz", "isDefault", "tag-value", "vpcId"}
#: The most values of all filters of one call.
_VALUES = 200


@functools.cache
def documented(action: str) -> frozenset[str]:
    """The names that EC2 documents for an action; empty where it lists none."""
    members = get_service_model("ec2").operation_model(action).input_shape.members
    shape = members.get("Filters") or members.get("Filter")
    return frozenset(_DOCUMENTED.findall(shape.documentation))


_ACTIONS = [
    action
    for action, members in api_model.operations("ec2").items()
    if ("Filters" in members or "Filter" in members) and hasattr(RESPONSES["ec2"], camelcase_to_underscores(action))
]


@before("ec2", *_ACTIONS)
def known_names(call: Call) -> None:
    """Tags can be filtered by `tag:<key>`; everything else must be documented for the action."""
    known = documented(call.action)
    for one in call.get("Filters") or call.get("Filter") or []:
        name = one.get("Name", "")
        if known and name not in known and name not in _OLD and not name.startswith("tag:"):
            raise call.refuse("InvalidParameterValue", f"The filter '{name}' is invalid")


@before("ec2", *_ACTIONS)
def not_too_many_values(call: Call) -> None:
    """One call takes a limited number of values, whatever they are."""
    filters = call.get("Filters") or call.get("Filter") or []
    if sum(len(one.get("Values") or []) for one in filters) > _VALUES:
        raise call.refuse(
            "FilterLimitExceeded", f"The maximum number of filter values specified on a single call is {_VALUES}"
        )
