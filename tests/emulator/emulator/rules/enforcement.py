"""Who may do what: refuses calls of pods' roles that no policy allows, and of nobody to what is not public.

Checked are sessions that a web identity began; with `--enforce-iam` also other sessions of roles that exist, and
users that exist. Keys that IAM does not know stay unchecked: they open an account. Identity policies, permissions
boundaries and session policies count, a Deny wins. Conditions count on the keys of `iam_actions.KNOWN`, resources and
their tags where `iam_actions.resources` knows them; all others are taken to fit. Resource policies and organizations
are not looked at.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from moto.ec2.models import ec2_backends
from moto.efs.models import efs_backends
from moto.elbv2.models import elbv2_backends
from moto.iam.models import iam_backends
from moto.s3.models import FakeKey, s3_backends
from moto.sts.models import AssumedRole

from emulator import iam_actions, policies, public_objects
from emulator.errors import Response, render
from emulator.request import AwsRequest, session_of
from emulator.settings import settings

#: Always allowed, even where a policy denies it.
_FREE = "sts:GetCallerIdentity"
#: Where the tags of resources are, by service.
_TABLES = {"ec2": ec2_backends, "elasticfilesystem": efs_backends, "elbv2": elbv2_backends}


def refusal(request: AwsRequest, query: str) -> Response | None:
    """The answer to a call that its caller may not make; None where it may."""
    if request.service == "s3" and request.key == "anonymous":
        return None if "Signature=" in query or _is_public(request) else _denied(request, "anonymous", "s3:GetObject")
    session = session_of(request.key)
    if session is not None:
        return _session_refusal(request, session)
    return _user_refusal(request) if settings.enforce_iam else None


def _is_public(request: AwsRequest) -> bool:
    if request.action not in ("GetObject", "HeadObject"):
        return " " in request.action  # no operation of S3 at all: that is for moto to say
    bucket_name, _, key_name = request.parameters["path"].lstrip("/").partition("/")
    partition, account = s3_backends.bucket_accounts.get(bucket_name, (None, None))
    bucket = s3_backends[account][partition].buckets.get(bucket_name) if account else None
    found = bucket.keys.get(key_name) if bucket else None
    return isinstance(found, FakeKey) and public_objects.is_public(bucket, found)


def _session_refusal(request: AwsRequest, session: AssumedRole) -> Response | None:
    by_web_identity = getattr(session, "by_web_identity", False)
    if not by_web_identity and not settings.enforce_iam:
        return None
    if by_web_identity and session.expiration.replace(tzinfo=UTC) <= datetime.now(UTC):
        code = "RequestExpired" if request.service == "ec2" else "ExpiredToken"
        return render(request.protocol, 403, code, "The security token included in the request is expired")
    iam = iam_backends[session.account_id][session.partition]
    role = next((one for one in iam.roles.values() if one.arn == session.role_arn), None)
    if role is None:
        return _denied(request, session.arn, iam_actions.needed(request)[0]) if by_web_identity else None
    limits = [[session.policy]] if session.policy else []
    if role.permissions_boundary_arn:
        limits.append(_documents(iam, [role.permissions_boundary_arn]))
    return _checked(request, session.arn, [_of(role), *limits])


def _user_refusal(request: AwsRequest) -> Response | None:
    for partitions in list(iam_backends.values()):
        for iam in list(partitions.values()):
            user = iam.get_user_from_access_key_id(request.key)
            if user is not None:
                groups = [one for one in iam.groups.values() if user in one.users]
                return _checked(request, user.arn, [[*_of(user), *(one for group in groups for one in _of(group))]])
    return None


def _of(entity: Any) -> list[policies.Document]:
    """Inline and attached policies of a role, user or group."""
    attached = entity.managed_policies.values()
    return [*entity.policies.values(), *(_default(one) for one in attached)]


def _documents(iam: Any, arns: list[str]) -> list[policies.Document]:
    return [_default(iam.managed_policies[arn]) for arn in arns if arn in iam.managed_policies]


def _default(policy: Any) -> policies.Document:
    return next(one.document for one in policy.versions if one.version_id == policy.default_version_id)


def _checked(request: AwsRequest, caller: str, sets: list[list[policies.Document]]) -> Response | None:
    account = caller.split(":")[4]
    for action in _actions(request):
        for resource in iam_actions.resources(request, account):
            asked = _asked(request, action, resource, account)
            # Each set must allow: what the caller has, its boundary, the session's own policy.
            if not all(policies.verdict(one, asked) for one in sets):
                return _denied(request, caller, action)
    return None


def _asked(request: AwsRequest, action: str, resource: str | None, account: str) -> policies.Request:
    context, known = iam_actions.context(request, action), iam_actions.KNOWN
    tags = _tags(request, resource, account)
    if tags is not None:
        prefixes = ("aws:resourcetag/", f"{action.partition(':')[0]}:resourcetag/")
        context.update({prefix + key.lower(): [value] for prefix in prefixes for key, value in tags.items()})
        known = (*known, *prefixes)
    return policies.Request(action, resource, context=context, known=known)


def _tags(request: AwsRequest, resource: str | None, account: str) -> dict[str, str] | None:
    """The tags of what a request plainly names and what is there; None for all else."""
    name = (resource or "").rpartition("/")[2]
    if resource is None or name == "new" or request.service not in _TABLES:
        return None
    backend = _TABLES[request.service][account][request.region]
    if request.service == "ec2":
        return dict(backend.tags.get(name, {}))
    return dict(backend.tagging_service.get_tag_dict_for_resource(resource if request.service == "elbv2" else name))


def _actions(request: AwsRequest) -> Iterator[str]:
    return (one for one in iam_actions.needed(request) if one != _FREE)


def _denied(request: AwsRequest, caller: str, action: str) -> Response:
    reason = f"because no identity-based policy allows the {action} action"
    message = f"User: {caller} is not authorized to perform: {action} {reason}"
    if request.service == "ec2":
        message = f"You are not authorized to perform this operation. {message}"
        return render("ec2", 403, "UnauthorizedOperation", message)
    if request.protocol == "json":
        return render("json", 400, "AccessDeniedException", message)
    code = "AccessDeniedException" if request.protocol == "rest-json" else "AccessDenied"
    return render(request.protocol, 403, code, message)
