"""STATE_TRANSFER: a joiner gets the state of the start of a view, from a member that was there before.

Everybody keeps account of who has no state yet and who provides it.  If a provider is lost, the next view has another
one, and the state is that of the start of this view.  Taking and setting the state, and holding events back until it
is set, is the channel's part.  Note: docs/layers/state_transfer.md.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.events import (
    Event,
    Marks,
    NewView,
    Standing,
    StateArrived,
    StateChunk,
    StateFailed,
    StateStanding,
    StateTaken,
    StateWanted,
    Waits,
)
from pygroups.core.layer import Env, Layer
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.run import Run, pack, unpack
from pygroups.core.view import ViewId

Count = Annotated[int, Meta(ge=0, le=1 << 40)]


class StateData(msgspec.Struct, array_like=True, tag=90):
    """Provider to joiner: part `number` of the state of the start of `view`; the part itself is the run's payload."""

    view: ViewId
    number: Count  # from 0
    last: bool
    none: bool  # there is no state here


class StateAck(msgspec.Struct, array_like=True, tag=91):
    """Joiner to provider: the parts below `next` have arrived."""

    view: ViewId
    next: Count


class StateDone(msgspec.Struct, array_like=True, tag=92):
    """Joiner to all: I have a state now."""


class StateBegin(msgspec.Struct, array_like=True, tag=93):
    """Joiner to provider: `view` is installed here, the parts may come."""

    view: ViewId


class StateTransfer(Layer):
    """State of the start of a view for those who join in it."""

    __slots__ = ("begun", "done", "given", "held", "marks", "members", "parts", "standing", "stateless", "view")

    needs: ClassVar[frozenset[str]] = frozenset({"VIRTUAL_SYNCHRONY", "FIFO_UNICAST"})
    gives: ClassVar[frozenset[str]] = frozenset({"STATE_AT_VIEW"})
    heads: ClassVar[tuple[type, ...]] = (StateData, StateAck, StateDone, StateBegin)

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.marks: Marks = {}  # per origin, the next number not yet handed up: what a state of now would hold
        self.view: ViewId | None = None
        self.members: tuple[Address, ...] = ()
        self.stateless: dict[Address, Waits] = {}  # who has no state yet, and who gives it which
        self.standing: Standing = False  # of this member
        self.done: dict[Address, None] = {}  # who said that it has one; perhaps before the view it joined in came here
        self.given: dict[tuple[Address, ViewId], int] = {}  # parts for a joiner so far
        self.held: dict[tuple[Address, ViewId], list[Run]] = {}  # those of them for which it has no view yet
        self.begun: dict[Address, ViewId] = {}  # who waits for a part of ours, in which view; maybe not installed here
        self.parts = 0  # received of the state that this member waits for

    # -- runs

    def up(self, run: Run) -> None:
        if run.stream is not None:
            assert run.origin is not None
            self.marks[run.origin] = run.next
            self.above.append(run)
            return
        head = run.head
        if isinstance(head, StateData):
            self._on_state_data(run, head)
        elif isinstance(head, StateAck):
            if (run.src, head.view) in self.given:
                self.above.append(StateTaken(head.view, run.src, head.next))
        elif isinstance(head, StateBegin):
            self._on_state_begin(run.src, head)
        elif isinstance(head, StateDone):
            self._has_state(run.src)
        else:
            self.above.append(run)

    # -- the provider

    def down_event(self, event: Event) -> None:
        if isinstance(event, StateChunk):
            self._give(event)
        elif isinstance(event, StateFailed):
            self.env.count("state not given")
        else:
            self.below.append(event)

    def _give(self, event: StateChunk) -> None:
        if self.stateless.get(event.joiner) != Waits(self.env.me, event.view):
            self.above.append(StateTaken(event.view, event.joiner, None))  # it has gone, or has another state
            return
        key = (event.joiner, event.view)
        number = self.given.get(key, 0)
        self.given[key] = number + 1
        head = StateData(event.view, number, event.last, event.none)
        body = pack([event.data])
        part = Run(self.env.me, event.joiner, (head,), self.env.me, number + 1, 0, 1, body)
        if self.begun.get(event.joiner) == event.view:
            self.below.append(part)
        else:  # as many as the channel reads ahead
            self.held.setdefault(key, []).append(part)

    def _on_state_begin(self, joiner: Address, head: StateBegin) -> None:
        if joiner not in self.begun and len(self.begun) >= MEMBERS_MAX:
            self.env.drop("too many who wait for a state")
            return
        self.begun[joiner] = head.view
        self.below += self.held.pop((joiner, head.view), [])

    def _ends(self, joiner: Address, view: ViewId) -> None:
        """No more of this state for this joiner."""
        self.given.pop((joiner, view), None)
        self.held.pop((joiner, view), None)
        self.above.append(StateTaken(view, joiner, None))

    # -- the joiner

    def _on_state_data(self, run: Run, head: StateData) -> None:
        if self.stateless.get(self.env.me) != Waits(run.src, head.view) or head.number != self.parts:
            self.env.drop("state that nobody waits for")
        else:
            self._take(run, head)

    def _take(self, run: Run, head: StateData) -> None:
        try:
            (data,) = unpack(run.body)
        except (msgspec.DecodeError, ValueError):
            self.env.drop("malformed state")
            return
        self.parts += 1
        self.tell(run.src, StateAck(head.view, self.parts))
        self.above.append(StateArrived(head.view, run.src, data, head.last, head.none))
        if head.last:
            self._done(self.members)

    def _done(self, others: tuple[Address, ...]) -> None:
        self._has_state(self.env.me)
        self._stands(self.env.keeps_state)
        for member in others:
            if member != self.env.me:
                self.tell(member, StateDone())

    def _has_state(self, member: Address) -> None:
        self.done[member] = None
        waits = self.stateless.pop(member, None)
        if waits is not None and (member, waits.view) in self.given:
            self._ends(member, waits.view)

    # -- membership

    def up_event(self, event: Event) -> None:
        if isinstance(event, NewView):
            self._install(event)
        else:
            self.above.append(event)

    def _install(self, event: NewView) -> None:
        me, view = self.env.me, event.view
        self.view, self.members = view.id, view.members
        if event.digest is not None:
            self.marks = dict(event.digest)
        before = self.stateless.get(me)
        lost = self._provide(event)
        if lost or self.stateless.get(me, before) != before:
            self.parts = 0
            event = msgspec.structs.replace(event, digest=dict(self.marks))  # what was held before is dropped
        joiners = tuple(joiner for joiner, waits in self.stateless.items() if waits == Waits(me, view.id))
        wanted = [StateWanted(view.id, joiners, dict(self.marks))] if joiners else []
        if lost:
            self.env.count("state lost")
            self.above += [event, StateArrived(view.id, me, b"", last=True, none=True), *wanted]
            self._done(self.members)
        else:
            self.above += [*wanted, event]
            if me in self.done and isinstance(event.standings.get(me), Waits):
                self._done(event.joined)  # it had its state before this view, and after it was asked
            waits = self.stateless.get(me)
            if waits is not None and waits != before:
                self.tell(waits.provider, StateBegin(waits.view))  # not sooner: parts would come before the view
        self.done = {member: None for member in self.done if member in view.members}
        self.begun = {one: begun for one, begun in self.begun.items() if one in view.members or begun > view.id}

    def _provide(self, event: NewView) -> bool:
        """Who gives a state to whom from this view on, from what all who install it know: whoever gave and is still
        here goes on.  True when nobody has a state and this member is the first that needs one: it begins with none.
        """
        me, members, standings = self.env.me, event.view.members, event.standings
        founded = event.previous is None and members == (me,)
        if founded:
            self._stands(self.env.keeps_state)
        without = [] if founded else [m for m in members if not isinstance(standings.get(m), bool)]
        provider = next((member for member in members if standings.get(member) is True), None)
        lost = provider is None and bool(without)
        if lost:
            provider = without.pop(0)
        self.stateless = {}
        for member in without:
            waits = standings.get(member)
            if not isinstance(waits, Waits) or waits.provider not in members:
                if isinstance(waits, Waits) and provider == me:
                    self.env.count("state from another")
                assert provider is not None
                waits = Waits(provider, event.view.id)
            if member not in self.done:
                self.stateless[member] = waits
        if me in self.stateless:
            self._stands(self.stateless[me])
        for joiner, view in list(self.given):
            if self.stateless.get(joiner) != Waits(me, view):
                self._ends(joiner, view)
        return lost and provider == me

    def _stands(self, standing: Standing) -> None:
        self.standing = standing
        self.below.append(StateStanding(standing))  # the next view change asks gms for it

    def gauges(self) -> dict[str, int]:
        return {"stateless": len(self.stateless), "given": len(self.given)}
