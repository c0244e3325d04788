"""`python -m emulator`: reads the flags, prepares moto and serves until it is told to stop."""

import argparse
import json
import os
import signal
from pathlib import Path
from typing import Any

from emulator import seed
from emulator.settings import DEFAULT_AMIS, configure


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="emulator", description="AWS for tests: moto with AWS's strictness.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=5000, help="port to listen on; 0 picks one and prints it")
    parser.add_argument("--delay", type=float, default=2.0, help="seconds that a transition of state takes")
    parser.add_argument(
        "--vanish-after-delays",
        type=float,
        default=60.0,
        help="a terminated instance or deleted NAT gateway is shown for this many delays",
    )
    parser.add_argument("--amis", type=Path, default=DEFAULT_AMIS, help="JSON file with the machine images")
    parser.add_argument("--call-log", type=Path, help="file that receives every call as a line of JSON")
    parser.add_argument("--page-size", type=int, default=0, help="most items per page, also when none was asked for")
    parser.add_argument("--quota", action="append", default=[], metavar="NAME=N", help="for example vpc=5")
    parser.add_argument("--fault", action="append", default=[], metavar="JSON", help="a fault, see faults.py")
    parser.add_argument(
        "--enforce-iam", action="store_true", help="policies count for every user and role, not only for web identities"
    )
    parser.add_argument(
        "--identity",
        action="append",
        default=[],
        metavar="KEY=FILE",
        help="this access key may do what the policy in the file allows, and what those of further flags do",
    )
    parser.add_argument("--seed", type=int, default=0, help="makes the random choices of faults repeatable")
    return parser


def identities(given: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Policy documents by access key."""
    found: dict[str, list[dict[str, Any]]] = {}
    for key, _, file in (one.partition("=") for one in given):
        found.setdefault(key, []).append(json.loads(Path(file).read_text(encoding="utf-8")))
    return found


def main() -> None:
    """Runs the emulator until SIGTERM or SIGINT."""
    given = arguments().parse_args()
    seed.prepare(given.amis.resolve())
    configure(
        delay=given.delay,
        vanish_after_delays=given.vanish_after_delays,
        page_size=given.page_size,
        quotas={name: int(value) for name, _, value in (one.partition("=") for one in given.quota)},
        enforce_iam=given.enforce_iam,
        identities=identities(given.identity),
        seed=given.seed,
        call_log=given.call_log,
    )
    # Imported late: moto reads its environment when it is imported.
    from emulator import serve

    faults = [json.loads(one) for one in given.fault]
    server = serve.start(given.host, given.port, faults)
    # Nothing needs tidying up, and connections that are open must not keep the process.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print(f"listening on http://{given.host}:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
