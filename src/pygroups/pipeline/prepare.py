"""Makes the tables that rules share from a history as it was ingested."""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from pygroups.pipeline.block_scan import blocks_of, purges_of, streams_of
from pygroups.pipeline.findings import PromiseRule, columns_of
from pygroups.pipeline.lives import lives_of, views_of
from pygroups.pipeline.runs import runs_of, sample_of
from pygroups.pipeline.store import Store
from pygroups.pipeline.stretches import doubtful, within
from pygroups.pipeline.tables import Once, Recorded, Tables


def prepare(recorded: Recorded, rules: Sequence[PromiseRule], store: Store) -> Tables:
    """The shared tables, those that several queries read computed once."""
    lives = store.keep("silver/lives", lives_of(recorded, columns_of(rules, "lives")))
    views = store.keep("silver/views", views_of(recorded, lives, columns_of(rules, "views")))
    source = recorded.history
    events, votes, records = (
        recorded.gathered(trusted(frame, lives)) for frame in (source.events, source.votes, source.runs)
    )
    events = store.keep("silver/events", events)
    said, deliveries = records.where("kind <= 3"), records.where("kind = 1")
    purges = store.keep("silver/purges", purges_of(votes)) if "purge" in recorded.kinds else None
    of_rules = columns_of(rules, "streams")
    streams = streams_of(said, lives, purges, of_rules, going_on=recorded.open)
    streams = store.keep("silver/streams", streams)
    blocks = store.keep("silver/blocks", blocks_of(deliveries, lives, streams, columns_of(rules, "blocks")))
    sample = sample_of(said, blocks, lives, whole=recorded.whole)
    asked = any(one.table == "runs" for rule in rules for one in rule.counts)
    once = Once(store)
    once.tables = Tables(
        lives=lives,
        views=views,
        events=events,
        votes=votes,
        sends=records.where("kind = 0"),
        deliveries=deliveries,
        unicasts=records.where("kind in (2, 3)"),
        streams=streams,
        blocks=blocks,
        runs=runs_in_doubt(sample, lives, store) if asked else runs_of(sample, lives),
        all_runs=runs_of(sample, lives),
        gathered=recorded.gathered,
        stacks=recorded.stacks,
        once=once,
    )
    return once.tables


def runs_in_doubt(sample: DataFrame, lives: DataFrame, store: Store) -> DataFrame:
    """The runs that digests do not clear. In a small audit all runs: there a further query costs more than it saves."""
    if store.small:
        return runs_of(sample, lives)
    return runs_of(within(sample, store.keep("silver/doubtful", doubtful(sample, lives))), lives)


def trusted(frame: DataFrame, lives: DataFrame) -> DataFrame:
    """The records before the first damage of their journal, with the columns of their incarnation that rules use."""
    known = lives.selectExpr(*("life", "profile", "address", "end", "whole", "quiet_end", "quiet_index", "ordered"))
    return frame.join(known, "life").where("index < end")
