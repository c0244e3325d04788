"""What an HTTP request asks of AWS: service, action, region and caller, read from its signature and body.

It recognizes the protocols that the emulated services speak (Query and EC2, JSON, REST) and verifies nothing.
Actions of REST services are named as AWS's API model names them.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from moto.iam.access_control import iam_backends  # noqa: F401  (loads the table that account lookups need)
from moto.sts.models import AssumedRole, sts_backends

from emulator import api_model

_CREDENTIAL = re.compile(r"Credential=([^/]+)/\d+/([^/]+)/([^/]+)/aws4_request")
_READS = ("Describe", "Get", "List", "BatchGet", "Head", "Search", "Lookup", "Simulate", "AssumeRole")

#: Services that one signing name covers, told apart by the version of their API.
_ELB_CLASSIC_VERSION = "2012-06-01"
_TARGETS = {
    "secretsmanager": "secretsmanager",
    "ResourceGroupsTaggingAPI_20170126": "tagging",
    "AmazonSSM": "ssm",
}
#: Parameters that say which resources an action is about; the others may hold secrets.
_NAMING = re.compile(r"(Id|Name|Arn)s?(\.(member\.)?\d+)?$")
_UNSIGNED = {"AssumeRoleWithWebIdentity": "sts", "AssumeRoleWithSAML": "sts"}
#: Services that speak REST: protocol here, and name of the API model.
_REST = {"s3": ("rest", "s3"), "elasticfilesystem": ("rest-json", "efs")}
_BUCKET_HOST = re.compile(r"^([a-z0-9.-]+)\.(?:s3[.-][a-z0-9.-]*amazonaws\.com|localhost)(?::\d+)?$")


@dataclass
class AwsRequest:
    """One request, as the call log and the faults see it."""

    service: str
    action: str
    region: str
    caller: str
    #: `ec2`, `query`, `json`, `rest` or `rest-json`: how an error must be written.
    protocol: str
    parameters: dict[str, Any] = field(default_factory=dict)
    #: Id of the key that signed the request; `anonymous` where none did.
    key: str = "anonymous"

    @property
    def write(self) -> bool:
        """Whether the action changes anything."""
        return not self.action.startswith((*_READS, "GET ", "HEAD "))

    @property
    def resources(self) -> list[str]:
        """Ids, names and ARNs that the request names."""
        named = (value for name, value in self.parameters.items() if _NAMING.search(name))
        return [value for value in named if isinstance(value, str)]


def parse(method: str, path: str, query: str, headers: dict[str, str], body: bytes) -> AwsRequest:
    """Reads a request; header names are in lower case."""
    key, region, signed = "anonymous", "us-east-1", ""
    found = _CREDENTIAL.search(headers.get("authorization", ""))
    if found:
        key, region, signed = found.groups()
    caller = caller_of(key)
    target = headers.get("x-amz-target")
    if target:
        prefix, _, action = target.rpartition(".")
        parameters = _json_object(body)
        return AwsRequest(_TARGETS.get(prefix, signed or prefix), action, region, caller, "json", parameters, key)
    text = query
    if "x-www-form-urlencoded" in headers.get("content-type", ""):
        text = body.decode("utf-8", "replace")
    values = {name: entries[0] for name, entries in parse_qs(text, keep_blank_values=True).items()}
    action = values.get("Action", "")
    if not action:
        service = signed or "s3"
        protocol, model = _REST.get(service, ("rest", None))
        place = _place(service, path, headers)
        named = api_model.operation_at(model, method, place, set(values), headers) if model else None
        parameters = {"path": place, **(_json_object(body) if protocol == "rest-json" else {})}
        return AwsRequest(service, named or f"{method} {path}", region, caller, protocol, parameters, key)
    service = signed or _UNSIGNED.get(action, "ec2")
    if service == "elasticloadbalancing":
        service = "elb" if values.get("Version") == _ELB_CLASSIC_VERSION else "elbv2"
    protocol = "ec2" if service == "ec2" else "query"
    return AwsRequest(service, action, region, caller, protocol, values, key)


def _place(service: str, path: str, headers: dict[str, str]) -> str:
    """The path, with the bucket in front where the host names it."""
    host = _BUCKET_HOST.match(headers.get("host", "")) if service == "s3" else None
    return f"/{host.group(1)}{path}" if host else path


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def session_of(access_key: str) -> AssumedRole | None:
    """The session that a key belongs to; None where it is no key of an assumed role."""
    for partitions in list(sts_backends.values()):
        for backend in list(partitions.values()):
            session = backend.get_assumed_role_from_access_key(access_key)
            if session is not None:
                return session
    return None


def caller_of(access_key: str) -> str:
    """The access key id; for an assumed role `role/session`, or the role alone where a web identity assumed it.

    The names of such sessions are made up by SDKs and mean nothing.
    """
    session = session_of(access_key)
    if session is None:
        return access_key
    role = session.role_arn.rpartition("/")[2]
    return role if getattr(session, "by_web_identity", False) else f"{role}/{session.session_name}"
