"""The receivers of a heartbeat: all members of a small view; in a large one neighbors, and the others in turn."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.detection import detection, far_beats
from pygroups.core.limits import SECOND, Config
from pygroups.layers.failure.neighbors import neighbors, silences


def view(count: int) -> list[Address]:
    return [Address(f"m{number:04}", "1" * 8) for number in range(count)]


@given(st.integers(2, 60), st.integers(1, 5), st.integers(1, 25), st.integers(0, 500), st.data())
def test_each_member_hears_each_other_within_its_patience(
    count: int, aside: int, everybody: int, begin: int, data: st.DataObject
) -> None:
    config = Config(heartbeat_all=everybody, heartbeat_neighbors=aside)
    members = view(count)
    me, other = data.draw(st.permutations(members).map(lambda order: order[:2]))
    mine = neighbors(members, me, config)
    assert {*mine.near, *mine.far} == {*members} - {me}
    assert len(mine.near) + len(mine.far) == count - 1
    beats = [beat for beat in range(begin, begin + 3 * count) if other in mine.receivers(beat)]
    pauses = [later - earlier for earlier, later in pairwise(beats)]
    longest = (silences(neighbors(members, other, config), config)[me] - config.heartbeat_timeout) // config.heartbeat
    assert max(pauses) <= max(longest, 1)


def test_a_heartbeat_costs_the_same_in_every_large_view() -> None:
    config = Config()
    told = {
        count: len(neighbors(view(count), view(count)[3], config).receivers(5)) for count in (5, 20, 21, 100, 1_000)
    }
    assert told == {5: 4, 20: 19, 21: 16, 100: 16, 1_000: 16}


def test_a_silent_neighbor_is_noticed_as_soon_as_in_a_small_view() -> None:
    config, members = Config(), view(100)
    allowed = silences(neighbors(members, members[50], config), config)
    near = [member for member, silence in allowed.items() if silence == config.heartbeat_timeout]
    assert near == [*members[51:55], *members[46:50]]
    assert max(allowed.values()) == config.heartbeat_timeout + 12 * config.heartbeat


def test_detection_is_longer_in_large_views_alone() -> None:
    config = Config()
    assert (far_beats(config, 20), far_beats(config, 21), far_beats(config, 100)) == (0, 2, 12)
    assert detection(config, 20) == 6 * SECOND
    assert detection(config, 100) == 18 * SECOND
