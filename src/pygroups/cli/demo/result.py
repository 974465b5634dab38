"""The result of a demo: the kill, the replicas, the verdicts of the audit, and whether the demo succeeded."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec


@dataclass
class Kill:
    """The kill of the sequencer and its return.  Times are from the SIGKILL to the slowest survivor."""

    address: str
    runs: int  # sent and not acknowledged by all members
    sent: int  # lines, until then
    all_had_lines: bool  # all members still had lines to send
    view_ms: float
    gap_ms: float | None  # to the next delivery, in the view without it; None: no other member had lines to send
    back_seconds: float = 0.0  # from the new process to its first view
    state_records: int = 0


@dataclass
class DemoResult:
    """The results that are compared at the end."""

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
        """Whether each replica has every record exactly once."""
        return not any(self.wrong.values())

    @property
    def broken(self) -> list[str]:
        """The promises that were broken."""
        return [name for name, verdict in self.verdicts.items() if verdict["verdict"] == "broken"]

    @property
    def ok(self) -> bool:
        """Whether the demo succeeded."""
        return self.identical and self.complete and not self.broken and (self.kill is None or self.kill.all_had_lines)

    def as_json(self, seed: int, profile: str) -> bytes:
        """demo.json: counts, digests and verdicts, for a program to read."""
        content = {
            "ok": self.ok,
            "seed": seed,
            "profile": profile,
            "seconds": round(self.seconds, 3),
            "records": self.records,
            "counts": self.held,
            "digests": self.digests,
            "identical": self.identical,
            "complete": self.complete,
            "gap_ms": None if self.kill is None else self.kill.gap_ms,
            "kill": None if self.kill is None else asdict(self.kill),
            "verdicts": self.verdicts,
            "unjudged": self.unjudged,
        }
        return msgspec.json.format(msgspec.json.encode(content)) + b"\n"
