"""`pygroups sweep`: the simulator's schedules on a Spark cluster, one row of a table for each seed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from pygroups.cli.audit import HERE, Cluster
from pygroups.cli.extras import check_spark
from pygroups.cli.progress import say
from pygroups.cli.refusals import FAILED, one_line
from pygroups.cli.simulate import ANY_KIND, Kind, seeds_of, wish_of
from pygroups.core.errors import UsageError

if TYPE_CHECKING:
    from pygroups.pipeline.sweep import SweepResult
    from pygroups.sim.schedules.draw import Wish

SHOWN: Final = 20
"""Broken seeds that the text output shows."""


def sweep(
    *,
    seeds: str | None = None,
    kind: Kind = ANY_KIND,
    out: Path | None = None,
    cluster: Cluster = HERE,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Run the simulator over many machines, with Spark.

    Parameters
    ----------
    seeds
        The seeds to play: A:B for A up to but not including B.
    out
        The folder for the table of the seeds, made if it is missing. A cluster needs a folder that all machines share.
    as_json
        Print one JSON object on standard output.
    """
    if seeds is None:
        raise UsageError("give the seeds, for instance: pygroups sweep --seeds 0:1000 --profile total --out sweep/")
    if out is None:
        raise UsageError("give the folder of the table, for instance: pygroups sweep --seeds 0:1000 --out sweep/")
    cluster.check(out)
    if cluster.remote is None and out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file: --out names a folder for the table")
    wish, wanted = wish_of(kind.profile, kind.members, kind.minutes, kind.faults), seeds_of(seeds)
    check_spark(what="the sweep")
    result = _swept(wanted, wish, out.absolute(), cluster)
    return _report(result, wish, out, as_json=as_json)


def _swept(seeds: range, wish: Wish, out: Path, cluster: Cluster) -> SweepResult:
    from pygroups.pipeline.session import NoSpark, make_session
    from pygroups.pipeline.sweep import sweep as spread

    say("starting Spark")
    try:
        session = make_session(master=cluster.master, remote=cluster.remote, small=True)
        try:
            return spread(session, seeds, wish, out, _tell)
        finally:
            session.stop()
    except NoSpark as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        if error.filename is None:
            raise
        raise UsageError(f"the sweep cannot read or write {error.filename}: {error.strerror}") from error
    finally:
        say("")


def _tell(done: int, of: int) -> None:
    say(f"{done:,} of {of:,} seeds")


def _report(result: SweepResult, wish: Wish, out: Path, *, as_json: bool) -> int:
    """Print the sums, and return the exit code."""
    from pygroups.layers.profiles import profile_named
    from pygroups.sim.batches.summary import Summary, closing
    from pygroups.sim.batches.summary import as_json as summary_as_json
    from pygroups.sim.promises.checks import checks_of
    from pygroups.sim.promises.judge import Judge

    summary = Summary(result.totals, wish, result.seconds)
    if as_json:
        promises = Judge(checks_of(profile_named(wish.profile).services)).promises
        counts: dict[str, Any] = summary_as_json(summary, None, promises, "")
        counts.pop("failure")
        more = {"broken": result.broken, "played": result.played, "out": str(out)}
        print(json.dumps(counts | more | {"failures": [one._asdict() for one in result.failures]}))
    else:
        for one in result.failures[:SHOWN]:
            print(one_line(f"seed {one.seed}: {one.detail}; see it again with: {one.command}"))
        if result.broken > SHOWN:
            print(f"{result.broken - SHOWN:,} more broken seeds are in {out}")
        print(f"{result.played:,} seeds played now, {result.broken:,} broken; the table is {out / 'seeds'}")
        print(closing(summary))
    for shortcoming in summary.shortcomings():
        print(f"pygroups: {shortcoming}", file=sys.stderr)
    return FAILED if result.broken or summary.shortcomings() else 0
