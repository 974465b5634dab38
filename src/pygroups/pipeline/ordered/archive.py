"""The archive of one member, as far as it was read: its views, and where its messages stand in its files.

Only heads are kept, never payloads.  A position is the number of messages that the member delivered earlier in its
view.
"""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pygroups.journal.reader import Range

KINDS: Final = frozenset({"view", "deliver", "purge", "stop"})
COLUMNS: Final = frozenset(
    {
        *("kind", "index", "time_us", "view_number", "view_creator", "previous_number", "previous_creator", "members"),
        *("transitional", "primary", "position", "count", "stream", "seq", "digest"),
        *("origin", "origin_incarnation", "first"),
    }
)
"""The kinds of record, and their columns, that `Archive.take` wants."""

View = tuple[int, str]


class Run(NamedTuple):
    """A run that a member delivered, up to position `high` of its view; `of` names it at all members."""

    high: int
    of: tuple[str, str, int]
    stream: str
    seq: int | None


class Span(NamedTuple):
    """The messages at [low, high) of a view stand in these bytes; other records may stand between them."""

    low: int
    high: int
    place: Range


@dataclass
class Stay:
    """The time of a member in a view, which it installed at `began_us` of its wall clock, with record `index`.

    `end` is the position behind its last delivery.  In front of `hole` some deliveries are not in the files.  All
    members of the view have delivered what is below `stable`: votes said so, or the member is alone; with a hole this
    holds if it holds for what is in front of the hole.  `next` is the view that the member went to from here; then what
    it delivered is what all members delivered that went with it.
    """

    members: tuple[str, ...]
    began_us: int
    index: int
    came: int
    primary: bool
    next: View | None = None
    end: int = 0
    hole: int = 0
    stable: int = 0
    spans: list[Span] = field(default_factory=list)
    _waiting: deque[Run] = field(default_factory=deque)  # delivered, and not known to be stable
    _purged: dict[str, int] = field(default_factory=dict)

    def deliver(self, row: Mapping[str, Any], place: Range) -> None:
        low, high = row["position"], row["position"] + row["count"]
        if low != self.end:  # which streams the missing runs came on is not known
            self.hole = low
            self._waiting.clear()
        last = self.spans[-1] if self.spans else None
        if last is not None and last.high == low and last.place == place:
            self.spans[-1] = last._replace(high=high)
        else:
            self.spans.append(Span(low, high, place))
        self.end = max(self.end, high)
        of = (row["origin"], row["origin_incarnation"], row["first"])
        self._waiting.append(Run(high, of, row["stream"], row["seq"]))
        self._settle()

    def purge(self, digest: Mapping[str, int]) -> None:
        for stream, below in digest.items():
            self._purged[stream] = max(below, self._purged.get(stream, 0))
        self._settle()

    def _settle(self) -> None:
        while self._waiting:
            run = self._waiting[0]
            if len(self.members) > 1 and (run.seq is None or run.seq >= self._purged.get(run.stream, 0)):
                return
            self.stable = run.high
            self._waiting.popleft()

    def behind(self, position: int) -> list[tuple[int, tuple[str, str, int]]]:
        """The runs behind a position that is stable at some member, each with its end."""
        return [(run.high, run.of) for run in self._waiting if run.high > position]


@dataclass
class Archive:
    """What was read of the journal of one incarnation.  `payloads` is None before its first delivery."""

    group: str
    address: str
    payloads: bool | None = None
    over: bool = False
    stays: dict[View, Stay] = field(default_factory=dict)
    _view: View | None = None

    def take(self, row: Mapping[str, Any], place: Range) -> None:
        """The next record, in the order of `index`."""
        view = None if row["view_number"] is None else (row["view_number"], row["view_creator"])
        if row["kind"] == "view" and view is not None:
            self._install(view, row)
        elif row["kind"] == "stop":
            self.over = True
        elif view in self.stays:
            stay = self.stays[view]
            if row["kind"] == "deliver" and row["position"] is not None:
                stay.deliver(row, place)
            elif row["kind"] == "purge":
                stay.purge(dict(row["digest"] or ()))

    def _install(self, view: View, row: Mapping[str, Any]) -> None:
        previous = (row["previous_number"], row["previous_creator"])
        if self._view == previous and self._view in self.stays:
            self.stays[self._view].next = view
        self.stays[view] = Stay(
            tuple(row["members"] or ()),
            row["time_us"],
            row["index"],
            len(row["transitional"] or ()),
            bool(row["primary"]),
        )
        self._view = view

    def resume(self, view: View, stay: Stay) -> None:
        """Go on in a view that was installed in front of the first record that is read."""
        self.stays[view], self._view = stay, view

    def removed(self, paths: Collection[str]) -> None:
        """Segments are gone: their messages are in no file of this archive any more."""
        for stay in self.stays.values():
            stay.spans = [span for span in stay.spans if span.place.segment.path not in paths]

    def forget(self, until: View) -> None:
        """Drop the views that the member had before this one: all of their messages were read."""
        for view in list(self.stays) if until in self.stays else ():
            if view == until:
                return
            del self.stays[view]
