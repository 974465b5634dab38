"""A split heals although discovery finds no member any more: each member remembers the members that its view lost."""

from __future__ import annotations

import pytest

from pygroups.core.address import Address
from pygroups.core.driver_events import Found
from pygroups.sim import scenario
from tests.merging import INTERVAL, QUICK, whole


@pytest.mark.parametrize("profile", ["fifo", "total"])
@pytest.mark.parametrize("sides", ["AB|CD", "A|BCD", "AB|C|D"])
def test_a_split_heals_with_a_directory_that_shows_nobody(sides: str, profile: str) -> None:
    def nobody(who: Address, founding: bool = True) -> Found:
        return Found({}, may_found=False)

    parts = [tuple(side) for side in sides.split("|")]
    with scenario("A B C D", profile=profile, **QUICK) as group:
        group.world.directory.find = nobody  # type: ignore[method-assign]
        for side in parts:
            others = [name for name in "ABCD" if name not in side]
            group.cut(list(side), others)
        group.until(lambda: all(group[name].view == side for side in parts for name in side), within=10)
        group.world.network.mend_all()
        group.until(lambda: whole(group), within=15 * INTERVAL)
