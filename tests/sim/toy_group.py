"""A group without any protocol, to test the simulator itself: views from the directory, multicasts as they come.

It keeps its promises while nothing goes wrong and breaks them otherwise, which the simulator has to notice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from pygroups.core.driver_events import Announce, Contacts, Find, Found
from pygroups.core.events import Consumed, Event, Freed, Join, NewView, Stability
from pygroups.core.layer import Env, Layer
from pygroups.core.limits import MILLISECOND
from pygroups.core.run import Run
from pygroups.core.stack import Stack
from pygroups.core.top import Top
from pygroups.core.view import AgreedView, ViewId
from pygroups.sim.schedules.schedule import Habits, Schedule, Weather
from pygroups.sim.schedules.steps import Send, StartProcess
from pygroups.sim.world.stacks import GROUP
from pygroups.wire.codec import Codec

Seq = Annotated[int, Meta(ge=0)]


class ToyAsk(msgspec.Struct, array_like=True, tag=1):
    """To the first member: multicast this."""


class ToyData(msgspec.Struct, array_like=True, tag=2):
    """To all: number `seq` of the order, or of nothing."""

    seq: Seq


class ToyGroup(Layer):
    """Installs one view when all of `size` are there; delivers as it comes, or in the first member's order."""

    gives = frozenset({"MEMBERSHIP"})
    heads = (ToyAsk, ToyData)
    ordered = True
    size = 3

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.view: AgreedView | None = None
        self.next_seq = 0  # at the first member
        self.next = 0
        self.early: dict[int, Run] = {}
        self.freed = 0

    def down_event(self, event: Event) -> None:
        if isinstance(event, Join):
            self.below.append(Announce(True))
            self.wake = self.env.now + MILLISECOND
        elif not isinstance(event, Consumed):
            self.below.append(event)

    def timer(self) -> None:
        self.wake = self.env.now + 10 * MILLISECOND
        self.below.append(Find())

    def up_event(self, event: Event) -> None:
        if isinstance(event, Found) and self.view is None and len(event.members) == self.size - 1:
            self.wake = self.env.now + (1 << 60)
            members = tuple(sorted([*event.members, self.env.me]))
            self.view = AgreedView(ViewId(1, members[0]), members, tuple(m.name for m in members))
            self.below.append(Contacts(dict(zip(members, self.view.contacts, strict=True))))
            view = NewView(self.view, None, (self.env.me,), members, (), True, None)
            self.below.append(view)
            self.above.append(view)

    def down(self, run: Run) -> None:
        me = self.env.me
        assert self.view is not None
        if run.dest is not None:
            self.below.append(run)
        elif not self.ordered or self.view.coordinator == me:
            self._multicast(run)
        else:
            self.below.append(run.readdressed(me, self.view.coordinator).push(ToyAsk()))

    def _multicast(self, run: Run) -> None:
        data = run.readdressed(self.env.me, None).push(ToyData(self.next_seq))
        self.next_seq += 1
        self.below.append(data)
        self.up(data)

    def up(self, run: Run) -> None:
        head = run.head
        if isinstance(head, ToyAsk):
            self._multicast(run.pop())
        elif isinstance(head, ToyData):
            if self.ordered:
                self.early.setdefault(head.seq, run)
                while self.next in self.early:
                    self._deliver(self.early.pop(self.next))
                    self.next += 1
            else:
                self._deliver(run)
        else:
            self.above.append(run)

    def _deliver(self, run: Run) -> None:
        self.above.append(run.placed(run.src, 0))
        if run.origin == self.env.me:
            self.freed += len(run.body)
            self.above.append(Freed(self.freed))
            self.above.append(Stability({}, {}, 1, 1))


def toy_builder(size: int, base: type[ToyGroup] = ToyGroup, *, ordered: bool = True) -> Callable[[Env], Stack]:
    kind = type("Toy", (base,), {"size": size, "ordered": ordered})
    return lambda env: Stack(env, [Top(env), kind(env)], Codec(GROUP, kind.heads))


def toy_schedule(size: int = 3, *, profile: str = "total", seed: int = 7, **changes: object) -> Schedule:
    """All start at once; each sends 20 messages."""
    names = tuple("ABCDEFGHIJ"[:size])
    sends = [Send(at=100_000 + 5_000 * i, who=names[i % size], count=1, size=20) for i in range(20 * size)]
    schedule = Schedule(
        seed=seed,
        profile=profile,
        names=names,
        habits={name: Habits() for name in names},
        config={},
        weather=Weather(),
        rejoin=False,
        actions=(*(StartProcess(at=0, who=name) for name in names), *sends),
        heal_at=1_000_000,
        bound=3_000_000,
    )
    return msgspec.structs.replace(schedule, **changes)
