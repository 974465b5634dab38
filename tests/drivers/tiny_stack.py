"""A stack of two layers that fills the place of a real one: the members are given, nothing is repaired."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec

from pygroups.core.address import Address
from pygroups.core.driver_events import Announce, Find, Found
from pygroups.core.events import Event, Excluded, Gone, Join, Leave, NewView
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.limits import Config
from pygroups.core.run import Run
from pygroups.core.stack import Stack
from pygroups.core.top import Top
from pygroups.core.view import AgreedView, ViewId
from pygroups.wire.codec import Codec

A = Address("A", "aaaaaaaaaaaaaaaa")
B = Address("B", "bbbbbbbbbbbbbbbb")
C = Address("C", "cccccccccccccccc")


class Data(msgspec.Struct, array_like=True, tag=1):
    """On every multicast."""

    seq: int


class Tiny(Layer):
    """A view of `members` as soon as the application joins; multicasts are numbered, and believed to arrive."""

    gives: ClassVar[frozenset[str]] = frozenset()
    heads: ClassVar[tuple[type, ...]] = (Data,)

    def __init__(self, env: Env, members: Sequence[Address]) -> None:
        super().__init__(env)
        self.members = tuple(members)
        self.sent = 0
        self.heard: list[Event] = []
        self.rings: Callable[[], None] = lambda: None

    def down(self, run: Run) -> None:
        if run.dest is None:
            self.above.append(run.push(Data(self.sent)).placed(self.env.me, self.sent))
            run = run.push(Data(self.sent))
            self.sent += 1
        self.below.append(run)

    def up(self, run: Run) -> None:
        head = run.head
        self.above.append(run.placed(run.src, head.seq) if isinstance(head, Data) else run)

    def timer(self) -> None:
        self.wake = NEVER
        self.rings()

    def down_event(self, event: Event) -> None:
        if isinstance(event, Join):
            self.below.append(Find())
        elif isinstance(event, Leave):
            self.above.append(Excluded("left", ""))
            self.below += [Gone(), Announce(False)]

    def up_event(self, event: Event) -> None:
        self.heard.append(event)
        if isinstance(event, Found):
            view = AgreedView(ViewId(1, self.members[0]), self.members, ("nowhere:1",) * len(self.members))
            installed = NewView(view, None, (self.env.me,), self.members, (), True, None)
            self.above.append(installed)
            self.below += [installed, Announce(True)]


def tiny_stack(me: Address, members: Sequence[Address], journaling: bool = False, **config: Any) -> Stack:
    """A stack for `me`, in a group that it believes to be `members`."""
    env = Env(me, 0, random.Random(1), Config(**config), journaling=journaling)
    return Stack(env, [Top(env), Tiny(env, members)], Codec("g", [Data]))
