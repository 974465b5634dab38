"""From rules to verdicts: one query counts for all rules, and another query finds the violations of the rules with
suspects."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.journal.schema import VIOLATION_COLUMNS
from pygroups.pipeline.findings import GROUPS, NAMED, PLACED, Count, PromiseRule
from pygroups.pipeline.tables import Tables
from pygroups.pipeline.verdict import VIOLATIONS_SHOWN, Verdict, Violation, skip_reasons

BEHIND_DAMAGE: Final = "a journal has a hole or damage before these facts"
_LOST: Final = {"messages": "lost_messages", "views": "lost_views", "unicasts": "lost_unicasts"}
_SHOWN_FIRST: Final = "partition by promise, `group`, history order by view, position, first, member, other, origin"


@dataclass
class Tally:
    """The counts of one rule, group and history."""

    judged: int = 0
    broken: int = 0
    suspects: int = 0
    skipped: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    violations: list[Violation] = field(default_factory=list)


@dataclass
class Counted:
    """The result of the one query over the shared tables.

    `tallies` by promise, group and history (a key); `stacks` are the services of each profile, `profiles` and
    `lost` facts (by unit) those of each group.
    """

    tallies: dict[tuple[str, str, int | None], Tally]
    stacks: Mapping[str, frozenset[str]]
    profiles: dict[str, frozenset[str]]
    lost: dict[str, dict[str, int]]

    def suspects(self) -> dict[str, set[str]]:
        """The groups in which a promise may be broken, by promise."""
        found: dict[str, set[str]] = defaultdict(set)
        for (promise, group, _), tally in self.tallies.items():
            if tally.suspects:
                found[promise].add(group)
        return found


def count(tables: Tables, rules: Sequence[PromiseRule]) -> Counted:
    """The query: per table one aggregation by group, profile and history, all of them in one union.

    Each row has its sums as one array. Only this function knows which number belongs to which rule.
    """
    by_table: dict[Any, list[tuple[PromiseRule, Count]]] = defaultdict(list)
    for rule in rules:
        for one in rule.counts:
            by_table[one.table].append((rule, one))
    sources = list(by_table.items())
    parts = [_lost_facts(tables)]
    parts += [_sums(at, _table(tables, source), wanted) for at, (source, wanted) in enumerate(sources)]
    counted = Counted(defaultdict(Tally), tables.stacks, {}, {})
    profiles: dict[str, set[str]] = defaultdict(set)
    for row in reduce(DataFrame.unionAll, parts).collect():
        at, group, profile, sums = row["at"], row["group"], row["profile"], iter(row["sums"])
        if at < 0:
            profiles[group].add(profile)
            lost = counted.lost.setdefault(group, dict.fromkeys(_LOST, 0))
            for unit, number in zip(_LOST, sums, strict=True):
                lost[unit] += number
            continue
        for rule, one in sources[at][1]:
            makes_it = rule.services <= tables.stacks[profile]
            _add(counted.tallies[rule.promise, group, row["history"]], one, sums, makes_it=makes_it)
    counted.profiles = {group: frozenset(names) for group, names in profiles.items()}
    counted.tallies = {key: tally for key, tally in counted.tallies.items() if tally != Tally()}
    return counted


def _table(tables: Tables, source: Any) -> DataFrame:
    frame: DataFrame = getattr(tables, source) if isinstance(source, str) else source(tables)
    return frame


def _sums(at: int, frame: DataFrame, wanted: Sequence[tuple[PromiseRule, Count]]) -> DataFrame:
    """The sums of one table, in the order in which `_add` takes them."""
    texts = [text for _, one in wanted for text in (one.judged, *one.skipped.values(), f"if({one.suspect}, 1, 0)")]
    sums = ", ".join(f"coalesce(sum(cast({text} as bigint)), 0L)" for text in texts)
    grouped = frame.groupBy("group", "profile", "history").agg(F.expr(f"array({sums})").alias("sums"))
    return grouped.select(F.lit(at).alias("at"), "group", "profile", "history", "sums")


def _add(tally: Tally, one: Count, sums: "Iterable[int]", *, makes_it: bool) -> None:
    judged, *skipped, suspects = (next(iter(sums)) for _ in range(len(one.skipped) + 2))
    if not makes_it:
        return
    tally.judged += judged
    tally.suspects += suspects
    for reason, number in zip(one.skipped, skipped, strict=True):
        if number:
            tally.skipped[reason] += number


def _lost_facts(tables: Tables) -> DataFrame:
    sums = ", ".join(f"sum({name})" for name in _LOST.values())
    lost = tables.lives.groupBy("group", "profile").agg(F.expr(f"array({sums})").alias("sums"))
    return lost.select(F.lit(-1).alias("at"), "group", "profile", F.lit(None).cast("bigint").alias("history"), "sums")


def find(
    tables: Tables,
    rules: Sequence[PromiseRule],
    suspects: Mapping[str, set[str]],
    names: DataFrame,
    wanted: Callable[[str], Column] = lambda promise: F.lit(True),
) -> DataFrame | None:
    """The violations: the exact steps of the rules with suspects, in the groups that have them; None without any.

    `wanted`: for a promise, a condition on its findings with their keys (`findings`).  Columns as in
    `VIOLATION_COLUMNS`, and `history`, a key.
    """
    found = [
        rule.exact(tables.only(suspects[rule.promise], tables.profiles(rule.services)))
        .where(wanted(rule.promise))
        .select(F.lit(rule.promise).alias("promise"), "*")
        for rule in rules
        if rule.promise in suspects
    ]
    return named(reduce(DataFrame.unionAll, found), names) if found else None


def none_found(names: DataFrame) -> DataFrame:
    """No violation, in the form of `find`."""
    text = [f"cast(null as {ddl}) as `{name}`" for name, ddl in VIOLATION_COLUMNS.items()]
    return names.where(F.lit(False)).selectExpr(*text, "cast(null as bigint) as history")


def named(found: DataFrame, names: DataFrame) -> DataFrame:
    """Findings with the names of incarnations and views in place of their keys, in the sentence too."""
    for column in NAMED:
        kind = "view" if column in ("view", "also") else "life"
        here = names.where(F.col("kind") == kind).select(
            F.col("key").alias(column), F.col("name").alias(f"{column}_name")
        )
        found = found.join(here, column, "left")
    sentence = "detail"
    for column in NAMED:
        sentence = f"replace({sentence}, '{{{column}}}', coalesce({column}_name, '?'))"
    return found.selectExpr(
        *("promise", "`group`", "history"),
        *(f"{column}_name as {column}" for column in NAMED if column != "also"),
        *PLACED,
        f"{sentence} as detail",
    )


def witnesses(counted: Counted, violations: DataFrame) -> None:
    """Add the number of violations, and the first violations, to the tallies."""
    first = violations.selectExpr(
        "*",
        f"row_number() over ({_SHOWN_FIRST}) as rank",
        "count(*) over (partition by promise, `group`, history) as broken",
    )
    for row in first.where(F.col("rank") <= VIOLATIONS_SHOWN).orderBy("promise", "group", "history", "rank").collect():
        tally = counted.tallies.setdefault((row["promise"], row["group"], row["history"]), Tally())
        tally.broken = row["broken"]
        tally.violations.append(Violation(**{name: row[name] for name in VIOLATION_COLUMNS}))


def verdicts_of(counted: Counted, rules: Sequence[PromiseRule], histories: Mapping[int, str]) -> list[Verdict]:
    """A verdict for every rule, group and history, in the order of the rules. `histories` are names by key."""
    keys: dict[tuple[str, str], list[int | None]] = defaultdict(list)
    for promise, group, history in counted.tallies:
        keys[promise, group].append(history)
    return [
        verdict
        for rule in rules
        for group in sorted(counted.profiles)
        for verdict in _of_rule(rule, group, counted, keys[rule.promise, group] or [None], histories)
    ]


def _of_rule(
    rule: PromiseRule, group: str, counted: Counted, keys: Sequence[int | None], histories: Mapping[int, str]
) -> Iterable[Verdict]:
    stacks = [counted.stacks[profile] for profile in counted.profiles[group]]
    if not any(rule.services <= services for services in stacks):
        reason = f"the profile {', '.join(sorted(counted.profiles[group]))} does not make this promise"
        return [Verdict(rule.promise, group, "not judged", 0, 0, reason, excused=True)]
    names = sorted(keys, key=lambda key: "" if key is None else histories[key])
    tallies = [counted.tallies.get((rule.promise, group, key), Tally()) for key in names]
    lost = counted.lost[group][rule.unit]
    if lost:
        tallies[0].skipped[BEHIND_DAMAGE] += lost
    alone = rule.alone and not any(services >= GROUPS for services in stacks)
    why = rule.alone if alone else rule.no_occasion
    return [
        _verdict(rule.promise, group, None if key is None else histories[key], tally, why)
        for key, tally in zip(names, tallies, strict=True)
    ]


def _verdict(promise: str, group: str, history: str | None, tally: Tally, no_fact: str) -> Verdict:
    """The verdict from the counts of one rule.  `no_fact`: the reason if there was nothing to judge."""
    skipped = sum(tally.skipped.values())
    nothing = tally.judged == 0 and tally.broken == 0
    reason = "; ".join(skip_reasons(tally.skipped))
    return Verdict(
        promise=promise,
        group=group,
        verdict="broken" if tally.broken else "not judged" if nothing else "held",
        judged=tally.judged,
        skipped=skipped,
        reason=reason or (no_fact if nothing else ""),
        violations=tally.violations,
        history=history,
        excused=nothing and not skipped,
        broken=tally.broken,
        skips=dict(tally.skipped),
    )
