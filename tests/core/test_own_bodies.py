"""Large runs that go back to their origin without their bodies: core/own_bodies.py."""

from __future__ import annotations

import random

import msgspec
import pytest

from pygroups.core.address import Address
from pygroups.core.errors import PeerError
from pygroups.core.layer import Env
from pygroups.core.limits import Config
from pygroups.core.own_bodies import with_own_bodies, without_own_bodies
from pygroups.core.run import Run, pack
from pygroups.layers.sequencer import Data, Sequencer
from pygroups.sim.batches.runner import play
from pygroups.sim.schedules.draw import Wish, draw
from pygroups.wire.codec import Codec

A, B, C, D = (Address(name, f"{number:016x}") for number, name in enumerate("ABCD", 1))
LARGE, SMALL = pack([bytes(100)]), pack([b"x"])
LOSSES_SEED = 3  # over streams, with large runs of several members


def ordered(origin: Address, first: int, body: bytes = LARGE) -> Run:
    return Run(A, None, (Data(),), origin, first, 0, 1, body)


def test_each_receiver_gets_all_runs_in_order_and_the_origin_no_large_body() -> None:
    runs = [ordered(A, 1), ordered(B, 1), ordered(C, 1), ordered(C, 2, SMALL), ordered(B, 2), ordered(D, 1)]
    parts = without_own_bodies((B, C, D), runs, len(LARGE))
    for dest in (B, C, D):
        got = [run for dests, part in parts if dest in dests for run in part]
        assert [(run.origin, run.first) for run in got] == [(run.origin, run.first) for run in runs]
        assert [not run.body for run in got] == [run.origin == dest and len(run.body) == len(LARGE) for run in runs]
    assert all(dests and part for dests, part in parts)


def test_the_only_other_member_gets_its_run_in_one_frame_with_the_others() -> None:
    parts = without_own_bodies((B,), [ordered(A, 1), ordered(B, 1)], 1)
    assert [(dests, [len(run.body) for run in part]) for dests, part in parts] == [((B,), [len(LARGE), 0])]


def test_the_origin_puts_in_the_body_that_it_keeps_and_drops_what_it_does_not_keep() -> None:
    env = Env(B, 0, random.Random(1), Config())
    sequencer = Sequencer(env)
    sequencer.down(Run(B, None, (), B, 7, 0, 1, LARGE))
    bare, other = ordered(B, 7, b""), ordered(C, 1)
    assert [run.body for run in with_own_bodies([other, bare], env)] == [LARGE, LARGE]
    assert with_own_bodies([msgspec.structs.replace(bare, count=2), ordered(B, 8, b""), other], env) == [other]
    assert env.drops == {"own run without its body": 2}


def test_only_a_multicast_to_its_origin_may_have_no_body() -> None:
    codec = Codec("g", [Data])
    (frame,) = codec.encode(A, None, [ordered(B, 7, b"")])
    ((run),) = Codec("g", [Data]).decode(frame, B)
    assert (run.origin, run.first, run.body) == (B, 7, b"")
    with pytest.raises(PeerError, match="malformed run"):
        Codec("g", [Data]).decode(frame, C)
    (frame,) = codec.encode(A, B, [ordered(B, 7, b"")])
    with pytest.raises(PeerError, match="malformed run"):
        Codec("g", [Data]).decode(frame, B)


def test_a_body_that_its_origin_does_not_keep_is_repaired_like_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, asked = Sequencer._own_body, iter(range(1 << 30))
    monkeypatch.setattr(Sequencer, "_own_body", lambda self, run: kept(self, run) if next(asked) % 3 else None)
    outcome = play(draw(LOSSES_SEED, Wish(profile="total")))
    assert outcome.drops["own run without its body"] > 10
    assert outcome.witness is None
    assert not outcome.empty
