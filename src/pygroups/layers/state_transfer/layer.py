"""STATE_TRANSFER: a joiner gets the application's state, as it was at the start of a view, from an older member.

Every member knows which members have no state yet and which members provide it (providers.py).  If a provider is lost,
or fails to give its state, the next view names another provider, and the state is that of the start of this view.  The
channel takes and sets the state, and holds events back until it is set.  Note: docs/layers/state_transfer.md.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Event, Excluded, Gap, Marks, Missing, NewView
from pygroups.core.layer import NEVER, Env, PassingLayer
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.run import Run, pack, unpack
from pygroups.core.standing import ANEW, Standing, WaitsForState, has_state
from pygroups.core.state_events import (
    StateArrived,
    StateChunk,
    StateFailed,
    StateStanding,
    StateTaken,
    StateWanted,
    ViewWanted,
)
from pygroups.core.tables import Tables
from pygroups.core.view import ViewId

from ..streams.gaps import MISSING_MAX, all_below, below, gaps_in, note, told
from ..streams.marks import forget_outside
from .heads import StateAck, StateBegin, StateData, StateDone, StateRefused
from .providers import Providers, after_merge, providers


class StateTransfer(PassingLayer):
    """The provider's side and the joiner's side."""

    __slots__ = (
        "begun",
        "behind",
        "done",
        "failed",
        "given",
        "held",
        "lacks",
        "marks",
        "members",
        "own",
        "parts",
        "replaced",
        "standing",
        "starts",
        "stateless",
        "view",
    )

    needs: ClassVar[frozenset[str]] = frozenset({"VIRTUAL_SYNCHRONY", "FIFO_UNICAST"})
    gives: ClassVar[frozenset[str]] = frozenset({"STATE_AT_VIEW"})
    heads: ClassVar[tuple[type, ...]] = (StateData, StateAck, StateDone, StateBegin, StateRefused)
    events_down: ClassVar[tuple[type[Event], ...] | None] = (
        StateChunk,
        StateFailed,
    )

    tables: ClassVar[Tables] = {
        "begun": "members_max",
        "behind": "marks",
        "behind[]": MISSING_MAX,
        "behind[][]": "fixed",
        "done": "outsiders_too",
        "failed": "members",
        "given": "members",
        "held": "members",
        "held[]": "state_chunks",
        "lacks": "marks",
        "lacks[]": MISSING_MAX,
        "lacks[][]": "fixed",
        "marks": "marks",
        "members": "members",
        "replaced": "members",
        "standing.failed": "members",
        "starts": "marks",
        "stateless": "members",
        "stateless[].failed": "members",
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.marks: Marks = {}  # per origin, the next number not yet handed up: a state of now ends there
        self.lacks: Missing = {}  # the messages below these marks that the state of this member does not contain
        self.starts: Marks = {}  # the marks of the state that this member waits for
        self.behind: Missing = {}  # the messages behind `starts` that this state will lack
        self.view: ViewId | None = None
        self.members: tuple[Address, ...] = ()
        self.stateless: dict[Address, WaitsForState] = {}  # the members without a state, with the wait of each
        self.standing: Standing = False  # of this member
        self.own: Standing = False  # the same, as long as the state that it waits for is not complete
        self.done: dict[Address, ViewId] = {}  # members that reported a state, perhaps before their view came here
        self.replaced: dict[Address, ViewId] = {}  # members whose state a merge replaced, and in which view
        self.given: dict[tuple[Address, ViewId], int] = {}  # parts for a joiner so far
        self.held: dict[tuple[Address, ViewId], list[Run]] = {}  # parts for a joiner without the view yet
        self.begun: dict[Address, ViewId] = {}  # joiners that wait for parts of this member, and in which view
        self.parts = 0  # received of the state that this member waits for
        self.failed: dict[Address, None] = {}  # members that have a state and did not give it to this one

    # -- runs

    def rise(self, run: Run) -> Run | None:
        if run.stream is not None:
            assert run.origin is not None
            self.marks[run.origin] = run.first + run.count
            return run
        head = run.head
        if isinstance(head, StateData):
            self._on_state_data(run, head)
        elif isinstance(head, StateAck):
            if (run.src, head.view) in self.given:
                self.above.append(StateTaken(head.view, run.src, head.next))
            else:
                self.env.drop("acknowledgement of a state that is not given")
        elif isinstance(head, StateBegin):
            self._on_state_begin(run.src, head)
        elif isinstance(head, StateDone):
            self._note_state(run.src, head.view)
        elif isinstance(head, StateRefused):
            self._on_refused(run.src, head)
        else:
            return run
        return None

    # -- the provider

    def down_event(self, event: Event) -> None:
        if isinstance(event, StateChunk):
            self._give(event)
        elif isinstance(event, StateFailed):
            self._refuse(event)
        else:
            self.below.append(event)

    def _give(self, event: StateChunk) -> None:
        if not self._provides(event.joiner, event.view):
            self.above.append(StateTaken(event.view, event.joiner, None))  # the joiner has left, or has another state
            return
        key = (event.joiner, event.view)
        number = self.given.get(key, 0)
        self.given[key] = number + 1
        head = StateData(event.view, number, event.last, event.none, told(event.lacks), self.own == ANEW)
        body = pack([event.data])
        part = Run(self.env.me, event.joiner, (head,), self.env.me, number + 1, 0, 1, body)
        if self.begun.get(event.joiner) == event.view:
            self.below.append(part)
        else:  # as many as the channel reads ahead
            self.held.setdefault(key, []).append(part)

    def _provides(self, joiner: Address, view: ViewId) -> bool:
        """Whether this member gives `joiner` the state of the start of `view`."""
        return _which(self.stateless.get(joiner)) == (self.env.me, view)

    def _refuse(self, event: StateFailed) -> None:
        """The application gives no state: report this to the joiner as soon as the joiner has the view."""
        if self._provides(event.joiner, event.view):
            self.env.count("state not given")
            refusal = Run(self.env.me, event.joiner, (StateRefused(event.view),))
            if self.begun.get(event.joiner) == event.view:
                self.below.append(refusal)
            else:
                self.held[event.joiner, event.view] = [refusal]

    def _on_state_begin(self, joiner: Address, head: StateBegin) -> None:
        if joiner not in self.begun and len(self.begun) >= MEMBERS_MAX:
            self.env.drop("too many joiners without a state")
            return
        self.begun[joiner] = head.view
        self.below += self.held.pop((joiner, head.view), [])

    def _ends(self, joiner: Address, view: ViewId) -> None:
        """Send `joiner` no further part of the state of the start of `view`."""
        self.given.pop((joiner, view), None)
        self.held.pop((joiner, view), None)
        self.above.append(StateTaken(view, joiner, None))

    # -- the joiner

    def _on_state_data(self, run: Run, head: StateData) -> None:
        if not self._awaits(run.src, head.view) or head.number != self.parts:
            self.env.drop("unexpected state")
        else:
            self._take(run, head)

    def _take(self, run: Run, head: StateData) -> None:
        try:
            (data,) = unpack(run.body)
        except (msgspec.DecodeError, ValueError):
            self.env.drop("malformed state")
            return
        self.parts += 1
        self._wait_for_provider()
        self.tell(run.src, StateAck(head.view, self.parts))
        lacks = below(self.starts, head.lacks) if head.last and not head.none else {}
        self.above.append(StateArrived(head.view, run.src, data, head.last, head.none, lacks))
        if head.last:
            self._done(self.members, head.view, self._kept(ANEW if head.anew else True))
            if not head.none:
                self.lacks, self.behind = self._with_those_behind(lacks), {}

    def _with_those_behind(self, lacks: Missing) -> Missing:
        lacks = dict(lacks)
        for origin, ranges in self.behind.items():
            for low, high in ranges:
                note(lacks, origin, low, high)
        return lacks

    def _awaits(self, provider: Address, view: ViewId) -> bool:
        """Whether this member waits for the state of the start of `view` from `provider`."""
        return _which(self.stateless.get(self.env.me)) == (provider, view)

    def _wait_for_provider(self) -> None:
        self.wake = self.env.now + self.env.config.state_timeout

    def timer(self) -> None:
        """No part, and no view, came for `state_timeout`: ask for another provider."""
        self.wake = NEVER
        waits = self.stateless.get(self.env.me)
        if waits is None:
            return
        if waits.provider is None:
            self._want_another_view()
        else:
            self.env.count("state that did not come in time")
            self._turn_away(waits.provider)

    def _on_refused(self, provider: Address, head: StateRefused) -> None:
        if self._awaits(provider, head.view):
            self._turn_away(provider)
        else:
            self.env.drop("unexpected refusal of a state")

    def _turn_away(self, provider: Address) -> None:
        """`provider` does not give its state: the next view names another provider.  If the state comes before that
        view, it is taken all the same."""
        self.failed[provider] = None
        waits = WaitsForState(provider, self.stateless[self.env.me].view, tuple(self.failed))
        self.stateless[self.env.me] = waits
        self._stands(waits)
        self._want_another_view()

    def _want_another_view(self) -> None:
        """Ask for a view: it names another provider, or shows which member has a state."""
        self.below.append(ViewWanted())
        self._wait_for_provider()  # for that view

    def _kept(self, standing: Standing) -> Standing:
        return standing if self.env.keeps_state else False

    def _done(self, others: tuple[Address, ...], view: ViewId, standing: Standing) -> None:
        """This member no longer waits for a state, and has this `standing`."""
        self._note_state(self.env.me, view)
        self._stands(standing)
        self.wake = NEVER
        for member in others:
            if member != self.env.me:
                self.tell(member, StateDone(view))

    def _note_state(self, member: Address, view: ViewId) -> None:
        if member not in self.members and member not in self.done and len(self.done) >= MEMBERS_MAX:
            self.env.drop("too many outsiders with a state")  # the next view asks its members
            return
        if member in self.replaced and view < self.replaced[member]:
            self.env.drop("state that a merge replaced")
            return
        self.done[member] = view
        waits = self.stateless.pop(member, None)
        if waits is not None and (member, waits.view) in self.given:
            self._ends(member, waits.view)
        own = self.stateless.get(self.env.me)
        if own is not None and own.provider is None:
            self._want_another_view()  # in which that member gives its state

    # -- membership

    def up_event(self, event: Event) -> None:
        if isinstance(event, NewView):
            self._install(event)
            return
        if isinstance(event, Excluded):
            self.wake = NEVER
        self.above.append(event)

    def _install(self, event: NewView) -> None:
        me, view = self.env.me, event.view
        self.view, self.members = view.id, view.members
        event = self._replace(event)
        if event.starts is not None:
            self.marks = dict(event.starts)
            self.lacks = all_below(self.marks)  # if it gets no state
        forget_outside(self.marks, view.members, self.env.config.marks_max)
        before = self.stateless.get(me)
        found = self._provide(event)
        alone = me not in self.done and (found.begins == me or me in found.without)
        if alone or _which(self.stateless.get(me, before)) != _which(before):
            if me in event.losers:
                self.env.count("state replaced")
            self.parts = 0
            event = self._begins_with_a_state(event)
        joiners = tuple(joiner for joiner in self.stateless if self._provides(joiner, view.id))
        wanted = [StateWanted(view.id, joiners, dict(self.marks), dict(self.lacks))] if joiners else []
        if alone:
            self.env.count("state lost")
            self.above += [event, StateArrived(view.id, me, b"", last=True, none=True), *wanted]
            self._done(self.members, view.id, self._kept(self._alone(before)) if found.begins == me else False)
        else:
            self.above += [*wanted, event]
            self._begin_to_wait(event, before)
        self._skip(event)
        self.done = {member: done for member, done in self.done.items() if member in view.members}
        self.replaced = {member: merged for member, merged in self.replaced.items() if member in view.members}
        self.begun = {one: begun for one, begun in self.begun.items() if one in view.members or begun > view.id}
        self.failed = {member: None for member in self.failed if member in view.members}

    def _alone(self, before: WaitsForState | None) -> Standing:
        """The standing of a member that begins because no other one has a state."""
        if has_state(self.own):
            return self.own  # the state of the winner of a merge was lost, and not its own one
        return True if before is None else ANEW

    def _skip(self, event: NewView) -> None:
        """Note the gaps of `event`: those of the state that this member has, and of the state that it waits for."""
        for gap in event.gaps if event.without_state is None else event.without_state:
            note(self.lacks, gap.origin, gap.first, gap.next)
        for gap in event.gaps:
            self.marks[gap.origin] = gap.next
            if self.env.me in self.stateless:
                note(self.behind, gap.origin, gap.first, gap.next)
        for missing in (self.lacks, self.behind):
            for origin in [origin for origin in missing if origin not in self.marks]:
                del missing[origin]

    def _replace(self, event: NewView) -> NewView:
        """In a merge with a winner, the other sides lose their states: their members stand like joiners."""
        for member in event.losers:
            self.replaced[member] = event.view.id
            if member in self.done and self.done[member] < event.view.id:
                del self.done[member]
        if event.winner is None:
            return event
        return msgspec.structs.replace(event, standings=after_merge(event.standings, event.losers))

    def _begins_with_a_state(self, event: NewView) -> NewView:
        """`event` with the marks of the state, and, in a merged view, the gaps of the subgroup that gives it."""
        self.behind = {}
        waits = self.stateless.get(self.env.me)
        source = waits.provider if waits is not None else None
        side = next((side for side in event.subgroups if source in side.members), None)
        if side is None or self.env.me in side.members:
            self.starts = dict(self.marks)
            return msgspec.structs.replace(event, starts=dict(self.marks), with_state=True)
        self.marks, self.starts = dict(side.marks), side.marks
        gaps: list[Gap] = []
        for origin, (mark, _) in event.digest.items():
            low = side.marks.get(origin, 1)
            if mark > low:
                gaps += gaps_in(event, origin, low)
        return msgspec.structs.replace(
            event, starts=dict(self.marks), with_state=True, gaps=tuple(gaps), without_state=event.gaps
        )

    def _begin_to_wait(self, event: NewView, before: WaitsForState | None) -> None:
        me = self.env.me
        waits = self.stateless.get(me)
        if me in self.done and isinstance(event.standings.get(me), WaitsForState):
            self._done(event.joined, self.done[me], self.own)  # the state came after the answer
        elif waits is None:
            self.wake = NEVER
        elif waits.provider is None:
            self._begin_to_wait_for_a_view(event, _which(waits) != _which(before))
        elif waits.provider in self.failed and waits.provider not in waits.failed:
            self._turn_away(waits.provider)  # the provider failed after the answer of this member
        elif _which(waits) != _which(before):
            self._wait_for_provider()
            self.tell(waits.provider, StateBegin(waits.view))  # not sooner: parts would come before the view

    def _begin_to_wait_for_a_view(self, event: NewView, is_new: bool) -> None:
        """No member had a state when it was asked; the next view shows whether one has it by now."""
        if is_new:
            self.env.count("state in doubt")
        if is_new or any(isinstance(event.standings.get(member), WaitsForState) for member in self.done):
            self._want_another_view()

    def _provide(self, event: NewView) -> Providers:
        """Find out which member gives a state to which joiner from this view on."""
        me, members = self.env.me, event.view.members
        if event.is_new and members == (me,):
            self._stands(self.env.keeps_state)  # this member founded the group
            found = Providers({})
        else:
            found = providers(event.view.id, members, event.standings)
        for member, waits in found.waits.items():
            old = event.standings.get(member)
            if waits.provider == me and isinstance(old, WaitsForState) and waits != old:
                self.env.count("state from another")
        self.stateless = {member: waits for member, waits in found.waits.items() if member not in self.done}
        if me in self.stateless:
            self._stands(self.stateless[me])
        for joiner, view in [*self.given, *self.held]:
            if not self._provides(joiner, view):
                self._ends(joiner, view)
        return found

    def _stands(self, standing: Standing) -> None:
        self.standing = standing
        if not isinstance(standing, WaitsForState):
            self.own = standing
        self.below.append(StateStanding(standing))  # the next view change asks gms for it

    def gauges(self) -> dict[str, int]:
        return {"stateless": len(self.stateless), "given": len(self.given)}


def _which(waits: WaitsForState | None) -> tuple[Address | None, ViewId] | None:
    """The provider, and the view whose state it gives; None if there is neither."""
    return None if waits is None else (waits.provider, waits.view)
