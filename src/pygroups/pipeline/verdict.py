"""The answer of an audit: a verdict per promise and history, with the violations that prove it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from pygroups.journal.reader import LeftOut

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pygroups.pipeline.history import History

Word = Literal["held", "not judged", "broken"]
WORST_LAST: Final[tuple[Word, ...]] = ("held", "not judged", "broken")
VIOLATIONS_SHOWN: Final = 100  # of one promise in one group; the verdict counts them all


@dataclass(frozen=True)
class Violation:
    """One witness: the place at which a promise was broken.

    `view` reads "4:A@3f2c". `member` and `other` are addresses `name@incarnation`. `origin` is the address of the
    sender of the run that begins with message `first`. `position` counts the messages before the run in its view.
    A field that does not apply is None.
    """

    promise: str
    group: str
    view: str | None
    member: str | None
    other: str | None
    origin: str | None
    first: int | None
    position: int | None
    detail: str


@dataclass(frozen=True)
class Verdict:
    """The finding of one rule in one history of one group.

    `judged` and `skipped` count facts: one message at one member for rules over messages, one view at one member for
    rules over views.  `reason` explains why facts were skipped or why nothing was judged; otherwise it is "".
    `excused` is True if nothing was judged because the profile does not make the promise, or because the history had no
    occasion: `--strict` ignores such a verdict.  `broken` counts all violations, `violations` holds the first of them;
    `skips` has the number of skipped facts per reason.
    """

    promise: str
    group: str
    verdict: Word
    judged: int
    skipped: int
    reason: str
    violations: list[Violation] = field(default_factory=list)
    history: str | None = None
    excused: bool = False
    broken: int = 0
    skips: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Quarantined:
    """A place in a journal that could not be read: `offset` in bytes from the beginning of `file`."""

    file: str
    offset: int
    reason: str


@dataclass(frozen=True)
class Hole:
    """The first record number that is missing in a journal, or that is there twice: `index` of the `member` (an
    address) in the group. `file`: the segment in which this shows. No record from there on is judged."""

    file: str
    group: str
    member: str
    index: int

    @property
    def reason(self) -> str:
        """The hole as a sentence without a subject."""
        return (
            f"record {self.index} of {self.member} in group {self.group} is missing or there twice: the audit does not "
            "judge the records from there on"
        )


@dataclass(frozen=True)
class AuditStep:
    """One step of an audit: how many seconds it took, and how much CPU this process, its workers and the JVM used."""

    name: str
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Work:
    """The input of an audit, and its steps, one after the other.

    `files`, `bytes` and `rows` count all that the judged table contains, whenever it was ingested. `files` counts the
    segments of journals of which the table contains bytes; copies of one segment count once. `rows` counts their
    records. `skipped` counts the ranges of bytes that the table contained already, and that were not read again.
    """

    files: int
    bytes: int
    rows: int
    skipped: int
    steps: list[AuditStep] = field(default_factory=list)


@dataclass
class AuditResult:
    """Everything one audit found.  `history` holds the tables it judged; `session` stays open until the caller stops
    it.

    `quarantined` has the places that could not be read, `holes` the journals whose records do not follow one another,
    and `left_out` the files and folders between the journals that are none.  `unjudged` names the promises that
    profiles in these journals make and that no rule judges yet. `work` has the input and the steps of the audit.
    """

    groups: list[str]
    verdicts: list[Verdict]
    files: int
    rows: int
    quarantined: list[Quarantined]
    history: "History"
    session: "SparkSession"
    unjudged: list[str] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    work: Work = field(default_factory=lambda: Work(0, 0, 0, 0))

    def summary(self) -> list[Verdict]:
        """One verdict per promise, the worst of all groups and histories, counts added up."""
        return summarize(self.verdicts)

    @property
    def broken(self) -> bool:
        """True if any promise was broken in any group."""
        return any(verdict.verdict == "broken" for verdict in self.verdicts)

    @property
    def doubtful(self) -> bool:
        """True if facts were skipped, or if a promise could not be judged although a profile makes the promise and the
        history had an occasion."""
        return any(v.skipped > 0 or (v.verdict == "not judged" and not v.excused) for v in self.verdicts)


def summarize(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """One verdict per promise in the order of first appearance. `group` names the groups with that verdict."""
    by_promise: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_promise.setdefault(verdict.promise, []).append(verdict)
    return [_worst_of(same) for same in by_promise.values()]


def _worst_of(same: Sequence[Verdict]) -> Verdict:
    """A group that had no occasion does not spoil the verdict of one that had."""
    relevant = [verdict for verdict in same if not verdict.excused] or same
    worst = max((verdict.verdict for verdict in relevant), key=WORST_LAST.index)
    skips: Counter[str] = Counter()
    for verdict in relevant:
        skips.update(verdict.skips)
    unskipped = dict.fromkeys(verdict.reason for verdict in relevant if verdict.reason and not verdict.skips)
    return Verdict(
        promise=same[0].promise,
        group=", ".join(dict.fromkeys(verdict.group for verdict in relevant if verdict.verdict == worst)),
        verdict=worst,
        judged=sum(verdict.judged for verdict in same),
        skipped=sum(verdict.skipped for verdict in same),
        reason="; ".join([*skip_reasons(skips), *unskipped]),
        violations=[violation for verdict in relevant for violation in verdict.violations],
        excused=all(verdict.excused for verdict in same),
        broken=sum(verdict.broken for verdict in same),
        skips=dict(skips),
    )


def skip_reasons(skips: Mapping[str, int]) -> list[str]:
    """How many facts were skipped and why, a phrase for each reason."""
    return [f"{count} skipped: {why}" for why, count in sorted(skips.items())]
