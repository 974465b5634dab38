"""`pygroups audit`: every promise judged over the journals of a group, by Spark."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from pygroups.cli.extras import check_spark
from pygroups.cli.refusals import FAILED, one_line, warn_of, warn_of_damage
from pygroups.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

    from pygroups.pipeline.verdict import AuditResult, Verdict, Violation

SHOWN = 5
"""Violations of one promise that the text output shows; `--json` and `--out` have more."""
_STYLES = {"held": "green", "broken": "bold red", "not judged": "yellow"}


@Parameter(name="*")
@dataclass(frozen=True)
class Cluster:
    """Where Spark runs.

    Parameters
    ----------
    master
        The Spark cluster, for instance spark://host:7077. By default the cores of this machine (local[*]). A cluster
        needs --out. The folder of --out, and an audited table, must be at the same place on all machines.
    remote
        A server of Spark Connect, for instance sc://host:15002, in place of --master. The machines of the server read
        and write all folders, and this one none. They need pygroups in the same version.
    """

    master: str | None = None
    remote: str | None = None

    def check(self, *folders: Path) -> None:
        """Raises UsageError for two clusters, or for a folder that the machines of a server cannot find."""
        if self.remote is None:
            return
        if self.master is not None:
            raise UsageError("--remote and --master both say where Spark runs: give one of them")
        for folder in folders:
            if not folder.is_absolute():
                raise UsageError(f"{folder} is a path of this machine: with --remote give absolute paths of the server")


HERE: Final = Cluster()


def audit(
    *journals: Path,
    out: Path | None = None,
    report: Path | None = None,
    cluster: Cluster = HERE,
    strict: Annotated[bool, Parameter(negative=())] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Check every promise over journals, or over a table of them, with Spark; write a report.

    Exit code 0: no promise was broken; 1: a promise was broken (--strict: or could not be judged); 2: the folder has no
    journal, or Spark cannot run. Each damaged place in a journal gives a warning, each journal with a missing or
    repeated record, and each file or folder between the journals that is none.

    Parameters
    ----------
    journals
        Folders of journals, the folder of a group, or the folder of one member; or one table that pygroups ingest made.
    out
        Keep the table of the journals, the tables made of it (silver) and the violations (gold) as Parquet in this
        folder, by group and day. A table that is there already grows by the new records, and the audit judges the
        whole table. The audit does not copy an audited table: the folder then gets silver and gold alone, and journals
        can follow later. Without --out all tables go to a temporary folder, which the audit removes at the end.
    report
        Write the findings as one HTML file that works offline.
    strict
        Exit with 1 also for facts that the audit skipped, and for a promise that could not be judged although the
        profile makes the promise and the history had an occasion to break the promise.
    as_json
        Print one JSON object on standard output.
    """
    _check_call(journals, out, cluster)
    check_spark()
    result = _judged(journals, out, report, cluster)
    warn_of([(one.path, one.reason) for one in result.left_out], SHOWN, "files and folders that are no journals")
    warn_of_damage(result.quarantined, SHOWN)
    warn_of([(hole.file, hole.reason) for hole in result.holes], SHOWN, "journals with a hole")
    if as_json:
        print(json.dumps(as_object(result)))
    else:
        show(result, report)
    return FAILED if result.broken or (strict and result.doubtful) else 0


def _judged(journals: tuple[Path, ...], out: Path | None, report: Path | None, cluster: Cluster) -> AuditResult:
    """The audit and its report. An error of Spark, the journals or the report's file becomes one sentence."""
    from pygroups.journal.reader import NotAJournal
    from pygroups.pipeline.ingest import NotATable, NotTheSame
    from pygroups.pipeline.recorded import NamesCollide
    from pygroups.pipeline.session import NoSpark
    from pygroups.pipeline.timings import Timings

    try:
        with _progress() as progress:
            from pygroups.pipeline.audit import audit as judge_journals

            result = judge_journals(journals, master=cluster.master, remote=cluster.remote, out=out, progress=progress)
            if report is not None:
                with Timings(progress, result.work.steps)("writing the report"):
                    _write_report(report, result)
    except (NotAJournal, NotATable, NotTheSame, NamesCollide, NoSpark) as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        if error.filename is None:  # no file that the user named: a fault of ours
            raise
        raise UsageError(f"the audit cannot read or write {error.filename}: {error.strerror}") from error
    return result


def _check_call(journals: tuple[Path, ...], out: Path | None, cluster: Cluster) -> None:
    if not journals:
        raise UsageError("give the folder of the journals, for instance: pygroups audit journal/")
    cluster.check(*journals, *([out] if out else []))
    if cluster.remote is None and out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file: --out names a folder for the tables")


def _write_report(path: Path, result: AuditResult) -> None:
    from pygroups.pipeline.report import write_report

    try:
        write_report(path, result)
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"the report {path} cannot be written: {why}; give --report another path") from error


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Shows each step on a terminal, and prints nothing into a pipe."""
    if not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda step: status.update(f"{step} ...")


def as_object(result: AuditResult) -> dict[str, Any]:
    """The object that `--json` prints. `broken` counts violations; `violations` has the first of each group
    (VIOLATIONS_SHOWN)."""
    promises = [
        {
            "name": verdict.promise,
            "verdict": verdict.verdict,
            "judged": verdict.judged,
            "skipped": verdict.skipped,
            "reason": verdict.reason,
            "broken": verdict.broken,
            "broken_groups": broken_groups(result, verdict.promise),
            "violations": [asdict(violation) for violation in verdict.violations],
        }
        for verdict in result.summary()
    ]
    return {
        "promises": promises,
        "unjudged": result.unjudged,
        "groups": result.groups,
        "files": result.files,
        "rows": result.rows,
        "quarantined": len(result.quarantined),
        "holes": [asdict(hole) for hole in result.holes],
        "left_out": [asdict(one) for one in result.left_out],
        "work": asdict(result.work),
    }


def show(result: AuditResult, report: Path | None) -> None:
    """Verdicts as a table, then the first violations in words, then what was read."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    summary = result.summary()
    console.print(_table(summary, result))
    for verdict in summary:
        for violation in some_of(verdict.violations):
            console.print(in_words(violation), markup=False)
        if verdict.broken > SHOWN:
            console.print(f"{verdict.promise}: {verdict.broken - SHOWN:,} more violations", markup=False)
    if result.unjudged:
        console.print(f"not judged, because no rule is built yet: {', '.join(result.unjudged)}", markup=False)
    groups = "group" if len(result.groups) == 1 else "groups"
    seconds, cpu = (sum(getattr(step, name) for step in result.work.steps) for name in ("seconds", "cpu_seconds"))
    read = f"{len(result.groups)} {groups}, {result.files} files, {result.rows} records"
    console.print(f"{read}; {seconds:.1f} s, {cpu:.1f} CPU s", markup=False)
    if report is not None:
        console.print(f"report: {report}", markup=False)


def broken_groups(result: AuditResult, promise: str) -> list[str]:
    """The groups in which a promise is broken, sorted."""
    return sorted({verdict.group for verdict in result.verdicts if verdict.promise == promise and verdict.broken})


def some_of(violations: list[Violation]) -> list[Violation]:
    """At most SHOWN violations: the first one of each group, then the second one of each group, and so on."""
    seen: Counter[str] = Counter()
    ranked = []
    for violation in violations:
        seen[violation.group] += 1
        ranked.append((seen[violation.group], violation))
    return [violation for _, violation in sorted(ranked, key=lambda one: one[0])[:SHOWN]]


def _table(summary: list[Verdict], result: AuditResult) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("promise", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("judged", justify="right", no_wrap=True)
    table.add_column("skipped", justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for verdict in summary:
        word = Text(verdict.verdict, style=_STYLES[verdict.verdict])
        why = "; ".join(filter(None, (_violations(verdict, result), verdict.reason)))
        table.add_row(verdict.promise, word, f"{verdict.judged:,}", f"{verdict.skipped:,}", Text(one_line(why)))
    return table


def _violations(verdict: Verdict, result: AuditResult) -> str:
    """The number of violations and of their groups; empty without violations."""
    if not verdict.broken:
        return ""
    count = f"{verdict.broken:,} violation{'' if verdict.broken == 1 else 's'}"
    groups = len(broken_groups(result, verdict.promise))
    return count if len(result.groups) == 1 else f"{count} in {groups:,} of {len(result.groups):,} groups"


def in_words(violation: Violation) -> str:
    """One violation as a sentence: promise, member, message, what happened."""
    parts = [f"{violation.promise} broken in group {violation.group}"]
    if violation.member is not None:
        parts.append(f"at {violation.member}")
    if violation.view is not None:
        parts.append(f"in view {violation.view}")
    if violation.origin is not None:
        message = "" if violation.first is None else f", message {violation.first}"
        parts.append(f"(from {violation.origin}{message})")
    return one_line(f"{' '.join(parts)}: {violation.detail}")
