"""The checks that judge the promises of each profile."""

from __future__ import annotations

from typing import Final, NamedTuple

from pygroups.core.errors import UsageError

from .alone import SettledAlone
from .causal import Causal
from .chain import Chain
from .changes import Changes
from .confirmed import Confirmed
from .duties import Leaves, Repairs, Windows
from .exclusions import SlowExclusion
from .facts import Check
from .few_views import FewViews
from .joins import Joins
from .journals import JournalFirst
from .layers import ViewsInOrder
from .membership import ChecksMembership
from .merge_time import MergesInTime
from .merging import MergedViews
from .messages import Messages
from .one_primary import OnePrimary
from .order import OneOrder
from .progress import Progress
from .quiet import Quiet
from .stability import StableMessages
from .states import StatesOfViews
from .synchrony import Synchrony
from .unicasts import ConnectionsInOrder, Unicasts
from .uniform import GlobalOrder, UniformAgreement
from .views import OwnViews, TransitionalSet, ViewAccuracy
from .window import WindowBound


class Promised(NamedTuple):
    """What a profile with groups promises beside what each of them does."""

    ordered: bool = False  # one order for all members of a view
    uniform: bool = False  # what any member delivers, all survivors of the primary component deliver
    majority: bool = False  # a majority of each view decides the next one, so no views merge


OF_GROUPS: Final = {
    "fifo": Promised(),
    "total": Promised(ordered=True),
    "uniform": Promised(ordered=True, uniform=True, majority=True),
    "uniform-fifo": Promised(uniform=True, majority=True),
}
PROFILES: Final = (*OF_GROUPS, "unicast")


def checks_of(profile: str, *, merges: bool | None = None, majority: bool | None = None) -> list[Check]:
    """The checks of the promises of `profile`.  `merges`: whether views are merged.  `majority`: whether a majority of
    each view decides the next one.  None: as the profile has it."""
    if profile not in PROFILES:
        raise UsageError(f"the simulator has no checks for profile {profile!r}; there are: {', '.join(PROFILES)}")
    if profile == "unicast":
        return [Unicasts(), ConnectionsInOrder(), SettledAlone(), JournalFirst()]
    messages = Messages()
    named = OF_GROUPS[profile]
    order: list[Check] = [OneOrder(), Causal(messages)] if named.ordered else []
    majority = named.majority if majority is None else majority
    if named.uniform:
        agreement = UniformAgreement()
        order += [agreement, GlobalOrder(agreement)] if named.ordered else [agreement]
    merges = not majority if merges is None else merges
    merging: list[Check] = [MergedViews(messages), MergesInTime()] if merges else []
    chain: list[Check] = [Chain()] if majority else []
    return [
        OwnViews(),
        TransitionalSet(),
        ViewAccuracy(),
        Changes(),
        OnePrimary(),
        Confirmed(),
        StatesOfViews(messages),  # before messages, which takes over the digest of a view
        messages,
        *merging,
        *chain,
        *order,
        StableMessages(messages),
        Quiet(messages),
        Synchrony(),
        Unicasts(),
        ConnectionsInOrder(),
        Progress(messages),
        FewViews(),
        ChecksMembership(),
        ViewsInOrder(),
        Joins(),
        WindowBound(messages),
        Leaves(),
        Repairs(messages, one_order=named.ordered),
        Windows(),
        SlowExclusion(),
        JournalFirst(),
    ]
