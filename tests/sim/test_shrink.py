"""What makes a schedule smaller, seen on failures that are made up: a schedule fails if it has what matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import msgspec
import pytest

from pygroups.sim.batches import simpler
from pygroups.sim.batches.runner import Outcome
from pygroups.sim.batches.runner import play as play_it
from pygroups.sim.batches.shrink import Shrinker
from pygroups.sim.batches.simpler import size_of
from pygroups.sim.promises.broken import Witness
from pygroups.sim.schedules.catalog import FAULTS
from pygroups.sim.schedules.draw import Wish, draw
from pygroups.sim.schedules.schedule import Habits, Schedule, from_json, to_json
from pygroups.sim.schedules.steps import Clog, Crash, Cut, Flap, Pause, Ring, SlowReader
from pygroups.sim.world.network import CALM
from tests.sim.toy_group import toy_schedule


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
    assert left == Pause(at=0, who="A", lasts=10_000)


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
    assert left == Crash(at=0, who="A", moment="Accept")


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
        SlowReader(at=1_000_000, who="A", lasts=90_000, loop_delay=50_000),
    )
    stormy = msgspec.structs.replace(CALM, loss=0.2, corrupt=0.1, late_max=40_000_000, delay=9_000)
    habits = {name: Habits(drift=300, loop_delay=9_000) for name in plain.names}
    schedule = msgspec.structs.replace(plain, actions=steps, weather=stormy, habits=habits)
    left = small(schedule, lambda one: len(one.actions) == 3)
    assert left.weather == CALM and set(left.habits.values()) == {Habits()}
    assert left.actions == (
        Flap(at=0, who="A", times=1, down=1_000, up=1_000),
        Clog(at=0, who="A", lasts=10_000),
        SlowReader(at=0, who="A", lasts=10_000, loop_delay=1_000),
    )


def test_a_weather_that_matters_stays() -> None:
    seeds = (draw(seed, Wish("total", faults=FAULTS)) for seed in range(200))
    schedule = next(one for one in seeds if one.weather.corrupt and one.weather.late)
    left = small(schedule, lambda one: one.weather.corrupt > 0)
    assert not left.actions and left.weather == msgspec.structs.replace(CALM, corrupt=left.weather.corrupt)


def outcome_of(one: Schedule, fails: bool, now: int) -> Outcome:
    return Outcome(seed=one.seed, witness=Witness(promise="made-up", detail="") if fails else None, now=now)


def crashes(schedule: Schedule) -> list[Crash]:
    return [action for action in schedule.actions if isinstance(action, Crash)]


def with_crashes(count: int) -> Schedule:
    schedule = toy_schedule(3, bound=8_000_000)
    crashed = tuple(Crash(at=500_000 + at, who="A") for at in range(count))
    return msgspec.structs.replace(schedule, actions=(*schedule.actions, *crashed))


def test_what_comes_after_the_failure_goes_at_once() -> None:
    tried: list[Schedule] = []

    def play(one: Schedule, until: int | None) -> Outcome:
        tried.append(one)
        return outcome_of(one, bool(crashes(one)), 500_004)

    schedule = with_crashes(40)
    Shrinker(schedule, play, tries=1).run()
    assert len(tried) == 2 and len(crashes(tried[1])) == 5 and tried[1].heal_at == 500_005


def test_a_failure_that_hangs_on_chance_is_looked_for_with_others() -> None:
    """With one crash less it fails too, but not by the same chance."""

    def play(one: Schedule, until: int | None) -> Outcome:
        return outcome_of(one, one.seed % 4 == len(crashes(one)) % 4 and bool(crashes(one)), 1)

    schedule = msgspec.structs.replace(with_crashes(3), seed=3)
    left = Shrinker(schedule, play).run()
    assert len(crashes(left)) == 1 and left.seed % 4 == 1


def test_where_much_is_needed_for_a_little_weather_a_worse_one_needs_less() -> None:
    def play(one: Schedule, until: int | None) -> Outcome:
        return outcome_of(one, len(one.actions) * one.weather.tail >= 0.3, 1)

    schedule = msgspec.structs.replace(with_crashes(0), weather=msgspec.structs.replace(CALM, tail=0.01))
    left = Shrinker(schedule, play).run()
    assert len(left.actions) == 6 and left.weather.tail == 0.05


def test_what_waits_in_vain_is_given_less_time_and_in_the_end_all_of_it() -> None:
    """With two crashes it never ends, with one it takes half of the time, which a quarter of it cannot tell apart."""
    given: list[int] = []

    def play(one: Schedule, until: int | None) -> Outcome:
        given.append(one.bound)
        fails = len(crashes(one)) > 1 or (len(crashes(one)) == 1 and one.bound <= 4_000_000)
        return outcome_of(one, fails, one.heal_at + one.bound if fails else one.heal_at)

    left = Shrinker(with_crashes(9), play).run()
    assert len(crashes(left)) == 2 and left.bound == 8_000_000
    assert set(given) == {8_000_000, 2_000_000, 4_000_000}


def test_no_candidate_is_played_far_beyond_the_failure() -> None:
    limits: list[int | None] = []

    def play(one: Schedule, until: int | None) -> Outcome:
        limits.append(until)
        return outcome_of(one, len(crashes(one)) == 2, 900_000)

    Shrinker(with_crashes(2), play).run()
    assert limits[0] is None and set(limits[1:]) == {21_800_000}


def test_it_ends_when_the_seconds_or_the_tries_are_over() -> None:
    def play(one: Schedule, until: int | None) -> Outcome:
        return outcome_of(one, True, 1)

    hasty = Shrinker(with_crashes(9), play, seconds=0.0)
    assert hasty.run() == hasty.before and not hasty.done and hasty.tries == 0
    few = Shrinker(with_crashes(9), play, tries=2)
    few.run()
    assert few.tries == 2 and "after 2 tries" in few.said() and few.said().endswith("more may be removable")


def test_another_failure_is_not_the_same() -> None:
    def play(one: Schedule, until: int | None) -> Outcome:
        detail = "A@12 waits" if len(crashes(one)) > 1 else "it fell"
        return Outcome(seed=1, witness=Witness(promise="liveness", detail=detail), now=one.heal_at)

    assert len(crashes(Shrinker(with_crashes(9), play).run())) == 2


def test_the_limit_of_a_play() -> None:
    schedule = draw(3, Wish("fifo"))
    assert play_it(schedule, until=2_000_000).now == 2_000_000
    whole = play_it(schedule)
    assert play_it(schedule, until=2 * whole.now) == whole, "a limit that is not reached changes nothing"


def test_how_large_it_is_in_words() -> None:
    assert str(size_of(with_crashes(1))) == "3 members, 1 fault, 64 steps"
    assert str(size_of(with_crashes(0))) == "3 members, 0 faults, 63 steps"


SIMPLER = (
    *(simpler.without_one, simpler.one_for_another, simpler.without_bystanders, simpler.ordinary, simpler.calmer),
    *(simpler.stormier, simpler.plainer, simpler.all_sends_small, simpler.sends_merged, simpler.rounder),
    *(simpler.sooner, simpler.without_any),
)


@pytest.mark.parametrize("simplify", SIMPLER, ids=lambda simplify: simplify.__name__)
def test_whatever_is_tried_can_be_kept_in_a_file(simplify: Callable[[Schedule], Iterator[Schedule]]) -> None:
    tried = 0
    for seed in range(12):
        wish = Wish("total", faults=("settings", "merge", "crash")) if seed >= 9 else Wish("total")
        for candidate in islice(simplify(draw(seed, wish)), 6):
            assert from_json(to_json(candidate)) == candidate
            assert [action.at for action in candidate.actions] == sorted(action.at for action in candidate.actions)
            tried += 1
    assert tried or simplify is simpler.without_bystanders
