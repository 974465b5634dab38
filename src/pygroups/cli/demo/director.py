"""Who starts the members, kills one, brings it back, and compares what they hold in the end."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec

from pygroups.cli.refusals import FAILED
from pygroups.core.errors import Error

from . import messages as say
from .feeds import Feed
from .outcome import Kill, Outcome, check_audit, judge, write_outcome
from .place import GROUP, Place
from .replica import digest_of, what_is_wrong
from .story import Story

FEED_SECONDS: Final = 15.0  # for a whole feed, however long it is
KILL_BETWEEN: Final = (0.2, 0.45)  # of that time: everybody has lines left until half of it
AWAY_SECONDS: Final = 2.0  # before the killed member comes back
JOIN_SECONDS: Final = 30.0
STALL_SECONDS: Final = 60.0  # without any progress, after which the demo gives up
QUIET_SECONDS: Final = 10.0
LEAVE_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 0.05

Word = TypeVar("Word", bound=msgspec.Struct)


class Plan(NamedTuple):
    """What the user asked for."""

    feeds: Sequence[Feed]
    out: Path
    members: int
    seed: int
    kill: bool
    audit: bool


class DemoFailed(Error):
    """Something did not happen that had to; the sentence says what."""


def direct(plan: Plan) -> int:
    """Run the demo and return its exit code."""
    if plan.audit:
        check_audit()
    place = Place(plan.out)
    place.prepare(names_of(plan))
    story = Story(plan)
    try:
        outcome = asyncio.run(Director(plan, place, story).run())
        judge(outcome, plan, place, story)
    finally:
        story.close()
    write_outcome(outcome, plan, place, story)
    return 0 if outcome.ok else FAILED


def names_of(plan: Plan) -> list[str]:
    """The members' names: A, B, C ..."""
    return [chr(ord("A") + number) for number in range(plan.members)]


class Hand:
    """One member's process, and what it said last."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, progressed: Callable[[Hand], None]) -> None:
        self.name = name
        self.process = process
        self.progressed = progressed
        self.joined: say.Joined | None = None
        self.progress = say.Progress({}, {}, 0, 1)
        self.view: list[str] = []
        self.view_at_us = 0
        self.heard: asyncio.Queue[msgspec.Struct] = asyncio.Queue()
        self.reported_at = 0.0
        self.end: say.End | None = None
        self.ended = asyncio.Event()
        self.expected_to_end = False
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self._hear(msgspec.json.decode(line, type=say.Report))
        code = await self.process.wait()
        if not self.expected_to_end and self.end is None:
            raise DemoFailed(f"member {self.name} ended unasked, with exit code {code}; what it said stands above")

    def _hear(self, word: say.Report) -> None:
        if isinstance(word, say.Progress):
            self.progress, self.reported_at = word, time.monotonic()
            self.progressed(self)
        elif isinstance(word, say.Views):
            self.view, self.view_at_us = word.members, word.at_us
        elif isinstance(word, say.Joined):
            self.joined = word
        elif isinstance(word, say.End):
            self.end = word
            self.ended.set()
        else:
            self.heard.put_nowait(word)

    def tell(self, order: msgspec.Struct) -> None:
        """Give an order."""
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(order) + b"\n")

    async def hear(self, kind: type[Word]) -> Word:
        """The next word of this kind; others before it are of no interest."""
        while True:
            word = await self.heard.get()
            if isinstance(word, kind):
                return word

    @property
    def sent(self) -> int:
        return sum(self.progress.sent.values())

    @property
    def finished(self) -> bool:
        """Whether it has sent everything that is its to send."""
        return bool(self.progress.totals) and self.progress.sent == self.progress.totals


class Director:
    """The course of events."""

    def __init__(self, plan: Plan, place: Place, story: Story) -> None:
        self.plan = plan
        self.place = place
        self.story = story
        self.chance = random.Random(plan.seed)
        self.names = names_of(plan)
        self.feeds_of = {name: list(plan.feeds[number :: plan.members]) for number, name in enumerate(self.names)}
        self.total = sum(len(feed.records()) for feed in plan.feeds)
        self.hands: dict[str, Hand] = {}
        self.kill: Kill | None = None
        self.discovery = ""

    async def run(self) -> Outcome:
        """From the first process to the last digest."""
        with tempfile.TemporaryDirectory(prefix="pygroups-demo-") as folder:
            self.discovery = f"dir:{folder}"
            try:
                return await self._watched(self._course())
            finally:
                await self._end_all()

    async def _watched(self, course: Coroutine[None, None, Outcome]) -> Outcome:
        """The course of events, unless a member ends unasked first."""
        task = asyncio.create_task(course)
        try:
            while not task.done():
                readers = [hand.reading for hand in self.hands.values() if not hand.reading.done()]
                await asyncio.wait([task, *readers], timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                for hand in self.hands.values():
                    if hand.reading.done():
                        hand.reading.result()
            return task.result()
        finally:
            task.cancel()

    async def _end_all(self) -> None:
        for hand in self.hands.values():
            hand.expected_to_end = True
            if hand.process.returncode is None:
                hand.process.kill()
        for hand in self.hands.values():
            await asyncio.wait([hand.reading])

    async def _course(self) -> Outcome:
        began = time.monotonic()
        first, *rest = self.names
        await self._start(first)  # alone, so that it founds the group and gives the order: the seed repeats that too
        await self._until(lambda: self.hands[first].joined is not None, JOIN_SECONDS, f"{first} did not start")
        for name in rest:
            await self._start(name)
        await self._until(self._all_in_one_view, JOIN_SECONDS, "the members did not find each other")
        self.story.together(self._sequencer(), self.feeds_of)
        for hand in self.hands.values():
            hand.tell(say.Go(FEED_SECONDS))
        if self.plan.kill:
            await asyncio.sleep(self.chance.uniform(*KILL_BETWEEN) * FEED_SECONDS)
            await self._kill_the_sequencer()
            await asyncio.sleep(AWAY_SECONDS)
            await self._bring_back()
        await self._until_all_is_applied()
        await self._be_quiet()
        await self._leave()
        return Outcome(
            seconds=time.monotonic() - began,
            records=self.total,
            held={name: hand.end.records for name, hand in self.hands.items() if hand.end},
            digests={name: digest_of(self.place.replica(name)) for name in self.names},
            wrong={name: what_is_wrong(self.place.replica(name), self.plan.feeds) for name in self.names},
            kill=self.kill,
        )

    # -- processes

    async def _start(self, name: str) -> None:
        command = [sys.executable, "-m", "pygroups.cli.demo.worker"]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, start_new_session=True)
        hand = self.hands[name] = Hand(name, process, self.story.progressed)
        replica, journal = str(self.place.replica(name)), str(self.place.journal)
        hand.tell(say.Task(GROUP, name, self.feeds_of[name], replica, journal, self.discovery))

    def _all_in_one_view(self) -> bool:
        views = [hand.view for hand in self.hands.values()]
        return len(views[0]) == len(self.hands) and all(view == views[0] for view in views)

    def _sequencer(self) -> str:
        """Who gives messages their order: the first member of the view."""
        first = next(iter(self.hands.values())).view[0]
        return first.partition("@")[0]

    async def _until(self, condition: Callable[[], bool], seconds: float, otherwise: str) -> None:
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise DemoFailed(f"{otherwise} within {seconds:.0f} seconds")
            await asyncio.sleep(LOOK_SECONDS)

    # -- the kill, and the return

    async def _kill_the_sequencer(self) -> None:
        victim = self.hands[self._sequencer()]
        others = [hand for hand in self.hands.values() if hand is not victim]
        address = victim.view[0]
        await self._mark(others, "fault", f"{victim.name} is killed with SIGKILL", [address])
        victim.tell(say.TellBusy())
        busy = await self._heard(victim, say.Busy, "the sequencer has nothing on the wire: give longer input")
        all_had_lines = all(not hand.finished for hand in self.hands.values() if hand.progress.totals)
        going_on = any(not hand.finished for hand in others if hand.progress.totals)
        victim.expected_to_end = True
        at_us = time.monotonic_ns() // 1_000
        victim.process.send_signal(signal.SIGKILL)
        await victim.process.wait()
        await self._until(
            lambda: all(address not in hand.view for hand in others), JOIN_SECONDS, "the others did not agree on a view"
        )
        view_ms = max(hand.view_at_us - at_us for hand in others) / 1_000
        gap_ms = None
        if going_on:  # otherwise nothing is delivered before the dead one is back
            firsts = [await self._heard(hand, say.Delivered, "nothing is delivered any more") for hand in others]
            gap_ms = max(first.at_us - at_us for first in firsts) / 1_000
        self.kill = Kill(address, busy.runs, sum(busy.sent.values()), all_had_lines, view_ms, gap_ms)
        self.story.killed(victim, self.kill, others)

    async def _heard(self, hand: Hand, kind: type[Word], otherwise: str) -> Word:
        try:
            return await asyncio.wait_for(hand.hear(kind), STALL_SECONDS)
        except TimeoutError:
            raise DemoFailed(f"{otherwise} ({STALL_SECONDS:.0f} seconds)") from None

    async def _bring_back(self) -> None:
        assert self.kill is not None
        name = self.kill.address.partition("@")[0]
        self.story.starts_again(name)
        began = time.monotonic()
        await self._start(name)
        hand = self.hands[name]
        await self._until(lambda: hand.joined is not None, JOIN_SECONDS, f"{name} did not come back")
        assert hand.joined is not None
        self.kill.back_seconds = time.monotonic() - began
        self.kill.state_records = hand.joined.records
        self.story.is_back(hand.joined, self.kill)
        await self._until(self._all_in_one_view, JOIN_SECONDS, f"not everybody has {name} in its view")
        await self._mark(self.hands.values(), "heal", f"{name} is back", [])
        hand.tell(say.Go(FEED_SECONDS))

    async def _mark(self, hands: Collection[Hand], kind: str, reason: str, members: list[str]) -> None:
        """Into the journal of each, before anything else happens."""
        for hand in hands:
            hand.tell(say.Mark(kind, reason, members))
        for hand in hands:
            await hand.hear(say.Marked)

    # -- the end

    async def _until_all_is_applied(self) -> None:
        so_far, since = -1, time.monotonic()
        while any(hand.progress.applied < self.total for hand in self.hands.values()):
            applied = sum(hand.progress.applied for hand in self.hands.values())
            if applied != so_far:
                so_far, since = applied, time.monotonic()
            if time.monotonic() - since > STALL_SECONDS:
                held = ", ".join(f"{hand.name} {hand.progress.applied:,}" for hand in self.hands.values())
                raise DemoFailed(f"nothing moves any more: of {self.total:,} records there are {held}")
            await asyncio.sleep(LOOK_SECONDS)
        self.story.all_applied(self.total)

    async def _be_quiet(self) -> None:
        await self._until_all_are_at_rest()
        await self._mark(self.hands.values(), "quiet", "everything was sent and applied", [])

    async def _until_all_are_at_rest(self) -> None:
        since = time.monotonic()  # what was reported before may not be true any more

        def at_rest(hand: Hand) -> bool:
            return hand.reported_at > since and hand.progress.held == 0

        await self._until(
            lambda: all(map(at_rest, self.hands.values())), QUIET_SECONDS, "the members did not come to rest"
        )

    async def _leave(self) -> None:
        for hand in self.hands.values():
            hand.tell(say.Leave())
            try:
                await asyncio.wait_for(hand.ended.wait(), LEAVE_SECONDS)
            except TimeoutError:
                raise DemoFailed(f"{hand.name} did not leave within {LEAVE_SECONDS:.0f} seconds") from None
