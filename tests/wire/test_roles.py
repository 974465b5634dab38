"""A process that has the secret and no place in the view: what it says in any head changes no view, and no member
delivers a multicast of it.

Its unicasts are delivered: a process that just left, or that joins a view which is not installed here yet, sends such
ones too.
"""

from __future__ import annotations

import pytest

from pygroups.core.address import Address
from pygroups.core.limits import SECOND
from pygroups.core.run import Run, pack
from pygroups.layers.profiles import PROFILES
from pygroups.layers.unicast2.heads import Data as Unicast
from tests.channel.test_tables import Liar
from tests.wire.group import Group, warm
from tests.wire.samples import a_codec

OUTSIDER = Address("Z", "f" * 16)
LIES = 8  # of each head, to each member
HEADS = [
    (profile, head)
    for profile in ("total", "fifo", "uniform", "uniform-fifo", "total1999")
    for head in dict.fromkeys(PROFILES[profile].heads())
]


def lie(group: Group, head: type, seed: int) -> None:
    """The outsider sends this head to a member, with values of the right types, the member's view among them."""
    process = list(group.processes.values())[seed % 3]
    liar, codec = Liar(seed, process, process.env.view), a_codec()
    for number in range(LIES):
        value = liar.struct(head)
        origin = liar.rng.choice([OUTSIDER, *liar.members])
        first = number + 1 if number < LIES // 2 else liar.rng.randrange(1, 30)
        run = (origin, first, 0, 1, pack([b"forged"])) if number % 2 else (None, 0, 0, 0, b"")
        for dest in (None, process.address):
            for frame in codec.encode(OUTSIDER, dest, [Run(OUTSIDER, dest, (value,), *run)]):
                process.stack.receive(frame, group.now)
                group.due[process] = None


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "head"), HEADS, ids=lambda one: one if isinstance(one, str) else one.__module__)
def test_an_outsider_with_the_secret_changes_no_view_and_multicasts_nothing(profile: str, head: type) -> None:
    group = warm(profile=profile)
    before = {process.address: process.env.view for process in group.processes.values()}
    for seed in range(3):  # to each member
        lie(group, head, seed)
    group.run(12 * SECOND)  # longer than any timeout of a failure
    assert {process.address: process.env.view for process in group.processes.values()} == before
    forged = [one.run for process in group.processes.values() for one in process.delivered if b"forged" in one.run.body]
    assert head is Unicast or forged == []
    assert all(run.dest is not None for run in forged)
