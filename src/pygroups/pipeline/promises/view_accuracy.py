"""view-accuracy: before the first fault a view loses only who began to leave, and only views born apart merge.

At quiet there is one view, with exactly those that reach quiet. Lives that views link with no mark are not judged.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pygroups.journal.schema import MARKS
from pygroups.pipeline.keys import life_key_of
from pygroups.pipeline.old_findings import GROUPS, Rule, findings, view_name, words
from pygroups.pipeline.old_tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one view at one member."""
    calm = _calm(tables)
    return _lost(tables, calm).unionAll(_merged(calm)).unionAll(_at_quiet(tables))


def _calm(tables: Tables) -> DataFrame:
    """The views before the first fault.

    Calm ends for all members that views link: a member that starts after a fault has no mark of it, and yet loses whom
    that fault made look dead. So a view is calm if its member has no mark before it, and its number is below those of
    all views that a linked member installed after a mark. No clock is compared.
    """
    first = F.min(F.when(F.col("kind") == "fault", F.col("index")))
    marks = tables.events.where(F.col("kind").isin(*MARKS)).groupBy("life").agg(first.alias("fault"))
    marks = marks.withColumn("marked", F.lit(True))
    views = tables.views.join(F.broadcast(tables.linked.select("life", "linked")), "life")
    views = views.join(F.broadcast(marks), "life", "left")
    together = Window.partitionBy("linked")
    disturbed = F.min(F.expr("if(index > fault, view_number, null)")).over(together)
    known = views.withColumns({"disturbed": disturbed, "marked": F.max("marked").over(together)}).where("marked")
    return known.where("(fault is null or index < fault) and (disturbed is null or view_number < disturbed)")


def _lost(tables: Tables, calm: DataFrame) -> DataFrame:
    """Members of the view before that are not in this one, against who began to leave."""
    member = Window.partitionBy("life").orderBy("index")
    rows = calm.withColumn("lost", F.array_except(F.lag("members").over(member), "members"))
    gone = rows.select("group", "life", "index", F.explode("lost").alias("lost"))
    gone = gone.withColumn("lost_life", life_key_of(F.col("lost")))
    lives = tables.journals.select(F.col("life").alias("lost_life"), "leave_index", "whole")
    known = gone.join(F.broadcast(lives), "lost_life", "left").where("leave_index is null")
    silent = known.groupBy("life", "index").agg(
        F.min(F.when(F.col("whole"), F.col("lost"))).alias("other"), F.count(F.lit(1)).alias("stayed")
    )
    rows = rows.join(silent, ["life", "index"], "left").join(F.broadcast(_incomplete(tables)), "linked", "left")
    unknown = F.expr("stayed is not null and (other is null or incomplete is not null)")
    return findings(
        rows,
        judged=F.when(unknown, 0).otherwise(1),
        skipped=F.when(unknown, 1),
        reason="a journal that may hold a mark or a leave is missing or ends early",
        broken=~unknown & F.col("other").isNotNull(),
        view=view_name(),
        member=F.col("address"),
        other=F.col("other"),
        detail=words("lost ", F.col("other"), ", which had not begun to leave, before any fault"),
    )


def _incomplete(tables: Tables) -> DataFrame:
    """Sets of linked lives of which a journal is missing or ends early: a fault may be marked there alone."""
    whole = tables.journals.where("whole").select("life")
    hidden = tables.linked.join(F.broadcast(whole), "life", "left_anti")
    return hidden.select("linked").distinct().withColumn("incomplete", F.lit(True))


def _merged(calm: DataFrame) -> DataFrame:
    """Merged views before any fault: nobody of another subgroup may have been in an earlier view of this member."""
    own = F.expr("flatten(filter(subgroups, members -> array_contains(members, address)))")
    merges = calm.where("size(subgroups) > 0").withColumn("outside", F.array_except("members", own))
    earlier = calm.select("life", F.col("index").alias("before"), F.col("members").alias("known"))
    met = merges.join(earlier, "life").where("before < index and arrays_overlap(known, outside)")
    return findings(
        met.dropDuplicates(["life", "index"]),
        broken=F.lit(True),
        view=view_name(),
        member=F.col("address"),
        detail=words("merged views that had been one before, before any fault"),
    )


def _at_quiet(tables: Tables) -> DataFrame:
    """The view in force at the mark, against all that reached quiet among those linked with it by views."""
    quiet = tables.journals.where("marked and quiet_index is not null").select("group", "life", "address", "quiet_view")
    linked = tables.linked.select("life", "linked")
    quiet = quiet.join(F.broadcast(linked), "life", "left").withColumn("linked", F.coalesce("linked", "life"))
    everybody = quiet.groupBy("linked").agg(
        F.array_sort(F.collect_set("address")).alias("settled"),
        F.expr("min(quiet_view) <> max(quiet_view)").alias("apart"),
    )
    held = tables.views.select(
        "life", F.col("view").alias("quiet_view"), "view_number", "view_creator", "members", "history"
    )
    known = quiet.join(everybody, "linked").join(F.broadcast(held), ["life", "quiet_view"], "left")
    rows = known.join(_without_journal(tables, known), "life", "left")
    hidden = F.expr("hidden is not null and not apart and size(array_except(settled, members)) = 0")
    as_one = F.expr("array_sort(members) = settled and not apart")
    return findings(
        rows,
        judged=F.when(hidden, 0).otherwise(1),
        skipped=F.when(hidden, 1),
        reason="the journal of a member of the last view is missing or ends early",
        broken=~hidden & F.coalesce(~as_one, F.lit(True)),
        view=view_name(),
        member=F.col("address"),
        detail=words(
            *("at quiet in a view of ", _list("members"), "; quiet was reached by ", _list("settled")),
            F.when(F.col("apart"), ", in several views").otherwise(""),
        ),
    )


def _without_journal(tables: Tables, at_quiet: DataFrame) -> DataFrame:
    """Lives whose last view names a member that may have reached quiet without our knowing."""
    unsettled = at_quiet.select("group", "life", F.explode(F.array_except("members", "settled")).alias("named"))
    lives = tables.journals.where("whole").select(F.col("life").alias("named_life"))
    named = unsettled.withColumn("named_life", life_key_of(F.col("named")))
    return named.join(F.broadcast(lives), "named_life", "left_anti").groupBy("life").agg(F.min("named").alias("hidden"))


def _list(name: str) -> Column:
    return F.concat_ws(", ", name)


RULE = Rule(
    "view-accuracy",
    GROUPS,
    "views",
    "the journals have no marks of faults and quiet",
    judge,
    frozenset({"quiet", "fault", "heal"}),
)
