"""Reads that lag: for a while after a change, what was created is not found and what was deleted is still there.

Active only while a `read-lag` fault is set. Ids that EC2 gave out less than that many seconds ago are absent from
every list, and naming one is NotFound, in writes too, since AWS's services read with the same lag. Deleting a load
balancer that is not known yet succeeds, as it does for any name, and changes nothing. States and rules of a thing
that is visible are always current.
"""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from moto.core.responses import EmptyResult
from moto.core.utils import camelcase_to_underscores
from moto.ec2 import utils

from emulator import api_model, clock, faults
from emulator.hooks import RESPONSES, Call, Proceed, around
from emulator.rules.paging import PAGED

_ID = re.compile(r"^[a-z]+-[0-9a-f]{17}$")
_LONGEST_MEMORY = 120.0
_NOT_FOUND = {
    "ec2": {
        "eipalloc": "InvalidAllocationID.NotFound",
        "eni": "InvalidNetworkInterfaceID.NotFound",
        "i": "InvalidInstanceID.NotFound",
        "igw": "InvalidInternetGatewayID.NotFound",
        "nat": "NatGatewayNotFound",
        "rtb": "InvalidRouteTableID.NotFound",
        "sg": "InvalidGroup.NotFound",
        "subnet": "InvalidSubnetID.NotFound",
        "vol": "InvalidVolume.NotFound",
        "vpc": "InvalidVpcID.NotFound",
    },
    "elb": {"i": "InvalidInstance", "sg": "InvalidSecurityGroup", "subnet": "SubnetNotFound"},
    "elbv2": {"i": "InvalidTarget", "sg": "InvalidSecurityGroup", "subnet": "SubnetNotFound"},
}

#: When each id, ARN or classic load balancer's name came to be.
_born: dict[str, float] = {}
#: What was deleted: when, the container and key it was under, and the thing.
_ghosts: list[tuple[float, Any, Any, Any]] = []


def _random_id(prefix: str = "", size: int = 17) -> str:
    made = _moto_random_id(prefix, size)
    _born[made] = clock.now()
    return made


_moto_random_id = utils.random_id
utils.random_id = _random_id


def _fresh(name: str | None, lag: float) -> bool:
    return name is not None and _born.get(name, 0.0) > clock.now() - lag


def _names(item: Any) -> Iterator[str]:
    for attribute in ("allocation_id", "id", "arn", "name"):
        value = getattr(item, attribute, None)
        if isinstance(value, str):
            yield value


def _refuse_fresh(call: Call, lag: float) -> None:
    for value in _values({name: one for name, one in call.params.items() if name not in ("Filters", "Filter")}):
        code = _NOT_FOUND[call.service].get(value.split("-")[0])
        if code and _ID.match(value) and _fresh(value, lag):
            raise call.refuse(code, f"The ID '{value}' does not exist")


def _values(given: Any) -> Iterator[str]:
    if isinstance(given, dict):
        for value in given.values():
            yield from _values(value)
    elif isinstance(given, list):
        for value in given:
            yield from _values(value)
    elif isinstance(given, str):
        yield given


def _lists(call: Call) -> str | None:
    if call.action == "DescribeAddresses":
        return "Addresses"
    page = PAGED[call.service].get(call.action)
    return page["result_key"] if page else None


def _lagging(call: Call, proceed: Proceed) -> Any:
    lag = faults.read_lag(call.service, call.action)
    if not lag:
        return _remembering(call, proceed)
    _refuse_fresh(call, lag)
    if call.action == "DeleteLoadBalancer" and is_fresh(call.get("LoadBalancerName") or call.get("LoadBalancerArn"), lag):
        return EmptyResult()
    key = _lists(call)
    if key is None or not call.action.startswith("Describe"):
        return _remembering(call, proceed)
    _refuse_fresh_balancers(call, lag)
    with ghosts(call, lag):
        answer = proceed()
    items = list(answer.result[key])
    if call.action == "DescribeInstances":
        for reservation in items:
            reservation.instances = [one for one in reservation.instances if not _fresh(one.id, lag)]
        items = [one for one in items if one.instances]
    answer.result[key] = [one for one in items if not any(_fresh(name, lag) for name in _names(one))]
    return answer


def _refuse_fresh_balancers(call: Call, lag: float) -> None:
    named = [*(call.get("LoadBalancerNames") or []), *(call.get("LoadBalancerArns") or [])]
    named += call.get("Names") or [] if call.action == "DescribeLoadBalancers" else []
    if call.service != "ec2" and any(_fresh(name, lag) for name in named):
        raise call.refuse("LoadBalancerNotFound", "One or more load balancers not found")


def _containers(call: Call) -> Iterator[Any]:
    ec2 = call.ec2
    yield from (ec2.vpcs, ec2.internet_gateways, ec2.route_tables, ec2.enis, ec2.volumes, ec2.addresses)
    yield from ec2.subnets.values()
    yield from ec2.groups.values()
    yield from (call.elb.load_balancers, call.elbv2.load_balancers, call.elbv2.target_groups)


def _items(container: Any) -> dict[Any, Any]:
    if isinstance(container, list):
        return {id(one): one for one in container}
    return dict(container)


def _remembering(call: Call, proceed: Proceed) -> Any:
    """Notes what a write creates under a name of the caller's choice, and what it deletes."""
    if call.action.startswith(("Delete", "Release")):
        held = [(container, _items(container)) for container in _containers(call)]
        answer = proceed()
        now = clock.now()
        _ghosts[:] = [one for one in _ghosts if one[0] > now - _LONGEST_MEMORY]
        for container, things in held:
            left = _items(container)
            _ghosts.extend((now, container, key, thing) for key, thing in things.items() if key not in left)
        return answer
    answer = proceed()
    if call.service != "ec2" and call.action in ("CreateLoadBalancer", "CreateTargetGroup"):
        _born.setdefault(call.get("LoadBalancerName") or call.get("Name"), clock.now())
    return answer


@contextlib.contextmanager
def ghosts(call: Call, lag: float) -> Iterator[None]:
    """While this lasts, what was deleted less than `lag` seconds ago is there."""
    shown = _show_ghosts(call, lag)
    try:
        yield
    finally:
        for container, name, thing in shown:
            _take(container, name, thing)


def is_fresh(arn: str, lag: float) -> bool:
    """Whether what an ARN names came to be less than `lag` seconds ago."""
    return any(_fresh(name, lag) for name in [arn, *re.split("[:/]", arn)])


def _show_ghosts(call: Call, lag: float) -> list[tuple[Any, Any, Any]]:
    limit = clock.now() - lag
    here = [id(container) for container in _containers(call)]
    shown = []
    for when, container, key, thing in _ghosts:
        if when > limit and id(container) in here and key not in _items(container):
            if isinstance(container, list):
                container.append(thing)
            else:
                container[key] = thing
            shown.append((container, key, thing))
    return shown


def _take(container: Any, key: Any, thing: Any) -> None:
    if isinstance(container, list):
        container.remove(thing)
    else:
        container.pop(key, None)


def _actions(service: str) -> list[str]:
    verbs = ("Describe", "Create", "Delete", "Release", "Run", "Attach", "Detach", "Associate", "Authorize", "Revoke")
    verbs += ("Modify", "Register", "Deregister", "Replace", "Terminate", "Apply", "Set", "Configure")
    known = RESPONSES[service]
    return [
        action
        for action in api_model.operations(service)
        if action.startswith(verbs) and hasattr(known, camelcase_to_underscores(action))
    ]


for _service in ("ec2", "elb", "elbv2"):
    around(_service, *_actions(_service))(_lagging)
