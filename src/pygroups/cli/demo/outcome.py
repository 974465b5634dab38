"""What a demo has shown: the kill, the replicas, the verdicts of the audit; and whether all of it is well."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pygroups.cli.extras import check_spark
from pygroups.core.errors import UsageError

from .place import Place

if TYPE_CHECKING:
    from .director import Plan
    from .story import Story

WITHOUT_AUDIT: Final = "--no-audit leaves the audit out"


@dataclass
class Kill:
    """The sequencer's end, and its return.  Times count from the SIGKILL to the slowest survivor."""

    address: str
    runs: int  # on the wire, not acknowledged by everybody
    sent: int  # lines, until then
    all_had_lines: bool  # everybody still had something to send
    view_ms: float
    gap_ms: float | None  # to the next delivery, in the view without it; None: nobody else had anything to send
    back_seconds: float = 0.0  # from the new process to its first view
    state_records: int = 0


@dataclass
class Outcome:
    """Everything that is compared in the end."""

    seconds: float
    records: int
    held: dict[str, int]
    digests: dict[str, str]
    wrong: dict[str, str]  # why a replica is not complete; "" if it is
    kill: Kill | None
    verdicts: dict[str, dict[str, Any]] = field(default_factory=dict)
    unjudged: list[str] = field(default_factory=list)  # promises of this profile that no rule judges yet

    @property
    def identical(self) -> bool:
        """Whether all replicas hold the same records in the same order."""
        return len(set(self.digests.values())) == 1

    @property
    def complete(self) -> bool:
        """Whether each holds every record exactly once."""
        return not any(self.wrong.values())

    @property
    def broken(self) -> list[str]:
        """The promises that did not hold."""
        return [name for name, verdict in self.verdicts.items() if verdict["verdict"] == "broken"]

    @property
    def ok(self) -> bool:
        """Whether everything held that was to be shown."""
        return self.identical and self.complete and not self.broken and (self.kill is None or self.kill.all_had_lines)


def judge(outcome: Outcome, plan: Plan, place: Place, story: Story) -> None:
    """Tell what the replicas hold; have the journals audited, and the report written."""
    story.compared(outcome)
    if plan.audit:
        outcome.verdicts, outcome.unjudged = _audited(place, story)
        story.audited(outcome, place.report)


def check_audit() -> None:
    """UsageError, before anything is started, when the audit at the end could not run."""
    check_spark(f"; {WITHOUT_AUDIT}")
    from pygroups.pipeline.session import NoSpark, check_java

    try:
        check_java()
    except NoSpark as error:
        raise UsageError(f"{error}; {WITHOUT_AUDIT}") from error


def _audited(place: Place, story: Story) -> tuple[dict[str, dict[str, Any]], list[str]]:
    from pygroups.journal.reader import NotAJournal
    from pygroups.pipeline.audit import audit
    from pygroups.pipeline.report import write_report
    from pygroups.pipeline.session import NoSpark

    try:
        result = audit([place.group_journals], progress=story.step)
        story.step("writing the report")
        write_report(place.report, result)
    except (NotAJournal, NoSpark) as error:
        raise UsageError(f"{error}; {WITHOUT_AUDIT}") from error
    result.session.stop()
    verdicts = {
        verdict.promise: {"verdict": verdict.verdict, "judged": verdict.judged, "skipped": verdict.skipped}
        for verdict in result.summary()
    }
    return verdicts, result.unjudged


def write_outcome(outcome: Outcome, plan: Plan, place: Place, story: Story) -> None:
    """demo.json: counts, digests and verdicts, for a program to read."""
    content = {
        "ok": outcome.ok,
        "seed": plan.seed,
        "seconds": round(outcome.seconds, 3),
        "records": outcome.records,
        "counts": outcome.held,
        "digests": outcome.digests,
        "identical": outcome.identical,
        "complete": outcome.complete,
        "gap_ms": None if outcome.kill is None else outcome.kill.gap_ms,
        "kill": None if outcome.kill is None else asdict(outcome.kill),
        "verdicts": outcome.verdicts,
        "unjudged": outcome.unjudged,
    }
    place.result.write_bytes(msgspec.json.format(msgspec.json.encode(content)) + b"\n")
    story.last_word(outcome, place.result)
