"""Deaths between the steps of a turn: the pump's calls are wrapped from outside, and nothing in the product knows.

In each turn the order is receive, layers, journal, network, application.  A process that is told to die after one of
these kills itself there with SIGKILL, which nobody can catch: what it would have done next is never done.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any, Final

from pygroups.channel import session
from pygroups.core.stack import Output
from pygroups.drivers.member import Member

STEPS: Final = ("receive", "layers", "journal", "network", "application")
ROTATION: Final = ("segment full", "segment begun")  # within the step `journal`

Original = Callable[..., Any]


class Steps:
    """Where this process is in its turn, and after which step it is to die."""

    known: tuple[str, ...] = (*STEPS, *ROTATION)

    def __init__(self) -> None:
        self.deadly: str | None = None
        self.passages = 0
        self.turn: Output | None = None  # what the layers have left in this turn
        self.faults_before = False  # somebody was killed before this life began: its journal has to begin with that

    def die_after(self, step: str, passages: int) -> None:
        """Die after `step` when it has been passed so many times more."""
        assert step in self.known, f"{step!r} is none of {self.known}"
        assert passages > 0
        self.deadly, self.passages = step, passages

    def passed(self, step: str) -> None:
        """This step was done, the next one was not."""
        if step == self.deadly:
            self.passages -= 1
            if not self.passages:
                os.kill(os.getpid(), signal.SIGKILL)

    def watch_members(self) -> None:
        """From now on all members of this process tell which steps they pass."""
        steps = self

        class Watched(Member):
            def __init__(self, *parts: Any) -> None:
                super().__init__(*parts)
                steps.watch(self)

        setattr(session, Member.__name__, Watched)

    def watch(self, member: Member) -> None:
        """Wrap what the pump of `member` calls."""
        wrap(member, "begin", self.begin)
        wrap(member.stack.codec, "decode", self.receive)
        wrap(member.stack, "end_turn", self.layers)
        wrap(member, "write", self.journal)
        if member.journal is not None:
            wrap(member.journal, "_begin_segment", self.rotation)
        wrap(member.network, "send", self.network)
        wrap(member.inbox, "arrived", self.application)
        wrap(member.inbox, "turned", self.turned)

    def begin(self, begin: Original) -> None:
        """A mark that is there before any view; later may be too late for the audit, which must expect deaths."""
        begin()
        if self.faults_before:
            begin.__self__.record("fault", {"reason": "kills before this life"})  # type: ignore[attr-defined]

    # -- the steps; a death between two of them counts only in a turn that has something to do in both

    def receive(self, decode: Original, *arguments: Any) -> Any:
        """Bytes became runs, and no layer has seen them."""
        runs = decode(*arguments)
        if runs:
            self.passed("receive")
        return runs

    def layers(self, end_turn: Original, now: int) -> Output:
        """The layers settle."""
        output: Output = end_turn(now)
        self.turn = output
        return output

    def journal(self, write: Original, *arguments: Any) -> None:
        """The layers have settled, and nothing is written."""
        self.passed("layers")
        write(*arguments)

    def rotation(self, begin_segment: Original) -> None:
        """The last segment has reached its size; then the next one has its header, and no record."""
        self.passed("segment full")
        begin_segment()
        self.passed("segment begun")

    def network(self, send: Original, frames: Any) -> None:
        """The records are written, and nothing was sent."""
        assert self.turn is not None
        if self.turn.records:
            self.passed("journal")
        send(frames)

    def application(self, arrived: Original, events: Any) -> None:
        """The frames are the kernel's, and the application knows nothing."""
        assert self.turn is not None
        if self.turn.frames:
            self.passed("network")
        arrived(events)

    def turned(self, turned: Original) -> None:
        """The application has its events, and the turn is over."""
        turned()
        if self.turn is not None and self.turn.events:
            self.passed("application")


class NetworkFirst(Steps):
    """A planted bug: what a turn sends leaves before its records are written, and between the two it may die."""

    known = ("network too early",)

    def __init__(self) -> None:
        super().__init__()
        self.sent = False

    def watch(self, member: Member) -> None:
        send = member.network.send
        super().watch(member)
        wrap(member, "write", lambda write, *arguments: self.too_early(send, write, *arguments))

    def too_early(self, send: Original, write: Original, *arguments: Any) -> None:
        """The frames of a turn are sent, its records are not written."""
        assert self.turn is not None
        if self.turn.frames:
            send(self.turn.frames)
            self.sent = True
            if any(kind == "send" for kind, _, _ in self.turn.records):
                self.passed("network too early")
        write(*arguments)

    def network(self, send: Original, frames: Any) -> None:
        if self.sent:
            self.sent = False
        else:
            send(frames)


def wrap(owner: object, name: str, around: Original) -> None:
    """Have `owner.name(...)` become `around(the original, ...)`."""
    original = getattr(owner, name)

    def wrapped(*arguments: Any) -> Any:
        return around(original, *arguments)

    setattr(owner, name, wrapped)
