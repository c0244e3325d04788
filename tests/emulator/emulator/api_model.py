"""AWS's own description of its APIs, as botocore ships it; read once, for EC2's takes a second."""

import functools
import re
from collections.abc import Mapping
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
def _routes(service: str) -> list[tuple[str, re.Pattern[str], frozenset[str], frozenset[str], str]]:
    """Method, path, parameters and headers that must be there, and name of each operation of a REST service."""
    model, found = get_service_model(service), []
    for name in sorted(model.operation_names, key=len):
        operation = model.operation_model(name)
        if operation.deprecated:
            continue
        path, _, query = operation.http["requestUri"].partition("?")
        wanted = {"querystring": {one.partition("=")[0] for one in query.split("&") if one}, "header": set()}
        shape = operation.input_shape
        for member in shape.required_members if shape else []:
            place = shape.members[member].serialization
            if place.get("location") in wanted:
                wanted[place["location"]].add(place["name"])
        pattern = re.sub(r"\{\w+\+\}", "(?:.+)", re.sub(r"\{\w+\}", "[^/]+", path.rstrip("/")))
        headers = frozenset(one.lower() for one in wanted["header"])
        query = frozenset(wanted["querystring"])
        found.append((operation.http["method"], re.compile(pattern + "/?"), query, headers, name))
    return found


def operation_at(service: str, method: str, path: str, query: set[str], headers: Mapping[str, str]) -> str | None:
    """The operation of a REST service that a request means; None where there is none."""
    fitting = [
        (len(wanted) + len(needed), name)
        for verb, pattern, wanted, needed, name in _routes(service)
        if verb == method and pattern.fullmatch(path) and wanted <= query and all(one in headers for one in needed)
    ]
    return max(fitting, key=lambda one: one[0])[1] if fitting else None


@functools.cache
def regions() -> frozenset[str]:
    """Every region of every partition, and the two that global services sign for."""
    known = {"aws-global", "aws-cn-global"}
    for partition in _loader.load_data("endpoints")["partitions"]:
        known.update(partition["regions"])
    return frozenset(known)
