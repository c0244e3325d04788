"""Who may do what: refuses calls of pods' roles that no policy allows, and of nobody to what is not public.

Checked are sessions that a web identity began, and identities that the emulator was started with; with `--enforce-iam`
also other sessions of roles that exist, and users that exist. Keys that nobody knows stay unchecked: they open an
account. Identity policies, permissions boundaries and session policies count, a Deny wins. What conditions and
resources are known is in `iam_actions` and `iam_resources`. Resource policies and organizations are not looked at.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.iam.models import iam_backends
from moto.s3.models import FakeKey, s3_backends
from moto.sts.models import AssumedRole

from emulator import iam_actions, policies, public_objects, resource_tags, rights
from emulator.errors import Response, render
from emulator.iam_actions import Demand
from emulator.iam_resources import Resource
from emulator.request import AwsRequest, session_of
from emulator.settings import settings

#: Always allowed, even where a policy denies it.
_FREE = "sts:GetCallerIdentity"
#: The role that Elastic Load Balancing has made for itself in an account before the first load balancer.
_BALANCING_ROLE = "role/aws-service-role/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing"
#: Accounts that have it.
_has_balancing_role: set[str] = set()


def refusal(request: AwsRequest, query: str) -> Response | None:
    """The answer to a call that its caller may not make; None where it may."""
    if request.service == "s3" and request.key == "anonymous":
        return None if "Signature=" in query or _is_public(request) else _denied(request, "anonymous", "s3:GetObject")
    if request.key in settings.identities:
        return _identity_refusal(request)
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
        return _denied(request, session.arn, iam_actions.action(request)) if by_web_identity else None
    limits = [[session.policy]] if session.policy else []
    if role.permissions_boundary_arn:
        limits.append(_documents(iam, [role.permissions_boundary_arn]))
    return _checked(request, session.arn, [_of(role), *limits])


def _identity_refusal(request: AwsRequest) -> Response | None:
    """As a user would be refused; which statements were needed is noted."""
    documents = settings.identities[request.key]
    for demand in _demands(request, DEFAULT_ACCOUNT_ID):
        said = policies.matching(documents, _asked(request, demand, DEFAULT_ACCOUNT_ID))
        if not said or any(one["Effect"] == "Deny" for one in said):
            caller = f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:user/{request.key}"
            return _denied(request, caller, demand.action, demand.resource)
        rights.note(request.key, demand.action, said)
    return None


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
    for demand in _demands(request, account):
        asked = _asked(request, demand, account)
        # Each set must allow: what the caller has, its boundary, the session's own policy.
        if not all(policies.verdict(one, asked) for one in sets):
            return _denied(request, caller, demand.action, demand.resource)
    return None


def _demands(request: AwsRequest, account: str) -> Iterator[Demand]:
    """All that has to be allowed, also what only the state of the account tells."""
    if iam_actions.action(request) == _FREE:
        return
    yield from iam_actions.demands(request, account, lambda one: resource_tags.association(request, account, one))
    yield from _passed_roles(request, account)
    if request.service in ("elb", "elbv2") and request.action == "CreateLoadBalancer":
        if account not in _has_balancing_role:
            service = {"iam:awsservicename": ["elasticloadbalancing.amazonaws.com"]}
            yield Demand("iam:CreateServiceLinkedRole", Resource(f"arn:aws:iam::{account}:{_BALANCING_ROLE}"), service)
            # Who may not is refused before this.
            _has_balancing_role.add(account)
    if request.service == "s3" and request.action in ("GetObject", "HeadObject"):
        bucket_name, _, key_name = request.parameters["path"].lstrip("/").partition("/")
        bucket = s3_backends[account]["aws"].buckets.get(bucket_name)
        if bucket is not None and bucket.keys.get(key_name) is None:
            # To others, what is missing is forbidden.
            yield Demand("s3:ListBucket", Resource(f"arn:aws:s3:::{bucket_name}"))


def _passed_roles(request: AwsRequest, account: str) -> Iterator[Demand]:
    profile = {name: request.parameters.get(f"IamInstanceProfile.{name}") for name in ("Arn", "Name")}
    if request.service != "ec2" or not any(profile.values()):
        return
    for one in list(iam_backends[account]["aws"].instance_profiles.values()):
        if one.arn == profile["Arn"] or one.name == profile["Name"]:
            to = {"iam:passedtoservice": ["ec2.amazonaws.com"]}
            yield from (Demand("iam:PassRole", Resource(role.arn), to) for role in one.roles)


def _asked(request: AwsRequest, demand: Demand, account: str) -> policies.Request:
    context, known = dict(demand.context), iam_actions.KNOWN
    tags = {} if demand.resource.made else resource_tags.of(request, demand.resource.arn, account)
    if tags is not None:
        prefixes = ("aws:resourcetag/", f"{demand.action.partition(':')[0]}:resourcetag/")
        context.update({prefix + key.lower(): [value] for prefix in prefixes for key, value in tags.items()})
        known = (*known, *prefixes)
    return policies.Request(demand.action, demand.resource.arn, context=context, known=known)


def _denied(request: AwsRequest, caller: str, action: str, resource: Resource | None = None) -> Response:
    on = f" on resource: {resource.arn}" if resource and resource.arn not in (None, "*") else ""
    reason = f"because no identity-based policy allows the {action} action"
    message = f"User: {caller} is not authorized to perform: {action}{on} {reason}"
    if request.service == "ec2":
        message = f"You are not authorized to perform this operation. {message}"
        return render("ec2", 403, "UnauthorizedOperation", message)
    if request.protocol == "json":
        return render("json", 400, "AccessDeniedException", message)
    code = "AccessDeniedException" if request.protocol == "rest-json" else "AccessDenied"
    return render(request.protocol, 403, code, message)
