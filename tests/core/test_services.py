"""The services: every word has a meaning, and a stack that cannot work is refused."""

from __future__ import annotations

import random

import pytest

from pygroups.core.address import Address
from pygroups.core.errors import UsageError
from pygroups.core.layer import Env
from pygroups.core.limits import Config
from pygroups.core.services import SERVICES, waits_for_all
from pygroups.core.stack import Outlet
from pygroups.layers.flush import Flush
from pygroups.layers.profiles import PROFILES, build_stack
from pygroups.layers.state_transfer.layer import StateTransfer
from pygroups.wire.codec import Codec


def test_every_service_of_a_layer_is_listed_and_every_listed_one_is_given() -> None:
    layers = {Outlet, *(layer for profile in PROFILES.values() for layer in profile.layers)}
    given = {service for layer in layers for service in layer.gives}
    needed = {service for layer in layers for service in layer.needs | layer.needs_in_group | layer.needs_above}
    assert needed <= given
    assert given | {"GOSSIP"} == SERVICES.keys(), "GOSSIP is what a profile of the design gives"


def test_a_group_without_the_flush_is_refused_before_it_hangs() -> None:
    """Nobody would answer GMS, so no view would ever come."""
    profile = PROFILES["fifo"]
    layers = tuple(layer for layer in profile.layers if layer not in (Flush, StateTransfer))
    env = Env(Address("A", "0" * 16), 0, random.Random(1), Config())
    with pytest.raises(UsageError, match="Gms needs VIRTUAL_SYNCHRONY, which no layer above it gives"):
        build_stack(profile._replace(layers=layers[1:]), env, lambda heads: Codec("g", heads))


@pytest.mark.parametrize(
    ("profile", "waits"),
    [("fifo", True), ("total", False), ("uniform", False), ("uniform-fifo", False), ("unicast", False)],
)
def test_own_runs_are_in_flight_until_all_have_them_where_nothing_orders_or_holds_back(
    profile: str, waits: bool
) -> None:
    assert waits_for_all(PROFILES[profile].services) == waits
