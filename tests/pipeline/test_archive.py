"""The archive of Spark's classes: written if there is none, read if it is whole, left alone where it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from pygroups.pipeline.archive import archive_options


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "java").write_text("")
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    return tmp_path


def options(root: Path) -> list[str]:
    return archive_options(root / "java", root / "spark")


def test_the_first_jvm_writes_it_and_the_next_one_reads_it(cache: Path) -> None:
    (writes,) = [option for option in options(cache) if option.startswith("-XX:ArchiveClassesAtExit=")]
    file = Path(writes.partition("=")[2])
    assert file.parent == cache / "cache" / "pygroups"
    file.write_bytes(bytes(100))  # half of one: its head is written last
    assert writes in options(cache)
    file.write_bytes(bytes.fromhex("a8ab0bf0") + bytes(100))
    assert f"-XX:SharedArchiveFile={file}" in options(cache)


def test_another_spark_has_another_archive(cache: Path) -> None:
    before = options(cache)
    (cache / "spark" / "jars" / "more.jar").write_text("")
    assert options(cache) != before


def test_without_a_cache_nothing_is_done(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache / "file"))
    assert options(cache) == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache / "with space"))
    assert options(cache) == []
