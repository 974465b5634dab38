"""What a batch of simulated schedules comes down to, for people and for programs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from pygroups.core.errors import UsageError

from .draw import FAULTS, Wish
from .runner import Outcome, Totals

CRASHES = "crash"
ISOLATIONS = "isolation"


def parse_seeds(text: str) -> range:
    """`A:B` is the half-open range, `A` the one seed; UsageError for anything else."""
    low, colon, high = text.partition(":")
    if not low.isdecimal() or (colon and not high.isdecimal()) or not low.isascii() or not high.isascii():
        raise UsageError(f"--seeds {text!r} is no range: write 0:1000 for the seeds 0 to 999, or one seed")
    seeds = range(int(low), int(high) if colon else int(low) + 1)
    if not seeds:
        raise UsageError(f"--seeds {text} holds no seed: the second number must be above the first")
    return seeds


def command(seed: int, wish: Wish) -> str:
    """The command line that repeats `seed`."""
    words = ["pygroups", "simulate", "--replay", str(seed), "--profile", wish.profile]
    if wish.members is not None:
        words += ["--members", str(wish.members)]
    if wish.minutes is not None:
        words += ["--minutes", f"{wish.minutes:g}"]
    if wish.faults != FAULTS:
        words += ["--faults", ",".join(wish.faults)]
    return shlex.join(words)


def closing(totals: Totals, seconds: float) -> str:
    """The counts of a batch in a few lines."""
    count = totals.counts.get
    lines = [
        f"{totals.schedules:,} schedules ({totals.empty:,} empty), {totals.virtual_s:,.0f} simulated seconds"
        f" in {seconds:,.1f}",
        f"  {count('messages', 0):,} messages, {count('deliveries', 0):,} deliveries, {count('views', 0):,} views",
        f"  {_of_a_coordinator(totals, CRASHES, 'crashes')}, {_of_a_coordinator(totals, ISOLATIONS, 'isolations')}, "
        f"{_of_a_coordinator(totals, 'pause', 'pauses')}, {count('flush restarted', 0):,} flush restarts, "
        f"{retransmissions(totals):,} retransmissions",
    ]
    drops = sorted(totals.drops.items(), key=lambda item: (-item[1], item[0]))
    if drops:
        lines.append("  dropped: " + ", ".join(f"{reason} {number:,}" for reason, number in drops))
    return "\n".join(lines)


def _of_a_coordinator(totals: Totals, kind: str, name: str) -> str:
    return (
        f"{totals.counts.get(kind, 0):,} {name} ({totals.counts.get(f'{kind} of a coordinator', 0):,} of a coordinator)"
    )


def retransmissions(totals: Totals) -> int:
    """Runs that any layer sent again."""
    return sum(number for name, number in totals.counts.items() if name.endswith("sent again"))


def failure(outcome: Outcome, wish: Wish) -> str:
    """What broke, in which seed, and how to see it again."""
    assert outcome.witness is not None
    lines = [
        f"seed {outcome.seed}: {outcome.witness}",
        f"  at {outcome.now / 1_000_000:.6f} simulated seconds; see it again with: {command(outcome.seed, wish)}",
    ]
    return "\n".join([*lines, outcome.trace.rstrip()] if outcome.trace else lines)


def as_json(totals: Totals, failed: Outcome | None, promises: Sequence[str], wish: Wish) -> dict[str, Any]:
    """What `simulate --json` prints."""
    counts = totals.counts
    answer: dict[str, Any] = {
        "profile": wish.profile,
        "schedules": totals.schedules,
        "empty": totals.empty,
        "simulated_s": round(totals.virtual_s, 3),
        "messages": counts.get("messages", 0),
        "deliveries": counts.get("deliveries", 0),
        "views": counts.get("views", 0),
        "crashes": counts.get(CRASHES, 0),
        "crashes_of_a_coordinator": counts.get(f"{CRASHES} of a coordinator", 0),
        "isolations": counts.get(ISOLATIONS, 0),
        "isolations_of_a_coordinator": counts.get(f"{ISOLATIONS} of a coordinator", 0),
        "flush_restarts": counts.get("flush restarted", 0),
        "retransmissions": retransmissions(totals),
        "drops": dict(sorted(totals.drops.items())),
        "promises": list(promises),
        "failure": None,
    }
    if failed is not None and failed.witness is not None:
        answer["failure"] = {
            "seed": failed.seed,
            "promise": failed.witness.promise,
            "witness": {name: getattr(failed.witness, name) for name in failed.witness.__struct_fields__},
            "command": command(failed.seed, wish),
        }
    return answer
