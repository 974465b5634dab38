"""From findings to verdicts: the one place where an audit's small results come to the driver."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pygroups.journal.schema import VIOLATION_COLUMNS
from pygroups.pipeline.old_findings import Rule
from pygroups.pipeline.verdict import VIOLATIONS_SHOWN, Verdict, Violation, skip_reasons

_KEY: Final = ("promise", "group", "history")
_LOST: Final = {"messages": "lost_messages", "views": "lost_views", "unicasts": "lost_unicasts"}
BEHIND_DAMAGE: Final = "a journal has a hole or damage before them"

Key = tuple[str, str, str | None]


@dataclass
class _Tally:
    judged: int = 0
    broken: int = 0
    skipped: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    violations: list[Violation] = field(default_factory=list)


@dataclass(frozen=True)
class _Group:
    profiles: frozenset[str]  # several if somebody of another profile knocked
    lost: dict[str, int]


def verdicts_of(gold: DataFrame, journals: DataFrame, rules: Sequence[Rule]) -> list[Verdict]:
    """A verdict for every rule, group and history, in the order of the rules."""
    groups = _groups(journals)
    tallies: dict[Key, _Tally] = defaultdict(_Tally)
    for row in _sums(gold):
        tally = tallies[row["promise"], row["group"], row["history"]]
        tally.judged += row["judged"]
        tally.broken += row["broken"]
        if row["skipped"]:
            tally.skipped[row["reason"]] += row["skipped"]
    for row in _witnesses(gold):
        violation = Violation(**{name: row[name] for name in VIOLATION_COLUMNS})
        tallies[row["promise"], row["group"], row["history"]].violations.append(violation)
    return [verdict for rule in rules for name in sorted(groups) for verdict in _of_rule(rule, name, groups, tallies)]


def _groups(journals: DataFrame) -> dict[str, _Group]:
    sums = journals.groupBy("group").agg(F.collect_set("profile").alias("profiles"), *map(F.sum, _LOST.values()))
    return {
        row["group"]: _Group(frozenset(row["profiles"]), {unit: row[f"sum({name})"] for unit, name in _LOST.items()})
        for row in sums.collect()
    }


def _sums(gold: DataFrame) -> list[Any]:
    sums = gold.groupBy(*_KEY, "reason").agg(
        F.sum("judged").alias("judged"), F.sum("skipped").alias("skipped"), F.count("detail").alias("broken")
    )
    return sums.orderBy(*_KEY, "reason").collect()


def _witnesses(gold: DataFrame) -> list[Any]:
    order = Window.partitionBy(*_KEY).orderBy("view", "position", "first", "member", "other", "origin")
    first = gold.where("detail is not null").withColumn("rank", F.row_number().over(order))
    return first.where(F.col("rank") <= VIOLATIONS_SHOWN).orderBy(*_KEY, "rank").collect()


def _of_rule(rule: Rule, group: str, groups: dict[str, _Group], tallies: dict[Key, _Tally]) -> Iterable[Verdict]:
    known = groups[group]
    if not known.profiles & rule.profiles:
        reason = f"the profile {', '.join(sorted(known.profiles))} does not promise it"
        return [Verdict(rule.promise, group, "not judged", 0, 0, reason, excused=True)]
    keys = [key for key in tallies if key[:2] == (rule.promise, group)] or [(rule.promise, group, None)]
    lost = known.lost[rule.unit]
    if lost:
        tallies[keys[0]].skipped[BEHIND_DAMAGE] += lost
    return [_verdict(rule, key, tallies[key]) for key in keys]


def _verdict(rule: Rule, key: Key, tally: _Tally) -> Verdict:
    skipped = sum(tally.skipped.values())
    nothing = tally.judged == 0 and tally.broken == 0
    reason = "; ".join(skip_reasons(tally.skipped))
    return Verdict(
        promise=rule.promise,
        group=key[1],
        verdict="broken" if tally.broken else "not judged" if nothing else "held",
        judged=tally.judged,
        skipped=skipped,
        reason=reason or (rule.no_occasion if nothing else ""),
        violations=tally.violations,
        history=key[2],
        excused=nothing and not skipped,
        broken=tally.broken,
        skips=dict(tally.skipped),
    )
