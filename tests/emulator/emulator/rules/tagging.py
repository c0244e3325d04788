"""The tagging API lists what exists and has tags, by AWS's names for types, in pages that bear changes between them.

moto leaves out elastic addresses, lists what is gone, and pages over live state.
While reads lag, what is new is missing and what was deleted is still there, as elsewhere.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

from moto.core.resource_tagging import TaggedResource
from moto.core.responses import ActionResult
from moto.ec2.models import EC2Backend
from moto.elb.models import ELBBackend

from emulator import faults
from emulator.hooks import Call, Proceed, around
from emulator.rules import paging, read_lag
from emulator.settings import settings

#: AWS's page where the caller asks for none, and the most that it gives.
_PAGE, _MOST = 50, 100


def _tagged(self: EC2Backend) -> Iterator[Any]:
    gone = {one.id for one in self.nat_gateways.values() if one.state in ("deleted", "failed")}
    gone |= {
        instance.id
        for reservation in self.reservations.values()
        for instance in reservation.instances
        if instance.state == "terminated"
    }
    for resource in _moto_tagged(self):
        if resource.arn.rpartition("/")[2] not in gone:
            yield resource
    for address in self.addresses:
        if address.allocation_id:
            yield TaggedResource(
                arn=f"arn:{self.partition}:ec2:{self.region_name}:{self.account_id}:elastic-ip/{address.allocation_id}",
                tags=dict(self.tags.get(address.allocation_id, {})),
                resource_type="ec2:elastic-ip",
            )


_moto_tagged = EC2Backend.iter_tagged_resources
EC2Backend.iter_tagged_resources = _tagged


def _classic(self: ELBBackend) -> Iterator[Any]:
    for resource in _moto_classic(self):
        yield dataclasses.replace(resource, resource_type="elasticloadbalancing:loadbalancer")


_moto_classic = ELBBackend.iter_tagged_resources
ELBBackend.iter_tagged_resources = _classic


@around("tagging", "GetResources")
def found_in_pages(call: Call, proceed: Proceed) -> Any:
    """Every filter must fit, any of its values may; a token goes on where the page before ended."""
    size, arns = int(call.get("ResourcesPerPage") or _PAGE), call.get("ResourceARNList") or []
    if not 1 <= size <= _MOST:
        raise call.refuse("InvalidParameterException", "ResourcesPerPage must be between 1 and 100")
    if arns and (call.get("TagFilters") or call.get("ResourceTypeFilters")):
        raise call.refuse("InvalidParameterException", "ResourceARNList excludes filters")
    if any(not one.get("Key") for one in call.get("TagFilters") or []):
        raise call.refuse("InvalidParameterException", "A tag filter needs a key")
    size = min(size, settings.page_size or size)
    items = [(one, one.arn) for one in _matching(call, arns)]
    start = paging.start(call, call.get("PaginationToken"), items)
    page, rest = items[start : start + size], items[start + size :]
    shown = [
        {"ResourceARN": arn, "Tags": [{"Key": key, "Value": value} for key, value in one.tags.items()]}
        for one, arn in page
    ]
    token = paging.token(page, start + size) if rest and page else ""
    return ActionResult({"ResourceTagMappingList": shown, "PaginationToken": token})


def _matching(call: Call, arns: list[str]) -> list[TaggedResource]:
    lag = faults.read_lag("tagging", "GetResources")
    with read_lag.ghosts(call, lag):
        found = call.response.backend._get_resources_generator(
            tag_filters=call.get("TagFilters") or [],
            resource_type_filters=call.get("ResourceTypeFilters") or [],
            resource_arn_list=arns,
        )
        return [one for one in found if one.tags and not read_lag.is_fresh(one.arn, lag)]
