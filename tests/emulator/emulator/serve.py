"""Puts the parts together: rules, seeds, faults and call log, then a server that listens.

Importing this imports moto, so `seed.prepare` comes first.
"""

from typing import Any

import emulator.rules  # noqa: F401  (attaches the rules to moto)
from emulator import calls, faults, seed
from emulator.server import Handler, Server
from emulator.settings import settings

seed.install()


def start(host: str, port: int, given_faults: list[dict[str, Any]]) -> Server:
    """A server that is bound; the caller runs `serve_forever`. What every account has is made now, not at the first call."""
    from moto.ec2.models import ec2_backends
    from moto.iam.models import iam_backends

    calls.open_file(settings.call_log)
    faults.seed(settings.seed)
    faults.set_all(given_faults)
    _ = ec2_backends["123456789012"]["us-east-1"], iam_backends["123456789012"]["aws"]
    return Server((host, port), Handler)
