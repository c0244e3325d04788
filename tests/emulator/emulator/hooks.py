"""Where rules attach to moto: around the method that answers one action of one service.

A rule is a function of the call and of `proceed`, which runs the rules below it and at last moto. It may
refuse (raise `refuse(...)`), change parameters first, or change the result. Rules registered first are
outermost; `rules/__init__.py` fixes that order by its imports.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, BaseResponse
from moto.core.utils import camelcase_to_underscores
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response
from moto.efs.responses import EFSResponse
from moto.elb.exceptions import ELBClientError as ClassicError
from moto.elb.responses import ELBResponse
from moto.elbv2.exceptions import ELBClientError as BalancerError
from moto.elbv2.responses import ELBV2Response
from moto.iam.responses import IamResponse
from moto.resourcegroupstaggingapi.responses import ResourceGroupsTaggingAPIResponse
from moto.secretsmanager.responses import SecretsManagerResponse
from moto.sts.responses import TokenResponse

#: moto's class of answers per service, by the name used in the call log.
RESPONSES: dict[str, type[BaseResponse]] = {
    "ec2": EC2Response,
    "elasticfilesystem": EFSResponse,
    "elb": ELBResponse,
    "elbv2": ELBV2Response,
    "iam": IamResponse,
    "secretsmanager": SecretsManagerResponse,
    "sts": TokenResponse,
    "tagging": ResourceGroupsTaggingAPIResponse,
}

_ERRORS: dict[str, type[ServiceException]] = {"ec2": EC2ClientError, "elb": ClassicError, "elbv2": BalancerError}

Proceed = Callable[[], Any]
Rule = Callable[["Call", Proceed], Any]


class Refused(Exception):
    """An error of AWS with its status, for services whose errors in moto have none; `rules/errors.py` writes it."""

    def __init__(self, code: str, message: str, status: int = 400, **fields: str):
        super().__init__(message)
        self.code, self.message, self.status, self.fields = code, message, status, fields


class Call:
    """One action being carried out: its parameters and the state it works on."""

    def __init__(self, service: str, action: str, response: BaseResponse):
        self.service = service
        self.action = action
        self.response = response
        self.account: str = response.current_account
        self.region: str = response.region

    @property
    def params(self) -> dict[str, Any]:
        """The parameters as the API model names them; a rule may change them before `proceed`."""
        return self.response.params

    def get(self, name: str, default: Any = None) -> Any:
        """One top-level parameter, or `default` where the caller did not set it."""
        value = self.response._get_param(name)
        return default if value is None else value

    @functools.cached_property
    def ec2(self) -> Any:
        """moto's EC2 state of the caller's account and region."""
        from moto.ec2.models import ec2_backends

        return ec2_backends[self.account][self.region]

    @functools.cached_property
    def elb(self) -> Any:
        """moto's state of classic load balancers of the caller's account and region."""
        from moto.elb.models import elb_backends

        return elb_backends[self.account][self.region]

    @functools.cached_property
    def elbv2(self) -> Any:
        """moto's state of network and application load balancers of the caller's account and region."""
        from moto.elbv2.models import elbv2_backends

        return elbv2_backends[self.account][self.region]

    @functools.cached_property
    def efs(self) -> Any:
        """moto's state of file systems of the caller's account and region."""
        from moto.efs.models import efs_backends

        return efs_backends[self.account][self.region]

    def refuse(self, code: str, message: str, status: int = 400, **fields: str) -> Exception:
        """The error that AWS answers with, to be raised; where moto knows the service's errors it sets their status.

        `fields` are what the error says besides, in services that answer JSON.
        """
        if self.service in _ERRORS:
            return _ERRORS[self.service](code, message)
        return Refused(code, message, status, **fields)


def around(service: str, *actions: str) -> Callable[[Rule], Rule]:
    """Registers a rule around the given actions of a service."""

    def register(rule: Rule) -> Rule:
        for action in actions:
            _attach(service, action, rule)
        return rule

    return register


def before(service: str, *actions: str) -> Callable[[Callable[[Call], None]], Callable[[Call], None]]:
    """Registers a check that may refuse the given actions and changes nothing else."""

    def register(check: Callable[[Call], None]) -> Callable[[Call], None]:
        def rule(call: Call, proceed: Proceed) -> Any:
            check(call)
            return proceed()

        around(service, *actions)(rule)
        return check

    return register


_chains: dict[tuple[str, str], list[Rule]] = {}


def _attach(service: str, action: str, rule: Rule) -> None:
    chain = _chains.get((service, action))
    if chain is not None:
        chain.append(rule)
        return
    chain = _chains[(service, action)] = [rule]
    responses = RESPONSES[service]
    name = camelcase_to_underscores(action)
    answer = getattr(responses, name, None)

    def answered(self: BaseResponse) -> Any:
        call = Call(service, action, self)

        def step(depth: int) -> Any:
            if depth < len(chain):
                return chain[depth](call, lambda: step(depth + 1))
            if answer is None:
                raise NotImplementedError(f"{service}:{action}")
            return answer(self)

        return step(0)

    setattr(responses, name, answered)


def result_of(answer: Any) -> Any:
    """What an answer of moto holds, before it is written out."""
    return answer.result if isinstance(answer, ActionResult) else answer
