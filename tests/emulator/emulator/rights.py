"""What of the rights that identities were given was needed: the actions of each statement that no other one allowed.

A statement with nothing here could be taken away, and an action that is not here could be taken out of it, and no call
so far would have been missed.
"""

import threading
from typing import Any

_lock = threading.Lock()
_needed: dict[str, dict[str, set[str]]] = {}


def note(key: str, action: str, said: list[dict[str, Any]]) -> None:
    """An identity was allowed an action, by these statements."""
    if len(said) == 1:
        with _lock:
            _needed.setdefault(key, {}).setdefault(said[0].get("Sid", ""), set()).add(action)


def needed(key: str) -> dict[str, list[str]]:
    """Actions by the Sid of their statement."""
    with _lock:
        return {sid: sorted(actions) for sid, actions in sorted(_needed.get(key, {}).items())}


def clear() -> None:
    """Forgets everything."""
    with _lock:
        _needed.clear()
