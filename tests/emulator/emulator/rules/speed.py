"""Makes moto's common reads fast; changes no answer but for filters, which match as AWS documents.

moto searches all tags of the account for each resource it filters (quadratic) and lists its own methods by
reflection on each call.
"""

import fnmatch
import functools
from datetime import datetime
from typing import Any

from moto.core import responses
from moto.core.utils import method_names_from_class
from moto.ec2 import utils
from moto.ec2.models import tags
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.utils import format_timestamp


@functools.cache
def _method_names(responses_class: type) -> frozenset[str]:
    return frozenset(method_names_from_class(responses_class))


def _get_tags(self: Any) -> list[dict[str, str]]:
    if not self.id:
        return []
    kind = utils.EC2_PREFIX_TO_RESOURCE.get(utils.get_prefix(self.id), "")
    return [
        {"resource_id": self.id, "key": key, "value": value, "resource_type": kind}
        for key, value in self.ec2_backend.tags.get(self.id, {}).items()
    ]


def _tag_values(resource: Any, key: str | None = None) -> set[str]:
    held = resource.ec2_backend.tags.get(resource.id, {})
    return {value for name, value in held.items() if key is None or name == key}


def _tag_names(resource: Any) -> set[str]:
    return set(resource.ec2_backend.tags.get(resource.id, {}))


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return format_timestamp(value)
    return str(value)


def matches(value: Any, patterns: Any) -> bool:
    """Whether a value, or one of several, matches one of a filter's patterns; `*` and `?` are wildcards."""
    if value is None:
        return False
    if isinstance(patterns, str):
        patterns = [patterns]
    values = value if isinstance(value, (list, set, tuple, frozenset, type({}.keys()))) else [value]
    return any(fnmatch.fnmatchcase(_as_text(one), pattern) for one in values for pattern in patterns)


responses.method_names_from_class = _method_names
TaggedEC2Resource.get_tags = _get_tags
utils.get_obj_tag_values = _tag_values
utils.get_obj_tag_names = _tag_names
utils.simple_aws_filter_to_re = functools.lru_cache(maxsize=4096)(utils.simple_aws_filter_to_re)
tags.simple_aws_filter_to_re = utils.simple_aws_filter_to_re
utils.is_filter_matching = lambda resource, name, patterns: matches(resource.get_filter_value(name), patterns)
utils.instance_value_in_filter_values = matches
utils.filter_dict_attribute_mapping.update(
    {
        "client-token": "client_token",
        "iam-instance-profile.arn": "iam_instance_profile.Arn",
        "instance-lifecycle": "lifecycle",
        "instance-state-code": "state_code",
        "network-interface.network-interface-id": "network_interfaces.id",
        "network-interface.subnet-id": "subnet_id",
        "network-interface.vpc-id": "vpc_id",
        "placement-group-name": "placement.group_name",
        "root-device-name": "root_device_name",
        "tenancy": "placement.tenancy",
    }
)
