"""The tagging API finds elastic addresses, and classic load balancers by AWS's name for their type.

moto leaves the former out and calls the latter `elb:loadbalancer`.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

from moto.core.resource_tagging import TaggedResource
from moto.ec2.models import EC2Backend
from moto.elb.models import ELBBackend


def _tagged(self: EC2Backend) -> Iterator[Any]:
    yield from _moto_tagged(self)
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
