"""The members and the views in the table of a stream, as this process needs them to decide which views are closed."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pygroups.journal.ranges import Reached, grown
from pygroups.journal.reader import find_segments
from pygroups.pipeline.endings import open_lives
from pygroups.pipeline.ingest import Table
from pygroups.pipeline.ingest.known import LifeState, known_to
from pygroups.pipeline.ingest.table import read_batches
from pygroups.pipeline.recorded import ENDS_A_LIFE
from pygroups.pipeline.stream.state import MEMBERS_TOLD, LeftOpen
from pygroups.pipeline.stream.views import Installed, Member, closed_views

_COLUMNS: Final = ["life", "index", "kind", "view", "view_number", "reason", "members"]
PROOFS: Final = ("stop", "quiet")
"""The kinds of record that prove the end of a journal."""

Row = dict[str, Any]


@dataclass
class Known:
    """Lives as merged rows of the manifest, by key; `end` is the first index that is not trusted.

    `order` has the views of each life in its journal's order, as pairs of an index and a view's key.
    """

    lives: dict[int, Row] = field(default_factory=dict)
    order: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    views: dict[int, Installed] = field(default_factory=dict)
    crashed: set[tuple[str, str]] = field(default_factory=set)

    def views_of(self, life: int) -> list[int]:
        """The views that a life installed, in their order."""
        return [view for _, view in self.order.get(life, ())]

    def closed(self, unread: Callable[[int], bool]) -> set[int]:
        """The closed views.  `unread` is asked for members that others went on without: has the journal more
        records?"""
        order = {key: self.views_of(key) for key in self.lives}
        installed: dict[int, set[int]] = defaultdict(set)
        for key, views in order.items():
            for view in views:
                installed[view].add(key)
        members = {view: one.members for view, one in self.views.items()}
        going_on = open_lives(self.lives, order, installed, members, self.crashed)
        return closed_views({key: self._member(key, key in going_on, unread) for key in self.lives}, order, self.views)

    def left_open(self, closed: Collection[int]) -> dict[str, LeftOpen]:
        """The views that are not closed, by group."""
        found: dict[str, LeftOpen] = {}
        for group in sorted({one.group for view, one in self.views.items() if view not in closed}):
            views = {view for view, one in self.views.items() if one.group == group and view not in closed}
            lives = [self.lives[key] for key in self.lives if self.views_of(key) and self.views_of(key)[-1] in views]
            names = sorted(life["address"] for life in lives)
            newest = max((life["last_us"] or 0 for life in lives), default=0)
            found[group] = LeftOpen(len(views), names[:MEMBERS_TOLD], len(names[MEMBERS_TOLD:]), newest)
        return found

    def _member(self, key: int, going_on: bool, unread: Callable[[int], bool]) -> Member:
        life = self.lives[key]
        name = life["group"], life["address"]
        proven = not life["kinds"].isdisjoint(PROOFS) or name in self.crashed
        more = not going_on and not proven and unread(key)
        return Member(*name, life["whole"], life["last_us"] or 0, proven, going_on, more)


def known_in(table: Table) -> Known:
    """The members and views in a table."""
    found = Known()
    for row in table.manifest().to_pylist():
        merge_into(found.lives, row)
    found.lives = {key: life for key, life in found.lives.items() if life["last_index"] is not None}
    for file in table.events_files:
        for batch in read_batches(file, _COLUMNS):
            for row in batch.filter(pc.is_in(batch["kind"], pa.array(["view", "fault"]))).to_pylist():
                life = found.lives.get(row["life"])
                if life is not None and row["index"] < life["end"]:
                    _add(found, life, row)
    for views in found.order.values():
        views.sort()
    return found


def _add(found: Known, life: Row, row: Row) -> None:
    names = row["members"] or []
    if row["kind"] == "fault":
        if ENDS_A_LIFE.search(row["reason"] or ""):
            found.crashed.update((life["group"], name) for name in names)
    elif row["view"] is not None:
        found.views.setdefault(row["view"], Installed(life["group"], row["view_number"] or 0, frozenset(names)))
        found.order[row["life"]].append((row["index"], row["view"]))


_LEAST: Final = ("first_index", "wrong_index", "first_us")
_MOST: Final = ("last_index", "last_us", "last_mono_us", "segment")
_FIRST: Final = ("profile", "host", "boot_id", "services", "damage", "damage_offset")


def merge_into(lives: dict[int, Row], row: Row) -> None:
    """Add a row of the manifest to the merged row of its life, which has two columns more: `end` and `whole`."""
    life = lives.setdefault(row["life"], dict(row) | {"kinds": set(), "rows": 0, "bytes": 0})
    for names, choose in ((_LEAST, min), (_MOST, max)):
        for name in names:
            values = [value for value in (life[name], row[name]) if value is not None]
            life[name] = choose(values, default=None)
    for name in _FIRST:
        life[name] = row[name] if life[name] is None else life[name]
    life["file"] = row["file"]
    life["kinds"].update(row["kinds"] or ())
    life["rows"] += row["rows"]
    life["bytes"] += row["bytes"]
    end = (life["last_index"] or 0) + 1 if life["last_index"] is not None else 0
    life["end"] = end if life["wrong_index"] is None else life["wrong_index"]
    life["whole"] = life["wrong_index"] is None and life["damage"] is None


class Unread:
    """Whether the journal of a life has whole frames that the table does not have."""

    def __init__(self, table: Table) -> None:
        self._states: Mapping[int, LifeState] = known_to(table)

    def __call__(self, life: int) -> bool:
        """Asks the disk.  A journal that was removed has nothing more."""
        state = self._states.get(life)
        if state is None or not state.segments:
            return False
        folder = Path(next(iter(state.segments.values())).file).parent
        try:
            return any(self._has_more(state, segment) for segment in find_segments([folder]))
        except (OSError, ValueError):
            return False

    @staticmethod
    def _has_more(state: LifeState, segment: Any) -> bool:
        known = state.segments.get(int(Path(segment.path).stem))
        if known is None:
            return True
        if segment.trouble is not None or segment.size <= known.size:
            return False
        return grown(segment, Reached(known.end, known.history)).end > known.end


def successors(order: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """For each view the views that a member went to from it."""
    found: dict[int, set[int]] = defaultdict(set)
    for views in order:
        for view, following in pairwise(views):
            found[view].add(following)
    return found
