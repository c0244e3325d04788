"""What is known about the health of load balancer targets.

The bed reports what its own health checks found. A load balancer that no bed ever reported about has healthy
targets after the usual delay, so that tests without a bed can wait for them.
"""


from emulator import clock

#: Health by load balancer (name or ARN), target (instance id or address) and port.
_reports: dict[str, dict[tuple[str, int], bool]] = {}
#: When a target was registered, by load balancer name or target group ARN, and target.
_registered: dict[tuple[str, str], float] = {}


def report(balancer: str, target: str, port: int, healthy: bool) -> None:
    """Keeps what a health check found; `balancer` is a name or an ARN."""
    _reports.setdefault(name_of(balancer), {})[(target, port)] = healthy


def name_of(balancer: str) -> str:
    """A load balancer's name, from its name or its ARN (names are unique per account and region)."""
    return balancer.split("/")[-2] if balancer.startswith("arn:") else balancer


def reported(balancer: str, target: str, port: int) -> bool | None:
    """What was reported last; None where nothing was, though other targets were."""
    return _reports.get(name_of(balancer), {}).get((target, port))


def ever_reported(balancer: str) -> bool:
    """Whether a bed looks after this load balancer."""
    return name_of(balancer) in _reports


def register(place: str, target: str) -> None:
    """Notes that a target was registered just now, unless it already is."""
    _registered.setdefault((place, target), clock.now())


def deregister(place: str, target: str) -> None:
    """Forgets a target."""
    _registered.pop((place, target), None)


def forget(balancer: str) -> None:
    """Forgets all reports about a load balancer that is gone."""
    _reports.pop(name_of(balancer), None)


def age(place: str, target: str) -> float:
    """Seconds since the target was registered; infinite if that was never noted."""
    since = _registered.get((place, target))
    return float("inf") if since is None else clock.now() - since
