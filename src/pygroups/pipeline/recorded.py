"""A history opened in Spark: a table that `ingest` wrote.

This process reads the manifest, the names and the members of the views: they are few, however many messages a history
has.  From them it computes how far each journal can be trusted, and which incarnations belong together.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pygroups.journal.schema import services_of_v1
from pygroups.pipeline.endings import open_lives
from pygroups.pipeline.findings import KNOWN, LATER_STATE
from pygroups.pipeline.history import History
from pygroups.pipeline.ingest import Table, layout
from pygroups.pipeline.ingest.table import damaged, read_batches, read_rows
from pygroups.pipeline.linked import linked_of
from pygroups.pipeline.merged import MANY_FILES, merge
from pygroups.pipeline.schemas import EVENTS, RUNS, VOTES
from pygroups.pipeline.store import literally
from pygroups.pipeline.tables import Recorded
from pygroups.pipeline.writers import writers_of

_LIVES: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("group", "profile", "host", "address")),
        *((name, pa.int64()) for name in ("life", "end", "linked")),
        ("whole", pa.bool_()),
        ("open", pa.bool_()),
        ("unknown", pa.list_(pa.string())),
        ("services", pa.list_(pa.string())),
    ]
)
_TOLD: Final = ["life", "index", "kind", "view", "reason", "members", "digest"]
ENDS_A_LIFE: Final = re.compile("kill|crash", re.IGNORECASE)

Life = dict[str, Any]
Row = dict[str, Any]


class NamesCollide(ValueError):
    """Two names have the same 64-bit key; the text is one sentence that names both."""


@dataclass(frozen=True)
class Facts:
    """A table as far as it is known before any query: its files, its manifest, its names and its incarnations.

    `path` and the files are paths of the machine that has the table.
    """

    path: str
    manifest: pa.Table
    names: pa.Table  # each key once
    lives: pa.Table
    kinds: frozenset[str]
    runs: list[str]
    events: list[str]
    votes: list[str]

    @property
    def files(self) -> list[str]:
        """All files that queries read."""
        return [*self.runs, *self.events, *self.votes]


def facts_of(table: Table) -> Facts:
    """Read the manifest, the names and the views of a table.

    Raises NamesCollide, and NotATable for a table that has lost files or in which one is damaged.
    """
    table.check()
    rows = table.manifest().to_pylist()
    lives = lives_of(rows, _told(table))
    kinds = {kind for row in rows for kind in row["kinds"] or ()}
    kinds |= {LATER_STATE} if any(life["later_state"] for life in lives) else set()
    return Facts(
        path=str(table.path),
        manifest=table.manifest(),
        names=distinct_names(table),
        lives=pa.Table.from_pylist(lives, _LIVES),
        kinds=frozenset(kinds),
        runs=table.runs_files,
        events=table.events_files,
        votes=table.votes_files,
    )


def open_table(session: SparkSession, table: Table, *, small: bool, room: Path | None = None) -> Recorded:
    """The history in a table on this machine; `opened` and `facts_of` in one call."""
    return opened(session, facts_of(table), small=small, room=room)


def opened(session: SparkSession, facts: Facts, *, small: bool, room: Path | None = None) -> Recorded:
    """The history in a table. With `small` each of its tables is one partition, so that nothing has to be exchanged;
    many files of a table on this machine are merged into one in the folder `room`, if one is given.
    """

    def gathered(frame: DataFrame) -> DataFrame:
        return frame.coalesce(1) if small else frame

    def local(rows: pa.Table) -> DataFrame:
        return gathered(session.createDataFrame(rows))

    def parquet(folder: str, files: list[str], schema: StructType) -> DataFrame:
        if not small or room is None or len(files) < MANY_FILES:
            return gathered(rows_in(session, facts.path, folder, files, schema))
        merge(files, layout.ROWS[folder], room / f"{folder}.parquet")
        return gathered(literally(session).schema(schema).parquet(str(room / f"{folder}.parquet")))

    ids = facts.names.filter(pc.equal(facts.names["kind"], "history"))
    lives = facts.lives.select(["profile", "services", "whole", "open"]).to_pylist()
    return Recorded(
        history=History(
            runs=parquet("runs", facts.runs, RUNS),
            events=parquet("events", facts.events, EVENTS),
            votes=parquet("votes", facts.votes, VOTES),
            names=local(facts.names),
            writers=local(writers_of(facts.manifest)),
        ),
        lives=local(facts.lives),
        histories=dict(zip(ids["key"].to_pylist(), ids["name"].to_pylist(), strict=True)),
        kinds=facts.kinds,
        stacks={life["profile"]: frozenset(life["services"]) for life in lives},
        whole=all(life["whole"] for life in lives),
        open=any(life["open"] for life in lives),
        gathered=gathered,
    )


def rows_in(session: SparkSession, table: str, folder: str, files: Sequence[str], schema: StructType) -> DataFrame:
    """The rows of some files of the table at a path, with the columns that stand in the names of their folders."""
    if not files:
        return session.createDataFrame([], schema)
    reader = literally(session).schema(schema).option("basePath", f"{table}/{folder}")
    return reader.parquet(*files)


def _told(table: Table) -> Iterator[Row]:
    """Of every view record, and of every mark of a fault, the columns of `_TOLD`; one batch at a time is in memory."""
    for file in table.events_files:
        for batch in read_batches(file, _TOLD):
            yield from batch.filter(pc.is_in(batch["kind"], pa.array(["view", "fault"]))).to_pylist()


@dataclass
class _Views:
    """The trusted views of a history: each view once, and who installed it."""

    of: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))  # index and view, by life
    installed: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    members: dict[int, list[str]] = field(default_factory=dict)
    crashed: set[tuple[str, str]] = field(default_factory=set)
    states: dict[int, int] = field(default_factory=dict)  # the index of the last view with a state, by life

    def add(self, row: Row, life: Life) -> None:
        names = row["members"] or []
        if row["kind"] == "fault":
            if ENDS_A_LIFE.search(row["reason"] or ""):
                self.crashed.update((life["group"], name) for name in names)
        elif row["view"] is not None:
            self.members.setdefault(row["view"], names)
            self.installed[row["view"]].add(row["life"])
            self.of[row["life"]].append((row["index"], row["view"]))
            if row["digest"] is not None:
                self.states[row["life"]] = max(row["index"], self.states.get(row["life"], -1))

    def later_state(self, life: int) -> bool:
        """Whether a view of this incarnation has a state, and the incarnation had a view before."""
        return life in self.states and min(self.of[life])[0] < self.states[life]


def lives_of(manifest: Sequence[Life], told: Iterable[Row]) -> list[Life]:
    """One row per incarnation: the end of the trusted part of its journal, whether it may go on behind that (`open`), a
    number for all incarnations that views link with it (`linked`), and the addresses of those without a journal that is
    whole and has ended (`unknown`), and whether a view behind its first one has a state (`later_state`).

    `manifest` are rows of the manifest, `told` has the columns `_TOLD` of every view record and mark of a fault.  A
    process without a record is no incarnation.
    """
    lives: dict[int, Life] = {}
    for row in manifest:
        named = {name: row[name] for name in ("group", "life", "address", "profile", "host")}
        life = lives.setdefault(
            row["life"], named | {"services": None, "end": 0, "hole": None, "whole": True, "kinds": set()}
        )
        life["profile"], life["host"] = life["profile"] or row["profile"], life["host"] or row["host"]
        life["services"] = life["services"] or row["services"]  # null in tables of an earlier ingest
        life["kinds"].update(row["kinds"] or ())
        if row["last_index"] is not None:
            life["end"] = max(life["end"], row["last_index"] + 1)
        if row["wrong_index"] is not None:
            life["hole"] = min(row["wrong_index"], row["wrong_index"] if life["hole"] is None else life["hole"])
        life["whole"] = life["whole"] and row["wrong_index"] is None and row["damage"] is None
    lives = {key: life for key, life in lives.items() if life["profile"] is not None and life["end"] > 0}
    for life in lives.values():
        hole = life.pop("hole")
        life["end"] = life["end"] if hole is None else hole
    _name_stacks(lives.values())
    _link(lives, told)
    return list(lives.values())


def _name_stacks(lives: Collection[Life]) -> None:
    """Give each incarnation the services that rules ask for.  If incarnations of one profile differ in them, the name
    of the profile tells them apart: rules go by the name."""
    stacks: dict[str, set[frozenset[str]]] = defaultdict(set)
    for life in lives:
        given = services_of_v1(life["profile"]) if life["services"] is None else life["services"]
        life["services"] = KNOWN.intersection(given)
        stacks[life["profile"]].add(life["services"])
    for life in lives:
        more = life["services"] - frozenset.intersection(*stacks[life["profile"]])
        life["profile"] += f" with {', '.join(sorted(more))}" if more else ""
        life["services"] = sorted(life["services"])


def _link(lives: dict[int, Life], told: Iterable[Row]) -> None:
    """Add `linked`, `open`, `unknown` and `later_state` to incarnations."""
    views = _Views()

    def trusted() -> Iterator[tuple[str, str, Sequence[str]]]:
        for row in told:
            life = lives.get(row["life"])
            if life is not None and row["index"] < life["end"]:
                views.add(row, life)
                if row["kind"] == "view":
                    yield life["group"], life["address"], row["members"] or ()

    linked = linked_of(trusted())
    in_order = {life: [view for _, view in sorted(of)] for life, of in views.of.items()}
    going_on = open_lives(lives, in_order, views.installed, views.members, views.crashed)
    for key, life in lives.items():
        life["open"] = life["whole"] and key in going_on
        life["later_state"] = views.later_state(key)
    known = {(life["group"], life["address"]) for life in lives.values() if life["whole"] and not life["open"]}
    unknown: dict[int, list[str]] = {}
    for node in linked.keys() - known:
        unknown.setdefault(linked[node], []).append(node[1])
    for number, life in enumerate(lives.values()):
        life.pop("kinds")
        life["linked"] = linked.get((life["group"], life["address"]), -1 - number)
        life["unknown"] = sorted(unknown.get(life["linked"], ()))


def distinct_names(table: Table) -> pa.Table:
    """Each key of a table with its name. Raises NamesCollide if a key has two, NotATable for a damaged file."""
    parts = [read_rows(file, layout.NAMES) for file in table.names_files]
    names = pa.concat_tables(parts) if parts else layout.NAMES.empty_table()
    key = ["group", "kind", "key"]
    told = [(name, how) for name in ("name", "number", "creator") for how in ("min", "max")]
    found = names.group_by(key).aggregate(told)
    for row in found.filter(pc.not_equal(found["name_min"], found["name_max"])).slice(0, 1).to_pylist():
        raise NamesCollide(
            f"the names {row['name_min']} and {row['name_max']} of group {row['group']} have the same 64-bit key: "
            "rename one of them, or audit their journals separately"
        )
    return found.select([*key, "name_min", "number_min", "creator_min"]).rename_columns(layout.NAMES.names)


@contextmanager
def damage_told(facts: Facts) -> Iterator[None]:
    """Raises NotATable where Spark fails because it cannot read a file of the table."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        text = str(error)
        if "FAILED_READ_FILE" not in text:
            raise
        named = [file for file in facts.files if file in text or file in unquote(text)]
        raise damaged(named[0] if named else f"a file of {facts.path}") from error
