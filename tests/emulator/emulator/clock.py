"""Transitions that happen later: what was scheduled runs when somebody next looks.

There is no background thread. Every call, and every read of the control API, first runs what is due; so the
state anyone sees is right, and no state changes in the middle of a call. The caller holds the world's lock.
"""

import heapq
import itertools
import threading
import time
from collections.abc import Callable

#: Held by whoever reads or changes the emulated world; moto itself is not safe for threads.
world_lock = threading.RLock()

_due: list[tuple[float, int, Callable[[], None]]] = []
_order = itertools.count()


def later(seconds: float, transition: Callable[[], None]) -> None:
    """Runs `transition` once `seconds` have passed and somebody looks."""
    heapq.heappush(_due, (time.monotonic() + seconds, next(_order), transition))


def tick() -> None:
    """Runs all that is due, in order of time."""
    now = time.monotonic()
    while _due and _due[0][0] <= now:
        heapq.heappop(_due)[2]()


def clear() -> None:
    """Forgets all that is scheduled."""
    _due.clear()
