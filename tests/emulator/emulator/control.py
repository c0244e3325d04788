"""The control API under `/_emulator/`: what tests read and set from outside.

Nothing of it is logged as an AWS call, delayed or faulted.
"""

import json
from typing import Any
from urllib.parse import parse_qs

from emulator import account, calls, clock, faults, health, rights, world
from emulator.errors import Response
from emulator.rules import instances
from emulator.settings import settings


def answer(method: str, path: str, query: str, body: bytes) -> Response:
    """Carries out one control request."""
    route = _ROUTES.get((method, path.removeprefix("/_emulator/")))
    if route is None:
        return _json(404, {"error": f"no {method} {path}; known are {sorted(' '.join(one) for one in _ROUTES)}"})
    try:
        arguments = {name: values[0] for name, values in parse_qs(query).items()}
        content = json.loads(body) if body else None
        with clock.world_lock:
            clock.tick()
            return _json(200, route(arguments, content))
    except (KeyError, TypeError, ValueError) as error:
        return _json(400, {"error": f"{type(error).__name__}: {error}"})
    except LookupError as error:
        return _json(404, {"error": str(error)})


def _json(status: int, value: Any) -> Response:
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()


def _ready(arguments: dict[str, str], content: Any) -> Any:
    return {"ready": True}


def _calls(arguments: dict[str, str], content: Any) -> Any:
    return calls.since(int(arguments.get("since", "0")))


def _faults(arguments: dict[str, str], content: Any) -> Any:
    return faults.current()


def _set_faults(arguments: dict[str, str], content: Any) -> Any:
    if not isinstance(content, list):
        raise ValueError("faults are a list")
    faults.set_all(content)
    return faults.current()


def _quotas(arguments: dict[str, str], content: Any) -> Any:
    return settings.quotas


def _set_quotas(arguments: dict[str, str], content: Any) -> Any:
    settings.quotas = {str(name): int(value) for name, value in content.items()}
    return settings.quotas


def _world(arguments: dict[str, str], content: Any) -> Any:
    return world.dump()


def _account(arguments: dict[str, str], content: Any) -> Any:
    return account.existing()


def _rights(arguments: dict[str, str], content: Any) -> Any:
    return rights.needed(arguments["key"])


def _target_health(arguments: dict[str, str], content: Any) -> Any:
    reports = content if isinstance(content, list) else [content]
    for one in reports:
        target = one.get("instanceId") or one["ip"]
        health.report(one["loadBalancer"], target, int(one["port"]), bool(one["healthy"]))
    return {}


def _terminate(arguments: dict[str, str], content: Any) -> Any:
    instances.find(content["instanceId"]).terminate()
    return {}


_ROUTES = {
    ("GET", "ready"): _ready,
    ("GET", "calls"): _calls,
    ("GET", "faults"): _faults,
    ("PUT", "faults"): _set_faults,
    ("GET", "quotas"): _quotas,
    ("PUT", "quotas"): _set_quotas,
    ("GET", "world"): _world,
    ("GET", "account"): _account,
    ("GET", "rights"): _rights,
    ("POST", "target-health"): _target_health,
    ("POST", "terminate"): _terminate,
}
