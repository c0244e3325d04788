"""AssumeRoleWithWebIdentity for real: the token's signature, issuer, audience and time, and the role's trust policy.

The issuer's keys are read where the issuer publishes them, which must be a public object of S3 (`public_objects`);
they are read anew at each call, where AWS remembers them for a while. No leeway is given for clocks that differ.
Sources: STS API reference, "AssumeRoleWithWebIdentity"; OpenID Connect Discovery 1.0.
"""

import json
import re
import time
from typing import Any

from moto.core.responses import ActionResult
from moto.iam.models import OpenIDConnectProvider, Role, iam_backends
from moto.sts.models import AssumedRole, sts_backends

from emulator import policies, public_objects, web_tokens
from emulator.hooks import Call, Proceed, around

_ACTION = "sts:AssumeRoleWithWebIdentity"
_ROLE = re.compile(r"^arn:(?P<partition>aws[a-z-]*):iam::(?P<account>\d{12}):role/.+$")
_SESSION_NAME = re.compile(r"^[\w+=,.@-]{2,64}$")
#: What a discovery document must have, by OpenID Connect Discovery 1.0 where no authorization endpoint is used.
_DISCOVERY = (
    "issuer",
    "jwks_uri",
    "response_types_supported",
    "subject_types_supported",
    "id_token_signing_alg_values_supported",
)
_LEAST_SECONDS = 900
#: A region of each partition; the call is not signed, so it does not say where it was made.
_REGIONS = {"aws": "us-east-1", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}


@around("sts", "AssumeRoleWithWebIdentity")
def checked(call: Call, proceed: Proceed) -> Any:
    """Gives credentials for a role to whoever the role's trust policy means, and to nobody else."""
    place = _ROLE.match(call.get("RoleArn", ""))
    if place is None:
        raise call.refuse("ValidationError", f"{call.get('RoleArn')} is invalid")
    iam = iam_backends[place["account"]][place["partition"]]
    token = _decoded(call)
    provider = _provider(call, iam, token)
    _check_signature(call, token)
    _check_time(call, token)
    if not set(token.audiences) & set(provider.client_id_list):
        raise call.refuse("InvalidIdentityToken", "Incorrect token audience")
    role = next((one for one in iam.roles.values() if one.arn == call.get("RoleArn")), None)
    if role is None or not _trusts(role, provider, token, call.get("RoleSessionName", "")):
        raise call.refuse("AccessDenied", f"Not authorized to perform {_ACTION}", 403)
    session = _session(call, role, place["account"], place["partition"])
    return ActionResult(
        {
            "Credentials": session,
            "SubjectFromWebIdentityToken": token.claims["sub"],
            "AssumedRoleUser": {"AssumedRoleId": session.user_id, "Arn": session.arn},
            "Provider": provider.arn,
            "Audience": token.audiences[0],
        }
    )


def _decoded(call: Call) -> web_tokens.Token:
    try:
        token = web_tokens.decode(call.get("WebIdentityToken", ""))
    except ValueError:
        raise call.refuse("InvalidIdentityToken", "The ID Token provided is not a valid JWT.") from None
    missing = [one for one in ("iss", "sub", "aud", "exp", "iat") if not token.claims.get(one)]
    if missing:
        raise call.refuse("InvalidIdentityToken", f"Missing a required claim: {missing[0]}")
    if not all(isinstance(token.claims.get(one, 0), (int, float)) for one in ("exp", "iat", "nbf")):
        raise call.refuse("InvalidIdentityToken", "A time in the token is no number")
    return token


def _provider(call: Call, iam: Any, token: web_tokens.Token) -> OpenIDConnectProvider:
    issuer = str(token.claims["iss"])
    for one in iam.open_id_providers.values():
        if issuer == f"https://{one.url}":
            return one
    raise call.refuse("InvalidIdentityToken", f"No OpenIDConnect provider found in your account for {issuer}")


def _check_signature(call: Call, token: web_tokens.Token) -> None:
    try:
        keys = published_keys(str(token.claims["iss"]))
    except (LookupError, ValueError) as error:
        raise _no_key(call) from error
    signed = web_tokens.signed_by(token, keys)
    if signed is None:
        raise _no_key(call)
    if not signed:
        raise call.refuse("InvalidIdentityToken", "The signature of the token could not be verified")


def _no_key(call: Call) -> Exception:
    return call.refuse(
        "InvalidIdentityToken",
        "Couldn't retrieve verification key from your identity provider, please reference "
        "AssumeRoleWithWebIdentity documentation for requirements",
    )


def published_keys(issuer: str) -> list[dict[str, Any]]:
    """The keys that an issuer publishes; LookupError or ValueError where it does so wrongly or not at all."""
    discovery = _object(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    missing = [one for one in _DISCOVERY if not discovery.get(one)]
    if missing:
        raise ValueError(f"the discovery document lacks {missing[0]}")
    if discovery["issuer"] != issuer:
        raise ValueError(f"the discovery document is that of {discovery['issuer']}")
    keys = _object(str(discovery["jwks_uri"])).get("keys")
    if not isinstance(keys, list):
        raise ValueError("the key set has no keys")
    return [one for one in keys if isinstance(one, dict)]


def _object(address: str) -> dict[str, Any]:
    content = json.loads(public_objects.read(address))
    if not isinstance(content, dict):
        raise ValueError(f"{address} is no JSON object")
    return content


def _check_time(call: Call, token: web_tokens.Token) -> None:
    now, ends = int(time.time()), int(token.claims["exp"])
    if now >= ends:
        message = f"Token expired: current date/time {now} must be before the expiration date/time {ends}"
        raise call.refuse("ExpiredTokenException", message)
    if now < int(token.claims.get("nbf", 0)):
        raise call.refuse("InvalidIdentityToken", "The token is not valid yet")


def _trusts(role: Role, provider: OpenIDConnectProvider, token: web_tokens.Token, session_name: str) -> bool:
    request = policies.Request(
        action=_ACTION,
        principal=("Federated", provider.arn),
        context={
            f"{provider.url}:sub".lower(): [str(token.claims["sub"])],
            f"{provider.url}:aud".lower(): token.audiences,
            "sts:rolesessionname": [session_name],
        },
    )
    try:
        return policies.verdict([role.assume_role_policy_document], request) is True
    except ValueError:
        return False


def _session(call: Call, role: Role, account: str, partition: str) -> AssumedRole:
    name, seconds = call.get("RoleSessionName", ""), int(call.get("DurationSeconds") or 3600)
    if not _SESSION_NAME.match(name):
        raise call.refuse("ValidationError", f"Value '{name}' at 'roleSessionName' failed to satisfy constraint")
    if seconds < _LEAST_SECONDS or seconds > int(role.max_session_duration or 3600):
        raise call.refuse(
            "ValidationError", "The requested DurationSeconds exceeds the MaxSessionDuration set for this role."
        )
    session = sts_backends[account][partition].assume_role(
        region_name=_REGIONS.get(partition, call.region),
        role_session_name=name,
        role_arn=role.arn,
        policy=call.get("Policy"),
        duration=seconds,
        external_id="",
    )
    session.by_web_identity = True
    return session
