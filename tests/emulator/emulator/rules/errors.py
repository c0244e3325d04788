"""What moto cannot do is answered with an error of AWS, never with a page of HTML.

An action that moto lacks is InvalidAction, a filter that it lacks is InvalidParameterValue, a region that does
not exist is refused as AWS refuses a wrong credential scope, and a crash inside moto is a 500 of the protocol.
"""

import re
import sys
import traceback
from typing import Any

from botocore.model import OperationNotFoundError
from moto.core.responses import BaseResponse

from emulator import api_model
from emulator.errors import Response, render
from emulator.hooks import Refused
from emulator.request import AwsRequest

_FILTER = re.compile(r"[Ff]ilter(?: dicts have not been implemented in Moto for)? '([^']+)'")


def unanswerable(request: AwsRequest) -> Response | None:
    """The refusal of a request that must not reach moto at all, or None."""
    if request.region in api_model.regions():
        return None
    message = f"Credential should be scoped to a valid region, not '{request.region}'."
    if request.protocol == "ec2":
        return render("ec2", 401, "AuthFailure", message)
    return render(request.protocol, 403, "SignatureDoesNotMatch", message)


def _protocol(response: BaseResponse) -> str:
    if response.service_name in ("ec2", "efs"):
        return {"ec2": "ec2", "efs": "rest-json"}[response.service_name]
    if response.headers.get("X-Amz-Target"):
        return "json"
    return "query" if "Action" in response.querystring else "rest"


def _explain(response: BaseResponse, error: Exception) -> Response:
    protocol = _protocol(response)
    if isinstance(error, Refused):
        return render(protocol, error.status, error.code, error.message, error.fields)
    if isinstance(error, OperationNotFoundError):
        action = response.querystring.get("Action", [str(error)])[0]
        return render(protocol, 400, "InvalidAction", f"The action {action} is not valid for this web service.")
    if isinstance(error, NotImplementedError):
        found = _FILTER.search(str(error.args))
        if found:
            return render(protocol, 400, "InvalidParameterValue", f"The filter '{found.group(1)}' is invalid")
        action = response._get_action()
        return render(protocol, 400, "InvalidAction", f"The action {action} is not emulated.")
    traceback.print_exception(error, file=sys.stderr)
    code = "InternalError" if protocol == "ec2" else "InternalFailure"
    return render(protocol, 500, code, f"{type(error).__name__} while answering; the emulator's log says more")


def _dispatch(self: BaseResponse, *args: Any, **kwargs: Any) -> Any:
    try:
        return _moto_dispatch(self, *args, **kwargs)
    except Exception as error:  # every failure of moto becomes an answer
        return _explain(self, error)


_moto_dispatch = BaseResponse._dispatch
BaseResponse._dispatch = _dispatch
