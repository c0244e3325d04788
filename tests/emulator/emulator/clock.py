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
#: While transitions run: when the one that runs was due, so that what it schedules counts from there.
_running_since: float | None = None
_order = itertools.count()


_skipped = 0.0


def now() -> float:
    """Seconds on a clock that only goes forward, by itself or by `skip`."""
    return time.monotonic() + _skipped


def skip(seconds: float) -> None:
    """Moves the clock forward, so that tests need not wait."""
    global _skipped
    _skipped += seconds


def later(seconds: float, transition: Callable[[], None]) -> None:
    """Runs `transition` once `seconds` have passed and somebody looks."""
    start = now() if _running_since is None else _running_since
    heapq.heappush(_due, (start + seconds, next(_order), transition))


def tick() -> None:
    """Runs all that is due, in order of time."""
    global _running_since
    until = now()
    try:
        while _due and _due[0][0] <= until:
            _running_since, _, transition = heapq.heappop(_due)
            transition()
    finally:
        _running_since = None
