"""The events of a run as a table: a column for each name, time downward, and the events of each process in its cells.

A row is an instant.  Sends and deliveries between two other events share one row, which has the time of the last of
them.  The rows with members, messages or views of a witness are marked.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Block, Event, Excluded, NewView
from pygroups.core.suspicion_events import Suspect
from pygroups.core.top import Delivered

from ..promises.broken import Witness
from .story import Sent, event_text, span

USUAL_WIDTH: Final = 120
COLUMN: Final = 20  # the usual width of a cell
WIDTH_MIN: Final = 100
WIDTH_MAX: Final = 160
HEAD_EVERY: Final = 40  # number of rows after which the names are repeated
MARGIN: Final = 2  # columns for the mark
MESSAGE: Final = re.compile(r"([\w.-]+@\w+)#(\d+)")  # a message in the text of a witness
TIME: Final = 10
ALL: Final = "-"  # in place of a name: an event of all processes
SIGNS: Final = (
    "Time runs downward, in simulated seconds. Each name has a column: | is a running process, : a process that is",
    "blocked for a view change, = a paused process, and a blank no process. B' is the second process with the name B.",
    "A#3..5: the member delivers messages 3 to 5 of A. A>3: it delivers message 3, which A sent to it alone. sends 3:",
    "it multicasts message 3. sends B>1: it sends message 1 to B alone. view 4:A [A C D] +D -B: view 4, made by A, has",
    "the members A, C and D; D joined, and B left. Sends and deliveries between two other events share a row.",
)
STYLES: Final = {"fault": "red", "view": "green", "stopped": "yellow", "data": "dim", "head": "bold", "mark": "reverse"}


class Line(msgspec.Struct):
    """A line of the table, in parts with their styles."""

    parts: list[tuple[str, str]]

    def plain(self) -> str:
        """The line without styles."""
        return "".join(text for text, _ in self.parts).rstrip()


class MemberEvent(NamedTuple):
    """An event of one member, or of several."""

    now: int
    who: str
    what: str | Event


class Cell(msgspec.Struct):
    """The events of one member in a row."""

    texts: list[str] = []
    style: str = ""


class Instant(msgspec.Struct):
    """An instant, or the period before it in which messages were sent and delivered."""

    at: int
    cells: dict[str, Cell] = {}
    across: str = ""  # in place of cells: an event of all processes
    signs: dict[str, str] = {}  # the sign in a column without an event
    marked: bool = False


class SpaceTime:
    """Records the events of a world and makes its table."""

    def __init__(self, names: Sequence[str], width: int | None = None) -> None:
        """`width` is the number of columns of a line, between 100 and 160.  None means as many as `names` need."""
        self.names = names
        usual = max(USUAL_WIDTH, MARGIN + TIME + COLUMN * len(names))
        self.width = min(max(usual if width is None else width, WIDTH_MIN), WIDTH_MAX)
        self.column = max((self.width - MARGIN - TIME) // max(len(names), 1) - 1, 8)
        self.heard: list[MemberEvent] = []

    def hear(self, now: int, who: str, what: str | Event) -> None:
        """Record the event `what` of `who` at `now` (microseconds); see Story."""
        self.heard.append(MemberEvent(now, who, what))

    def lines(self, witness: Witness | None) -> Iterator[Line]:
        """The lines of the table; rows that show parts of `witness` are marked with >."""
        for sign in SIGNS:
            yield Line([(sign, STYLES["data"])])
        tale = _Tale(self.names, witness)
        for number, row in enumerate(tale.rows(self.heard)):
            if number % HEAD_EVERY == 0:
                yield from self._head()
            yield from self._row(row)
        if witness is not None:
            yield from self._ending(witness, tale.lives)

    def _head(self) -> Iterator[Line]:
        names = " ".join(f"{name:<{self.column}}" for name in self.names)
        yield Line([("", "")])
        yield Line([(" " * MARGIN + f"{'time':>{TIME}} ", STYLES["head"]), (names, STYLES["head"])])

    def _row(self, row: Instant) -> Iterator[Line]:
        """The row in as many lines as its fullest cell needs."""
        mark = "> " if row.marked else "  "
        first = (f"{mark}{row.at / 1_000_000:>{TIME}.6f} ", STYLES["mark"] if row.marked else "")
        if row.across:
            text = f"-- {row.across} "
            yield Line([first, (text.ljust(self.width - MARGIN - TIME - 1, "-"), STYLES["fault"])])
            return
        wrapped = {name: self._wrapped(cell) for name, cell in row.cells.items()}
        for at in range(max(map(len, wrapped.values()), default=1)):
            parts = [first if at == 0 else (" " * (MARGIN + TIME + 1), "")]
            for name in self.names:
                cell = wrapped.get(name, [])
                here = cell[at] if at < len(cell) else row.signs.get(name, "")
                style = row.cells[name].style if at < len(cell) else STYLES["data"]
                parts.append((f"{here:<{self.column}} ", style))
            yield Line(parts)

    def _wrapped(self, cell: Cell) -> list[str]:
        return [line for text in cell.texts for line in textwrap.wrap(text, self.column, break_on_hyphens=False)]

    def _ending(self, witness: Witness, lives: _Lives) -> Iterator[Line]:
        named = [life for life in (witness.member, witness.other) if life]
        yield Line([("", "")])
        yield Line([(f"broken: {witness}", STYLES["fault"])])
        said = [f"{lives.label(life)} is {life}" for life in dict.fromkeys(named) if life in lives.labels]
        said.append("> marks the rows with this message, this view and these members")
        yield Line([("  " + "; ".join(said), "")])


class _Lives:
    """The label of each incarnation: its name, with one or more strokes behind it from the second incarnation on."""

    def __init__(self) -> None:
        self.labels: dict[str, str] = {}
        self._births: dict[str, int] = {}

    def begins(self, address: str) -> None:
        name = address.partition("@")[0]
        birth = self._births[name] = self._births.get(name, 0) + 1
        self.labels[address] = name + ("'" * (birth - 1) if birth <= 4 else f"'{birth}")

    def label(self, address: Address | str) -> str:
        return self.labels.get(str(address), str(address))


class _Stretch:
    """The messages that members sent and delivered between two other events."""

    def __init__(self) -> None:
        self.until = 0
        self.runs: dict[str, dict[str, list[range]]] = {}  # per member and sign, message numbers in arrival order

    def add(self, now: int, who: str, sign: str, numbers: range) -> None:
        self.until = now
        runs = self.runs.setdefault(who, {}).setdefault(sign, [])
        if runs and runs[-1].stop == numbers.start:
            runs[-1] = range(runs[-1].start, numbers.stop)
        else:
            runs.append(numbers)

    def cells(self) -> dict[str, Cell]:
        return {
            who: Cell(
                [", ".join(sign + span(numbers) for sign, runs in signs.items() for numbers in runs)], STYLES["data"]
            )
            for who, signs in self.runs.items()
        }


class _Tale:
    """Makes rows of the recorded events.  `signs` has a sign for the state of each process."""

    def __init__(self, names: Sequence[str], witness: Witness | None) -> None:
        self.names = names
        self.lives = _Lives()
        self.signs = dict.fromkeys(names, "")
        self.stretch = _Stretch()
        self.members = (witness.member, witness.other) if witness is not None else ("", "")
        self.view = witness.view if witness is not None else ""
        named = f"{witness.message} {witness.detail}" if witness is not None else ""
        self.messages = [(origin, int(number)) for origin, number in MESSAGE.findall(named)]
        self.now: dict[str, str] = {}  # the incarnation that runs under each name

    def rows(self, heard: Sequence[MemberEvent]) -> Iterator[Instant]:
        row: Instant | None = None
        for item in heard:
            data = self._data(item)
            if data is not None and not self._is_named(item):
                if row is not None:
                    yield row
                    row = None
                self.stretch.add(item.now, item.who, *data)
                continue
            text = _text(data) if data is not None else self._text(item)
            if text is None:
                continue
            if self.stretch.runs:
                yield Instant(self.stretch.until, self.stretch.cells(), "", dict(self.signs))
                self.stretch = _Stretch()
            if row is not None and not self._joins(row, item):
                yield row
                row = None
            row = self._put(row, item, text)
        if row is not None:
            yield row
        if self.stretch.runs:
            yield Instant(self.stretch.until, self.stretch.cells(), "", dict(self.signs))

    def _joins(self, row: Instant, item: MemberEvent) -> bool:
        return row.at == item.now and not row.across and item.who in self.signs

    def _put(self, row: Instant | None, item: MemberEvent, text: str) -> Instant:
        """Write the event into its cell, or across the row when it concerns several processes."""
        marked = self._is_named(item)
        if item.who not in self.signs:
            across = text if item.who == ALL else f"{text}: {item.who}"
            return Instant(item.now, {}, across, dict(self.signs), marked)
        self._stand(item)
        row = row if row is not None else Instant(item.now)
        row.signs = dict(self.signs)
        cell = row.cells.setdefault(item.who, Cell([], _style(item.what)))
        cell.texts = [*cell.texts, text]
        row.marked = row.marked or marked
        return row

    # -- the state of each process

    def _stand(self, item: MemberEvent) -> None:
        who, what = item.who, item.what
        if isinstance(what, NewView) or what == "runs again":
            self.signs[who] = "|"
        elif isinstance(what, Block):
            self.signs[who] = ":"
        elif isinstance(what, Excluded) or what == "crashes":
            self.signs[who] = ""
        elif isinstance(what, str) and what.startswith("starts as "):
            self.signs[who] = "|"
        elif what == "fault: pause":
            self.signs[who] = "="

    # -- texts

    def _data(self, item: MemberEvent) -> tuple[str, range] | None:
        """The sign and the numbers of the messages that were sent or delivered; None for other events."""
        what = item.what
        if isinstance(what, Sent):
            sign = "sends " if what.to is None else f"sends {self.lives.label(what.to)}>"
            return sign, range(what.number, what.number + 1)
        if isinstance(what, Delivered):
            assert what.run.origin is not None
            origin = self.lives.label(what.run.origin)
            return origin + ("#" if what.position >= 0 else ">"), range(what.run.first, what.run.next)
        return None

    def _text(self, item: MemberEvent) -> str | None:
        if isinstance(item.what, Event):
            return _event_text(item.what, self.lives)
        if item.what.startswith("starts as "):
            address = item.what.removeprefix("starts as ")
            self.lives.begins(address)
            self.now[item.who] = address
            return f"starts as {self.lives.label(address)} ({address.partition('@')[2][:6]})"
        return item.what

    # -- parts of the witness

    def _is_named(self, item: MemberEvent) -> bool:
        what, life = item.what, self.now.get(item.who, "")
        if isinstance(what, Delivered):
            run = what.run
            return what.position >= 0 and any(
                str(run.origin) == origin and run.first <= number < run.next for origin, number in self.messages
            )
        if isinstance(what, Sent):
            return what.to is None and (life, what.number) in self.messages
        if not life or life not in self.members:
            return False
        if isinstance(what, NewView):
            return not self.view or str(what.view.id) == self.view
        return isinstance(what, Suspect | Excluded) or what == "crashes"


def _event_text(event: Event, lives: _Lives) -> str | None:
    """The text of story.event_text, in a shorter form."""
    if isinstance(event, NewView):
        number, leader = event.view.id
        members = " ".join(map(lives.label, event.view.members))
        joined, left = (
            "".join(f" {sign}{lives.label(life)}" for life in those)
            for sign, those in (("+", event.joined), ("-", event.left))
        )
        return f"view {number}:{lives.label(leader)} [{members}]{joined}{left}"
    if isinstance(event, Block):
        return "is blocked"
    if isinstance(event, Excluded):
        return f"ends: {event.reason}"
    return event_text(event, lives.label)


def _text(data: tuple[str, range]) -> str:
    sign, numbers = data
    return sign + span(numbers)


def _style(what: str | Event) -> str:
    if isinstance(what, NewView):
        return STYLES["view"]
    if isinstance(what, Block):
        return STYLES["stopped"]
    if isinstance(what, Excluded) or (isinstance(what, str) and (what.startswith("fault") or what == "crashes")):
        return STYLES["fault"]
    return ""
