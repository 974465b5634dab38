"""`pygroups stream`: the promises checked while the members still write."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from pygroups.cli.audit import in_words
from pygroups.cli.extras import check_spark
from pygroups.cli.progress import say
from pygroups.cli.refusals import FAILED, one_line
from pygroups.core.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from pygroups.pipeline.stream.query import Stream, Told
    from pygroups.pipeline.stream.state import LeftOpen

_EVERY_S: Final = 1
_SLOW: Final = "Python worker failed to connect back"
"""Spark waits 10 s for the process that reads offsets, and fails: on a busy machine that is too short."""
GROUPS_SHOWN: Final = 8
"""Groups with open views that the text output names."""
_STYLES: Final = {"held": "green", "broken": "bold red"}


def stream(
    journal: Path,
    *,
    out: Path | None = None,
    checkpoint: Path | None = None,
    once: Annotated[bool, Parameter(negative=())] = False,
    master: str | None = None,
) -> int:
    """Check the promises while the members still write.

    Parameters
    ----------
    journal
        The folder of the journals, of a group, or of one member.
    out
        The folder of the tables violations, verdicts and measures, and of what the stream has to remember.
    checkpoint
        Spark's checkpoint, by default the folder checkpoint in --out. After an interruption the same command goes on.
    once
        Judge what the journals have now, and end. A later call goes on there.
    master
        The Spark cluster, for instance spark://host:7077. By default the cores of this machine (local[*]). The journals
        and the folder of --out must be at the same place on all machines.
    """
    if out is None:
        raise UsageError("give the folder of the tables, for instance: pygroups stream journal/ --out found/")
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file: --out names a folder for the tables")
    check_spark(what="the stream")
    return _streamed(journal.absolute(), out.absolute(), (checkpoint or out / "checkpoint").absolute(), once, master)


def _streamed(journal: Path, out: Path, checkpoint: Path, once: bool, master: str | None) -> int:
    from pygroups.journal.reader import NotAJournal, find_segments
    from pygroups.pipeline.ingest import NotATable, NotTheSame
    from pygroups.pipeline.recorded import NamesCollide
    from pygroups.pipeline.session import SMALL_BYTES, NoSpark, make_session
    from pygroups.pipeline.stream.query import Stream
    from pygroups.pipeline.stream.state import NotThisStream, State

    try:
        small = sum(segment.size for segment in find_segments([journal])) <= SMALL_BYTES
        say("starting Spark ...")
        session = make_session(master=master, small=small)
        running = Stream(session, out, checkpoint, _tell, small=small)
        try:
            running.claim()
            begun = running.is_interrupted()
            _play(running, journal, once)
            if once and begun and not running.is_interrupted():
                _play(running, journal, once)  # the first query ended with the batch that was begun
        finally:
            say("")
            session.stop()
            running.close()
    except (NotAJournal, NotATable, NotTheSame, NotThisStream, NamesCollide, NoSpark) as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        if error.filename is None:
            raise
        raise UsageError(f"the stream cannot read or write {error.filename}: {error.strerror}") from error
    return _report(State(out).progress(), out)


def _play(running: Stream, journal: Path, once: bool) -> None:
    while not _await_end(running.start(journal, once=once), running, journal):
        pass


def _await_end(query: StreamingQuery, running: Stream, journal: Path) -> bool:
    """Wait until the query ends, by itself or by Ctrl-C.  Returns False if it has to be started again."""
    from pyspark.errors import StreamingQueryException

    try:
        while not query.awaitTermination(_EVERY_S):
            if sys.stderr.isatty():
                say(f"{running.behind(journal):,} bytes behind the journals")
    except KeyboardInterrupt:
        query.stop()
    except StreamingQueryException as error:
        if running.error is not None:
            raise running.error from None
        if _SLOW in str(error):
            return False
        raise UsageError(_sentence(str(error))) from error
    return True


def _sentence(text: str) -> str:
    """The sentence of the data source in an error of Spark."""
    _, found, rest = text.partition("AnalysisException: ")
    return (rest if found else text).splitlines()[0]


def _tell(told: Told) -> None:
    """The new violations as lines of standard output, the batch as a line of standard error."""
    from pygroups.pipeline.verdict import Violation

    say("")
    for one in told.violations:
        for violation in one["first"]:
            print(in_words(Violation(**violation)), flush=True)
        more = one["broken"] - len(one["first"])
        if more:
            print(one_line(f"{one['promise']} in group {one['group']}: {more:,} more violations"), flush=True)
    progress = told.progress
    clock = datetime.fromtimestamp(time.time(), UTC).strftime("%H:%M:%S")
    lag = time.time() - progress.newest_us / 1e6
    print(
        f"{clock}  batch {progress.batch}: {told.records:,} records, {progress.open_views:,} open views; "
        f"the newest record is {lag:,.1f} s old",
        file=sys.stderr,
        flush=True,
    )


def _report(progress: Any, out: Path) -> int:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from pygroups.pipeline.stream.outputs import LEFT, verdicts

    rows = verdicts(progress).to_pylist()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("promise", "verdict", "judged", "skipped", "broken"):
        table.add_column(name, justify="left" if name in ("promise", "verdict") else "right", no_wrap=True)
    for promise in dict.fromkeys(row["promise"] for row in rows if row["verdict"] != LEFT):
        same = [row for row in rows if row["promise"] == promise]
        words = {row["verdict"] for row in same}
        word = next(word for word in ("broken", "held", "not judged") if word in words)
        numbers = [f"{sum(row[name] for row in same):,}" for name in ("judged", "skipped", "broken")]
        table.add_row(promise, Text(word, style=_STYLES.get(word, "yellow")), *numbers)
    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    console.print(table)
    left = list(dict.fromkeys(row["promise"] for row in rows if row["verdict"] == LEFT))
    console.print(f"{LEFT}: {', '.join(left)}", markup=False)
    late = f", {progress.late:,} of views that were judged before" if progress.late else ""
    console.print(f"{progress.records:,} records{late}; {progress.open_views:,} views are still open", markup=False)
    for group, one in list(progress.left_open.items())[:GROUPS_SHOWN]:
        console.print(_open_in(group, one), markup=False)
    console.print(f"tables: {out}", markup=False)
    return FAILED if any(row["verdict"] == "broken" for row in rows) else 0


def _open_in(group: str, one: LeftOpen) -> str:
    """Why the views of a group are open: members may go on in them."""
    views = "1 view is" if one.views == 1 else f"{one.views:,} views are"
    names = ", ".join(one.members) + (f" and {one.more:,} more" if one.more else "")
    since = f", whose newest record is {time.time() - one.newest_us / 1e6:,.0f} s old" if one.members else ""
    why = f": nothing proves the end of {names}{since}" if names else ""
    return one_line(f"left open: {views} not judged in group {group}{why}")
