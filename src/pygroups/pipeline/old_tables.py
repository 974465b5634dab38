"""Silver: the records in the form that rules ask for, and the tables that several rules share."""

from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pygroups.pipeline.keys import address, life_key, life_key_of, view_key

EVENT_KINDS: Final = (
    *("start", "gap", "undelivered", "stats", "purge", "state_get", "state_set", "leave", "stop"),
    *("fault", "heal", "quiet", "block", "unblock"),
)


_WITH_PROFILE: Final = ("journals", "views", "messages", "deliveries", "connections", "events", "runs", "irregular")


@dataclass(frozen=True)
class Tables:
    """What the rules read. Every table has `group` and `history`, those of one member also `life` and `address`.

    - journals: one row per life: how far it is trusted, when it reached quiet (`journals.py`)
    - views: one row per view installed, with the epoch it belongs to and the view that follows at this member
    - messages: one row per multicast sent
    - deliveries: one row per multicast run delivered at a member
    - connections: one row per unicast run sent or delivered, `kind` tells which
    - events: the other records that rules need
    - runs: one row per run that anybody sent or delivered (`runs.py`)
    - irregular: the deliveries and gaps that do not continue their sender's numbers (`runs.py`)
    - blocks: the order in a view, as digests of blocks, compared between its members (`order.py`)
    - linked: which lives belong together (`linked.py`)
    - suspicious: of "blocks", "places" (missing in an order), "irregular", "gaps", "views" (runs delivered in several),
      "bodies" (of runs that differ, or were not sent) those that have anything to look at closely; a rule leaves its
      exact step out of the plan where there is nothing
    """

    journals: DataFrame
    views: DataFrame
    messages: DataFrame
    deliveries: DataFrame
    connections: DataFrame
    events: DataFrame
    runs: DataFrame
    irregular: DataFrame
    blocks: DataFrame
    linked: DataFrame
    suspicious: frozenset[str] = frozenset()

    def of_profiles(self, profiles: frozenset[str]) -> "Tables":
        """Only what members of these profiles wrote (`blocks` holds the ordered profiles only)."""
        wanted = F.col("profile").isin(*sorted(profiles))
        return replace(self, **{name: getattr(self, name).where(wanted) for name in _WITH_PROFILE})


def trusted(records: DataFrame, journals: DataFrame) -> DataFrame:
    """The records before the end of their journal, with the keys of life and view and the writer's address."""
    ends = journals.select("life", "end")
    keyed = records.withColumns(
        {
            "life": life_key(),
            "view": view_key(),
            "address": address(),
            "day": F.to_date(F.timestamp_micros("time_us")),
        }
    )
    return keyed.join(F.broadcast(ends), "life").where("index < end").drop("end")


def views_of(trusted_records: DataFrame) -> DataFrame:
    """Views as their members installed them, each with its parent and its successor at this member.

    `epoch` counts the views that began with a given state: numbers of messages are followed within one epoch.
    """
    chosen = trusted_records.where("kind = 'view'").select(
        *("group", "day", "history", "profile", "life", "address", "index", "mono_us", "time_us", "view"),
        *("view_number", "view_creator", "members", "transitional", "subgroups", "digest"),
        *("previous_number", "previous_creator"),
        view_key("previous_number", "previous_creator").alias("previous"),
    )
    member = Window.partitionBy("life").orderBy("index")
    given = F.when(F.col("digest").isNotNull(), 1).otherwise(0)
    return chosen.withColumns(
        {
            "next": F.lead("view").over(member),
            "next_previous": F.lead("previous").over(member),
            "epoch": F.sum(given).over(member.rowsBetween(Window.unboundedPreceding, Window.currentRow)),
        }
    )


def messages_of(trusted_records: DataFrame) -> DataFrame:
    """One row per multicast run sent."""
    return trusted_records.where("kind = 'send'").select(
        *("group", "day", "history", "profile", "life", "address", "index", "view", "view_number", "view_creator"),
        *("origin", "origin_incarnation", "first", "count", "bytes", "checksum"),
        life_key("origin", "origin_incarnation").alias("sender"),
    )


def deliveries_of(trusted_records: DataFrame, views: DataFrame) -> DataFrame:
    """One row per multicast run delivered at a member; `run` is its key, `epoch` that of its view at this member."""
    epochs = views.select("life", "view", "epoch").dropDuplicates(["life", "view"])
    sender = life_key("origin", "origin_incarnation")
    chosen = trusted_records.where("kind = 'deliver'").select(
        *("group", "day", "history", "profile", "life", "address", "index", "view", "view_number", "view_creator"),
        *("origin", "origin_incarnation", "first", "count", "bytes", "checksum", "position", "seq"),
        sender.alias("sender"),
        F.xxhash64(sender, "first").alias("run"),
        life_key_of(F.col("stream")).alias("stream"),
    )
    return chosen.join(F.broadcast(epochs), ["life", "view"], "left").withColumn(
        "epoch", F.coalesce("epoch", F.lit(0).cast("bigint"))
    )


def connections_of(trusted_records: DataFrame) -> DataFrame:
    """One row per unicast run sent or delivered; `peer` is the receiver at both ends."""
    return trusted_records.where("kind in ('unicast_send', 'unicast_deliver')").select(
        *("group", "day", "history", "profile", "life", "address", "index", "kind"),
        *("origin", "origin_incarnation", "first", "count", "bytes", "checksum", "peer", "connection"),
        life_key("origin", "origin_incarnation").alias("sender"),
        life_key_of(F.col("peer")).alias("receiver"),
    )


def events_of(trusted_records: DataFrame) -> DataFrame:
    """The other records that rules need, with all their columns."""
    return trusted_records.where(F.col("kind").isin(*EVENT_KINDS)).withColumn(
        "sender", life_key("origin", "origin_incarnation")
    )
