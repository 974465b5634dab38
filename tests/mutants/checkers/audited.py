"""Hunts blind rules of the audit: the planted histories are ingested once, and each changed audit judges them anew.

A blind rule names, before the colon of its bug, the promises that are judged with it: those whose rule it changes, or
those that read the shared aggregate it changes.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from pyspark.sql import SparkSession

import pygroups
from pygroups.pipeline.ingest import Table, ingest
from pygroups.pipeline.promises import RULES
from pygroups.pipeline.session import make_session
from tests.mutants import gate
from tests.mutants.checkers.gate import Blind, patched
from tests.pipeline.catalog import all_planted

PACKAGE: Final = "pygroups.pipeline"
NOTHING: Final = Blind("unchanged", "", [])


def promises_of(blind: Blind) -> list[str]:
    """The promises that are judged: those before the colon, all if there is none."""
    named, colon, _ = blind.bug.partition(":")
    return [name.strip() for name in named.split(",")] if colon else [rule.promise for rule in RULES]


class Planted:
    """The table of the planted histories, and what each breaks."""

    def __init__(self, folder: Path, session: SparkSession) -> None:
        self.session, self.table = session, folder / "table"
        self.breaks = {planted.group: planted.breaks for planted in all_planted()}
        for planted in all_planted():
            planted.make(planted.group).save(folder / "journals")
        ingest([folder / "journals"], self.table)

    def shown_by(self, blind: Blind) -> str | None:
        """The first planted history that the audit, so changed, judges otherwise than it should, or None."""
        wanted = promises_of(blind)
        with changed(blind) as audit:
            verdicts, suspects = self._verdicts(audit, wanted)
            broken = {(verdict.promise, verdict.group) for verdict in verdicts if verdict.broken}  # in some history
            for promise, group in dict.fromkeys((verdict.promise, verdict.group) for verdict in verdicts):
                found = (promise, group) in broken and group in suspects.get(promise, ())
                if promise in wanted and found != (promise in self.breaks[group]):
                    return f"{group} is {'broken' if found else 'not broken'} by {promise}"
        return None

    def _verdicts(self, audit: ModuleType, wanted: Sequence[str]) -> tuple[list[Any], dict[str, set[str]]]:
        """The verdicts, and the groups in which a promise was suspect.

        Without a suspect row of its own a group that is audited alone is not looked at closely.
        """
        suspects: dict[str, set[str]] = {}
        find = audit.find

        def noting(tables: Any, rules: Any, found: dict[str, set[str]], names: Any) -> Any:
            suspects.update(found)
            return find(tables, rules, found, names)

        audit.find = noting
        recorded = audit.opened(self.session, audit.facts_of(Table(self.table)), small=True)
        rules = [rule for rule in audit.RULES if rule.promise in wanted]
        with tempfile.TemporaryDirectory() as folder:
            store = audit.Store(self.session, Path(folder), small=True)
            found: list[Any] = audit.judge(audit.prepare(recorded, rules, store), rules, recorded, store)
        return found, suspects


class changed:
    """The module `audit` of the pipeline with the lines of a blind rule in it; the unchanged one again at the end."""

    def __init__(self, blind: Blind) -> None:
        self.blind = blind

    def __enter__(self) -> ModuleType:
        self.folder = Path(tempfile.mkdtemp())
        copy = self.folder / "pygroups" / "pipeline"
        shutil.copytree(gate.SOURCE / "pygroups" / "pipeline", copy, ignore=shutil.ignore_patterns("__pycache__"))
        for name, text in patched(self.blind):
            (self.folder / name).write_text(text)
        self.before = {name: module for name, module in sys.modules.items() if name.startswith(PACKAGE)}
        for name in self.before:
            del sys.modules[name]
        package = ModuleType(PACKAGE)
        package.__path__ = [str(copy)]
        sys.modules[PACKAGE] = package
        audit = importlib.import_module(f"{PACKAGE}.audit")
        assert Path(audit.__file__ or "").is_relative_to(self.folder), f"the audit came from {audit.__file__}"
        return audit

    def __exit__(self, *_: object) -> None:
        for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
            del sys.modules[name]
        sys.modules.update(self.before)
        pygroups.pipeline = self.before[PACKAGE]  # type: ignore[attr-defined]
        shutil.rmtree(self.folder)


def hunt_rules(
    blind: Sequence[Blind], session: SparkSession | None = None, *, unchanged: bool = True
) -> Iterator[tuple[Blind, str | None]]:
    """Each blind rule with the history that shows it; with `unchanged` the rules as they are have to pass first."""
    with tempfile.TemporaryDirectory() as folder:
        planted = Planted(Path(folder), session or make_session(master="local[1]", small=True))
        if unchanged and (alarm := planted.shown_by(NOTHING)) is not None:
            raise SystemExit(f"the unchanged rules are wrong already: {alarm}")
        for one in blind:
            yield one, planted.shown_by(one)
