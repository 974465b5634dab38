"""The world of a scenario: the application sends the payloads of a test, and rules lose, repeat and delay single
runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from pygroups.core.address import Address
from pygroups.core.errors import UsageError
from pygroups.core.run import Run
from pygroups.core.top import Top
from pygroups.layers.profiles import Profile
from pygroups.wire.codec import Codec

from ..promises.judge import Judge
from ..schedules.schedule import Habits, Schedule
from ..world import faults
from ..world.member import SimulatedMember
from ..world.stacks import GROUP, builder_of
from ..world.story import Story
from ..world.workload import PayloadsToSend, SimulatedApplication
from ..world.world import World
from .frames import FrameRule, Hit


class Parcel(PayloadsToSend):
    """One payload that the test gave to the application."""

    payload: bytes


class Script(SimulatedApplication):
    """The application of a scenario: it sends the test's payloads, and reads unless the test forbids it."""

    def __init__(self, me: Address, top: Top, reads_after: int, rng: Random) -> None:
        super().__init__(me, top, reads_after, rng)
        self.numbered = 0  # number of payloads that the test requested by their count
        self.reads = True

    def payload(self, size: int) -> bytes:
        order = self.orders[0]
        assert isinstance(order, Parcel)
        return order.payload

    def reading_time(self) -> int | None:
        return super().reading_time() if self.reads else None


class ScenarioWorld(World):
    """A world with rules for single runs."""

    def __init__(self, schedule: Schedule, profile: Profile, judge: Judge, *, journals: bool, story: Story) -> None:
        self.codec = Codec(GROUP, profile.heads())
        super().__init__(
            schedule,
            builder_of(profile),
            judge,
            at_moments=faults.at_moments,
            journals=journals,
            story=story,
        )
        self.rules: list[FrameRule] = []
        self.on_start: Callable[[SimulatedMember, Script], None] | None = None
        self.planned = 0  # number of payloads whose sending time has not come

    def start(self, name: str) -> None:
        """Start a new incarnation under `name`, with an application that follows the test.  Raises UsageError if an
        incarnation with this name runs."""
        if name in self.running:
            raise UsageError(f"{name} already runs")
        habits = self.schedule.habits.setdefault(name, Habits())
        super().start(name)
        member = self.running[name]
        script = member.app = member.reading.app = Script(member.address, member.top, habits.reads_after, member.rng)
        if self.on_start is not None:
            self.on_start(member, script)

    def life(self, name: str) -> SimulatedMember:
        """The incarnation that runs under `name`, or the last one.  Raises UsageError for a name that no incarnation
        had."""
        if name in self.running:
            return self.running[name]
        lives = [member for member in self.lives.values() if member.address.name == name]
        if not lives:
            raise UsageError(f"no process was started under the name {name}")
        return lives[-1]

    def put(self, member: SimulatedMember, payloads: Sequence[bytes], to: Address | None) -> None:
        """Let `member`'s application send these payloads as soon as it may."""
        if member.ended or member.leaving or not payloads:
            return
        for payload in payloads:
            member.app.orders.append(Parcel(1, len(payload), to, payload))
        member.arrive(_nothing)

    def plan(self, delay: int, member: SimulatedMember, payload: bytes, to: Address | None) -> None:
        """Let `member`'s application send this payload in `delay` microseconds."""
        self.planned += 1
        self.agenda.after(delay, self._planned_comes, member, payload, to)

    def _planned_comes(self, member: SimulatedMember, payload: bytes, to: Address | None) -> None:
        self.planned -= 1
        self.put(member, [payload], to)

    # -- rules

    def send(self, member: SimulatedMember, dest: Address, frames: Sequence[bytes]) -> None:
        """`member` hands frames for `dest` to its kernel; the rules decide the fate of each run in them."""
        if dest not in self.lives:  # a process that the test invented
            self.count("without a receiver", len(frames))
        elif not self.rules:
            super().send(member, dest, frames)
        else:
            for frame in frames:
                self._send_judged(member, dest, frame)

    def _send_judged(self, member: SimulatedMember, dest: Address, frame: bytes) -> None:
        runs = self.codec.decode(frame, dest)
        left = [run for run in runs if not self._taken(member, Hit(self.agenda.now, member.address, dest, run))]
        if len(left) == len(runs):
            super().send(member, dest, [frame])
        elif left:
            super().send(member, dest, self.frames_of(member.address, left))

    def _taken(self, member: SimulatedMember, hit: Hit) -> bool:
        """Whether a rule takes this run out of its frame."""
        for rule in self.rules:
            if not rule.take(hit):
                continue
            if rule.fate != "watch":
                self.tell(hit.src.name, f"{rule.fate}: {hit}")
            if rule.fate == "drop":
                self.judge.disturbed()
                return True
            if rule.fate == "delay":
                self.judge.disturbed()
                self.agenda.after(rule.amount, self.send_alone, member, hit)
                return True
            if rule.fate == "repeat":
                for _ in range(rule.amount):
                    self.send_alone(member, hit)
        return False

    def send_alone(self, member: SimulatedMember, hit: Hit) -> None:
        """Send this run in a frame of its own; no rule sees it again."""
        super().send(member, hit.dest, self.frames_of(hit.src, [hit.run]))

    def frames_of(self, src: Address, runs: list[Run]) -> list[bytes]:
        """A new frame with these `runs` of one earlier frame.  The new frame has the number of the earlier frame."""
        self.codec.next_number = runs[0].frame
        return self.codec.encode(src, runs[0].dest, runs)


def _nothing() -> None:
    """The action of an application that only needs a turn."""
