"""Builds histories of groups and writes them as journals: what members do, in the order in which they do it.

A history is right unless a test makes it wrong: `view` and `multicast` do what a correct group does, `send`, `deliver`
and `Life.log` write whatever they are told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any
from zlib import crc32

from pygroups.journal.schema import services_of_v1
from pygroups.journal.writer import JournalWriter

View = tuple[int, str]
MICROSECONDS = 1000  # between two records


@dataclass(frozen=True)
class Run:
    """A run as its origin numbered it."""

    origin: Life
    first: int
    count: int
    checksum: int


@dataclass(frozen=True)
class Record:
    """One line of a journal, at its place among the lines of all."""

    life: Life
    kind: str
    view: View | None
    fields: dict[str, Any]

    def __str__(self) -> str:
        fields, what = self.fields, self.kind.replace("_", " ")
        if "first" in fields:
            last = fields["first"] + fields["count"] - 1
            what += f" {fields['origin']}{fields['first']}" + (f"-{last}" if last > fields["first"] else "")
        for name in ("peer", "connection", "members", "digest", "gauges"):
            if fields.get(name):
                what += f" {name} {_plain(fields[name])}"
        return what + (f" in {self.view[0]}:{self.view[1][0]}" if self.view else "")


def _plain(value: Any) -> str:
    """Members by their names alone."""
    if isinstance(value, dict):
        return " ".join(f"{_plain(name)}:{count}" for name, count in value.items())
    return " ".join(map(_plain, value)) if isinstance(value, list) else str(value).partition("@")[0]


@dataclass(eq=False)
class Life:
    """One member: its journal so far, and what it knows."""

    name: str
    incarnation: str
    story: list[Record]  # of all members
    records: list[tuple[str, View | None, dict[str, object]]] = field(default_factory=list)
    view: View | None = None
    position: int = 0
    seq: int = 0
    next_number: int = 1
    marks: dict[str, int] = field(default_factory=dict)
    had: dict[str, set[int]] = field(default_factory=dict)  # per origin, the delivered numbers
    profile: str | None = None  # another than the group's
    missing: bool = False  # its journal is not written
    hole_at: int | None = None  # this record is lost
    copied_at: int | None = None  # its journal is the copy of one that went on from this record

    @property
    def address(self) -> str:
        return f"{self.name}@{self.incarnation}"

    def copied(self) -> None:
        """Its journal is copied now, and goes on."""
        self.copied_at = len(self.records)

    def log(self, kind: str, view: View | None = None, **fields: object) -> None:
        self.records.append((kind, view or self.view, fields))
        self.story.append(Record(self, kind, view or self.view, fields))


class History:
    """A group over time. `alive` are the members of the view in force."""

    def __init__(self, group: str, profile: str = "total", names: str = "ABCD", bound_us: int = 10_000_000) -> None:
        self.group = group
        self.epsilon_ppm = 0  # the bound that each life states
        self.bound_us = bound_us
        self.profile = profile
        self.lives: list[Life] = []
        self.story: list[Record] = []
        self.alive: list[Life] = []
        self.number = 0
        self.history = "h1" if profile.startswith("uniform") else None
        for name in names:
            self.start(name)

    def start(self, name: str) -> Life:
        """A new life: the incarnation counts the lives of this name."""
        again = sum(life.name == name for life in self.lives)
        life = Life(name, f"{ord(name):x}{again:x}", self.story)
        life.log("start", gauges={"bound_us": self.bound_us, "epsilon_ppm": self.epsilon_ppm})
        self.lives.append(life)
        return life

    def __getitem__(self, name: str) -> Life:
        """The last life of that name."""
        return next(life for life in reversed(self.lives) if life.name == name)

    def view(self, names: str, by: str | None = None, accepted: str | None = None, **fields: object) -> View:
        """All of `names` install the next view; newcomers get a digest from the first that was there.

        In `uniform` those `accepted` it before: all that come from a view, if nothing else is said."""
        members = [self[name] for name in names]
        if self.profile.startswith("uniform"):
            came = "".join(life.name for life in members if life.view is not None)
            self.accept(came if accepted is None else accepted, names, by)
        self.number += 1
        view = (self.number, self[by or names[0]].address)
        provider = next((life for life in members if life.view is not None), None)
        before = {life.address: life.view for life in members}
        for life in members:
            if life.view is None and provider is not None:
                life.marks = dict(provider.marks)
                self.install(life, view, members, before, digest=dict(provider.marks), **fields)
            else:
                self.install(life, view, members, before, **fields)
        self.alive = members
        return view

    def accept(self, voters: str, names: str, by: str | None = None, ballot: int | None = None) -> None:
        """Each of `voters` accepts that the next view has the members `names`, under a ballot with this number."""
        view = (self.number + 1, self[by or names[0]].address)
        for voter in voters:
            self[voter].log(
                "flush",
                stage="accepted",
                members=[self[name].address for name in names],
                ballot_number=view[0] if ballot is None else ballot,
                ballot_leader=view[1],
                next_number=view[0],
                next_creator=view[1],
            )

    def install(
        self, life: Life, view: View, members: list[Life], before: dict[str, View | None], **fields: object
    ) -> None:
        """One member's view record."""
        old = before[life.address]
        together = [m.address for m in members if m is life or (old is not None and before[m.address] == old)]
        given: dict[str, object] = {
            "members": [m.address for m in members],
            "transitional": together,
            "primary": True,
            "history": self.history,
        }
        if old is not None:
            given |= {"previous_number": old[0], "previous_creator": old[1]}
        life.view, life.position, life.seq = view, 0, 0
        life.log("view", **(given | fields))

    def send(self, name: str, count: int = 1) -> Run:
        """`name` sends a run; nobody delivers it yet."""
        life = self[name]
        run = Run(life, life.next_number, count, crc32(f"{life.address}:{life.next_number}".encode()))
        life.next_number += count
        life.log("send", **fields_of(run))
        return run

    def deliver(self, run: Run, names: str, **changes: object) -> None:
        """Each of `names` delivers the run, in its view; `changes` go into the record."""
        for name in names:
            life = self[name]
            where: dict[str, object] = {"stream": self.alive[0].address, "seq": life.seq, "position": life.position}
            life.log("deliver", **(fields_of(run) | where | changes))
            life.position += run.count
            life.seq += 1
            life.had.setdefault(run.origin.address, set()).update(range(run.first, run.first + run.count))
            life.marks[run.origin.address] = max(life.marks.get(run.origin.address, 0), run.first + run.count - 1)

    def multicast(self, names: str, count: int = 1) -> None:
        """Each of `names` sends a run that all members of the view deliver."""
        for name in names:
            self.deliver(self.send(name, count), "".join(life.name for life in self.alive))

    def unicast(self, origin: str, to: str, connection: int = 1) -> Run:
        """`origin` sends one message to `to` alone; nobody delivers it yet."""
        life = self[origin]
        run = Run(life, life.next_number, 1, crc32(f"{life.address}>{life.next_number}".encode()))
        life.next_number += 1
        life.log("unicast_send", **fields_of(run), peer=self[to].address, connection=connection)
        return run

    def arrives(self, run: Run, to: str, connection: int = 1, at: str | None = None, **changes: object) -> None:
        """`to` delivers a unicast run (or somebody else, `at`, does)."""
        fields = fields_of(run) | {"peer": self[to].address, "connection": connection}
        self[at or to].log("unicast_deliver", **(fields | changes))

    def gap(self, names: str, run: Run) -> None:
        """Each of `names` is told that it will never have the run."""
        for name in names:
            origin = run.origin
            label = {"origin": origin.name, "origin_incarnation": origin.incarnation}
            self[name].log("gap", **label, first=run.first, count=run.count)

    def mark(self, kind: str, **fields: object) -> None:
        """A mark in every journal that runs."""
        for life in self.alive:
            life.log(kind, **fields)

    def crash(self, names: str) -> None:
        """They write nothing any more; the others are told by a mark."""
        gone = [self[name] for name in names]
        self.alive = [life for life in self.alive if life not in gone]
        self.mark("fault", reason="crash", members=[life.address for life in gone])

    def leave(self, name: str) -> None:
        """It leaves: said before, and ended after, the view without it."""
        life = self[name]
        life.log("leave", reason="asked")
        life.log("stop", reason="left", gauges={})
        self.alive.remove(life)

    def exclude(self, name: str) -> None:
        """It is told that the others go on without it, though it lives."""
        life = self[name]
        life.log("stop", reason="excluded", gauges={})
        self.alive.remove(life)

    @property
    def whole(self) -> bool:
        """Whether every journal that is there has all its records."""
        return all(life.hole_at is None for life in self.lives)

    def settle(self, gauges: dict[str, int] | None = None) -> None:
        """All that are alive reach quiet with empty tables."""
        self.mark("heal")
        self.mark("quiet")
        self.mark("stats", gauges=gauges or {"window": 0, "queue": 0})

    def told(self) -> Iterator[str]:
        """The history as a short story: a line for what several did one after the other."""
        for what, records in groupby(self.story, str):
            yield f"  {' '.join(dict.fromkeys(record.life.name for record in records))}: {what}"

    def save(self, root: Path) -> None:
        """Write every journal, one record a frame."""
        for life in self.lives:
            if not life.missing:
                self._save(root, life)

    def _save(self, root: Path, life: Life) -> None:
        profile = life.profile or self.profile
        owner = (self.group, life.name, life.incarnation, profile)
        writer = JournalWriter(root, *owner, host="here", boot_id="boot", services=services_of_v1(profile))
        for at, record in enumerate(life.records[: life.copied_at]):
            if at == life.hole_at:
                writer._encoder.index += 1  # as when a full disk swallowed it
            else:
                writer.write([record], 1_700_000_000_000_000 + at * MICROSECONDS, 5_000_000 + at * MICROSECONDS)
        writer.close()


def fields_of(run: Run) -> dict[str, object]:
    """The fields by which every journal names a run."""
    return {
        "origin": run.origin.name,
        "origin_incarnation": run.origin.incarnation,
        "first": run.first,
        "count": run.count,
        "bytes": 100 * run.count,
        "checksum": run.checksum,
    }
