"""views-in-order: what the layers of a member get of its views, and what the application gets."""

from __future__ import annotations

import random

import pytest

from pygroups.core.address import Address
from pygroups.core.events import NewView
from pygroups.core.layer import Env
from pygroups.core.limits import Config
from pygroups.core.view import AgreedView, ViewId
from pygroups.layers.flush import Flush
from pygroups.layers.gms.layer import Gms
from pygroups.layers.profiles import PROFILES
from pygroups.layers.verify_suspect import VerifySuspect
from pygroups.sim.promises.broken import Broken
from pygroups.sim.promises.facts import Rest
from pygroups.sim.promises.layers import ViewsInOrder
from pygroups.sim.world.passing import noting, seen_by

A = Address("A", "0" * 16)
ONE, TWO, THREE = (ViewId(number, A) for number in (1, 2, 3))
REST = Rest(A, 1, 0, {}, False, False)


def passed(check: ViewsInOrder, layers: dict[str, list[ViewId]], *views: ViewId) -> None:
    """The application gets these views."""
    for view in views:
        check.passed_layers(A, view, layers)
    check.settled([REST])


def test_each_layer_gets_each_view_once_and_in_order() -> None:
    check, layers = ViewsInOrder(), {"Flush": [ONE, TWO], "Failure": [ONE, TWO]}
    passed(check, layers, ONE, TWO)
    layers["Flush"] += [THREE]
    layers["Failure"] += [THREE]
    passed(check, layers, THREE)
    assert check.facts() == {"views-in-order": 6}


PLANTED = {
    "a view is missing": [ONE],
    "another order": [TWO, ONE],
    "twice": [ONE, ONE, TWO],
    "an old one again": [ONE, TWO, ONE],
    "the last one twice": [ONE, TWO, TWO],
    "one too many": [ONE, TWO, THREE],
}


@pytest.mark.parametrize("seen", PLANTED.values(), ids=PLANTED)
def test_a_layer_that_gets_other_views_is_found(seen: list[ViewId]) -> None:
    with pytest.raises(Broken) as caught:
        passed(ViewsInOrder(), {"Failure": [ONE, TWO], "Flush": [*seen]}, ONE, TWO)
    assert caught.value.witness.promise == "views-in-order"
    assert "Flush" in caught.value.witness.detail


def test_layers_note_the_views_that_come_from_gms() -> None:
    layers = noting((Flush, Gms, VerifySuspect))
    assert [layer.__name__ for layer in layers] == ["Flush", "Gms", "VerifySuspect"]
    assert layers[1] is Gms
    view = NewView(AgreedView(ONE, (A,), ("here",)), None, (A,), (), (), True, None)
    made = [layer(Env(A, 0, random.Random(1), Config())) for layer in layers]
    made[0].up_event(view)
    made[2].down_event(view)
    assert seen_by(made) == {"Flush": [ONE], "VerifySuspect": [ONE]}


def test_without_a_group_no_layer_notes_anything() -> None:
    layers = PROFILES["unicast"].layers
    assert noting(layers) == layers
