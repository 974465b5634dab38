"""Judges two groups of one name that are born apart with other settings: each by itself, and that they never merge."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from .facts import Check, Rest, Situation, Viewed
from .judge import Judge


class Apart(Check):
    """No view has processes with different settings.  `others`: the names of the processes of the second group."""

    promises = ("view-accuracy",)

    def __init__(self, others: Sequence[str]) -> None:
        self.others = others
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"view-accuracy": self.judged}

    def viewed(self, view: Viewed) -> None:
        self.judged += 1
        for other in view.members:
            if (other.name in self.others) != (view.member.name in self.others):
                detail = "the view has a process with other settings"
                self.broken("view-accuracy", detail, member=view.member, other=other, view=view.id)


class TwoGroups(Judge):
    """The judge of one group, with a judge of the other one.  Facts of a member go to the judge of its group: see
    `of`."""

    def __init__(self, checks: list[Check], other_checks: list[Check], others: Sequence[str]) -> None:
        super().__init__([*checks, Apart(others)])
        self.others = others
        self.other = Judge([*other_checks, Apart(others)])
        self.other.around = self.around
        for check in self.other.checks:
            check.around = self.around
        self.other.counters, self.other.senders, self.other.heard = self.counters, self.senders, self.heard

    def of(self, name: str) -> Judge:
        return self.other if name in self.others else self

    @property
    def facts(self) -> dict[str, int]:
        other = self.other.facts
        return {promise: count + other[promise] for promise, count in super().facts.items()}

    def disturbed(self) -> None:
        super().disturbed()
        self.other.disturbed()

    def healed(self, deadline: int) -> None:
        super().healed(deadline)
        self.other.healed(deadline)

    def looked(self, situation: Situation) -> None:
        others = tuple(stand for stand in situation.stands if stand.member.name in self.others)
        own = tuple(stand for stand in situation.stands if stand.member.name not in self.others)
        super().looked(msgspec.structs.replace(situation, stands=own))
        self.other.looked(msgspec.structs.replace(situation, stands=others))

    def settled(self, rests: list[Rest]) -> None:
        super().settled([rest for rest in rests if rest.member.name not in self.others])
        self.other.settled([rest for rest in rests if rest.member.name in self.others])


def judge_of(others: Sequence[str], checks: Callable[[], list[Check]]) -> Judge:
    """The judge of a schedule.  `others`: the names of its processes with other settings; `checks` makes new checks."""
    return TwoGroups(checks(), checks(), others) if others else Judge(checks())
