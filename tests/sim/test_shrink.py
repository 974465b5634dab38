"""What makes a schedule smaller, seen on failures that are made up: a schedule fails if it has what matters."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pygroups.sim.catalog import FAULTS
from pygroups.sim.draw import Wish, draw
from pygroups.sim.network import CALM
from pygroups.sim.promises.broken import Witness
from pygroups.sim.runner import Outcome
from pygroups.sim.schedule import Clog, Crash, Cut, Flap, Habits, Pause, Ring, Schedule, Slow
from pygroups.sim.shrink import Shrinker
from tests.sim.toy import toy_schedule


def small(schedule: Schedule, matters: Callable[[Schedule], bool]) -> Schedule:
    def play(one: Schedule, until: int | None) -> Outcome:
        witness = Witness(promise="made-up", detail="it matters") if matters(one) else None
        return Outcome(seed=one.seed, witness=witness, now=one.heal_at)

    shrinker = Shrinker(schedule, play)
    left = shrinker.run()
    assert shrinker.done and matters(left)
    return left


def test_only_what_matters_is_left_and_as_weak_as_it_goes() -> None:
    pause = Pause(at=1_234_567, who="coordinator", lasts=900_000, moment="Install", nth=3)
    plain = toy_schedule(5)
    schedule = msgspec.structs.replace(plain, actions=(*plain.actions, pause), config={"views_per_second": 3})
    (left,) = small(schedule, lambda one: any(isinstance(action, Pause) for action in one.actions)).actions
    assert left == Pause(at=1_300_000, who="A", lasts=10_000)


def test_limits_that_need_each_other_stay_together() -> None:
    """Without its run_bytes the window would hold no full run: such a member cannot be."""
    config = {"run_bytes": 2 << 10, "window": 8 << 10, "heartbeat": 50_000}
    schedule = msgspec.structs.replace(toy_schedule(3), config=config)
    assert small(schedule, lambda one: "window" in one.config).config == {"run_bytes": 2 << 10, "window": 8 << 10}


def test_a_moment_that_matters_stays() -> None:
    crash = Crash(at=1_000_000, who="follower", moment="Accept", nth=2, leaves="first", reaches=3)
    plain = toy_schedule(4)
    schedule = msgspec.structs.replace(plain, actions=(*plain.actions, crash))
    (left,) = small(schedule, lambda one: any(getattr(a, "moment", "") == "Accept" for a in one.actions)).actions
    assert left == Crash(at=1_000_000, who="A", moment="Accept")


def test_members_are_left_out_of_sides_and_rings() -> None:
    plain = toy_schedule(6)
    steps = (
        Cut(at=1_000_000, side=("A", "E"), others=("B", "F"), lasts=100_000),
        Ring(at=2_000_000, order=("F", "E", "D", "C", "B", "A"), lasts=100_000),
    )
    schedule = msgspec.structs.replace(plain, actions=(*plain.actions, *steps))
    left = small(schedule, lambda one: {type(action) for action in one.actions} >= {Cut, Ring})
    assert len(left.names) == 2
    cut, ring = left.actions
    assert isinstance(cut, Cut) and isinstance(ring, Ring)
    assert {*cut.side, *(cut.others or ()), *ring.order} <= set(left.names)


def test_every_amount_and_every_weather_can_go() -> None:
    plain = toy_schedule(3)
    steps = (
        Flap(at=1_000_000, who="A", times=8, down=90_000, up=70_000),
        Clog(at=1_000_000, who="A", lasts=90_000, way="in"),
        Slow(at=1_000_000, who="A", lasts=90_000, loop_delay=50_000),
    )
    stormy = msgspec.structs.replace(CALM, loss=0.2, corrupt=0.1, late_max=40_000_000, delay=9_000)
    habits = {name: Habits(drift=300, loop_delay=9_000) for name in plain.names}
    schedule = msgspec.structs.replace(plain, actions=steps, weather=stormy, habits=habits)
    left = small(schedule, lambda one: len(one.actions) == 3)
    assert left.weather == CALM and set(left.habits.values()) == {Habits()}
    assert left.actions == (
        Flap(at=1_000_000, who="A", times=1, down=1_000, up=1_000),
        Clog(at=1_000_000, who="A", lasts=10_000),
        Slow(at=1_000_000, who="A", lasts=10_000, loop_delay=1_000),
    )


def test_a_weather_that_matters_stays() -> None:
    seeds = (draw(seed, Wish("total", faults=FAULTS)) for seed in range(200))
    schedule = next(one for one in seeds if one.weather.corrupt and one.weather.late)
    left = small(schedule, lambda one: one.weather.corrupt > 0)
    assert not left.actions and left.weather == msgspec.structs.replace(CALM, corrupt=left.weather.corrupt)
