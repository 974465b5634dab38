"""A short fuzz of every decoder and of `receive`, without a guide; the long one is `make fuzz`.  First it finds what is
planted."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pygroups.blocks import wire as blocks
from pygroups.blocks.replica import Replica
from pygroups.core.errors import PeerError
from pygroups.core.limits import SECOND
from pygroups.core.run import Run, pack, payloads_of
from pygroups.drivers.hello import Hello, decoded
from pygroups.layers.pbcast.heads import Gossip
from pygroups.layers.sequencer import Data as Ordered
from pygroups.layers.sequencer import Sequencer
from pygroups.layers.stable.layer import Stable
from tests.fuzz import targets
from tests.fuzz.receive import Play
from tests.fuzz.seeds import keep, kept, seeds
from tests.fuzz.worker import Fuzz, Order
from tests.wire.group import warm
from tests.wire.samples import C

FEW = {"packet": 60, "frame": 40, "datagram": 30, "connection": 20, "command": 40, "text": 40, "journal": 1}
"""Inputs of each decoder; each has further ones near it."""
DEEP = b"\x91" * 2_000 + b"\xc0"


def fuzz(target: str, inputs: int, seed: int = 1) -> Fuzz:
    """A fuzz of one target that has had its first inputs, and so many more."""
    fuzz, rng = Fuzz(Order(target, 1 << 40, 1e9, seed, "", "")), random.Random(seed)
    first = fuzz.seeds if target != "receive" else fuzz.seeds[:20]
    for data in first:
        fuzz.one(data)
    for _ in range(inputs):
        fuzz.one(fuzz.made(rng.choice(fuzz.seeds), 4_096, rng.getrandbits(64)))
    return fuzz


def stories(fuzz: Fuzz) -> list[str]:
    return [f"{where}\n{fault['story']}" for where, fault in fuzz.faults.items()]


@pytest.mark.parametrize("target", FEW)
def test_a_decoder_raises_nothing(target: str) -> None:
    found = fuzz(target, FEW[target])
    targets.close()
    assert stories(found) == []
    assert found.count > FEW[target]


@pytest.mark.slow
def test_stacks_in_the_middle_of_a_change_raise_nothing() -> None:
    assert stories(fuzz("receive", 600)) == []


def test_a_fault_of_a_decoder_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(payload: bytes) -> None:
        assert payload[-1:] != b"\xc0", "planted"

    monkeypatch.setattr(blocks, "opened", careless)
    assert any("planted" in story for story in stories(fuzz("command", 30)))


def test_a_fault_of_a_layer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Stable.on_vote

    def careless(self: Stable, vote: object, voter: object) -> None:
        assert len(vote.delivered) == len(vote.seen), "planted: the network is trusted"  # type: ignore[attr-defined]
        before(self, vote, voter)  # type: ignore[arg-type]

    monkeypatch.setattr(Stable, "on_vote", careless)
    assert any("planted" in story for story in stories(fuzz("receive", 400)))


def test_plays_stop_groups_at_different_moments() -> None:
    plays = [Play(seed) for seed in range(24)]
    views = {process.env.view for play in plays for process in play.group.processes.values()}
    assert None in views and len(views) > 3  # some have not joined yet
    assert any(play.group.flight for play in plays) and any(not play.group.flight for play in plays)
    assert {len(play.group.processes) for play in plays} >= {1, 2, 3, 4}


def test_inputs_are_kept_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.seeds.CORPUS", tmp_path / "corpus")
    keep("packet", [b"\x00\xff", b"", b"\x01", b"\x01"])
    assert kept("packet") == [b"\x01", b"\x00\xff"]
    assert seeds("packet")[-2:] == [b"\x01", b"\x00\xff"]


# -- what it found


@pytest.mark.parametrize("before", [blocks.COMMAND + b"\x95", blocks.NOTE + b"\x95", blocks.UNSERVED + b"\x94"])
def test_a_message_of_blocks_with_lists_in_lists_is_none(before: bytes) -> None:
    assert blocks.opened(before + b"\x01" * (before[-1] & 1) + b"\xa1x\xa1x\x01" + DEEP) is None


def test_a_command_with_malformed_text_is_dropped_by_all() -> None:
    replica = Replica()
    found = blocks.opened(blocks.COMMAND + b"\x94\x01\xa4lock\xa1x" + b"\x93\x00\x01\xa1\xff")
    assert isinstance(found, blocks.Command)
    replica.apply(targets.A, found)
    assert replica.malformed == 1


def test_a_hello_with_lists_in_lists_is_malformed() -> None:
    hello = b"\x97\xa8pygroups\x02\xa1g\x92\xa1A\xb0" + b"1" * 16 + b"\xa3h:1\xc0"
    assert decoded(b"\x96" + hello[1:], Hello).group == "g"
    with pytest.raises(PeerError):
        decoded(hello + DEEP, Hello)


def test_an_order_that_does_not_come_from_the_coordinator_loses_no_message() -> None:
    """It moved the end of an origin's prefix, so that the origin's next message was taken for a repeated one."""
    group = warm()
    receiver = group.processes[targets.B]
    sequencer = next(layer for layer in receiver.stack.layers if isinstance(layer, Sequencer))
    first = sequencer.received[C]
    order = Run(targets.stranger(), None, (Ordered(),), C, first, 0, 3, pack([b"forged"] * 3))
    (frame,) = targets.CODEC.encode(targets.stranger(), None, [order])
    receiver.stack.receive(frame, group.now)
    group.send(group.processes[targets.A], b"a")
    group.send(next(process for process in group.processes.values() if process.address.name == "C"), b"c")
    group.run(SECOND)
    assert [payloads_of(one.run) for one in receiver.delivered[-2:]] == [[b"a"], [b"c"]]


def test_a_gossip_with_ranks_beyond_the_view_is_malformed() -> None:
    group = warm(profile="gossip")
    view = group.processes[targets.B].env.view
    assert view is not None
    far = (1 << 40).to_bytes(6, "little")
    gossip = Gossip(0, 9_999, view, [(0, 3)], far, far)
    (frame,) = targets.CODEC.encode(targets.A, targets.B, [Run(targets.A, targets.B, (gossip,))])
    group.processes[targets.B].stack.receive(frame, group.now)
    group.processes[targets.B].end_turn()
    assert group.processes[targets.B].env.counters["drop malformed gossip"] == 1
