"""IAM as it speaks on the wire: encoded policy documents, checked trust policies, providers that are told apart.

AWS's own managed policies exist in every account, made when first named. IAM's simulator of policies is not here.
"""

import functools
import json
import unicodedata
from typing import Any
from urllib.parse import quote, urlsplit

from moto.core import serialize
from moto.core.responses import EmptyResult
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.exceptions import EntityAlreadyExists, MalformedPolicyDocument, ValidationError
from moto.iam.models import AWSManagedPolicy
from moto.iam.policy_validation import IAMTrustPolicyDocumentValidator
from moto.iam.responses import IamResponse

from emulator.hooks import Call, Proceed, around, before

#: What IAM stores as thumbprint when the caller gives none; AWS takes it from the issuer's certificate chain.
_THUMBPRINT = "0123456789abcdef0123456789abcdef01234567"
_DOCUMENTS = (".AssumeRolePolicyDocument", ".PolicyVersion.Document")


def _encoded(value: Any) -> Any:
    """Percent-encoded as RFC 3986 has it; moto leaves slashes alone."""
    return quote(value, safe="") if isinstance(value, str) else value


_transformers = IamResponse.RESPONSE_KEY_PATH_TO_TRANSFORMER
for _path, _transformer in list(_transformers.items()):
    if _transformer is serialize.url_encode:
        _transformers[_path] = _encoded
_transformers.update(dict.fromkeys(_DOCUMENTS, _encoded))


@before("iam", "CreateRole")
def valid_trust(call: Call) -> None:
    """A trust policy is checked when it is made, as it is when it is changed."""
    IAMTrustPolicyDocumentValidator(call.get("AssumeRolePolicyDocument", "")).validate()


@before("iam", "CreateRole", "UpdateAssumeRolePolicy")
def trusts_somebody(call: Call) -> None:
    """Each statement of a trust policy names a principal."""
    text = call.get("AssumeRolePolicyDocument") or call.get("PolicyDocument")
    try:
        statements = json.loads(text)["Statement"]
    except (ValueError, KeyError, TypeError):
        return
    for statement in statements if isinstance(statements, list) else [statements]:
        if not statement.get("Principal") and not statement.get("NotPrincipal"):
            raise MalformedPolicyDocument("Missing required field Principal cannot be empty!")


def _ensure_managed(call: Call, arn: str | None) -> None:
    """Makes an AWS managed policy known to the account that names it."""
    iam = call.response.backend
    if arn and arn.startswith(f"arn:{iam.partition}:iam::aws:policy/") and arn not in iam.managed_policies:
        known = _aws_policy(arn.partition(":policy")[2])
        if known is not None:
            policy = AWSManagedPolicy.from_data(arn.rpartition("/")[2], iam.account_id, iam.region_name, known)
            iam.aws_managed_policies.append(policy)
            iam.managed_policies[arn] = policy


@functools.cache
def _aws_policy(place: str) -> dict[str, Any] | None:
    """What AWS publishes about a policy, by path and name."""
    path, _, name = place.rpartition("/")
    found = json.loads(aws_managed_policies_data).get(name)
    return found if found and found["Path"].rstrip("/") == path else None


_BY_ARN = (
    "AttachGroupPolicy",
    "AttachRolePolicy",
    "AttachUserPolicy",
    "GetPolicy",
    "GetPolicyVersion",
    "ListPolicyVersions",
)


@before("iam", *_BY_ARN)
def managed_policies_exist(call: Call) -> None:
    """AWS's managed policies can be read and attached."""
    _ensure_managed(call, call.get("PolicyArn"))


@before("iam", "CreateRole", "PutRolePermissionsBoundary")
def boundary_exists(call: Call) -> None:
    """A permissions boundary is a managed policy that exists."""
    arn = call.get("PermissionsBoundary")
    _ensure_managed(call, arn)
    if arn and arn not in call.response.backend.managed_policies:
        raise call.refuse("NoSuchEntity", f"Scope ARN: {arn} does not exist or is not attachable.", 404)


@before("iam", "DeletePolicy")
def unused_policy_only(call: Call) -> None:
    """A policy that is attached, or has further versions, stays."""
    policy = call.response.backend.managed_policies.get(call.get("PolicyArn"))
    if policy is not None and policy.attachment_count:
        raise call.refuse("DeleteConflict", "Cannot delete a policy attached to entities.", 409)
    if policy is not None and len(policy.versions) > 1:
        message = (
            "This policy has more than one version. Before you delete a policy, you must delete the policy's versions. "
            "The default version is deleted with the policy."
        )
        raise call.refuse("DeleteConflict", message, 409)


@before("iam", "CreateOpenIDConnectProvider")
def provider_address(call: Call) -> None:
    """The address of an issuer: https, a host, perhaps a path; once in each account."""
    url = call.get("Url", "")
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment or ":" in parts.netloc:
        raise ValidationError("Invalid Open ID Connect Provider URL")
    if any(one.url == parts.netloc + parts.path for one in call.response.backend.open_id_providers.values()):
        raise EntityAlreadyExists(f"Provider with url {url} already exists.")
    if any(len(one) != 40 for one in call.get("ThumbprintList") or []):
        raise ValidationError("Value at 'thumbprintList' failed to satisfy constraint: Member must have length 40")
    if not call.get("ThumbprintList"):
        call.params["ThumbprintList"] = [_THUMBPRINT]


@before("iam", "CreateOpenIDConnectProvider", "TagOpenIDConnectProvider")
def tags_are_plain(call: Call) -> None:
    """Letters, numbers, spaces and few signs in a tag of a provider; at most 50 of them, with those that it has."""
    tags = call.get("Tags") or []
    for number, tag in enumerate(tags, 1):
        for field in ("Key", "Value"):
            plain = (unicodedata.category(one)[0] in "LZN" or one in "_.:/=+-@" for one in tag.get(field, ""))
            if not all(plain):
                raise ValidationError(
                    f"1 validation error detected: Value at 'tags.{number}.member.{field.lower()}' failed to satisfy "
                    "constraint: Member must satisfy regular expression pattern: [\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*"
                )
    provider = call.response.backend.open_id_providers.get(call.get("OpenIDConnectProviderArn"))
    keys = {one.lower() for one in provider.tags} if provider else set()
    if len(keys | {one.get("Key", "").lower() for one in tags}) > 50:
        raise call.refuse("LimitExceeded", "The number of tags has reached the maximum limit of 50.", 409)


@around("iam", "AddClientIDToOpenIDConnectProvider", "RemoveClientIDFromOpenIDConnectProvider")
def clients_change(call: Call, proceed: Proceed) -> Any:
    """Audiences come and go; adding one that is there, or removing one that is not, is no error. moto has neither."""
    provider = call.response.backend.get_open_id_connect_provider(call.get("OpenIDConnectProviderArn"))
    rest = [one for one in provider.client_id_list if one != call.get("ClientID")]
    provider.client_id_list = [*rest, call.get("ClientID")] if call.action.startswith("Add") else rest
    return EmptyResult()
