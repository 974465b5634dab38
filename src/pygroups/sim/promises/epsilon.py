"""epsilon: the share of the messages that members of a gossip group miss is below the bound that the group states.

A fact is one message at one member: a message of another member, sent after the point at which the receiver began.  A
message that was announced as a gap is missed.  Members that were apart for a while are not compared: their messages
went to members of other views.
"""

from __future__ import annotations

from math import exp, lgamma, log, log1p
from typing import Final

from pygroups.core.address import Address
from pygroups.core.limits import MILLION

from .facts import Check, Delivery, Rest, Viewed
from .messages import Messages

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
        self.starts: dict[Address, dict[Address, int]] = {}  # per member and origin, the first message
        self.views: dict[Address, tuple[Address, ...]] = {}  # the first view of each member
        self.known: dict[Address, dict[Address, bool]] = {}  # whom each member had in a view, and in the last one
        self.apart: dict[tuple[Address, Address], None] = {}  # the second came back into the views of the first
        self.delivered_of: dict[tuple[Address, Address], int] = {}  # messages, by member and origin
        self.judged = self.skipped = self.missed = 0

    def facts(self) -> dict[str, int]:
        return {"epsilon": self.judged}

    def viewed(self, view: Viewed) -> None:
        member = view.member
        if view.digest is not None:
            self.starts[member] = dict(view.digest)
            for pair in [pair for pair in self.delivered_of if pair[0] == member]:
                del self.delivered_of[pair]
        self.views.setdefault(member, view.members)
        known = self.known.setdefault(member, {})
        for other in view.members:
            if known.get(other) is False:
                self.apart[member, other] = None
        self.known[member] = dict.fromkeys(known, False) | dict.fromkeys(view.members, True)

    def delivered(self, delivery: Delivery) -> None:
        pair = (delivery.member, delivery.origin)
        self.delivered_of[pair] = self.delivered_of.get(pair, 0) + delivery.count

    def settled(self, rests: list[Rest]) -> None:
        facts = missed = apart = 0
        inside = [rest for rest in rests if rest.member in self.views]
        for rest in inside:
            for origin in inside:
                if rest is origin:
                    continue
                wanted, lacks = self._of_pair(rest.member, origin)
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
        """Whether the second of the two to join had the other in its first view, and none of them came back."""
        first = origin in self.views[member] or member in self.views[origin]
        return first and (member, origin) not in self.apart and (origin, member) not in self.apart

    def _of_pair(self, member: Address, origin: Rest) -> tuple[int, int]:
        """How many messages of `origin` the member should have, and how many it misses."""
        sent = max(origin.accepted - 1, len(self.messages.sent.get(origin.member, ())))
        wanted = max(0, sent + 1 - self.starts.get(member, {}).get(origin.member, 1))
        return wanted, max(0, wanted - self.delivered_of.get((member, origin.member), 0))
