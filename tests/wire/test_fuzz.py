"""A short fuzz of the decoder and of whole stacks, first seen to find what is planted; the long one is `make fuzz`."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from pygroups.core.address import Address
from pygroups.core.errors import PeerError
from pygroups.core.layer import Layer
from pygroups.core.limits import SECOND
from pygroups.core.run import Run, payloads_of
from pygroups.core.view import Ballot, ViewId
from pygroups.layers.gms.heads import Collect, Difference, Propose, SideEnd
from pygroups.layers.gms.layer import Gms
from pygroups.layers.sequencer import Data
from pygroups.layers.stable.layer import Stable
from pygroups.layers.stable.votes import Vote
from tests.wire import fuzz
from tests.wire.group import Group, Process, warm
from tests.wire.samples import A, B, C, a_codec, packet_of, sealed

Damage = Callable[[random.Random, bytes, bytes], bytes]

KNOWN = {
    "AssertionError in nakack._ask > layer.tell",
    "KeyError in flush.up_event > flush._fetch",
}
"""Where a lie still ends a member.  Each has a test below; when that one passes, its line here goes with its mark."""


@pytest.mark.parametrize(("how", "share"), [(fuzz.damaged_bytes, 0.05), (fuzz.damaged_values, 0.03), (fuzz.lies, 0.4)])
def test_damage_of_every_kind_gets_through_the_decoder(how: Damage, share: float) -> None:
    """A fuzz whose frames are all malformed would find nothing behind the decoder."""
    rng, codec, packets = random.Random(1), a_codec(), [packet_of(frame) for _, frame in fuzz.real_frames(1)]
    malformed = 0
    for _ in range(1_000):
        try:
            codec.decode(sealed(how(rng, rng.choice(packets), rng.choice(packets)) or b"-"), B)
        except PeerError as error:
            malformed += error.reason == "malformed packet"
    assert 1_000 - malformed > share * 1_000


def test_a_fault_in_a_layer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_vote(self: Stable, vote: Vote, voter: Address) -> None:
        assert len(vote.delivered) == len(vote.seen), "planted: the network is trusted"

    monkeypatch.setattr(Stable, "on_vote", on_vote)
    assert any("planted" in story for _, _, story in map(fuzz.attack, range(60)))


def test_a_decoder_that_raises_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless:
        def decode(self, frame: bytes, me: object) -> list[Run]:
            raise KeyError("planted")

    monkeypatch.setattr(fuzz, "a_codec", Careless)
    with pytest.raises(KeyError, match="planted"):
        fuzz.fuzz_decoder(random.Random(1), fuzz.real_frames(1), 1)


def test_the_decoder_takes_damaged_frames_or_refuses_them() -> None:
    seen = fuzz.fuzz_decoder(random.Random(2), fuzz.real_frames(2), 4_000)
    assert {"taken", "malformed packet", "malformed run", "empty run", "for another incarnation"} <= set(seen)


def test_stacks_survive_damaged_frames() -> None:
    """New ways to fail only; those that are known are tested one by one."""
    stories = {where: story for _, where, story in map(fuzz.attack, range(60)) if where is not None}
    new = [story for where, story in stories.items() if where not in KNOWN]
    assert not new, "\n".join(new)


# -- lies that ended a member once, or still do


def layer_of(process: Process, kind: type[Layer]) -> Any:
    return next(layer for layer in process.stack.layers if isinstance(layer, kind))


def tells(group: Group, sender: Process, kind: type[Layer], dest: Address, *heads: object) -> None:
    """The layer `kind` of `sender` says this to its peer at `dest`, whatever it believes."""
    layer = layer_of(sender, kind)
    for head in heads:
        layer.tell(dest, head)
    sender.stack._settle(sender.stack.layers.index(layer))
    sender.end_turn()
    group.settle()


def test_an_order_of_nothing_ends_nobody() -> None:
    group = warm()
    (frame,) = a_codec().encode(A, None, [Run(A, None, (Data(),))])
    group.processes[B].stack.receive(frame, group.now)
    group.send(group.processes[C], b"and it goes on")
    group.settle()
    assert payloads_of(group.processes[B].delivered[-1].run) == [b"and it goes on"]


@pytest.mark.parametrize(
    ("cut", "holders"),
    [
        pytest.param([9, 9, 9], [1, 1, 1], id="the receiver itself"),
        pytest.param([9, 9, 9], [0], id="no holder"),
        pytest.param([9, 9, 9, 9], [0, 0, 0, 0], id="a stream of no member"),
        pytest.param([9], [3], id="a stranger"),
        pytest.param([9, 9, 9], [0, 0, 0], id="runs that nobody has"),
    ],
)
def test_a_cut_that_makes_no_sense_ends_nobody(cut: list[int], holders: list[int]) -> None:
    """Whoever leads is trusted with the view's future, not with the life of its members."""
    group = warm()
    sender = group.processes[A]
    old = sender.env.view
    assert old is not None
    ballot = Ballot(old.number + 5, A)
    side = SideEnd(old, None, [], cut, holders)
    next_view = Difference(ballot, ViewId.of(ballot), "", (side,), {}, True, {})
    tells(group, sender, Gms, B, Collect(ballot, old), Propose(next_view))
    group.run(5 * SECOND)
