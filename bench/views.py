"""The bytes of one view change in a large group: a join, and a crash.

All members are in one process and in virtual time (the simulated world), so that 1,000 of them fit this machine; every
frame goes through the codec.  Counted are the bytes of all frames, without the headers of TCP, from the start or crash
of one process until all members have the view.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any, Final

import common

from pygroups.sim.scenarios.group import ScenarioGroup, scenario

BATCH: Final = 200  # processes that start together
FORMS: Final = 60.0  # virtual seconds for each batch
CHANGES: Final = 10.0  # virtual seconds for the view change


class Meter:
    """The frames and bytes that leave all members."""

    def __init__(self, group: ScenarioGroup) -> None:
        self.frames = self.bytes = 0
        self.send = group.world.send
        group.world.send = self._counted  # type: ignore[method-assign]

    def _counted(self, member: Any, dest: Any, frames: Sequence[bytes]) -> None:
        self.frames += len(frames)
        self.bytes += sum(map(len, frames))
        self.send(member, dest, frames)

    def take(self) -> dict[str, int]:
        """What was counted since the last call."""
        taken = {"frames": self.frames, "bytes": self.bytes}
        self.frames = self.bytes = 0
        return taken


def play(count: int, profile: str) -> dict[str, Any]:
    names = [f"member-{number:04}" for number in range(count + 1)]
    group = scenario(names[:1], profile=profile, formed=False, promised=False)  # promises take long: judged elsewhere
    meter, began = Meter(group), time.process_time()

    def all_have(number: int) -> bool:
        return all(len(member.view) == number for member in group.members)

    for first in range(0, count, BATCH):
        group.start(names[first : min(first + BATCH, count)])
        group.until(lambda: all_have(len(group.members)), within=FORMS)
    formed = {**meter.take(), "cpu_s": round(time.process_time() - began, 1)}
    group.after(20)
    idle = meter.take()
    at = group.world.agenda.now
    group.start(names[count])
    group.until(lambda: all_have(count + 1), within=CHANGES)
    join = {**meter.take(), "ms": (group.world.agenda.now - at) // 1_000}
    group.after(5)
    meter.take()
    at = group.world.agenda.now
    group.crash(names[count // 2])
    group.until(lambda: all_have(count), within=CHANGES)
    crash = {**meter.take(), "ms": (group.world.agenda.now - at) // 1_000}
    return {"formed": formed, "idle_20_s": idle, "join": join, "crash": crash}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--members", type=int, nargs="*", default=[30, 100])
    options.add_argument("--profile", default="total")
    given = options.parse_args()
    for count in given.members:
        result = common.Result("views")
        result.write(members=count, profile=given.profile, **play(count, given.profile))


if __name__ == "__main__":
    main()
