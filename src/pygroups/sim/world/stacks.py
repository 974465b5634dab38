"""The stacks of the simulated members: those of a profile, with a counting codec between stack and network."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from pygroups.core.address import Address
from pygroups.core.layer import Env
from pygroups.core.stack import Stack
from pygroups.core.trace import Crossing
from pygroups.layers.profiles import Profile, build_stack, profile_named
from pygroups.wire.codec import Codec

from ..schedules.stages import Watched
from .passing import noting

GROUP: Final = "simulated"  # the group name in all frames


def builder_of(
    profile: str | Profile, trace: Callable[[Address, Crossing], None] | None = None
) -> Callable[[Env], Stack]:
    """Return a function that builds a member's stack of `profile`: a name, or a profile of the caller.  Raises
    UsageError for an unknown name.  The stacks report to `trace` each item that crosses a border between two layers."""
    named = profile_named(profile) if isinstance(profile, str) else profile
    found, heads = named._replace(layers=noting(named.layers)), named.heads()

    def build(env: Env) -> Stack:
        to = partial(trace, env.me) if trace is not None else None
        return build_stack(found, env, lambda _: Watched(Codec(GROUP, heads)), to)

    return build
