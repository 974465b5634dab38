"""VERIFY_SUSPECT: a silent member is asked before it is suspected, and a member that is heard again is not suspected.

A member whose process is proven to have ended is suspected at once.  Either suspicion is taken back when the same
incarnation is heard again: then the refused connection proved nothing.
Note: docs/layers/verify_suspect.md.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.events import Event, Gone, NewView
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.run import Run
from pygroups.core.suspicion_events import Heard, Proven, Silent, Suspect, Unsuspect
from pygroups.core.tables import Tables

Number = Annotated[int, Meta(ge=0, le=1 << 62)]


class AreYouAlive(msgspec.Struct, array_like=True, tag=10):
    """To a silent member: answer if you are alive.  The frame names the member's incarnation, so no other incarnation
    answers."""

    number: Number  # of the question, at the asker


class IAmAlive(msgspec.Struct, array_like=True, tag=11):
    """The answer of a member that was asked."""

    number: Number  # of the question: the network may repeat the answer to an earlier one


class VerifySuspect(Layer):
    """Turns Silent and Proven into Suspect and Unsuspect."""

    __slots__ = ("asked", "members", "numbers", "questions", "suspected")

    needs: ClassVar[frozenset[str]] = frozenset({"ENDS", "HEARTBEAT"})
    gives: ClassVar[frozenset[str]] = frozenset({"SUSPICION"})
    heads: ClassVar[tuple[type, ...]] = (AreYouAlive, IAmAlive)
    own_heads_only: ClassVar[bool] = True

    tables: ClassVar[Tables] = {
        "asked": "members",
        "members": "members",
        "numbers": "members",
        "suspected": "members",
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.members: tuple[Address, ...] = ()
        self.asked: dict[Address, int] = {}  # silent members, and until when each may answer; earliest first
        self.numbers: dict[Address, int] = {}  # the last question to each member that was not heard since
        self.questions = 0  # so far
        self.suspected: dict[Address, bool] = {}  # and whether it is proven

    def up(self, run: Run) -> None:
        head = run.head
        if isinstance(head, AreYouAlive):
            self.tell(run.src, IAmAlive(head.number))
        elif isinstance(head, IAmAlive):
            if head.number == self.numbers.get(run.src):
                self._on_heard(run.src)
            else:
                self.env.drop("answer to an earlier question")
        else:
            self.above.append(run)

    # -- evidence, from the layer below

    def up_event(self, event: Event) -> None:
        if isinstance(event, Silent):
            self._on_silent(event.member)
        elif isinstance(event, Heard):
            self._on_heard(event.member)
        elif isinstance(event, Proven):
            self._on_proven(event.member)
        else:
            self.above.append(event)

    def _on_silent(self, member: Address) -> None:
        if member in self.suspected or member in self.asked:
            return
        self.asked[member] = self.env.now + self.env.config.verify_timeout
        self.wake_at(self.asked[member])
        self.questions += 1
        self.numbers[member] = self.questions
        self.tell(member, AreYouAlive(self.questions))

    def _on_heard(self, member: Address) -> None:
        self.asked.pop(member, None)
        self.numbers.pop(member, None)
        if self.suspected.pop(member, None) is not None:
            self.env.record("unsuspect", peer=member)
            self.above.append(Unsuspect(member))

    def _on_proven(self, member: Address) -> None:
        self.asked.pop(member, None)
        if not self.suspected.get(member):
            self._suspect(member, proven=True)

    def _suspect(self, member: Address, *, proven: bool) -> None:
        if member in self.members:
            self.suspected[member] = proven  # GMS needs one answer about other processes
        self.env.record("suspect", peer=member, reason="proven" if proven else "silent")
        self.above.append(Suspect(member, proven))

    # -- membership and time

    def down_event(self, event: Event) -> None:
        self.below.append(event)
        if isinstance(event, NewView):
            self.members = members = event.view.members
            self.asked = {member: until for member, until in self.asked.items() if member in members}
            self.numbers = {member: number for member, number in self.numbers.items() if member in members}
            self.suspected = {member: proven for member, proven in self.suspected.items() if member in members}
        elif isinstance(event, Gone):
            self.members, self.asked, self.numbers, self.suspected, self.wake = (), {}, {}, {}, NEVER

    def timer(self) -> None:
        now = self.env.now
        for member in [member for member, until in self.asked.items() if until <= now]:
            del self.asked[member]
            self._suspect(member, proven=False)
        self.wake = min(self.asked.values(), default=NEVER)

    def gauges(self) -> dict[str, int]:
        return {"asked": len(self.asked), "suspected": len(self.suspected)}
