"""The former incarnation of a process, in the folder of its journal, where a majority decides each view.

A process that starts under the name of a former incarnation takes the lock of its journal, which proves that the former
incarnation has ended.  While the process holds the lock, the process answers for the former incarnation.  Each answer
is written into that journal before the answer is sent.  Note: docs/drivers.md, docs/layers/gms.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from pygroups.core.address import Address, parse_address
from pygroups.core.errors import JournalFailed, UsageError
from pygroups.core.former import FormerLife
from pygroups.core.layer import Record
from pygroups.core.records import PlainRecord, plain_records
from pygroups.core.view import ViewId
from pygroups.journal.ending import begun_at
from pygroups.journal.errors import JournalError
from pygroups.journal.schema import FIELDS, PREFIX
from pygroups.journal.writer import JournalWriter, is_free

_VIEW_AT: Final = PREFIX.index("view")
LIVES_MAX: Final = 256  # incarnations of one name that are examined
LOGGER: Final = logging.getLogger("pygroups.drivers.former_life")


class FormerJournal(Protocol):
    """The journal of a former incarnation, which the answers are written to."""

    @property
    def lost(self) -> int: ...
    def write(self, records: Sequence[PlainRecord], time_us: int, mono_us: int) -> None: ...
    def close(self) -> None: ...


class Former:
    """A former incarnation and its journal, which no other process can open meanwhile.  Without a journal no process
    answers for the incarnation, but its end is proven."""

    def __init__(self, life: FormerLife, journal: FormerJournal | None) -> None:
        self.life = life
        self.journal = journal

    def write(self, records: Sequence[Record], time_us: int, mono_us: int) -> list[Record]:
        """Write the answers for the former incarnation.  Returns the other records.  After JournalFailed the process
        must not send the answers."""
        own = [record for record in records if "life" not in record[2]]
        if len(own) < len(records):
            answers = [
                (kind, view, {name: value for name, value in fields.items() if name != "life"})
                for kind, view, fields in records
                if "life" in fields
            ]
            assert self.journal is not None
            try:
                self.journal.write(plain_records(answers), time_us, mono_us)
            except JournalError as error:
                raise JournalFailed(f"this process cannot answer for {self.life.address}: {error}") from error
        return own

    def close(self) -> None:
        """Release the lock.  A second call has no effect."""
        if self.journal is not None:
            self.journal.close()


def former_life(
    root: Path, group: str, me: Address, profile: str, open: Callable[[Address], JournalWriter]
) -> Former | None:
    """The last incarnation of this name that has ended and was a member; None if the folder has no ended incarnation.

    `open` opens the journal of an incarnation, and raises JournalError if another process holds its lock.  No process
    can answer for an incarnation whose journal lacks records.
    """
    folder, ended = root / group, list[Address]()
    found: Former | None = None
    for life in _lives(folder, me):
        if found is None:
            found = _opened(life, profile, open, ended)
        elif is_free(folder / str(life)):
            ended.append(life)
    if found is not None:
        LOGGER.info("%s answers for its former incarnation %s", me, found.life.address)
    elif ended:
        found = Former(FormerLife(ended[0]), None)
    if found is not None:
        found.life.ended = tuple(reversed(ended))
    return found


def _opened(
    life: Address, profile: str, open: Callable[[Address], JournalWriter], ended: list[Address]
) -> Former | None:
    """The incarnation and its journal, if a process can answer for it.  Adds an ended incarnation to `ended`."""
    try:
        journal = open(life)
    except JournalError as error:
        if not isinstance(error.__cause__, BlockingIOError):
            LOGGER.warning("this process cannot check whether %s has ended: %s", life, error)
        return None
    ended.append(life)
    shown = _shown(life, profile, journal)
    if shown is None:
        journal.close()
        return None
    return Former(shown, journal)


def _lives(folder: Path, me: Address) -> list[Address]:
    """The last other incarnations of the name, the newest first, by the wall clock at their starts."""
    lives: list[tuple[int, Address]] = []
    for path in folder.glob(f"{me.name}@*"):
        try:
            life = parse_address(path.name)
            if life != me:
                lives.append((begun_at(path) if path.is_dir() else 0, life))
        except (OSError, UsageError) as error:
            LOGGER.warning("the journal of a former incarnation in %s cannot be read: %s", path, error)
    return [life for _, life in sorted(lives, reverse=True)[:LIVES_MAX]]


def _shown(address: Address, profile: str, journal: JournalWriter) -> FormerLife | None:
    """The end of an incarnation; None if it was in no group with this profile, or if its journal lacks records."""
    life = FormerLife(address)
    try:
        for row in journal.in_force if journal.continues == profile else ():
            life.take(*_record(row))
    except (LookupError, TypeError, ValueError, UsageError) as error:
        LOGGER.warning("the end of the journal in %s cannot be read: %r", journal.folder, error)
        return None
    if not journal.whole:
        LOGGER.warning("this process cannot answer for %s: the journal in %s lacks records", address, journal.folder)
        return None
    return life if life.view or life.bound else None


def _record(row: list[Any]) -> Record:
    """A record of a journal in the form of the layers, with addresses instead of texts."""
    kind, view = row[0], row[_VIEW_AT]
    fields = dict(zip(FIELDS[kind], row[len(PREFIX) :], strict=False))
    if fields.get("members") is not None:
        fields["members"] = tuple([parse_address(one) for one in fields["members"]])
    for name in ("ballot_leader", "next_creator"):
        if fields.get(name) is not None:
            fields[name] = parse_address(fields[name])
    return kind, None if view is None else ViewId(view[0], parse_address(view[1])), fields
