"""Pages: every list that AWS pages is paged, as asked and at most `settings.page_size` items at a time.

A token says after which item to go on, so things that come or go between two pages neither repeat nor hide
others. DescribeAddresses has no pages on AWS, so it has none here.
"""

import base64
import copy
import json
from typing import Any

from moto.core.utils import camelcase_to_underscores

from emulator import api_model
from emulator.hooks import RESPONSES, Call, Proceed, around
from emulator.settings import settings

_NO_LIMIT = 10**9
#: AWS's page size where the caller names none; EC2 has none.
_DEFAULT = {"elb": 400, "elbv2": 400, "iam": 100}
#: AWS's code for a token that never was any, where it is not ValidationError.
_BAD_TOKEN = {
    "ec2": "InvalidNextToken",
    "elasticfilesystem": "BadRequest",
    "tagging": "PaginationTokenExpiredException",
}
#: Where a list of ids and a limit exclude each other, and the parameter with the ids.
_IDS_WITHOUT_LIMIT = {
    "DescribeInstances": "InstanceIds",
    "DescribeInstanceStatus": "InstanceIds",
    "DescribeNetworkInterfaces": "NetworkInterfaceIds",
    "DescribeSnapshots": "SnapshotIds",
    "DescribeVolumes": "VolumeIds",
    "DescribeVolumeStatus": "VolumeIds",
}


def _paged(service: str) -> dict[str, dict[str, str]]:
    return {
        action: page
        for action, page in api_model.pages(service).items()
        if isinstance(page.get("result_key"), str) and hasattr(RESPONSES[service], camelcase_to_underscores(action))
    }


PAGED = {service: _paged(service) for service in ("ec2", "elb", "elbv2", "iam")}


def _page(call: Call, proceed: Proceed) -> Any:
    names = PAGED[call.service][call.action]
    limit, given = call.get(names.get("limit_key", "MaxResults")), call.get(names["input_token"])
    named = _has_ids(call)
    if call.service == "ec2":
        _check(call, limit)
    # moto must not page by itself: its pages are wrong or missing.
    call.params.pop(names["input_token"], None)
    call.params[names.get("limit_key", "MaxResults")] = _NO_LIMIT
    answer = proceed()
    items = list(answer.result[names["result_key"]])
    size = int(limit) if limit else _DEFAULT.get(call.service, _NO_LIMIT)
    if settings.page_size and not named:
        size = min(size, settings.page_size)
    if call.action == "DescribeInstances":
        items = [(reservation, instance) for reservation in items for instance in reservation.instances]
    first = start(call, given, items)
    page, rest = items[first : first + size], items[first + size :]
    answer.result[names["output_token"]] = token(page, first + size) if rest and page else None
    if "more_results" in names:
        answer.result[names["more_results"]] = bool(rest and page)
    answer.result[names["result_key"]] = _regroup(page) if call.action == "DescribeInstances" else page
    return answer


def _has_ids(call: Call) -> bool:
    return any(
        isinstance(value, list) and value and name not in ("Filters", "Filter") for name, value in call.params.items()
    )


def _check(call: Call, limit: Any) -> None:
    if limit is None:
        return
    ids = _IDS_WITHOUT_LIMIT.get(call.action)
    if ids and call.get(ids):
        shown = ids[0].lower() + ids[1:].replace("Ids", "") + "sSet"
        raise call.refuse(
            "InvalidParameterCombination",
            f"The parameter {shown} cannot be used with the parameter maxResults",
        )
    least, most = api_model.limits("ec2", call.action, "MaxResults") or (1, _NO_LIMIT)
    if int(limit) < least:
        raise call.refuse(
            "InvalidParameterValue",
            f"Value ( {limit} ) for parameter maxResults is invalid. Expecting a value greater than or equal to {least}.",
        )
    if int(limit) > most:
        raise call.refuse(
            "InvalidParameterValue",
            f"Value ( {limit} ) for parameter maxResults is invalid. Expecting a value less than or equal to {most}.",
        )


def _identity(item: Any) -> str | None:
    if isinstance(item, tuple):
        item = item[1]
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        return next((str(value) for name, value in item.items() if name.endswith(("Id", "Name", "Type"))), None)
    for name in ("id", "arn", "name"):
        if getattr(item, name, None):
            return str(getattr(item, name))
    return None


def token(page: list[Any], position: int) -> str:
    """The token that goes on after a page which ends at this position."""
    content = json.dumps({"after": _identity(page[-1]), "position": position})
    return base64.urlsafe_b64encode(content.encode()).decode()


def start(call: Call, given: str | None, items: list[Any]) -> int:
    """The position at which a token goes on; refuses one that never was any."""
    if not given:
        return 0
    try:
        content = json.loads(base64.urlsafe_b64decode(given))
        after, position = content["after"], int(content["position"])
    except (ValueError, KeyError, TypeError):
        raise call.refuse(_BAD_TOKEN.get(call.service, "ValidationError"), "The specified token is not valid.") from None
    for index, item in enumerate(items):
        if after is not None and _identity(item) == after:
            return index + 1
    return position


def _regroup(pairs: list[Any]) -> list[Any]:
    grouped: list[Any] = []
    for reservation, instance in pairs:
        if not grouped or grouped[-1].id != reservation.id:
            grouped.append(copy.copy(reservation))
            grouped[-1].instances = []
        grouped[-1].instances.append(instance)
    return grouped


for _service, _actions in PAGED.items():
    around(_service, *_actions)(_page)
