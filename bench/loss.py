"""What a network that loses datagrams costs: bytes on the wire beside those without loss.

Real processes, each on a host of its own (a network namespace; needs root and nftables), over UDP.  Each member sends
`--count` messages as fast as its window lets it, and the run ends when all have all of them and no layer holds
anything.  The kernel of each host drops its share of the packets that come in.  The bytes are those that all hosts
sent.  What every application was given is judged, and at the end an audit judges all journals (`--no-audit`: it does
not).  The exit code is 1 if a message was lost, double or out of order, a promise is not held, or the repair of a loss
took more than GOALS allow.  Each line is appended to bench/results/loss.jsonl.  A profile and number of members that
have passed on the same commit, with their audit, are not played again.
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
    well = True
    for profile, members, datagram in product(given.profiles, given.members, given.datagrams):
        unit = {"profile": profile, "transport": given.transport, "members": members, "messages_each": given.count}
        unit |= {"message_bytes": given.size} | ({"datagram": datagram} if datagram else {})
        judged = unit | {"part": "audit", "losses": given.losses}
        if not given.no_audit and common.passed("loss", **judged):
            print(f"{_named(unit)}: passed before on this commit", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="pygroups-loss-") as folder:
            played = _played(Path(folder), given, unit)
            well = (given.no_audit or _judged(Path(folder), judged, played)) and played and well
    return 0 if well else 1


def _played(folder: Path, given: argparse.Namespace, unit: dict[str, Any]) -> bool:
    """One group without loss and with each loss, a line for each; whether all went well."""
    plain, well, datagram = 0, True, unit.get("datagram")
    for percent in [0.0, *given.losses]:
        result = common.Result("loss")
        what = Exchange(unit["profile"], unit["members"], given.count, percent, given.size, given.transport, datagram)
        done = exchange(folder, what)
        plain = plain or done.bytes
        more, faults, goal = done.bytes / plain - 1, list(done.faults), {}
        if datagram is None and percent in GOALS:
            goal["goal"] = GOALS[percent]
            if more > GOALS[percent]:
                faults.append(f"the repair took {more:.3f} of the bytes, and the goal is {GOALS[percent]}")
        measured = {"more_bytes": round(more, 3), "bytes": done.bytes, "run_s": done.seconds, "faults": faults}
        result.write(**unit, loss_percent=percent, **goal, **measured, told=False)
        told = f"{done.bytes / 1e6:.1f} MB ({more:+.1%}) in {done.seconds} s"
        print(f"{_named(unit)}, {percent:g} % lost: {told}", *faults, flush=True)
        well = well and not faults
    return well


def _named(unit: dict[str, Any]) -> str:
    datagram = f", datagrams of {unit['datagram']} bytes" if "datagram" in unit else ""
    return f"{unit['profile']} over {unit['transport']}, {unit['members']} x {unit['messages_each']:,}{datagram}"


def _judged(folder: Path, part: dict[str, Any], played: bool) -> bool:
    """A line with the audit of the journals; whether it found all promises held."""
    result = common.Result("loss")
    code, found = audit(folder / "journal")
    missing = sorted(unheld(found, {part["profile"]}))
    faults = [] if played else ["a part before it failed"]
    faults += [f"audit exit code {code}, broken {broken(found)}, not held {missing}"] if code or missing else []
    result.write(**part, records=found["rows"], groups=found["groups"], audit_exit_code=code, faults=faults, told=False)
    print(f"{_named(part)}: audit of {found['rows']:,} records", *(faults or ["all promises held"]), flush=True)
    return not faults


if __name__ == "__main__":
    sys.exit(main())
