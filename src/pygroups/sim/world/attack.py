"""Frames of an attacker that is in no view: without the key of the group, and with it.

Without the key: noise, and frames whose tag is that of another group.  With the key: forged heads that only members may
send (docs/layers/senders.md), in the view of the victim or near it, with payloads or without.  The promises must hold
as without them: no member takes anything from them.
"""

from __future__ import annotations

from random import Random
from typing import Final

from pygroups.core.address import INCARNATION_DIGITS, Address
from pygroups.core.run import Run
from pygroups.core.view import ViewId
from pygroups.layers import nakack, sequencer, total, uniform
from pygroups.layers.gms import heads as gms
from pygroups.layers.profiles import PROFILES, Profile
from pygroups.layers.stable.layer import Stable
from pygroups.layers.state_transfer.heads import StateAck
from pygroups.layers.verify_suspect import IAmAlive
from pygroups.wire.codec import Codec

from ..schedules.schedule import stream
from ..schedules.steps import Attack
from .forger import Forger
from .member import SimulatedMember
from .stacks import GROUP
from .victims import named, note
from .world import World

NAME: Final = "attacker"
OF_MEMBERS: Final[tuple[type, ...]] = (
    *(gms.LeaveReq, gms.CollectAck, gms.Low, gms.Accept, gms.Fetches, gms.Done, gms.Stuck, gms.Elsewhere),
    *(gms.Collect, gms.Propose, gms.Excluded, gms.Accuse, gms.ViewReq, gms.Expel),
    *(nakack.Data, nakack.XmitReq, nakack.HighestSeq, *Stable.heads, uniform.Commit, sequencer.Data, sequencer.Again),
    *(total.Bcast, total.Request, total.NewViewId, total.NewViewIdAck, total.CumSeqAck, total.SeqAck, total.Resend),
    *(StateAck, IAmAlive),
)
"""Heads that a receiver with a view takes from members only."""


def attack(world: World, action: Attack) -> None:
    """Frames of a process that is in no view arrive at the victim."""
    victim = named(world, action.who)
    if victim is None or victim.view is None:  # a process without a view cannot know who its members are
        return
    note(world, "attack", [victim])
    rng = stream(world.schedule.seed, "attack", world.agenda.now)
    sender = Address(NAME, f"{rng.getrandbits(64):016x}"[:INCARNATION_DIGITS])
    for frame in frames(rng, PROFILES[world.schedule.profile], victim, sender, action.frames):
        world.count("frames of an attacker")
        world.agenda.after(rng.randrange(1, 1_000), _arrives, victim, sender, frame)


def _arrives(victim: SimulatedMember, sender: Address, frame: bytes) -> None:
    if not victim.ended:
        victim.arrive((sender, frame))


def frames(rng: Random, profile: Profile, victim: SimulatedMember, sender: Address, count: int) -> list[bytes]:
    """So many frames of `sender`, which knows the view of the victim."""
    view = victim.view
    assert view is not None
    heads = [head for head in profile.heads() if head in OF_MEMBERS]
    number, leader = view.id
    near = (view.id, ViewId(number + 1, leader), ViewId(max(0, number - 1), leader))
    forger = Forger(rng, (*view.members, sender), near)
    made: list[bytes] = []
    while len(made) < count:
        if rng.random() < 0.1:
            made.append(rng.randbytes(rng.randrange(1, 300)))
            continue
        group = GROUP if rng.random() < 0.9 else "another group"
        dest = rng.choice((victim.address, None))
        run = Run(sender, dest, (forger.head(rng.choice(heads)),), *(forger.payload() if rng.random() < 0.3 else ()))
        made += Codec(group, profile.heads()).encode(sender, dest, [run])
    return made
