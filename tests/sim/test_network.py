"""The simulated network by itself: what comes of one frame."""

from __future__ import annotations

import pytest

from pygroups.core.address import Address
from pygroups.core.errors import PeerError
from pygroups.core.run import Run
from pygroups.core.view import ViewId
from pygroups.layers.gms.heads import Done
from pygroups.sim.schedules.schedule import Weather
from pygroups.sim.world.network import CALM, SimulatedNetwork
from pygroups.wire.codec import Codec

ME, PEER = Address("A", "a" * 16), Address("B", "b" * 16)


def frames(codec: Codec, count: int) -> list[bytes]:
    return [
        frame for n in range(count) for frame in codec.encode(PEER, ME, [Run(PEER, ME, (Done(ViewId(n + 1, ME)),))])
    ]


def test_what_is_corrupted_does_not_hold_up_and_is_counted_by_kind() -> None:
    codec, network = Codec("simulated", [Done]), SimulatedNetwork(1, Weather(corrupt=1.0))
    reasons: dict[str, int] = {}
    for frame in frames(codec, 300):
        ((_, arrived, _),) = network.arrivals("B", "A", frame)
        assert arrived != frame
        with pytest.raises(PeerError) as dropped:
            codec.decode(arrived, ME)
        reasons[dropped.value.reason] = reasons.get(dropped.value.reason, 0) + 1
    counted = [network.counters[kind] for kind in ("flipped", "truncated", "glued")]
    assert sum(counted) == 300 and min(counted) > 60
    assert reasons["checksum"] > 150 and reasons["the frame is too short or too long"] > 10


def test_glued_frames_are_one_after_the_other() -> None:
    network = SimulatedNetwork(1, Weather(corrupt=1.0))
    sent = [bytes([n]) * 40 for n in range(50)]
    arrived = [network.arrivals("B", "A", frame)[0][1] for frame in sent]
    glued = [frame for frame in arrived if len(frame) == 80]
    assert len(glued) == network.counters["glued"] > 5
    assert all(frame[:40] in sent and frame[40:] in sent for frame in glued)


def test_a_clogged_link_holds_everything_until_then() -> None:
    network = SimulatedNetwork(1, CALM)
    network.clog([("A", "B")], 1_000_000)
    waits = [network.held("A", "B", now) for now in (0, 999_999)]
    assert waits[0] is not None and 1_000_000 <= waits[0] <= 1_001_000
    assert waits[1] is not None and 1 <= waits[1] <= 1_001
    assert network.held("B", "A", 0) is None and network.held("A", "B", 1_000_000) is None
    network.clog([("A", "B")], 2_000_000)
    network.mend_all()
    assert network.held("A", "B", 0) is None
    assert network.counters["clogged"] == 2


def test_late_copies_may_come_long_after() -> None:
    network = SimulatedNetwork(1, Weather(late=1.0, late_max=30_000_000))
    copies = [network.arrivals("A", "B", b"frame")[1] for _ in range(100)]
    assert all(frame == b"frame" and outlives for _, frame, outlives in copies)
    assert max(delay for delay, _, _ in copies) > 20_000_000 and min(delay for delay, _, _ in copies) >= 100_000


def test_two_cuts_on_a_link_are_mended_one_by_one() -> None:
    network = SimulatedNetwork(1, CALM)
    network.cut([("A", "B")])
    network.cut([("A", "B")])
    network.mend([("A", "B")])
    assert network.arrivals("A", "B", b"frame") == () and network.arrivals("B", "A", b"frame") != ()
    network.mend([("A", "B")])
    assert network.is_open("A", "B")
