"""Audits that several files of tests look at, made once in a run: an audit costs far more than a look at its result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline.audit import audit
from pygroups.pipeline.ingest import ingest
from pygroups.pipeline.verdict import AuditResult
from tests.pipeline.catalog import save_planted
from tests.pipeline.drawn import FULL_DISKS, FULL_DISKS_FIRST, play_drawn, play_unicast, play_uniform
from tests.pipeline.faulty import save_faulty
from tests.pipeline.spark_session import spark

__all__ = ["spark"]


@pytest.fixture(scope="session")
def planted_whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journals of all planted histories in which no journal has a hole."""
    return save_planted(tmp_path_factory.mktemp("planted"), whole=True)


@pytest.fixture(scope="session")
def planted_with_holes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journals of all other planted histories."""
    return save_planted(tmp_path_factory.mktemp("holes"), whole=False)


@pytest.fixture(scope="session")
def drawn_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drawn")


@pytest.fixture(scope="session")
def drawn(drawn_root: Path) -> list[dict[str, Any]]:
    """What the simulator says of the drawn schedules whose journals are in `drawn_root`."""
    return play_drawn(drawn_root)


@pytest.fixture(scope="session")
def drawn_unicast(drawn_root: Path) -> dict[str, Any]:
    """What the simulator says of the drawn schedules without a group; their journals are in `drawn_root` too."""
    return play_unicast(drawn_root)


@pytest.fixture(scope="session")
def drawn_uniform(drawn_root: Path) -> list[dict[str, Any]]:
    """The same where a majority decides each view."""
    return play_uniform(drawn_root)


@pytest.fixture(scope="session")
def faulty_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journals of more drawn schedules, each with one fault planted at a place that was drawn too."""
    return save_faulty(tmp_path_factory.mktemp("faulty"))


@pytest.fixture(scope="session")
def whole_table(
    planted_whole: Path,
    drawn_root: Path,
    drawn: object,
    drawn_unicast: object,
    drawn_uniform: object,
    faulty_root: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The table of all histories in which no journal has a hole: planted, drawn, and drawn with a fault."""
    table = tmp_path_factory.mktemp("whole")
    ingest([planted_whole, drawn_root, faulty_root], table)
    return table


@pytest.fixture(scope="session")
def judged_whole(spark: SparkSession, whole_table: Path) -> AuditResult:
    """Where every journal is whole, the audit looks at a sample of the deliveries."""
    return audit([whole_table], master="local[2]")


@pytest.fixture(scope="session")
def full_disks_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journals of drawn schedules in which disks are full."""
    root = tmp_path_factory.mktemp("disks")
    faults = ("disk-full", "crash", "leave", "loss", "isolate", "pause", "join")
    play_drawn(root, FULL_DISKS, FULL_DISKS_FIRST, faults)
    return root


@pytest.fixture(scope="session")
def judged_with_holes(spark: SparkSession, planted_with_holes: Path, full_disks_root: Path) -> AuditResult:
    """Where a journal has a hole, the audit looks at all deliveries."""
    return audit([planted_with_holes, full_disks_root], master="local[2]")
