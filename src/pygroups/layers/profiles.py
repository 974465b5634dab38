"""The profiles: stacks by name, top first, each with its promise.

A profile is one entry here.  All else follows from the services that its layers give (core/services.py): the layers,
the channel, the simulator, the journal and the audit ask for a service, and never for the name of a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
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
from .merge2.layer import Merge2
from .nakack import Nakack
from .sequencer import Sequencer
from .stable.layer import Stable
from .state_transfer.layer import StateTransfer
from .unicast2.layer import Unicast2
from .verify_suspect import VerifySuspect

_LINKS: Final = (Unicast2, VerifySuspect, Failure, Discovery)
_GROUND: Final = (Gms, Merge2, *_LINKS)
_LARGE: Final = (StateTransfer, Fragmentation, FlowControl)


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


def _fifo() -> Profile:
    return Profile(
        "fifo",
        (*_LARGE, Flush, Stable, Nakack, *_GROUND),
        "each sender's messages in order, no loss, no repeat; virtual synchrony",
    )


def _total() -> Profile:
    return Profile(
        "total",
        (*_LARGE, Sequencer, Flush, Stable, Nakack, *_GROUND),
        "one order for all members of a view; virtual synchrony",
    )


def _uniform() -> Profile:
    from .gms.majority.primary import PrimaryGms  # its views are one chain, so no views merge
    from .uniform import Uniform

    return Profile(
        "uniform",
        (*_LARGE, Uniform, Sequencer, Flush, Stable, Nakack, PrimaryGms, *_LINKS),
        "as total, and what any member delivered all survivors of the primary component deliver, in one order",
    )


def _uniform_fifo() -> Profile:
    from .gms.majority.primary import PrimaryGms
    from .uniform import Uniform

    return Profile(
        "uniform-fifo",
        (*_LARGE, Uniform, Flush, Stable, Nakack, PrimaryGms, *_LINKS),
        "as uniform, with the order of each sender in place of one order",
    )


def _total1999() -> Profile:
    from .total import Total

    return Profile(
        "total1999",
        (*_LARGE, Flush, Stable, Total, *_GROUND),
        "as total, by the protocol of 1999 over a multicast that loses messages",
        transport="udp",
    )


def _gossip() -> Profile:
    from .hints.layer import Hints
    from .pbcast.layer import Pbcast
    from .rate import Rate

    return Profile(
        "gossip",
        (FlowControl, Rate, Pbcast, Hints, Merge2, *_LINKS),
        "each sender's messages in order, with high probability; a lost message is announced as a gap",
        transport="udp",
    )


def _unicast() -> Profile:
    return Profile(
        "unicast",
        (Fragmentation, FlowControl, Unicast2),
        "two processes, no group: each message once, in order, per connection",
    )


class _Profiles(MutableMapping[str, Profile]):
    """Profiles by name.  Each is made when it is first asked for, and imports the layers that `total` does not have."""

    def __init__(self, makers: Mapping[str, Callable[[], Profile]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, Profile] = {}

    def __getitem__(self, name: str) -> Profile:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __setitem__(self, name: str, profile: Profile) -> None:
        self._made[name] = profile
        self._makers[name] = lambda: profile

    def __delitem__(self, name: str) -> None:
        self._made.pop(name, None)
        del self._makers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


PROFILES: Final[MutableMapping[str, Profile]] = _Profiles(
    {
        "fifo": _fifo,
        "total": _total,
        "uniform": _uniform,
        "uniform-fifo": _uniform_fifo,
        "total1999": _total1999,
        "gossip": _gossip,
        "unicast": _unicast,
    }
)


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
