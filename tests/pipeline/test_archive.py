"""The archive of Spark's classes: written if there is none, read if it is whole, left alone unless it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from pygroups.pipeline.archive import VARIABLE, archive_options


def test_the_first_jvm_writes_it_and_the_next_one_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "spark.jsa"
    monkeypatch.setenv(VARIABLE, str(file))
    assert f"-XX:ArchiveClassesAtExit={file}" in archive_options()
    file.write_bytes(bytes(100))  # half of one: its head is written last
    assert f"-XX:ArchiveClassesAtExit={file}" in archive_options()
    file.write_bytes(bytes.fromhex("a8ab0bf0") + bytes(100))
    assert f"-XX:SharedArchiveFile={file}" in archive_options()


@pytest.mark.parametrize("name", ["", "nowhere/spark.jsa", "with space.jsa"])
def test_without_a_wish_or_a_place_nothing_is_done(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, name and str(tmp_path / name))
    assert archive_options() == []
