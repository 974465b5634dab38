"""The output of the demo: sentences about its events, and on a terminal a progress bar for each member."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from pygroups.layers.profiles import profile_named

from .feeds import Feed
from .messages import Joined
from .process import MemberProcess
from .result import DemoResult, Kill
from .settings import DemoSettings


class Narrator:
    """Prints sentences with the time since the start.  On a terminal it also shows progress bars."""

    def __init__(self, settings: DemoSettings) -> None:
        self.began = time.monotonic()
        self.console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
        columns = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn(), TextColumn("records sent"))
        self.bars = Progress(*columns, console=self.console, transient=True, disable=not sys.stdout.isatty())
        self.bar_of: dict[str, TaskID] = {}
        self.bars.start()
        self._begin(settings)

    def close(self) -> None:
        """Remove the bars."""
        self.bars.stop()

    def tell(self, sentence: str) -> None:
        """Print one sentence, with the time."""
        self.console.print(f"{time.monotonic() - self.began:6.1f} s  {sentence}", markup=False)

    def step(self, what: str) -> None:
        """Print one step of the audit."""
        self.tell(f"audit: {what}")

    def _begin(self, settings: DemoSettings) -> None:
        feeds = ", ".join(f"{feed.name} ({len(feed.records()):,})" for feed in settings.feeds)
        total = sum(len(feed.records()) for feed in settings.feeds)
        self.tell(f"starting {settings.members} members, each a process on this machine; seed {settings.seed}")
        self.tell(f"profile {settings.profile}: {profile_named(settings.profile).promise}")
        self.tell(f"the members will send {total:,} records to all members: {feeds}")

    def together(self, sequencer: str, feeds_of: dict[str, list[Feed]]) -> None:
        """Print that all members have found each other."""
        self.tell(f"all members are in one view; {sequencer} is the sequencer, which orders all messages")
        for name, feeds in feeds_of.items():
            what = ", ".join(feed.name for feed in feeds) or "only listens"
            self.bar_of[name] = self.bars.add_task(f"{name} {what}"[:28], total=None)
        self.tell("each member sends its feed, and writes the records of all members into its own SQLite table")

    def progressed(self, member: MemberProcess) -> None:
        """Update the bar of a member."""
        if member.name not in self.bar_of:
            return  # the bars start when all members are in one view
        total = sum(member.progress.totals.values())
        self.bars.update(self.bar_of[member.name], total=total, completed=member.sent)

    def killed(self, victim: MemberProcess, kill: Kill, others: Sequence[MemberProcess]) -> None:
        """Print that the sequencer was killed, and that the other members go on."""
        total = sum(victim.progress.totals.values())
        self.tell(
            f"kill -9 of {victim.name}, the sequencer: it had sent {kill.sent:,} of its {total:,} records, "
            f"and not all members had acknowledged its last {kill.runs} runs"
        )
        names = ", ".join(member.name for member in others)
        gap = (
            "no other member sends"
            if kill.gap_ms is None
            else f"the next record was delivered {kill.gap_ms:.0f} ms after the kill"
        )
        self.tell(f"{names} agreed on a view without {victim.name} {kill.view_ms:.0f} ms after the kill; {gap}")

    def starts_again(self, name: str) -> None:
        """Print that a new process starts under the old name."""
        self.tell(f"starting {name} again, with an empty table")

    def comes_back(self, joined: Joined, kill: Kill) -> None:
        """Print that the new process has joined."""
        going_on = ", ".join(f"line {line:,} of {feed}" for feed, line in joined.lines.items()) or "no feed of its own"
        self.tell(
            f"{joined.address.partition('@')[0]} is back as a new member after {kill.back_seconds * 1000:.0f} ms: "
            f"it got the {joined.records:,} records so far as its state, and continues with {going_on}"
        )

    def all_applied(self, total: int) -> None:
        """Print that all members have all records."""
        self.tell(f"all members have all {total:,} records, and leave the group")
        self.bars.stop()

    def compared(self, outcome: DemoResult) -> None:
        """Print the comparison of the tables."""
        for name, digest in outcome.digests.items():
            self.tell(f"{name}: {outcome.held[name]:,} records, digest {digest[:16]}")
            if outcome.wrong[name]:
                self.tell(f"{name} is NOT complete: {outcome.wrong[name]}")
        if outcome.identical and outcome.complete:
            self.tell("the tables are identical and complete: each has every record once, in the same order")
        elif not outcome.identical:
            self.tell("the tables are NOT identical")

    def audited(self, outcome: DemoResult, report: Path) -> None:
        """Print the verdicts of the audit."""
        for name, verdict in outcome.verdicts.items():
            skipped = f", {verdict['skipped']:,} skipped" if verdict["skipped"] else ""
            self.tell(f"  {name:<22} {verdict['verdict']:<10} {verdict['judged']:,} facts judged{skipped}")
        if outcome.unjudged:
            self.tell(f"  not judged, because these promises have no rule yet: {', '.join(outcome.unjudged)}")
        self.tell(f"the report of the audit: {report}")

    def last_word(self, outcome: DemoResult, result: Path) -> None:
        """Print whether the demo succeeded."""
        if outcome.kill is not None and not outcome.kill.all_had_lines:
            self.tell("NOT all members had records left when the sequencer was killed: give longer input")
        if outcome.broken:
            self.tell(f"BROKEN: {', '.join(outcome.broken)}")
        self.tell(f"{'success' if outcome.ok else 'FAILURE'}; the figures are in {result}")
