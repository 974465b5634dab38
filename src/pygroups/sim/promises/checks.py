"""The checks that judge the promises of a stack, by the services that its layers give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pygroups.core.services import (
    FIFO_MULTICAST,
    GOSSIP,
    MARKS,
    MEMBERSHIP,
    MERGING,
    PRIMARY,
    STATE_AT_VIEW,
    STREAMS,
    TOTAL,
    UNIFORM,
    VIRTUAL_SYNCHRONY,
)

from .alone import SettledAlone
from .causal import Causal
from .chain import Chain
from .changes import Changes
from .confirmed import Confirmed
from .duties import Leaves, Repairs, Windows
from .epsilon import FewMissed
from .exclusions import SlowExclusion
from .facts import Check
from .few_views import FewViews
from .gossip import GossipMessages
from .joins import Joins
from .journals import JournalFirst
from .layers import ViewsInOrder
from .membership import ChecksMembership
from .merge_time import MergesInTime
from .merging import MergedViews
from .messages import Messages
from .one_primary import OnePrimary
from .order import OneOrder
from .pace import RequestPace
from .progress import Progress
from .quiet import Quiet
from .stability import StableMessages
from .states import StatesOfViews
from .synchrony import Synchrony
from .unicasts import ConnectionsInOrder, Unicasts
from .uniform import GlobalOrder, UniformAgreement
from .views import OwnViews, TransitionalSet, ViewAccuracy
from .window import WindowBound


class Made:
    """The checks that other checks of the same judge read."""

    def __init__(self, services: frozenset[str]) -> None:
        self.services = services
        self.messages = GossipMessages() if GOSSIP in services else Messages()
        self.agreement = UniformAgreement()


VS: Final = frozenset({VIRTUAL_SYNCHRONY})
CHECKS: Final[tuple[tuple[frozenset[str], Callable[[Made], Check]], ...]] = (
    (frozenset(), lambda made: OwnViews()),
    (VS, lambda made: TransitionalSet()),
    (frozenset(), lambda made: ViewAccuracy()),
    (VS, lambda made: Changes()),
    (VS, lambda made: OnePrimary()),
    (VS, lambda made: Confirmed()),
    (frozenset({STATE_AT_VIEW}), lambda made: StatesOfViews(made.messages)),  # before messages: it takes over digests
    (frozenset(), lambda made: made.messages),
    (frozenset({GOSSIP}), lambda made: FewMissed(made.messages)),
    (VS | {MERGING}, lambda made: MergedViews(made.messages)),
    (frozenset({MERGING}), lambda made: MergesInTime()),
    (frozenset({PRIMARY}), lambda made: Chain()),
    (frozenset({TOTAL}), lambda made: OneOrder()),
    (frozenset({TOTAL}), lambda made: Causal(made.messages)),
    (frozenset({UNIFORM}), lambda made: made.agreement),
    (frozenset({UNIFORM, TOTAL}), lambda made: GlobalOrder(made.agreement)),
    (frozenset({MARKS}), lambda made: StableMessages(made.messages)),
    (frozenset(), lambda made: Quiet(made.messages)),
    (VS, lambda made: Synchrony()),
    (frozenset(), lambda made: Unicasts()),
    (frozenset(), lambda made: ConnectionsInOrder()),
    (VS, lambda made: Progress(made.messages)),
    (frozenset(), lambda made: FewViews()),
    (VS, lambda made: ChecksMembership()),
    (frozenset(), lambda made: ViewsInOrder()),
    (frozenset(), lambda made: Joins()),
    (frozenset({MARKS}), lambda made: WindowBound(made.messages)),
    (frozenset(), lambda made: Leaves()),
    (frozenset({FIFO_MULTICAST}), lambda made: Repairs(made.messages, one_order=TOTAL in made.services)),
    (frozenset({STREAMS}), lambda made: RequestPace()),
    (frozenset({MARKS}), lambda made: Windows()),
    (frozenset({MARKS}), lambda made: SlowExclusion()),
    (frozenset(), lambda made: JournalFirst()),
)
"""The checks of a stack with views, in the order in which they hear a fact, each with the services that it judges."""


def checks_of(services: frozenset[str]) -> list[Check]:
    """The checks of the promises that a stack with these services makes."""
    if MEMBERSHIP not in services:
        return [Unicasts(), ConnectionsInOrder(), SettledAlone(), JournalFirst()]
    made = Made(services)
    return [check(made) for needed, check in CHECKS if needed <= services]
