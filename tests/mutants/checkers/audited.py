"""Hunts blind rules of the audit: the planted histories are prepared once, and each rule judges them as it was made."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from pyspark.sql import DataFrame, SparkSession

from pygroups.pipeline.audit import ingest, judge, prepare
from pygroups.pipeline.findings import Rule
from pygroups.pipeline.promises import RULES
from pygroups.pipeline.session import make_session
from pygroups.pipeline.store import Store
from pygroups.pipeline.tables import Tables
from pygroups.pipeline.verdicts import verdicts_of
from tests.mutants.checkers.gate import Blind, patched
from tests.pipeline.catalog import all_planted


class Prepared:
    """The tables of all planted histories."""

    def __init__(self, session: SparkSession) -> None:
        self.planted = {planted.group: planted for planted in all_planted()}
        with tempfile.TemporaryDirectory() as root:
            for group, planted in self.planted.items():
                planted.make(group).save(Path(root))
            store = Store(session, None, in_memory=False)
            bronze: DataFrame = ingest(session, [root], store)
            self.tables: Tables = prepare(bronze, store)

    def shown_by(self, rule: Rule) -> str | None:
        """The first planted history that `rule` judges otherwise than it should, or None."""
        found = verdicts_of(judge(self.tables, [rule]), self.tables.journals, [rule])
        for verdict in found:
            expected = rule.promise in self.planted[verdict.group].breaks
            if bool(verdict.broken) != expected:
                return f"{verdict.group} is {verdict.verdict}"
        return None


def rule_of(file: str, text: str) -> Rule:
    """The rule in the module that `text` is the source of."""
    module = ModuleType(Path(file).stem)
    exec(compile(text, file, "exec"), module.__dict__)
    rule: Rule = module.__dict__["RULE"]
    return rule


def hunt_rules(
    blind: Sequence[Blind], session: SparkSession | None = None, *, unchanged: bool = True
) -> Iterator[tuple[Blind, str | None]]:
    """Each blind rule with the history that shows it; with `unchanged` the rules as they are have to pass first."""
    prepared = Prepared(session or make_session(master="local[1]", small=True))
    for rule in RULES if unchanged else ():
        if (alarm := prepared.shown_by(rule)) is not None:
            raise SystemExit(f"the unchanged rule {rule.promise} is wrong already: {alarm}")
    for one in blind:
        ((file, text),) = patched(one)
        yield one, prepared.shown_by(rule_of(file, text))
