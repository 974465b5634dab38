"""What a network that loses datagrams costs: bytes on the wire beside those without loss.

Real processes, each on a host of its own (a network namespace; needs root and nftables), over UDP.  Each member sends
`--count` messages as fast as its window lets it, and the run ends when all have all of them and no layer holds
anything.  The kernel of each host drops its share of the packets that come in.  The bytes are those that all hosts
sent.  What every application was given is judged, and at the end an audit judges all journals (`--no-audit`: it does
not).  The exit code is 1 if a message was lost, double or out of order, a promise is not held, or the repair of a loss
took more than GOALS allow.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any, Final

import common

sys.path.insert(0, str(common.HOME))

from tests.e2e.group import audit, broken
from tests.e2e.losses import Exchange, exchange, unheld

GOALS: Final = {1.0: 0.05, 10.0: 0.4}
"""By percent of lost packets: how large the share of bytes may be that travel beside those without loss."""


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--members", type=int, nargs="+", default=[2, 5])
    options.add_argument("--count", type=int, default=100_000, help="messages of each member")
    options.add_argument("--size", type=int, default=100)
    options.add_argument("--transport", default="udp")
    options.add_argument("--profiles", nargs="+", default=["total", "fifo"])
    options.add_argument("--losses", nargs="+", type=float, default=[1.0, 10.0], help="percent of the packets")
    options.add_argument("--datagrams", nargs="+", type=int, default=[None], help="bytes, in place of the default")
    options.add_argument("--no-audit", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="pygroups-loss-") as folder:
        well = [
            _played(Path(folder), given, profile, members, datagram)
            for profile, members, datagram in product(given.profiles, given.members, given.datagrams)
        ]
        if not given.no_audit:
            well.append(_judged(Path(folder), set(given.profiles)))
    return 0 if all(well) else 1


def _played(folder: Path, given: argparse.Namespace, profile: str, members: int, datagram: int | None) -> bool:
    """One group without loss and with each loss, a line for each; whether all went well."""
    plain, well = 0, True
    for percent in [0.0, *given.losses]:
        result = common.Result("loss")
        what = Exchange(profile, members, given.count, percent, given.size, given.transport, datagram)
        done = exchange(folder, what)
        plain = plain or done.bytes
        more = done.bytes / plain - 1
        told: dict[str, Any] = {"datagram": datagram} if datagram else {}
        if datagram is None and percent in GOALS:
            told["goal"] = GOALS[percent]
            well = well and more <= GOALS[percent]
        result.write(
            profile=profile,
            transport=given.transport,
            members=members,
            messages_each=given.count,
            message_bytes=given.size,
            loss_percent=percent,
            more_bytes=round(more, 3),
            bytes=done.bytes,
            run_s=done.seconds,
            faults=done.faults,
            **told,
        )
        well = well and not done.faults
    return well


def _judged(folder: Path, profiles: set[str]) -> bool:
    """A line with the audit of all journals; whether it found all promises held."""
    result = common.Result("loss")
    code, found = audit(folder / "journal")
    missing = sorted(unheld(found, profiles))
    result.write(
        part="audit",
        records=found["rows"],
        groups=found["groups"],
        audit_exit_code=code,
        broken=broken(found),
        not_held=missing,
    )
    return code == 0 and not missing


if __name__ == "__main__":
    sys.exit(main())
