"""The options of blocks: those of a channel, but for the ones that the blocks need themselves."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

from pygroups.channel.options import Options
from pygroups.core.errors import UsageError
from pygroups.core.merge_side import KEEP, OnMerge
from pygroups.core.merge_side import PRIMARY as PRIMARY_SIDE
from pygroups.core.services import MERGING, PRIMARY, STATE_AT_VIEW, TOTAL, UNIFORM

ORDERED: Final = frozenset({TOTAL, STATE_AT_VIEW})
DECIDED: Final = frozenset({TOTAL, STATE_AT_VIEW, UNIFORM, PRIMARY})
_REASONS: Final = {
    STATE_AT_VIEW: "a member that joins gets no state",
    TOTAL: "the members do not handle all changes in one order",
    UNIFORM: "a crash could take back what a member has been given",
    PRIMARY: "both sides of a network split would give the same thing to a member each",
}
_REMEDY: Final = {ORDERED: "use 'total' or 'uniform'", DECIDED: "use 'uniform'"}


@dataclass(frozen=True)
class BlocksOptions(Options):
    """As the options of a channel.  `on_merge` is "primary" where views merge; `state` and `events` are the blocks'."""

    on_merge: str | OnMerge = PRIMARY_SIDE

    def __post_init__(self) -> None:
        services = self.chosen_profile.services
        if STATE_AT_VIEW not in services:
            raise UsageError(f"blocks need a profile with a state, and {self.profile!r} has none: use 'total'")
        if self.state is not None:
            raise UsageError("state= belongs to the blocks: keep the data of the program in one of them")
        if self.events != "all":
            raise UsageError("blocks read the events of their channel: leave out events='none'")
        if self.on_merge == PRIMARY_SIDE and not {MERGING, TOTAL} <= services:
            object.__setattr__(self, "on_merge", KEEP)  # nobody has this object yet
        elif self.on_merge == KEEP and {MERGING, TOTAL} <= services:
            raise UsageError(
                "with on_merge='keep' the sides of a network split would keep different blocks: use 'primary', or a "
                "function that chooses a side"
            )
        super().__post_init__()

    def for_channel(self) -> dict[str, Any]:
        """The arguments for Channel, without its state."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "state"}


def check_services(what: str, profile: str, services: frozenset[str], needed: frozenset[str]) -> None:
    """Raise UsageError, with the reason, for a block that this profile cannot carry."""
    missing = [reason for service, reason in _REASONS.items() if service in needed - services]
    if missing:
        raise UsageError(f"{what} does not work with profile {profile!r}: {missing[-1]}; {_REMEDY[needed]}")
