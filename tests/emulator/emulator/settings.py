"""The settings of one emulator process, set once from the flags and read by the rules.

Nothing here depends on moto, so that it can be imported before moto reads its environment.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Machine images that every region offers unless told otherwise.
DEFAULT_AMIS = Path(__file__).resolve().parent.parent / "amis.json"


@dataclass
class Settings:
    """What the flags of `python -m emulator` say."""

    #: Seconds that a transition (pending to running, deleting to deleted, ...) takes.
    delay: float = 2.0
    #: A terminated instance or deleted NAT gateway stays visible for this many delays.
    vanish_after_delays: float = 60.0
    #: Most items that a paged Describe answers with, also when the caller set no limit; 0 is AWS's own default.
    page_size: int = 0
    #: Upper bounds by name (see `rules/quotas.py`); an absent name is unlimited.
    quotas: dict[str, int] = field(default_factory=dict)
    #: Whether IAM policies count for all callers that IAM knows, not only for pods (see `rules/enforcement.py`).
    enforce_iam: bool = False
    #: Policy documents of access keys that may do what these allow and nothing else.
    identities: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    #: Seed of the random choices that faults make.
    seed: int = 0
    #: File that receives each call as a line of JSON; None keeps the log in memory only.
    call_log: Path | None = None

    @property
    def vanish_after(self) -> float:
        """Seconds that a terminated or deleted thing stays visible."""
        return max(self.vanish_after_delays * self.delay, 1.0)


#: The one instance; `configure` changes it in place so that importers see the change.
settings = Settings()


def configure(**values: object) -> None:
    """Sets fields of `settings`; an unknown name is an error."""
    for name, value in values.items():
        if not hasattr(settings, name):
            raise TypeError(f"no such setting: {name}")
        setattr(settings, name, value)
