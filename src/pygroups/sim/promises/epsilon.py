"""epsilon: the share of the messages that members of a gossip group miss is below the bound that the group states.

A fact is one message at one member: a message of another member that had the receiver in its view, behind the point at
which the receiver began.  A message that was announced as a gap is missed.  Members that were apart for a while are not
compared: their messages went to members of other views.
"""

from __future__ import annotations

from math import exp, lgamma, log, log1p
from typing import Final

from pygroups.core.address import Address
from pygroups.core.events import Gap
from pygroups.core.limits import MILLION

from .facts import Check, Delivery, Rest, Viewed
from .messages import Messages

Pair = tuple[Address, Address]  # a member and an origin
LEVEL: Final = 1e-9
"""A share is above the bound if a group that keeps the bound misses so many messages with a smaller probability."""


def log_tail(misses: int, facts: int, share: float) -> float:
    """The natural logarithm of the probability of at least `misses` misses among `facts` independent facts, each of
    which is missed with the probability `share`; `misses` is above `share * facts`.

    This is the exact one-sided binomial test (C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial
    limits illustrated in the case of the binomial", Biometrika 26, 1934).  The terms of the sum fall from the first
    one on, so that the sum ends where they no longer matter.
    """
    if share >= 1:
        return 0.0
    first = lgamma(facts + 1) - lgamma(misses + 1) - lgamma(facts - misses + 1)
    first += misses * log(share) + (facts - misses) * log1p(-share)
    term = total = 1.0
    for count in range(misses, facts):
        term *= (facts - count) / (count + 1) * share / (1 - share)
        total += term
        if term < total * 1e-17:
            break
    return first + log(total)


def is_above(misses: int, facts: int, share: float) -> bool:
    """Whether so many misses show that messages are missed with a higher probability than `share`."""
    return misses > share * facts and log_tail(misses, facts, share) < log(LEVEL)


class FewMissed(Check):
    """Few messages are missed, between members that stayed together."""

    promises = ("epsilon",)

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.next: dict[Pair, int] = {}  # the number after the last message that the member delivered or gave up
        self.begun: dict[Pair, int] = {}  # the first message that the origin promises to the member
        self.known: dict[Address, dict[Address, bool]] = {}  # whom each member had in a view, and in the last one
        self.apart: dict[Pair, None] = {}  # the second came back into the views of the first
        self.lost: dict[Pair, list[range]] = {}  # the messages that the member announced as missing, or skipped
        self.judged = self.skipped = self.missed = 0

    def facts(self) -> dict[str, int]:
        return {"epsilon": self.judged}

    def viewed(self, view: Viewed) -> None:
        member = view.member
        if view.digest is not None:
            self.next = {pair: number for pair, number in self.next.items() if pair[0] != member}
            self.next |= {(member, origin): first for origin, first in view.digest.items()}
            self.begun |= {
                (member, origin): max(first, self.begun.get((member, origin), 1))
                for origin, first in view.digest.items()
            }
        known = self.known.setdefault(member, {})
        sent = len(self.messages.sent.get(member, ()))
        for other in view.members:
            if other not in known:
                self.begun[other, member] = max(sent + 1, self.begun.get((other, member), 1))
            elif not known[other]:
                self.apart[member, other] = None
        self.known[member] = dict.fromkeys(known, False) | dict.fromkeys(view.members, True)

    def delivered(self, delivery: Delivery) -> None:
        self._goes_on((delivery.member, delivery.origin), delivery.first, delivery.first + delivery.count)

    def gap_announced(self, member: Address, gap: Gap) -> None:
        self.lost.setdefault((member, gap.origin), []).append(range(gap.first, gap.next))
        self._goes_on((member, gap.origin), gap.first, gap.next)

    def _goes_on(self, pair: Pair, first: int, high: int) -> None:
        expected = self.next.get(pair, 1)
        if first > expected:
            self.lost.setdefault(pair, []).append(range(expected, first))
        self.next[pair] = max(expected, high)

    def settled(self, rests: list[Rest]) -> None:
        facts = missed = apart = 0
        for rest in rests:
            for origin in rests:
                if rest is not origin and rest.member in self.known and origin.member in self.known:
                    wanted, lacks = self._of_pair((rest.member, origin.member), origin.accepted - 1)
                    if self._were_together(rest.member, origin.member):
                        facts, missed = facts + wanted, missed + lacks
                    else:
                        apart += wanted
        share = self.around.config.epsilon_ppm / MILLION
        self.judged, self.skipped, self.missed = 0, apart, missed
        if is_above(facts, facts, share):  # otherwise no number of misses is above the bound
            self.judged = facts
            if is_above(missed, facts, share):
                chance = exp(max(-700.0, log_tail(missed, facts, share)))
                self.broken(
                    "epsilon",
                    f"{missed} of {facts} messages were missed; with the bound of {share:g} so many are missed with a "
                    f"probability of {chance:.0e}",
                )

    def _were_together(self, member: Address, origin: Address) -> bool:
        """Whether none of the two came back into the views of the other."""
        return (member, origin) not in self.apart and (origin, member) not in self.apart

    def _of_pair(self, pair: Pair, last: int) -> tuple[int, int]:
        """How many messages the member should have, up to the last one of the origin, and how many it misses."""
        first = self.begun.get(pair, 1)
        unheard = range(max(first, self.next.get(pair, 1)), last + 1)
        lost = sum([len(range(max(first, one.start), one.stop)) for one in self.lost.get(pair, ())])
        wanted = len(range(first, last + 1))
        return wanted, min(wanted, lost + len(unheard))
