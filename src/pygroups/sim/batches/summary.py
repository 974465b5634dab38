"""The summary of a batch of simulated schedules, for people and for programs."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from pygroups.core.errors import UsageError
from pygroups.core.services import PRIMARY
from pygroups.layers.profiles import profile_named

from ..schedules.catalog import FAULTS, possible
from ..schedules.draw import Wish
from .coverage import EMPTY_MAX, EMPTY_MAX_OF_MAJORITY, SEEDS_MIN, faults_missing, retransmissions, stages_hit, zeros
from .runner import NETWORK, Outcome, Totals

CRASHES = "crash"
ISOLATIONS = "isolation"
OF_A_COORDINATOR: Final = " of a coordinator"
AT: Final = " at "  # before the labeled point of a fault
WIDTH: Final = 120


def parse_seeds(text: str) -> range:
    """Parse `A:B` as a half-open range and `A` as one seed.  Raises UsageError for any other text."""
    low, colon, high = text.partition(":")
    if not low.isdecimal() or (colon and not high.isdecimal()) or not low.isascii() or not high.isascii():
        raise UsageError(f"--seeds {text!r} is not a range: write 0:1000 for the seeds 0 to 999, or one seed")
    seeds = range(int(low), int(high) if colon else int(low) + 1)
    if not seeds:
        raise UsageError(f"--seeds {text} contains no seed: the second number must be above the first")
    return seeds


def command(seed: int, wish: Wish) -> str:
    """The command line that repeats `seed`."""
    words = ["pygroups", "simulate", "--replay", str(seed), "--profile", wish.profile]
    if wish.members is not None:
        words += ["--members", str(wish.members)]
    if wish.minutes is not None:
        words += ["--minutes", str(wish.minutes)]
    if wish.faults != FAULTS:
        words += ["--faults", ",".join(wish.faults)]
    return shlex.join(words)


class Summary(msgspec.Struct, frozen=True):
    """The totals of schedules that were played for `wish` in `seconds` real seconds."""

    totals: Totals
    wish: Wish
    seconds: float

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the profile's layers."""
        return tuple(layer.__name__ for layer in profile_named(self.wish.profile).layers)

    @property
    def wished(self) -> tuple[str, ...]:
        """The requested faults that the profile can have."""
        return possible(self.wish.faults, profile_named(self.wish.profile).services)

    @property
    def counts(self) -> Mapping[str, int]:
        """All counters, and the sum of the drops as one more."""
        return {**self.totals.counts, "drops": sum(self.totals.drops.values())}

    @property
    def stages(self) -> dict[str, int]:
        """How often each stage of a view change was reached."""
        return stages_hit(self.layers, self.totals.counts)

    @property
    def never_hit(self) -> list[str]:
        """The stages that no schedule reached."""
        return [stage for stage, count in self.stages.items() if not count]

    @property
    def never_happened(self) -> list[str]:
        """The requested faults that never happened."""
        return faults_missing(self.wished, self.totals.faults)

    @property
    def zeros(self) -> list[str]:
        """The required counts that are 0."""
        return zeros(self.layers, self.wished, self.counts)

    @property
    def not_judged(self) -> list[str]:
        """The promises that were not judged in any schedule, so that this batch does not test them."""
        return [promise for promise, count in self.totals.facts.items() if not count]

    @property
    def hours_per_minute(self) -> float:
        """Simulated hours per real minute."""
        return self.totals.virtual_s / 60 / max(self.seconds, 0.001)

    def shortcomings(self) -> list[str]:
        """The reasons why this batch does not count although no promise was broken, in a sentence each."""
        totals, found = self.totals, []
        most = EMPTY_MAX_OF_MAJORITY if PRIMARY in profile_named(self.wish.profile).services else EMPTY_MAX
        if totals.empty > most * totals.schedules:
            found.append(
                f"{totals.empty:,} of {totals.schedules:,} schedules tested little, more than {most:.0%}: they had"
                " fewer than 200 messages or one sender, or no member delivered half of the messages"
            )
        if totals.schedules >= SEEDS_MIN and self.zeros:
            found.append(
                f"in {totals.schedules:,} schedules there were no {_either(self.zeros)}, so nothing tested them"
            )
        return found


def _either(names: Sequence[str]) -> str:
    return " and no ".join(names)


# -- for people


def closing(summary: Summary) -> str:
    """The counts of a batch in a few lines."""
    totals = summary.totals
    faults = faults_by_name(totals.faults)
    count = totals.counts.get
    drops = {reason: number for reason, number in totals.drops.items() if reason.removeprefix(NETWORK) not in faults}
    lines = [
        f"{totals.schedules:,} schedules ({totals.empty:,} empty), {_duration(totals.virtual_s)} simulated in"
        f" {_duration(summary.seconds)}: {summary.hours_per_minute:,.2f} simulated hours a minute",
        f"  {count('messages', 0):,} messages, {count('deliveries', 0):,} deliveries, {count('views', 0):,} views",
        f"  {_of_a_coordinator(totals.counts, CRASHES, 'crashes')},"
        f" {_of_a_coordinator(totals.counts, ISOLATIONS, 'isolations')},"
        f" {count('flush restarted', 0):,} flush restarts, {retransmissions(totals.counts):,} retransmissions",
        _list("faults", _numbers(faults)),
        _list("faults at labeled points", _numbers(_at_points(totals.faults))),
        _list("view changes", [f"{stage} {number:,}" for stage, number in summary.stages.items() if number]),
        _list("dropped", _numbers(drops)),
    ]
    if totals.schedules > 1:
        lines.append(_list("not judged", summary.not_judged))
        lines.append(_list("stages never reached", summary.never_hit))
        lines.append(_list("faults that never happened", summary.never_happened))
        if totals.schedules < SEEDS_MIN and summary.zeros:
            said = f"no {_either(summary.zeros)}: with {SEEDS_MIN} schedules or more, the command would fail"
            lines.append(textwrap.fill(said, WIDTH, initial_indent="  ", subsequent_indent="    "))
    return "\n".join(line for line in lines if line)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:,.1f} seconds"
    return f"{seconds / 60:,.1f} minutes" if seconds < 6_000 else f"{seconds / 3600:,.1f} hours"


def faults_by_name(faults: Mapping[str, int]) -> dict[str, int]:
    """The faults by name, without the counters of coordinators and labeled points."""
    return {name: number for name, number in faults.items() if not name.endswith(OF_A_COORDINATOR) and AT not in name}


def _at_points(faults: Mapping[str, int]) -> dict[str, int]:
    return {name: number for name, number in faults.items() if AT in name}


def _of_a_coordinator(counts: Mapping[str, int], kind: str, name: str) -> str:
    return f"{counts.get(kind, 0):,} {name} ({counts.get(kind + OF_A_COORDINATOR, 0):,}{OF_A_COORDINATOR})"


def _numbers(counts: Mapping[str, int]) -> Iterable[str]:
    """`name number`, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return (f"{name} {number:,}" for name, number in ordered if number)


def _list(title: str, items: Iterable[str]) -> str:
    """`title` and the items in lines of a readable length; an item stays on one line.  Empty for no item."""
    glued = ", ".join(item.replace(" ", "\xa0") for item in items)
    filled = textwrap.fill(
        glued, WIDTH, initial_indent=f"  {title}: ", subsequent_indent="    ", break_on_hyphens=False
    )
    return filled.replace("\xa0", " ") if glued else ""


def failure(outcome: Outcome, repeat: str) -> str:
    """The broken promise, its seed, and the command line that repeats the failure."""
    assert outcome.witness is not None
    lines = [
        f"seed {outcome.seed}: {outcome.witness}",
        f"  at {outcome.now / 1_000_000:.6f} simulated seconds; see it again with: {repeat}",
    ]
    return "\n".join([*lines, outcome.trace.rstrip()] if outcome.trace else lines)


# -- for programs


def as_json(summary: Summary, failed: Outcome | None, promises: Sequence[str], repeat: str) -> dict[str, Any]:
    """The object that `simulate --json` prints.  Later versions only add names to this object."""
    totals, wish = summary.totals, summary.wish
    counts = totals.counts
    return {
        "profile": wish.profile,
        "schedules": totals.schedules,
        "empty": totals.empty,
        "simulated_s": round(totals.virtual_s, 3),
        "seconds": round(summary.seconds, 3),
        "simulated_hours_per_minute": round(summary.hours_per_minute, 3),
        "messages": counts.get("messages", 0),
        "deliveries": counts.get("deliveries", 0),
        "views": counts.get("views", 0),
        "crashes": counts.get(CRASHES, 0),
        "crashes_of_a_coordinator": counts.get(CRASHES + OF_A_COORDINATOR, 0),
        "isolations": counts.get(ISOLATIONS, 0),
        "isolations_of_a_coordinator": counts.get(ISOLATIONS + OF_A_COORDINATOR, 0),
        "flush_restarts": counts.get("flush restarted", 0),
        "retransmissions": retransmissions(counts),
        "faults": dict(sorted(totals.faults.items())),
        "faults_that_never_happened": summary.never_happened,
        "stages": summary.stages,
        "stages_never_hit": summary.never_hit,
        "drops": dict(sorted(totals.drops.items())),
        "shortcomings": summary.shortcomings(),
        "promises": list(promises),
        "facts": totals.facts,
        "not_judged": summary.not_judged,
        "failure": _failure_as_json(failed, repeat),
    }


def _failure_as_json(failed: Outcome | None, repeat: str) -> dict[str, Any] | None:
    if failed is None or failed.witness is None:
        return None
    return {
        "seed": failed.seed,
        "promise": failed.witness.promise,
        "witness": {name: getattr(failed.witness, name) for name in failed.witness.__struct_fields__},
        "command": repeat,
    }
