"""Faults on purpose: throttles, errors, lost replies, hangs, denials, quotas and reads that lag.

A fault is a JSON object, `{"kind", "service", "action", "caller", "probability", "times", "seconds", "code"}`;
what is absent matches everything, always, for ever. Choices come from one seeded generator. This module only
decides; `server.py` carries out, and `rules/read_lag.py` hides what is too new to be seen.
"""

import fnmatch
import random
import threading
from dataclasses import dataclass
from typing import Any

from emulator.errors import Response, render
from emulator.request import AwsRequest

KINDS = ("throttle", "error", "lost-reply", "hang", "access-denied", "quota", "read-lag")

#: The code of a reached quota per action, where it is not `<Service>LimitExceeded`.
_QUOTA_CODES = {
    ("ec2", "RunInstances"): "VcpuLimitExceeded",
    ("ec2", "CreateVpc"): "VpcLimitExceeded",
    ("ec2", "CreateSubnet"): "SubnetLimitExceeded",
    ("ec2", "CreateInternetGateway"): "InternetGatewayLimitExceeded",
    ("ec2", "CreateNatGateway"): "NatGatewayLimitExceeded",
    ("ec2", "AllocateAddress"): "AddressLimitExceeded",
    ("ec2", "CreateRouteTable"): "RouteTableLimitExceeded",
    ("ec2", "CreateSecurityGroup"): "SecurityGroupLimitExceeded",
    ("ec2", "AuthorizeSecurityGroupIngress"): "RulesPerSecurityGroupLimitExceeded",
    ("elb", "CreateLoadBalancer"): "TooManyLoadBalancers",
    ("elbv2", "CreateLoadBalancer"): "TooManyLoadBalancers",
    ("elbv2", "CreateTargetGroup"): "TooManyTargetGroups",
    ("elbv2", "CreateListener"): "TooManyListeners",
}


@dataclass
class Fault:
    """One fault and how often it may still strike."""

    kind: str
    service: str | None = None
    action: str | None = None
    caller: str | None = None
    probability: float = 1.0
    times: int | None = None
    seconds: float | None = None
    code: str | None = None

    def matches(self, request: AwsRequest) -> bool:
        """Whether the fault is about this request at all."""
        return (
            (self.service is None or self.service == request.service)
            and (self.action is None or fnmatch.fnmatchcase(request.action, self.action))
            and (self.caller is None or fnmatch.fnmatchcase(request.caller, self.caller))
        )

    def answer(self, request: AwsRequest) -> Response:
        """The error that the caller gets, for the kinds that answer one."""
        status, code, message = _ANSWERS[self.kind](request)
        return render(request.protocol, status, self.code or code, message)


def _throttled(request: AwsRequest) -> tuple[int, str, str]:
    if request.protocol == "ec2":
        return 503, "RequestLimitExceeded", "Request limit exceeded."
    if request.protocol == "json":
        return 400, "ThrottlingException", "Rate exceeded"
    if request.protocol == "rest":
        return 503, "SlowDown", "Please reduce your request rate."
    if request.protocol == "rest-json":
        return 429, "ThrottlingException", "Rate exceeded"
    return 400, "Throttling", "Rate exceeded"


def _failed(request: AwsRequest) -> tuple[int, str, str]:
    code = {"ec2": "InternalError", "rest": "InternalError", "json": "InternalServiceError", "rest-json": "InternalServerError"}
    return 500, code.get(request.protocol, "InternalFailure"), "An internal error has occurred"


def _denied(request: AwsRequest) -> tuple[int, str, str]:
    if request.protocol == "ec2":
        return 403, "UnauthorizedOperation", "You are not authorized to perform this operation."
    message = f"User: {request.caller} is not authorized to perform: {request.service}:{request.action}"
    if request.protocol in ("json", "rest-json"):
        return 400 if request.protocol == "json" else 403, "AccessDeniedException", message
    return 403, "AccessDenied", message


def _limited(request: AwsRequest) -> tuple[int, str, str]:
    code = _QUOTA_CODES.get((request.service, request.action), "LimitExceeded")
    return 400, code, "The maximum number has been reached."


_ANSWERS = {"throttle": _throttled, "error": _failed, "access-denied": _denied, "quota": _limited}

_lock = threading.Lock()
_faults: list[Fault] = []
_random = random.Random(0)


def set_all(faults: list[dict[str, Any]]) -> None:
    """Replaces all faults; ValueError on one that makes no sense."""
    made = [_make(fault) for fault in faults]
    with _lock:
        _faults[:] = made


def add(fault: dict[str, Any]) -> None:
    """Adds one fault; ValueError as above."""
    made = _make(fault)
    with _lock:
        _faults.append(made)


def seed(value: int) -> None:
    """Starts the random choices anew."""
    _random.seed(value)


def current() -> list[dict[str, Any]]:
    """The faults as they are now, with the `times` that are left."""
    with _lock:
        return [dict(vars(fault)) for fault in _faults]


def choose(request: AwsRequest) -> Fault | None:
    """The fault that strikes this request, if any; uses up one of its times."""
    with _lock:
        for fault in _faults:
            if fault.kind == "read-lag" or fault.times == 0 or not fault.matches(request):
                continue
            # Drawn only for what matches, so that unrelated calls do not change the sequence.
            if fault.probability < 1.0 and _random.random() >= fault.probability:
                continue
            if fault.times is not None:
                fault.times -= 1
            return fault
    return None


def read_lag(service: str, action: str) -> float:
    """Seconds by which reads of this action are behind; 0 when they are not."""
    with _lock:
        return max(
            (
                fault.seconds or 0.0
                for fault in _faults
                if fault.kind == "read-lag"
                and (fault.service is None or fault.service == service)
                and (fault.action is None or fnmatch.fnmatchcase(action, fault.action))
            ),
            default=0.0,
        )


def _make(values: dict[str, Any]) -> Fault:
    if values.get("kind") not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {values.get('kind')!r}")
    known = set(Fault.__dataclass_fields__)
    unknown = set(values) - known
    if unknown:
        raise ValueError(f"unknown field {sorted(unknown)[0]!r}; known are {', '.join(sorted(known))}")
    if values["kind"] == "read-lag" and not values.get("seconds"):
        raise ValueError("read-lag needs seconds")
    return Fault(**{name: value for name, value in values.items() if value is not None})
