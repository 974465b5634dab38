"""Kills a member between the steps of its turn, again and again, in a group of four that send; then audits it all.

`python -m tests.e2e.kills --kills 200` kills 100 times in each profile, appends a line for each to
bench/results/kills.jsonl, and keeps the journals if the audit accuses.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pygroups.journal.reader import Quarantine, find_segments, read_segments
from tests.e2e.group import Group, Worker, audit, broken
from tests.e2e.kill_points import STEPS
from tests.e2e.logs import Life, Sent, all_faults, complete

NAMES: Final = ("A", "B", "C", "D")
LOAD: Final = {"count": 1 << 40, "size": 200, "burst": 20, "pause": 0.02}  # of each, for as long as it lives
PASSAGES: Final = (1, 60)  # of the deadly step, until it kills
IN_BIRTH: Final = 0.25  # share of the kills that hit a member which is still joining, or has just joined
PASSAGES_IN_BIRTH: Final = (1, 25)
NOT_WAITING: Final = 0.3  # share of the kills while the one before is not yet made up for
OWNER: Final = ("member", "incarnation")
RUN: Final = ("origin", "origin_incarnation", "first", "count")


class Kills:
    """A group of four, each life of which may be told to end between two steps."""

    def __init__(
        self, folder: Path, seed: int, *, profile: str = "total", planted: bool = False, **wishes: Any
    ) -> None:
        self.profile = profile
        self.group = Group(folder, profile, profile=profile, planted=planted, **wishes)
        self.chance = random.Random(seed)
        self.spare: Worker
        self.absent: str | None = None  # whose next life has not begun
        self.done = Counter[str]()  # kills by step
        self.in_birth = 0

    def run(self, kills: int, steps: Sequence[str] = STEPS) -> None:
        """Kill so many times, the steps in turn; AssertionError when the others do not go on, or were told wrong."""
        with self.group as group:
            for worker in group.start(*NAMES):
                send(worker)
            self.spare = group.prepare()
            for number in range(kills):
                self._kill_one(steps[number % len(steps)])
            self._come_to_rest()
        faults = [*all_faults(group.lives(), self.profile), *unwritten(group.lives(), group.journal)]
        assert not faults, "\n".join(faults[:20])

    def _kill_one(self, step: str) -> None:
        if self.absent is not None and self.chance.random() < IN_BIRTH:
            self._mark_everywhere_but(None)
            victim = self._begin_life(die={"step": step, "passages": self.chance.randint(*PASSAGES_IN_BIRTH)})
            self.in_birth += 1
        else:
            if self.absent is not None:
                self._begin_life()
            victim = self._one_of_the_living()
            self._mark_everywhere_but(victim)
            victim.order("die", step=step, passages=self.chance.randint(*PASSAGES))
        self._died(victim)
        self.done[step] += 1

    def _one_of_the_living(self) -> Worker:
        group = self.group
        if self.chance.random() >= NOT_WAITING or len(group.living) < len(NAMES) - 1:
            group.until("four members again", lambda: len(group.living) == len(NAMES))
            group.settle()
        return self.chance.choice(group.living)

    def _mark_everywhere_but(self, victim: Worker | None) -> None:
        for worker in self.group.living:
            if worker is not victim:
                worker.mark("fault", "kill", [] if victim is None else [victim.address])

    def _died(self, victim: Worker) -> None:
        code = victim.ended()
        assert code == -signal.SIGKILL, f"{victim.name} ended with {code} in place of dying: {victim.errors}"
        self.group.until(
            f"views without {victim.name}",
            lambda: (
                not any(
                    member.partition("@")[0] == victim.name for worker in self.group.living for member in worker.members
                )
            ),
        )
        self.absent = victim.name

    def _begin_life(self, **wishes: Any) -> Worker:
        """A new life under the name of the dead; it sends as soon as it has joined."""
        assert self.absent is not None
        worker = self.group.go(self.spare, self.absent, faults_before=True, **wishes)
        send(worker)
        self.spare, self.absent = self.group.prepare(), None
        return worker

    def _come_to_rest(self) -> None:
        """Four members, no more deaths, all delivered, and everybody leaves."""
        group = self.group
        if self.absent is not None:
            self._begin_life()
        group.until("four members again", lambda: len(group.living) == len(NAMES))
        group.settle()
        group.everywhere("heal")
        accepted = group.stop_sending()
        group.quiet(accepted)
        group.everywhere("quiet")
        group.leave()
        lost = list(complete([life for life in group.lives() if life.address in accepted], accepted))
        assert not lost, lost


def send(worker: Worker) -> None:
    """Have it send: some turns in every hundredth of a second, and no more records than an audit reads in seconds."""
    worker.order("send", **LOAD)


def unwritten(lives: Iterable[Life], journal: Path) -> Iterator[str]:
    """What an application was given and its member, or its sender, has not written into the journal."""
    sent, delivered = (_ranges(journal, kind) for kind in ("send", "deliver"))
    for life in lives:
        own = delivered.get(life.address, set())
        for chapter in life.chapters:
            for sender, number in chapter.delivered:
                if (sender, number) not in own:
                    yield f"{life.address} was given message {number} of {sender}, and its journal does not say so"
                if (sender, number) not in sent.get(sender, set()):
                    yield f"{life.address} was given message {number} of {sender}, whose journal knows nothing of it"


def _ranges(journal: Path, kind: str) -> dict[str, set[Sent]]:
    """Of each life, the messages in its records of this kind."""
    found: dict[str, set[Sent]] = {}
    for batch in read_segments(find_segments([journal])):
        assert not isinstance(batch, Quarantine), batch
        for row in batch.select([*OWNER, "kind", *RUN]).to_pylist():
            if row["kind"] == kind:
                sender = f"{row['origin']}@{row['origin_incarnation']}"
                numbers = range(row["first"], row["first"] + row["count"])
                found.setdefault(f"{row['member']}@{row['incarnation']}", set()).update((sender, n) for n in numbers)
    return found


def main() -> int:
    """The long one, for `make kills`."""
    parser = argparse.ArgumentParser(description="kill members between the steps of their turns, then audit")
    parser.add_argument("--kills", type=int, default=200, help="in all profiles together")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--profiles", nargs="+", default=["total", "fifo"])
    wishes = parser.parse_args()
    each = wishes.kills // len(wishes.profiles)
    return max(killed_and_judged(profile, each, wishes.seed) for profile in wishes.profiles)


def killed_and_judged(profile: str, number: int, seed: int) -> int:
    """Kills in a group of this profile, an audit, and a line of both; the audit's exit code."""
    from bench.common import Result  # not needed where these kills are a test

    folder = Path(tempfile.mkdtemp(prefix="pygroups-kills-"))
    result = Result("kills")
    print(f"{number} kills in a group of profile {profile}, seed {seed}, in {folder}", flush=True)
    kills, began = Kills(folder, seed, profile=profile), time.monotonic()
    kills.run(number)
    killing = time.monotonic() - began
    code, found = audit(kills.group.journal)
    result.write(
        profile=profile,
        seed=seed,
        kills=kills.done.total(),
        kills_by_step=kills.done,
        kills_in_birth=kills.in_birth,
        killing_seconds=round(killing, 1),
        journals=found["files"],
        records=found["rows"],
        audit_exit_code=code,
        broken=broken(found),
    )
    if code:
        print(f"the audit accuses: pygroups audit {kills.group.journal}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return code


if __name__ == "__main__":
    sys.exit(main())
