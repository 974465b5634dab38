"""What a person sees: sentences about what happens, and on a terminal how far everybody is."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from .feeds import Feed
from .messages import Joined
from .outcome import Kill, Outcome
from .process import MemberProcess
from .settings import DemoSettings


class Narrator:
    """Sentences with the time since the beginning; bars for the members, if somebody watches."""

    def __init__(self, settings: DemoSettings) -> None:
        self.began = time.monotonic()
        self.console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
        columns = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn(), TextColumn("records sent"))
        self.bars = Progress(*columns, console=self.console, transient=True, disable=not sys.stdout.isatty())
        self.bar_of: dict[str, TaskID] = {}
        self.bars.start()
        self._begin(settings)

    def close(self) -> None:
        """Nothing moves any more."""
        self.bars.stop()

    def tell(self, sentence: str) -> None:
        """One sentence, with the time."""
        self.console.print(f"{time.monotonic() - self.began:6.1f} s  {sentence}", markup=False)

    def step(self, what: str) -> None:
        """One step of the audit."""
        self.tell(f"audit: {what}")

    def _begin(self, settings: DemoSettings) -> None:
        feeds = ", ".join(f"{feed.name} ({len(feed.records()):,})" for feed in settings.feeds)
        total = sum(len(feed.records()) for feed in settings.feeds)
        self.tell(f"{settings.members} members are started, as many processes, on this machine; seed {settings.seed}")
        self.tell(f"they will send {total:,} records to everyone: {feeds}")

    def together(self, sequencer: str, feeds_of: dict[str, list[Feed]]) -> None:
        """All members have found each other."""
        self.tell(f"all have found each other; {sequencer} is the sequencer: it gives all messages one order")
        for name, feeds in feeds_of.items():
            what = ", ".join(feed.name for feed in feeds) or "only listens"
            self.bar_of[name] = self.bars.add_task(f"{name} {what}"[:28], total=None)
        self.tell("each sends its feed, and writes everybody's records into a SQLite table of its own")

    def progressed(self, member: MemberProcess) -> None:
        """A member has sent more."""
        if member.name not in self.bar_of:
            return  # not all have found each other yet
        total = sum(member.progress.totals.values())
        self.bars.update(self.bar_of[member.name], total=total, completed=member.sent)

    def killed(self, victim: MemberProcess, kill: Kill, others: Sequence[MemberProcess]) -> None:
        """The sequencer was killed, and the others have gone on."""
        total = sum(victim.progress.totals.values())
        self.tell(
            f"kill -9 of {victim.name}, the sequencer: {kill.sent:,} of its {total:,} records were sent, "
            f"{kill.runs} runs on the wire were not acknowledged by everybody"
        )
        names = ", ".join(member.name for member in others)
        gap = (
            "nobody else sends"
            if kill.gap_ms is None
            else f"the next record was delivered {kill.gap_ms:.0f} ms after it"
        )
        self.tell(f"{names} agreed on a view without it {kill.view_ms:.0f} ms after the kill; {gap}")

    def starts_again(self, name: str) -> None:
        """A new process under the old name."""
        self.tell(f"{name} is started again, with an empty table")

    def is_back(self, joined: Joined, kill: Kill) -> None:
        """It has joined."""
        going_on = ", ".join(f"line {line:,} of {feed}" for feed, line in joined.lines.items()) or "nothing of its own"
        self.tell(
            f"{joined.address.partition('@')[0]} is back as a new member after {kill.back_seconds * 1000:.0f} ms: "
            f"it was given the {joined.records:,} records so far, and goes on with {going_on}"
        )

    def all_applied(self, total: int) -> None:
        """Everything was sent and applied."""
        self.tell(f"everybody has all {total:,} records; the members leave")
        self.bars.stop()

    def compared(self, outcome: Outcome) -> None:
        """The replicas, side by side."""
        for name, digest in outcome.digests.items():
            self.tell(f"{name}: {outcome.held[name]:,} records, digest {digest[:16]}")
            if outcome.wrong[name]:
                self.tell(f"{name} is NOT complete: {outcome.wrong[name]}")
        if outcome.identical and outcome.complete:
            self.tell("the tables are identical and complete: every record once, in the same order everywhere")
        elif not outcome.identical:
            self.tell("the tables are NOT identical")

    def audited(self, outcome: Outcome, report: Path) -> None:
        """The verdicts."""
        for name, verdict in outcome.verdicts.items():
            skipped = f", {verdict['skipped']:,} skipped" if verdict["skipped"] else ""
            self.tell(f"  {name:<22} {verdict['verdict']:<10} {verdict['judged']:,} facts judged{skipped}")
        if outcome.unjudged:
            self.tell(f"  not judged, as no rule is there yet: {', '.join(outcome.unjudged)}")
        self.tell(f"what the members wrote down, judged and drawn: {report}")

    def last_word(self, outcome: Outcome, result: Path) -> None:
        """Whether all is well."""
        if outcome.kill is not None and not outcome.kill.all_had_lines:
            self.tell("NOT all members had records left when the sequencer was killed: give longer input")
        if outcome.broken:
            self.tell(f"BROKEN: {', '.join(outcome.broken)}")
        self.tell(f"{'all is well' if outcome.ok else 'NOT all is well'}; the numbers stand in {result}")
