"""The stream: the verdicts, witnesses and counts of the audit, however the journals grow and whenever it is killed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pygroups.pipeline.stream import query
from pygroups.pipeline.stream.state import NotThisStream, State
from pygroups.pipeline.verdict import AuditResult
from tests.pipeline import streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
CHOSEN: Final = re.compile(
    "clean-(total|uniform)|skipped-A-living|swapped-A-living|late-C-dead|repeated-(A-living|C-dead)|forged-A-living"
    "|unsent-C-living|altered-A-living|lacking-A-living|one-view-late-C-living|other-list-A-living|lower-view-C-living"
    "|without-itself-A-living|late-after-a-death-A|ahead-(total|uniform)-A|joined-covered|unplaced-C-dead|knocked-C"
)
"""Planted histories with violations of each promise that a stream judges, and right ones."""


class Killed(BaseException):
    """The process of a stream ends here."""


def killed(monkeypatch: pytest.MonkeyPatch, streaming: streamed.Streaming, owner: Any, name: str) -> None:
    """Play the next batch up to the end of the function `name`, then the process is gone and another one goes on."""
    real: Callable[..., Any] = getattr(owner, name)

    def last(*args: Any, **named: Any) -> Any:
        real(*args, **named)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, last)
        with pytest.raises(Killed):
            streaming.go_on()
    streaming.restarted()
    streaming.repeat()


def grown(whole: Path, groups: list[str], root: Path, share: float) -> None:
    """Journals as they are while members write: each has the first `share` of its bytes, and ends within a frame."""
    for file in (file for group in groups for file in (whole / group).rglob("*.journal")):
        data, to = file.read_bytes(), root / file.relative_to(whole)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(data[: int(len(data) * share)])


def test_a_stream_that_is_killed_has_the_witnesses_and_verdicts_of_the_audit(
    spark: SparkSession,
    planted_whole: Path,
    judged_whole: AuditResult,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = sorted(folder.name for folder in planted_whole.iterdir() if CHOSEN.fullmatch(folder.name))
    journal, out = tmp_path / "journal", tmp_path / "out"
    grown(planted_whole, groups, journal, 0.6)
    streaming = streamed.Streaming(spark, journal, out)
    killed(monkeypatch, streaming, query, "ingest_segments")
    assert streaming.told[-1].progress.open_views >= len(groups)
    grown(planted_whole, groups, journal, 1)
    killed(monkeypatch, streaming, query, "prune")
    before = streamed.witnesses(out), streamed.counts(out), streamed.minutes(out)
    streaming.repeat()  # Spark was killed before it noted the end
    assert before == (streamed.witnesses(out), streamed.counts(out), streamed.minutes(out))
    audit = {one: number for one, number in streamed.witnesses_of(judged_whole).items() if one[1] in groups}
    assert streamed.witnesses(out) == audit and {one[0] for one in audit} == streamed.JUDGED
    found = {key: told for key, told in streamed.counts(out).items() if told[0] != "left to the audit"}
    words = {key: told for key, told in streamed.counts_of(judged_whole).items() if key[1] in groups}
    assert {key: told[0] for key, told in found.items()} == {key: told[0] for key, told in words.items()}
    progress = State(out).progress()
    assert progress.late == 0 and progress.open_views == 0


def test_a_batch_that_was_begun_and_not_ended_is_an_interruption(tmp_path: Path) -> None:
    stream = query.Stream(None, tmp_path, tmp_path / "checkpoint", print, small=True)  # type: ignore[arg-type]
    assert not stream.is_interrupted()
    for file, interrupted in (
        ("offsets/0", True),
        ("commits/0", False),
        ("offsets/.1.tmp", False),
        ("offsets/1", True),
    ):
        (stream.checkpoint / file).parent.mkdir(parents=True, exist_ok=True)
        (stream.checkpoint / file).touch()
        assert stream.is_interrupted() == interrupted


def test_an_output_belongs_to_its_checkpoint(tmp_path: Path) -> None:
    out, state = tmp_path / "out", State(tmp_path / "out")
    stream = query.Stream(None, out, out / "checkpoint", print, small=True)  # type: ignore[arg-type]
    stream.claim()
    with pytest.raises(NotThisStream, match="another stream writes to"):
        query.Stream(None, out, out / "checkpoint", print, small=True).claim()  # type: ignore[arg-type]
    stream.close()
    state.end(query.Progress(batch=3, checkpoint="abc"))
    with pytest.raises(NotThisStream, match="whose checkpoint is not"):
        stream.claim()
    other = query.Stream(None, tmp_path / "new", tmp_path / "metadata-of-another", print, small=True)  # type: ignore[arg-type]
    other.checkpoint.mkdir()
    (other.checkpoint / "metadata").write_text('{"id": "abc"}')
    with pytest.raises(NotThisStream, match="belongs to a stream with another output"):
        other.claim()
