"""Client tokens: the same token and parameters give the same thing again, whatever became of it since.

Other parameters with a known token are IdempotentParameterMismatch. Tokens outlive what they made. Since one
call runs at a time, two calls with one token cannot both create.
"""

import copy
import json
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import camelcase_to_underscores

from emulator import api_model
from emulator.hooks import RESPONSES, Call, Proceed, around

#: The longest token that EC2 takes, in characters.
_LONGEST = 64


_ACTIONS = [
    name
    for name, members in api_model.operations("ec2").items()
    if "ClientToken" in members and hasattr(RESPONSES["ec2"], camelcase_to_underscores(name))
]

#: What each token made: the parameters it came with and the answer.
_made: dict[tuple[str, str, str, str], tuple[str, Any]] = {}


def _in_order(name: str, value: Any) -> Any:
    """A parameter as it is compared: tags have no order, and clients that keep them in a hash send them in any."""
    if name != "TagSpecifications":
        return value
    return sorted(
        ({**one, "Tags": sorted(one.get("Tags") or [], key=str)} for one in value),
        key=str,
    )


@around("ec2", *_ACTIONS)
def same_token_same_thing(call: Call, proceed: Proceed) -> Any:
    """See above; a failed call leaves no trace of its token."""
    token = call.get("ClientToken")
    if not token or call.get("DryRun"):
        return proceed()
    if len(token) > _LONGEST:
        raise call.refuse("InvalidParameterValue", f"Client token is longer than {_LONGEST} characters")
    given = {name: _in_order(name, value) for name, value in call.params.items() if name != "ClientToken"}
    fingerprint = json.dumps(given, sort_keys=True, default=str)
    key = (call.account, call.region, call.action, token)
    if key in _made:
        known, result = _made[key]
        if known != fingerprint:
            raise call.refuse(
                "IdempotentParameterMismatch",
                "The client token that you have provided has been used before with different parameters.",
            )
        return ActionResult(result)
    answer = proceed()
    # A copy, because a reservation forgets instances that vanish; the instances themselves stay live.
    result = copy.copy(answer.result)
    if hasattr(result, "instances"):
        result.instances = list(result.instances)
    _made[key] = (fingerprint, result)
    return answer
