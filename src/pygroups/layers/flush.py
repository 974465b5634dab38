"""FLUSH: members that leave a view together leave it with the same messages (virtual synchrony).

The member's side of a view change, above the numbered streams.  When GMS is bound to a ballot, FLUSH stops the member's
multicasts and reports how far its streams reach.  FLUSH then fetches the missing runs up to the cut, and hands up the
rest of the old view when the next view is installed.
Note: docs/layers/flush.md.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import (
    Block,
    Bound,
    Event,
    Excluded,
    Fetch,
    Fetched,
    FetchTo,
    Gap,
    Held,
    HeldQuery,
    Hold,
    Installed,
    Marks,
    Missing,
    NewView,
    Positions,
    Release,
    Served,
    Stop,
)
from pygroups.core.layer import Env, PassingLayer
from pygroups.core.run import Run
from pygroups.core.tables import Tables
from pygroups.core.view import Ballot
from pygroups.layers.streams.gaps import MISSING_MAX

from .streams.gaps import gaps_in, note
from .streams.marks import before_cut, forget_outside


class Flush(PassingLayer):
    """Virtual synchrony: members that go together from one view to the next delivered the same set in it."""

    __slots__ = ("ballot", "closed", "fetching", "in_doubt", "marks", "missing", "waiting", "withheld")

    needs: ClassVar[frozenset[str]] = frozenset({"STREAMS", "MEMBERSHIP"})
    gives: ClassVar[frozenset[str]] = frozenset({"VIRTUAL_SYNCHRONY", "BLOCK_AT_VIEW"})

    tables: ClassVar[Tables] = {
        "fetching": "members",
        "marks": "marks",
        "missing": "marks",
        "missing[]": MISSING_MAX,
        "missing[][]": "fixed",
        "waiting": "window_runs",
        "withheld": "stream_runs_of_all",
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.ballot: Ballot | None = None  # this member is bound to it
        self.in_doubt = False  # the others may have left this view behind, since before a pause of this member
        self.closed = False  # one of the two, or this member is excluded: nothing goes up or down
        self.marks: Marks = {}  # per origin, the next number not yet handed up
        self.missing: Missing = {}  # per origin, the messages below the mark that this member never delivers
        self.withheld: list[Run] = []  # held back until the installation, or until the doubt is over
        self.waiting: list[Run] = []  # own multicasts for the next view
        self.fetching: dict[Address, int] = {}  # streams that do not reach the cut yet, and where it is

    # -- runs

    def down(self, run: Run) -> None:
        if self.closed and run.dest is None:
            self.waiting.append(run)
        else:
            self.below.append(run)

    def rise(self, run: Run) -> Run | None:
        if run.stream is None:
            return run
        if self.closed:
            self.withheld.append(run)
            return None
        self._mark(run)
        return run

    def _mark(self, run: Run) -> None:
        origin, first = run.origin, run.first
        assert origin is not None
        if first == self.marks.get(origin, 1):  # a run that the layer above drops as repeated moves nothing
            self.marks[origin] = first + run.count

    def _hand_up(self, run: Run) -> None:
        self._mark(run)
        self.above.append(run)

    # -- after a long pause

    def _release(self, event: Release) -> None:
        """The view goes on: the runs that waited pass, in both directions."""
        assert self.ballot is None, "a bound member never resumes its view"
        self.in_doubt = self.closed = False
        withheld, self.withheld = self.withheld, []
        for run in withheld:
            self._hand_up(run)
        self.above.append(event)
        waiting, self.waiting = self.waiting, []
        self.below += waiting

    # -- the flush

    def up_event(self, event: Event) -> None:
        if isinstance(event, Stop):
            self._stop(event.ballot)
        elif isinstance(event, Held) and event.asker is Flush:
            assert self.ballot is not None
            self.below.append(Bound(self.ballot, event.held, self._marks_held(), dict(self.missing)))
        elif isinstance(event, FetchTo):
            self._fetch(event)
        elif isinstance(event, Served):
            self._served(event)
        elif isinstance(event, NewView):
            self._install(event)
        elif isinstance(event, Hold):
            self.in_doubt = self.closed = True
            self.above.append(event)
        elif isinstance(event, Release):
            self._release(event)
        elif isinstance(event, Excluded):
            # In order and without holes, but perhaps not up to the cut: the member may still have been fetching.
            # After a doubt it had not even begun: the others went on without these runs.
            self._hand_up_rest({} if self.in_doubt and event.cut is None else event.cut)
            self.closed = True  # a layer above may still send in this turn
            self.above.append(event)
        else:
            self.above.append(event)

    def _marks_held(self) -> Marks:
        """The marks after the withheld runs, which this member holds and has not handed up."""
        marks = dict(self.marks)
        for run in self.withheld:
            if run.origin is not None and run.first == marks.get(run.origin, 1):
                marks[run.origin] = run.next
        return marks

    def _stop(self, ballot: Ballot) -> None:
        """The member is bound to `ballot`, perhaps after a lower ballot, for which no answer is awaited any more."""
        if self.ballot is None:
            self._take_back()
            self.above.append(Block())
        self.ballot, self.closed = ballot, True
        self.fetching = {}
        self.below.append(HeldQuery(Flush))

    def _take_back(self) -> None:
        """A view may end in the turn in which it is installed: multicasts that were handed down for it and have not
        left this layer wait for the next view."""
        left, self.below = self.below, []
        for item in left:
            if isinstance(item, Run) and item.dest is None:
                self.waiting.append(item)
            else:
                self.below.append(item)

    def _fetch(self, event: FetchTo) -> None:
        assert event.ballot == self.ballot, "asked to fetch under a ballot to which this member is not bound"
        self.fetching = dict(event.cut)
        for stream, cut in event.cut.items():
            self.below.append(Fetch(stream, 0, cut, event.holders[stream]))

    def _served(self, event: Served) -> None:
        if self.fetching.get(event.stream, -1) == event.high:
            del self.fetching[event.stream]
            if not self.fetching and self.ballot is not None:
                self.below.append(Fetched(self.ballot))

    def _install(self, event: NewView) -> None:
        """In this order: the rest of the old view, the new view, then the multicasts that waited for it."""
        self._hand_up_rest(event.cut)
        if event.starts is not None:
            self.marks = dict(event.starts)
            self.missing = {origin: ((1, start),) for origin, start in event.starts.items() if start > 1}
        if event.digest:
            event = msgspec.structs.replace(event, gaps=self._skip(event))
        forget_outside(self.marks, event.view.members, self.env.config.marks_max)
        self.below.append(Installed(event.view.id, dict(self.marks)))
        self.above.append(event)
        waiting = [run for run in self.waiting if not run.index]  # pieces go again from the first: see FRAGMENTATION
        if waiting:
            self.env.count("runs for the next view", len(waiting))
        self.ballot, self.waiting, self.fetching = None, [], {}
        self.in_doubt = self.closed = False
        self.below += waiting
        if self.missing:
            self.missing = {origin: ranges for origin, ranges in self.missing.items() if origin in self.marks}

    def _skip(self, merged: NewView) -> tuple[Gap, ...]:
        """Take over the marks of a merge; returns the messages that this member thereby skips."""
        gaps: list[Gap] = []
        for origin, (mark, _) in merged.digest.items():
            own = self.marks.get(origin, 1)
            if own < mark:
                gaps += gaps_in(merged, origin, own)
                note(self.missing, origin, own, mark)
                self.marks[origin] = mark
        return tuple(gaps)

    def _hand_up_rest(self, cut: Positions | None) -> None:
        """Hand up the withheld runs, to the cut if one is known: runs beyond the cut were fetched for a higher ballot,
        whose view was not installed."""
        withheld, self.withheld = self.withheld, []
        if withheld:
            self.env.count("runs withheld", len(withheld))
        for run in withheld:
            if before_cut(run, cut):
                self._hand_up(run)
            else:
                self.env.drop("run beyond the cut")

    def gauges(self) -> dict[str, int]:
        return {"withheld": len(self.withheld), "waiting": len(self.waiting), "fetching": len(self.fetching)}
