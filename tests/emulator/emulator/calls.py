"""The call log: what was asked of AWS, when, by whom, and with which answer.

Tests count calls with it. Requests to the control API are never in it.
"""

import json
import threading
import time
from pathlib import Path
from typing import Any, TextIO

from emulator.request import AwsRequest

_lock = threading.Lock()
_calls: list[dict[str, Any]] = []
_file: TextIO | None = None


def open_file(path: Path | None) -> None:
    """Also writes each call to `path`, one JSON object a line; None stops that."""
    global _file
    _file = path.open("a", buffering=1, encoding="utf-8") if path else None


def record(request: AwsRequest, status: int, code: str | None, fault: str | None = None) -> None:
    """Adds one call; `status` is 0 where the caller got no answer at all."""
    with _lock:
        entry = {
            "sequence": len(_calls) + 1,
            "time": time.time(),
            "service": request.service,
            "action": request.action,
            "status": status,
            "code": code,
            "write": request.write,
            "caller": request.caller,
            "region": request.region,
            "resources": request.resources,
            "fault": fault,
        }
        _calls.append(entry)
        if _file is not None:
            _file.write(json.dumps(entry) + "\n")


def since(sequence: int) -> dict[str, Any]:
    """The calls after `sequence`, and the number to ask with next time."""
    with _lock:
        return {"next": len(_calls), "calls": _calls[max(sequence, 0) :]}


def clear() -> None:
    """Forgets all calls; numbers start again at 1."""
    with _lock:
        _calls.clear()
