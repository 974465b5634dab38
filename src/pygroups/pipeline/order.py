"""The order of deliveries in a view with unlike block digests: runs at another place, and missing runs.

Members with equal digests all through a view form a class, and one of them stands for it. The reference is the class
that the fewest differ from. Only a class that deviates from it is compared with others, and only in blocks that differ,
or before which the classes had different sets. The comparison is linear in the runs of those blocks.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.block_scan import BLOCK, digest_of

if TYPE_CHECKING:
    from pygroups.pipeline.tables import Tables

RANK: Final = "nullif(array_position(members, address), 0)"
LAST: Final = "9223372036854775807L"  # the rank of a process that is not among the members
_RUN: Final = ("sender", "first")
_PAIR: Final = ("view", "mine", "their")


def compared(tables: "Tables") -> DataFrame:
    """The broken places in the order of a view: one row per accused member and run, for total-order and
    gap-free-prefix.

    A member that delivered a run of the view without a position is left out.

    Columns: group, history, view; `what`: "crossed" (the member delivered the run behind one that comes after it
    elsewhere), "lacking" (the member lacks it, and another has it before a message that both delivered) or "extra" (the
    member has it before such a message, and another lacks it); `member`, `other` (it proves this); sender, first;
    `position` at the member, or at the other where it is lacking; `theirs`, the position at the other.
    """
    members, classes = tables.once("silver/order_members", _members), tables.once("silver/order_classes", _classes)
    found = _accused(_violations(_doubtful(tables.once("silver/order_pairs", _pairs)), classes))
    named = members.selectExpr("view", "class as accused", "life as member")
    return found.join(named, ["view", "accused"]).drop("accused")


def _slots(tables: "Tables") -> DataFrame:
    """The slots of the views with a difference, for all members that have a position for each delivery."""
    view = "over (partition by view)"
    rows = tables.blocks.where("ordered").selectExpr(
        *("group", "history", "view", "life", "block", "slot", "digest", "messages", "differs"),
        f"bool_or(differs) {view} as suspect",
        "bool_or(block is null) over (partition by view, life) as unplaced",
    )
    return rows.where("suspect and not unplaced").drop("suspect", "unplaced")


def _members(tables: "Tables") -> DataFrame:
    """The members of the views in `slots`, with their class and their rank. The coordinator has the lowest rank."""
    slots = _slots(tables)
    ranks = tables.views.groupBy("view", "life").agg(F.min(F.expr(RANK)).alias("rank"))
    sums = slots.groupBy("group", "view", "life").agg(
        F.max("history").alias("history"),
        F.sum("messages").alias("messages"),
        *(F.expr(text).alias(name) for name, text in digest_of("xxhash64(block, slot, digest)").items()),
    )
    known = sums.join(ranks, ["view", "life"], "left")
    return known.selectExpr(
        *("group", "history", "view", "life", "messages"),
        "xxhash64(bits, low_sum, high_sum) as class",
        f"coalesce(rank, {LAST}) as rank",
    )


def _classes(tables: "Tables") -> DataFrame:
    """The classes of these views: `life` is one of the class, `size` its number of members, `rank` their lowest rank.

    `is_reference` is true for one class of a view: the one that differs from most others in the fewest slots, of those
    the longest, then the largest; `deviates` is true for the classes that differ from the reference, or from most
    classes in a slot where the reference has no run.
    """
    slots, members = _slots(tables), tables.once("silver/order_members", _members)
    classes = members.groupBy("group", "history", "view", "class").agg(
        F.count(F.lit(1)).alias("size"),
        F.max("messages").alias("messages"),
        F.min_by("life", "rank").alias("life"),
        F.min("rank").alias("rank"),
    )
    digests = slots.select("view", "life", "block", "slot", "digest").join(classes, ["view", "life"])
    vote = "over (partition by view, block, slot, digest)"
    votes = digests.selectExpr("*", f"sum(size) {vote} as votes", f"min(rank) {vote} as first_rank")
    most = votes.selectExpr(
        "*", "max_by(digest, struct(votes, -first_rank)) over (partition by view, block, slot) as usual"
    )
    odd = most.groupBy("view", "class").agg(F.expr("count_if(digest <> usual)").alias("odd"))
    best = "max(struct(-odd, messages, size, -rank, class)) over (partition by view)"
    ranked = classes.join(odd, ["view", "class"]).selectExpr("*", f"{best}.class = class as is_reference")
    expected = most.join(ranked.select("view", "class", "is_reference"), ["view", "class"]).selectExpr(
        *("view", "class", "digest"),
        "coalesce(max(if(is_reference, digest, null)) over (partition by view, block, slot), usual) as expected",
    )
    deviating = expected.groupBy("view", "class").agg(F.expr("bool_or(digest <> expected)").alias("deviates"))
    return ranked.join(deviating, ["view", "class"]).selectExpr(
        *ranked.columns, "deviates and not is_reference as deviates"
    )


def _rows(tables: "Tables") -> DataFrame:
    """The deliveries of each class in the wanted blocks, without repetitions of a run: the first one may be in another
    block."""
    wanted = tables.once("silver/order_blocks", _wanted)
    again = tables.once("silver/order_repeated", _repeated)
    rows = _placed(tables).join(wanted, ["view", "life", "block"])
    return rows.join(again, ["view", "life", *_RUN, "position"], "left_anti")


def _repeated(tables: "Tables") -> DataFrame:
    """The deliveries of each class that a delivery of the same run precedes in the view: they have a number below the
    expected one, as late runs have."""
    classes = tables.once("silver/order_classes", _classes).select("view", "life")
    low = tables.deliveries.where("first < expected").join(classes, ["view", "life"])
    low = low.select("view", "life", *_RUN, "position")
    before = tables.deliveries.selectExpr("view", "life", *_RUN, "position as earlier")
    met = low.join(before, ["view", "life", *_RUN]).where("earlier < position")
    return met.select("view", "life", *_RUN, "position").distinct()


def _placed(tables: "Tables") -> DataFrame:
    return tables.deliveries.selectExpr("view", "life", "sender", "first", "position", f"position div {BLOCK} as block")


def _wanted(tables: "Tables") -> DataFrame:
    """The wanted blocks of each class: blocks that differ, and blocks behind different sets of deliveries."""
    slots = _slots(tables)
    mine = tables.once("silver/order_classes", _classes).selectExpr("view", "life", "class as mine")
    ends = slots.groupBy("view", "life").agg(F.max("block").alias("end"))
    differ = slots.groupBy("view", "block").agg(F.expr("bool_or(differs)").alias("differs"))
    # Sets count up to the last block that is equal. Where there is none, this is empty, and Spark reads nothing for it.
    equal = differ.where("not differs").groupBy("view").agg(F.max("block").alias("last"))
    before_equal = _placed(tables).join(mine.join(equal, "view"), ["view", "life"]).where("block < last")
    had = before_equal.groupBy("view", "life", "block").agg(
        *(F.expr(text).alias(name) for name, text in digest_of("xxhash64(sender, first)").items())
    )
    grid = mine.join(ends, ["view", "life"]).join(differ, "view").where("block <= end")
    filled = grid.join(had, ["view", "life", "block"], "left").na.fill(0)
    before = "over (partition by view, mine order by block rows between unbounded preceding and 1 preceding)"
    sets = filled.selectExpr(
        *("view", "life", "mine", "block", "differs"),
        f"xxhash64(bit_xor(bits) {before}, sum(low_sum) {before}, sum(high_sum) {before}) as had",
    )
    block = "over (partition by view, block)"
    wanted = sets.selectExpr(
        *("view", "life", "mine", "block"),
        f"bool_or(differs) {block} or min(had) {block} <> max(had) {block} as wanted",
    )
    return wanted.where("wanted").drop("wanted")


def _pairs(tables: "Tables") -> DataFrame:
    """The places of each run at two classes, of which one deviates: one row per pair of classes and run.

    `at_one` and `at_two` are its positions, null where the class lacks it.
    """
    classes = tables.once("silver/order_classes", _classes)
    one = classes.selectExpr("view", "class as one", "deviates as one_deviates")
    two = classes.selectExpr("view", "class as two", "deviates as two_deviates")
    pairs = one.join(two, "view").where("one < two and (one_deviates or two_deviates)")
    sides = pairs.selectExpr(
        "view", "one", "two", "inline(array(struct(one as mine, true as is_one), struct(two as mine, false as is_one)))"
    )
    rows = _rows(tables).join(sides, ["view", "mine"]).groupBy("view", "one", "two", *_RUN)
    return rows.agg(
        F.expr("min(if(is_one, position, null))").alias("at_one"),
        F.expr("min(if(is_one, null, position))").alias("at_two"),
    )


def _doubtful(pairs: DataFrame) -> DataFrame:
    """The runs of a class that may be at odds with another class of its pair.

    `theirs` is the position at the other (null if it lacks the run), `known` the last position here of anything that
    both delivered, `passed` the greatest position there of anything delivered here before.
    """
    moves = _moves_of(pairs)
    both = pairs.selectExpr(
        *("view", "sender", "first"),
        "inline(array(struct(one as mine, two as their, at_one as position, at_two as theirs), "
        "struct(two as mine, one as their, at_two as position, at_one as theirs)))",
    )
    here = both.where("position is not null").selectExpr("*", "theirs - position as moved")
    kept = here.join(_crossing(moves), [*_PAIR, "moved"], "left")
    ends = moves.groupBy(*_PAIR).agg(F.max("high").alias("known"))
    doubtful = kept.join(ends, list(_PAIR)).where("crosses or (moved is null and position < known)")
    before = "over (partition by view, mine, their order by position rows between unbounded preceding and 1 preceding)"
    return doubtful.selectExpr(
        *(*_PAIR, *_RUN, "position", "theirs", "known"),
        f"max(theirs) {before} as passed",
    )


def _moves_of(pairs: DataFrame) -> DataFrame:
    """The distances of runs between the two classes of a pair, and the range of positions here, in both directions."""
    moves = pairs.where("at_one is not null and at_two is not null").selectExpr("*", "at_two - at_one as by")
    moves = moves.groupBy("view", "one", "two", "by").agg(F.min("at_one").alias("low"), F.max("at_one").alias("high"))
    there = "struct(one as mine, two as their, by as moved, low, high)"
    back = "struct(two as mine, one as their, -by as moved, low + by as low, high + by as high)"
    return moves.selectExpr("view", f"inline(array({there}, {back}))")


def _crossing(moves: DataFrame) -> DataFrame:
    """The moves whose runs may cross runs that moved by another distance.

    Runs that moved by one distance are in order among themselves. If one run is lacking, all the others moved by the
    same distance, and none has to be sorted. Two runs cross if the first one here moved further than the distance
    between the two.
    """
    further = (
        "over (partition by view, mine, their order by moved desc rows between unbounded preceding and 1 preceding)"
    )
    nearer = "over (partition by view, mine, their order by moved rows between unbounded preceding and 1 preceding)"
    met = moves.selectExpr(
        *(*_PAIR, "moved"),
        f"min(low) {further} < high and max(high + moved) {further} > low + moved as overtaken",
        f"max(high) {nearer} > low and min(low + moved) {nearer} < high + moved as overtakes",
    )
    return met.where("overtaken or overtakes").selectExpr(*_PAIR, "moved", "true as crosses")


def _violations(pairs: DataFrame, classes: DataFrame) -> DataFrame:
    """The rows in the wrong order, each with the accused class.

    Of two classes it is the one that is at odds with the reference too, else the smaller one, else the one that is
    further from the coordinator.
    """
    crossed = "theirs < passed"
    wrong = pairs.where(f"{crossed} or (theirs is null and position < known)")
    columns = ("life", "size", "rank", "is_reference")
    one = classes.selectExpr("group", "history", "view", "class as mine", *(f"{name} as my_{name}" for name in columns))
    two = classes.selectExpr("view", "class as their", *(f"{name} as their_{name}" for name in columns))
    told = wrong.join(one, ["view", "mine"]).join(two, ["view", "their"])
    told = told.selectExpr("*", f"if({crossed}, 'crossed', 'lacking') as what")
    at_odds = "collect_set(case when their_is_reference then mine when my_is_reference then their end)"
    known = told.selectExpr("*", f"{at_odds} over (partition by view, what) as guilty")
    mine = "struct(array_contains(guilty, mine), -my_size, my_rank)"
    their = "struct(array_contains(guilty, their), -their_size, their_rank)"
    return known.selectExpr("*", f"{mine} > {their} as my_fault")


def _accused(violations: DataFrame) -> DataFrame:
    """One row per accused class and run."""
    rows = violations.where("what = 'lacking' or my_fault").selectExpr(
        *("group", "history", "view", *_RUN, "position", "theirs"),
        "if(what = 'lacking' and my_fault, 'extra', what) as what",
        "if(my_fault, mine, their) as accused",
        "if(my_fault, their_life, my_life) as other",
        "struct(if(my_fault, not their_is_reference, not my_is_reference), if(my_fault, their_rank, my_rank)) as far",
    )
    return (
        rows.groupBy("group", "history", "view", "what", "accused", *_RUN)
        .agg(F.min_by(F.struct("other", "position", "theirs"), "far").alias("proof"))
        .selectExpr("group", "history", "view", "what", "accused", *_RUN, "proof.*")
    )
