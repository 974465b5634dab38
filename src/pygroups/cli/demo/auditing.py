"""The audit at the end of the demo, by Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pygroups.cli.extras import check_spark
from pygroups.core.errors import UsageError

from .folder import DemoFolder

WITHOUT_AUDIT: Final = "--no-audit leaves the audit out"


def check_audit() -> None:
    """Raise UsageError before the start if the audit at the end cannot run."""
    check_spark(f"; {WITHOUT_AUDIT}")
    from pygroups.pipeline.session import NoSpark, check_java

    try:
        check_java()
    except NoSpark as error:
        raise UsageError(f"{error}; {WITHOUT_AUDIT}") from error


def audited(place: DemoFolder, step: Callable[[str], None]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Check the journals and write the report.  Returns the verdicts by promise, and the promises without a rule.

    `step` receives the name of each step. Raises UsageError when the audit cannot run.
    """
    from pygroups.journal.reader import NotAJournal
    from pygroups.pipeline.audit import audit
    from pygroups.pipeline.report import write_report
    from pygroups.pipeline.session import NoSpark

    try:
        result = audit([place.group_journals], progress=step)
        step("writing the report")
        write_report(place.report, result)
    except (NotAJournal, NoSpark) as error:
        raise UsageError(f"{error}; {WITHOUT_AUDIT}") from error
    result.session.stop()
    verdicts = {
        verdict.promise: {"verdict": verdict.verdict, "judged": verdict.judged, "skipped": verdict.skipped}
        for verdict in result.summary()
    }
    return verdicts, result.unjudged
