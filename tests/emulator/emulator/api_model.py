"""AWS's own description of its APIs, as botocore ships it; read once, for EC2's takes a second."""

import functools
from typing import Any

from botocore.loaders import Loader
from moto.core.utils import get_service_model

_loader = Loader()


@functools.cache
def operations(service: str) -> dict[str, list[str]]:
    """The members of each operation's input, by operation."""
    model = get_service_model(service)
    found = {}
    for name in model.operation_names:
        shape = model.operation_model(name).input_shape
        found[name] = list(shape.members) if shape else []
    return found


def limits(service: str, operation: str, member: str) -> tuple[int, int] | None:
    """The least and greatest value of an integer parameter; None where the model sets none."""
    shape = get_service_model(service).operation_model(operation).input_shape
    if shape is None or member not in shape.members:
        return None
    metadata = shape.members[member].metadata
    return int(metadata.get("min", 1)), int(metadata.get("max", 10**9))


def pages(service: str) -> dict[str, dict[str, Any]]:
    """How each paged operation names its token, limit and list."""
    return _loader.load_service_model(service, "paginators-1")["pagination"]


@functools.cache
def regions() -> frozenset[str]:
    """Every region of every partition, and the two that global services sign for."""
    known = {"aws-global", "aws-cn-global"}
    for partition in _loader.load_data("endpoints")["partitions"]:
        known.update(partition["regions"])
    return frozenset(known)
