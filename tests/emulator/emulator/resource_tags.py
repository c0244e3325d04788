"""The tags of what exists, for conditions of policies; and what an association of a route table is of."""

from typing import Any

from moto.ec2.models import ec2_backends
from moto.efs.models import efs_backends
from moto.elb.models import elb_backends
from moto.elbv2.models import elbv2_backends
from moto.iam.models import iam_backends

from emulator.request import AwsRequest


def of(request: AwsRequest, arn: str | None, account: str) -> dict[str, str] | None:
    """The tags of a resource, none where it does not exist; None where nobody knows them."""
    if arn in (None, "*"):
        return None
    read = _READERS.get(request.service)
    return read(arn, account, request.region) if read else None


def association(request: AwsRequest, account: str, identifier: str) -> list[str]:
    """Ids of the route table and the subnet of an association."""
    for table in ec2_backends[account][request.region].route_tables.values():
        if identifier in table._associations:
            return [table.id, table._associations[identifier]]
    return [identifier]


def _ec2(arn: str, account: str, region: str) -> dict[str, str]:
    return dict(ec2_backends[account][region].tags.get(arn.rpartition("/")[2], {}))


def _classic(arn: str, account: str, region: str) -> dict[str, str]:
    found = elb_backends[account][region].load_balancers.get(arn.rpartition("/")[2])
    return dict(found.tags) if found else {}


def _balancing(arn: str, account: str, region: str) -> dict[str, str]:
    return dict(elbv2_backends[account][region].tagging_service.get_tag_dict_for_resource(arn))


def _efs(arn: str, account: str, region: str) -> dict[str, str]:
    name = arn.rpartition("/")[2]
    return dict(efs_backends[account][region].tagging_service.get_tag_dict_for_resource(name))


def _iam(arn: str, account: str, region: str) -> dict[str, str]:
    found: Any = iam_backends[account]["aws"].open_id_providers.get(arn)
    return {one["Key"]: one["Value"] for one in found.tags.values()} if found else {}


_READERS = {"ec2": _ec2, "elb": _classic, "elbv2": _balancing, "elasticfilesystem": _efs, "iam": _iam}
