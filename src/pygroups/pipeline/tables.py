"""The input of rules: a history as it was ingested, and the tables that rules share."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.history import History
from pygroups.pipeline.store import Store

Gathered = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Recorded:
    """A history as it was ingested, and the facts about it that need no query.

    `lives` has one row per incarnation, from the manifest: group, profile, services, host, address, life, end, whole,
    open, linked, unknown.  `kinds` are the kinds of record that occur (and LATER_STATE), `stacks` the services of each
    profile; `whole` is False if a journal ends early, `open` is True if one may go on; `histories` are the names of
    history ids by key.
    `names` in `history` has one row per key.
    """

    history: History
    lives: DataFrame
    kinds: frozenset[str]
    stacks: Mapping[str, frozenset[str]]
    histories: Mapping[int, str]
    whole: bool
    open: bool
    gathered: Gathered


@dataclass(frozen=True)
class Tables:
    """The tables that rules read: trusted records only, with `group`, `profile` and `history` in each table.

    Incarnations, views, histories and senders are 64-bit keys (`keys.py`).

    - lives: one row per incarnation: address, how far it is trusted, when it reached quiet (`lives.py`)
    - views: one row per view installed, with its epoch and the views before and after it at this member (`lives.py`)
    - events, votes, sends, deliveries, unicasts: records as ingested, with the `profile`, `address` and `quiet_end` of
      their incarnation; `unicasts` are sent or delivered, `kind` distinguishes them
    - streams, blocks: deliveries, of each sender in a view and block by block, as digests (`block_scan.py`)
    - all_runs: the records about each run, added up from all sends and a sample of the deliveries (`runs.py`)
    - runs: those of `all_runs` that digests do not clear (`stretches.py`), and all of senders whose journal ends early

    `stacks` are the services of each profile: rules ask for them, and never for a name (`giving`).
    `once` makes a table of all of these, not only of some groups, and keeps it: exact steps share what they both need.
    `kept` gives those rows of such a table that belong to these groups (`here`).

    In a small audit a table is one partition, so that nothing has to be exchanged. After a union or an inner join Spark
    no longer knows that the result is one partition: such results go through `gathered`.
    """

    lives: DataFrame
    views: DataFrame
    events: DataFrame
    votes: DataFrame
    sends: DataFrame
    deliveries: DataFrame
    unicasts: DataFrame
    streams: DataFrame
    blocks: DataFrame
    runs: DataFrame
    all_runs: DataFrame
    gathered: Gathered
    stacks: Mapping[str, frozenset[str]]
    once: "Once"
    here: Column | None = None

    def giving(self, services: frozenset[str]) -> str:
        """SQL text: whether the member of a row has a stack with these services, by the column `profile`."""
        escaped = [name.replace("\\", "\\\\").replace("'", "\\'") for name in self.profiles(services)]
        return "profile in ('" + "', '".join(escaped) + "')" if escaped else "false"

    def profiles(self, services: frozenset[str]) -> list[str]:
        """The profiles that give these services."""
        return sorted(name for name, given in self.stacks.items() if services <= given)

    def only(self, groups: Collection[str], profiles: Collection[str]) -> "Tables":
        """The same tables with these groups only, and with the records of members with these profiles only."""
        here = F.col("group").isin(*sorted(groups)) & F.col("profile").isin(*sorted(profiles))
        others = ("gathered", "stacks", "once", "here")
        frames = {name: frame for name, frame in vars(self).items() if name not in others}
        return replace(self, here=here, **{name: frame.where(here) for name, frame in frames.items()})

    def kept(self, name: str, make: Callable[["Tables"], DataFrame]) -> DataFrame:
        """The rows of `once` in these groups; the table has the columns `group` and `profile`."""
        frame = self.once(name, make)
        return frame if self.here is None else frame.where(self.here)


class Once:
    """Makes a table once: called with a name below the store and a function of all tables, it keeps the result."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, DataFrame] = {}
        self.tables: Tables | None = None

    def __call__(self, name: str, make: Callable[[Tables], DataFrame]) -> DataFrame:
        """Raises ValueError before there are tables."""
        if self.tables is None:
            raise ValueError(f"{name} cannot be made before there are tables")
        if name not in self._kept:
            self._kept[name] = self._store.keep(name, make(self.tables))
        return self._kept[name]
