"""The choice of the side that wins a merge, in the simulated world: the option `on_merge` of a channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pygroups.core.layer import Env
from pygroups.core.merge_side import KEEP, PRIMARY, MergeSide, Sides, choice_of
from pygroups.core.merge_side import OnMerge as Setting

from ..schedules.schedule import OnMerge


def choose(env: Env, on_merge: OnMerge) -> None:
    """Let the member of `env` choose like this.  Choices that failed are counted."""
    env.on_merge, env.chooses = choice_of(_SETTINGS[on_merge], lambda _: env.count("merge without a winner"))


def _last(sides: Sides) -> MergeSide:
    return max(sides, key=lambda side: max(side.members))


def _fails(sides: Sides) -> object:
    """Raise, or return no side."""
    if len(sides) == 2:
        raise ValueError("this application cannot decide")
    return None


_SETTINGS: Final[Mapping[OnMerge, str | Setting]] = {"keep": KEEP, "primary": PRIMARY, "last": _last, "fails": _fails}
