"""What an HTTP request asks of AWS: service, action, region and caller, read from its signature and body.

It recognizes the protocols that the emulated services speak (Query and EC2, JSON, REST) and verifies nothing.
"""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from moto.iam.access_control import iam_backends  # noqa: F401  (loads the table that account lookups need)
from moto.sts.models import sts_backends

_CREDENTIAL = re.compile(r"Credential=([^/]+)/\d+/([^/]+)/([^/]+)/aws4_request")
_READS = ("Describe", "Get", "List", "BatchGet", "Head", "Search", "Lookup", "Simulate", "AssumeRole")

#: Services that one signing name covers, told apart by the version of their API.
_ELB_CLASSIC_VERSION = "2012-06-01"
_TARGETS = {
    "secretsmanager": "secretsmanager",
    "ResourceGroupsTaggingAPI_20170126": "tagging",
    "AmazonSSM": "ssm",
}
_UNSIGNED = {"AssumeRoleWithWebIdentity": "sts", "AssumeRoleWithSAML": "sts"}


@dataclass
class AwsRequest:
    """One request, as the call log and the faults see it."""

    service: str
    action: str
    region: str
    caller: str
    #: `ec2`, `query`, `json` or `rest`: how an error must be written.
    protocol: str
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def write(self) -> bool:
        """Whether the action changes anything."""
        if self.protocol == "rest":
            return not self.action.startswith(("GET ", "HEAD "))
        return not self.action.startswith(_READS)


def parse(method: str, path: str, query: str, headers: dict[str, str], body: bytes) -> AwsRequest:
    """Reads a request; header names are in lower case."""
    key, region, signed = "anonymous", "us-east-1", ""
    found = _CREDENTIAL.search(headers.get("authorization", ""))
    if found:
        key, region, signed = found.groups()
    target = headers.get("x-amz-target")
    if target:
        prefix, _, action = target.rpartition(".")
        return AwsRequest(_TARGETS.get(prefix, signed or prefix), action, region, caller_of(key), "json")
    text = query
    if "x-www-form-urlencoded" in headers.get("content-type", ""):
        text = body.decode("utf-8", "replace")
    values = {name: entries[0] for name, entries in parse_qs(text, keep_blank_values=True).items()}
    action = values.get("Action", "")
    if not action:
        return AwsRequest(signed or "s3", f"{method} {path}", region, caller_of(key), "rest")
    service = signed or _UNSIGNED.get(action, "ec2")
    if service == "elasticloadbalancing":
        service = "elb" if values.get("Version") == _ELB_CLASSIC_VERSION else "elbv2"
    protocol = "ec2" if service == "ec2" else "query"
    return AwsRequest(service, action, region, caller_of(key), protocol, values)


def caller_of(access_key: str) -> str:
    """The access key id; for an assumed role `role/session`, or the role alone where a web identity assumed it.

    The names of such sessions are made up by SDKs and mean nothing.
    """
    for partitions in list(sts_backends.values()):
        for backend in list(partitions.values()):
            role = backend.get_assumed_role_from_access_key(access_key)
            if role is not None:
                name = role.role_arn.rpartition("/")[2]
                return name if getattr(role, "by_web_identity", False) else f"{name}/{role.session_name}"
    return access_key
