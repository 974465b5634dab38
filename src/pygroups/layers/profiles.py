"""The profiles: stacks by name, top first, each with its promise.

A profile is one entry here.  All else follows from the services that its layers give (core/services.py): the layers,
the channel, the simulator, the journal and the audit ask for a service, and never for the name of a profile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from pygroups.core.errors import UsageError
from pygroups.core.fingerprint import fingerprint
from pygroups.core.layer import Env, Layer, services_of
from pygroups.core.stack import Codec, Stack
from pygroups.core.top import Top
from pygroups.core.trace import Trace, TracedStack

from .discovery.layer import Discovery
from .failure.layer import Failure
from .flow_control.layer import FlowControl
from .flush import Flush
from .fragmentation.layer import Fragmentation
from .gms.layer import Gms
from .gms.majority.primary import PrimaryGms
from .hints.layer import Hints
from .merge2.layer import Merge2
from .nakack import Nakack
from .pbcast.layer import Pbcast
from .rate import Rate
from .sequencer import Sequencer
from .stable.layer import Stable
from .state_transfer.layer import StateTransfer
from .total import Total
from .unicast2.layer import Unicast2
from .uniform import Uniform
from .verify_suspect import VerifySuspect

_LINKS: Final = (Unicast2, VerifySuspect, Failure, Discovery)
_GROUND: Final = (Gms, Merge2, *_LINKS)
_PRIMARY: Final = (PrimaryGms, *_LINKS)  # views are one chain, so no views merge


class Profile(NamedTuple):
    """A stack with a name and a promise."""

    name: str
    layers: tuple[type[Layer], ...]  # below the top, top first
    promise: str  # one sentence
    transport: str = "tcp"  # unless the channel names another one

    def heads(self) -> list[type]:
        """The heads that may come on the wire."""
        return [head for layer in self.layers for head in layer.heads]

    @property
    def services(self) -> frozenset[str]:
        """What the layers give: see core/services.py."""
        return services_of(self.layers)

    def stack_name(self) -> str:
        """The layers by name, for the fingerprint that members compare."""
        return "/".join(layer.__name__ for layer in self.layers)


PROFILES: Final = {
    profile.name: profile
    for profile in (
        Profile(
            "fifo",
            (StateTransfer, Fragmentation, FlowControl, Flush, Stable, Nakack, *_GROUND),
            "each sender's messages in order, no loss, no repeat; virtual synchrony",
        ),
        Profile(
            "total",
            (StateTransfer, Fragmentation, FlowControl, Sequencer, Flush, Stable, Nakack, *_GROUND),
            "one order for all members of a view; virtual synchrony",
        ),
        Profile(
            "uniform",
            (StateTransfer, Fragmentation, FlowControl, Uniform, Sequencer, Flush, Stable, Nakack, *_PRIMARY),
            "as total, and what any member delivered all survivors of the primary component deliver, in one order",
        ),
        Profile(
            "uniform-fifo",
            (StateTransfer, Fragmentation, FlowControl, Uniform, Flush, Stable, Nakack, *_PRIMARY),
            "as uniform, with the order of each sender in place of one order",
        ),
        Profile(
            "total1999",
            (StateTransfer, Fragmentation, FlowControl, Flush, Stable, Total, *_GROUND),
            "as total, by the protocol of 1999 over a multicast that loses messages",
            transport="udp",
        ),
        Profile(
            "gossip",
            (FlowControl, Rate, Pbcast, Hints, Merge2, *_LINKS),
            "each sender's messages in order, with high probability; a lost message is announced as a gap",
            transport="udp",
        ),
        Profile(
            "unicast",
            (Fragmentation, FlowControl, Unicast2),
            "two processes, no group: each message once, in order, per connection",
        ),
    )
}


def profile_named(name: str) -> Profile:
    """The profile with this name.  Raises UsageError if there is none."""
    if name in PROFILES:
        return PROFILES[name]
    built = ", ".join(PROFILES)
    raise UsageError(f"there is no profile {name!r}; there are: {built}")


def build_stack(
    profile: Profile, env: Env, codec_of: Callable[[Sequence[type]], Codec], trace: Trace | None = None
) -> Stack:
    """The stack of one member.  `codec_of` makes the codec from the heads that the layers declare.  With `trace` the
    stack reports each item that crosses a border between two layers."""
    env.services = profile.services
    agreed = f"on_merge={env.on_merge} {env.config.fingerprint()}"
    env.fingerprint = fingerprint(profile.name, profile.stack_name(), agreed)
    top = Top(env)
    layers, codec = [top, *(layer(env) for layer in profile.layers)], codec_of(profile.heads())
    return Stack(env, layers, codec) if trace is None else TracedStack(env, layers, codec, trace)
