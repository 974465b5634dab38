"""The world itself, on a toy group: time, network, faults, journals, and that a seed always means the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from pygroups.core.run import Run
from pygroups.sim.batches.runner import play
from pygroups.sim.promises.facts import Check, Delivery
from pygroups.sim.promises.judge import Judge
from pygroups.sim.schedules.schedule import Schedule, Weather
from pygroups.sim.schedules.steps import Action, Crash, Cut, Pause, StartProcess
from tests.sim.toy_group import ToyGroup, toy_builder, toy_schedule


def with_actions(*actions: Action, size: int = 3) -> Schedule:
    plain = toy_schedule(size)
    return toy_schedule(size, actions=tuple(sorted([*plain.actions, *actions], key=lambda action: action.at)))


def test_a_group_without_faults_keeps_every_promise() -> None:
    outcome = play(toy_schedule(), build=toy_builder(3))
    assert outcome.witness is None, outcome.witness
    assert outcome.counts["messages"] == 60
    assert outcome.counts["deliveries"] == 180
    assert outcome.counts["senders"] == 3


def test_fifo_without_an_order_is_fine_and_total_is_not() -> None:
    build = toy_builder(3, ordered=False)
    weather = Weather(delay=2_000, jitter=3_000)
    spread = toy_schedule(profile="fifo", weather=Weather(delay=2_000, jitter=100))
    assert play(spread, build=build).witness is None
    broken = play(toy_schedule(weather=weather), build=build).witness
    assert broken is not None and broken.promise in ("total-order", "gap-free-prefix")


@pytest.mark.parametrize(
    ("weather", "promise"),
    [
        (Weather(loss=0.1), {"fifo", "liveness", "self-delivery"}),
        (Weather(repeat=0.2), {"no-duplication"}),
        (Weather(late=0.2), {"no-duplication"}),
        (Weather(bursts=0.05), {"fifo", "liveness", "self-delivery"}),
        (Weather(reorder=0.3, reorder_by=20_000), {"fifo"}),
    ],
)
def test_each_kind_of_weather_is_felt(weather: Weather, promise: set[str]) -> None:
    outcome = play(toy_schedule(profile="fifo", weather=weather), build=toy_builder(3, ordered=False))
    assert outcome.witness is not None and outcome.witness.promise in promise


def test_a_crash_leaves_a_view_that_is_wrong() -> None:
    outcome = play(with_actions(Crash(at=500_000, who="C")), build=toy_builder(3))
    assert outcome.witness is not None
    assert (outcome.witness.promise, outcome.witness.other[:2]) == ("view-accuracy", "C@")
    assert outcome.counts["crash"] == 1


@pytest.mark.parametrize("leaves", ["nothing", "some"])
def test_a_crash_between_journal_and_network(leaves: str) -> None:
    """The first member orders, delivers, and dies before all of it is on the wire."""
    crash = Crash(at=300_000, who="coordinator", moment="sends", leaves="nothing" if leaves == "nothing" else "some")
    lines: list[str] = []
    outcome = play(with_actions(crash), build=toy_builder(3), tell=lines.append)
    assert outcome.counts["crash of a coordinator"] == 1
    assert any("crashes" in line for line in lines)
    assert outcome.witness is not None and outcome.witness.other.startswith("A@")


def test_what_is_cut_off_hears_nothing_and_what_is_paused_hears_later() -> None:
    cut = play(with_actions(Cut(at=200_000, side=("C",), lasts=100_000)), build=toy_builder(3))
    assert cut.witness is not None and cut.counts["isolation"] == 1 and cut.drops["network: cut"] > 0
    one_way = play(with_actions(Cut(at=200_000, side=("C",), lasts=100_000, way="in")), build=toy_builder(3))
    assert one_way.witness is not None and one_way.counts["cut in"] == 1
    paused = play(with_actions(Pause(at=200_000, who="C", lasts=100_000)), build=toy_builder(3))
    assert paused.witness is None and paused.counts["pause"] == 1


def test_a_name_that_starts_again_is_a_new_life() -> None:
    lines: list[str] = []
    actions = (Crash(at=500_000, who="C"), StartProcess(at=600_000, who="C"), StartProcess(at=600_001, who="A"))
    play(with_actions(*actions), build=toy_builder(3), tell=lines.append)
    starts = [line.split()[-1] for line in lines if "starts as" in line]
    assert len(starts) == len(set(starts)) == 4


def test_a_seed_always_means_the_same(tmp_path: Path) -> None:
    schedule = toy_schedule(weather=Weather(loss=0.05, repeat=0.05))
    outcomes = [play(schedule, build=toy_builder(3), journals=tmp_path / name) for name in ("1", "2")]
    files = [sorted((tmp_path / name).rglob("*.journal")) for name in ("1", "2")]
    assert len(files[0]) == 3
    assert [file.read_bytes() for file in files[0]] == [file.read_bytes() for file in files[1]]
    assert outcomes[0].counts == outcomes[1].counts


class Clumsy(Check):
    promises = ("anything",)

    def delivered(self, delivery: Delivery) -> None:
        raise KeyError("a mistake of whoever wrote this check")


class Stumbling(ToyGroup):
    def up(self, run: Run) -> None:
        raise KeyError("a mistake of whoever wrote this layer")


def test_a_check_that_falls_is_not_taken_for_a_member() -> None:
    outcome = play(toy_schedule(), build=toy_builder(3), judge=Judge([Clumsy()]))
    assert outcome.witness is not None
    assert outcome.witness.detail.startswith("the simulator raised an exception, and no member did: KeyError")
    assert str(outcome.witness).endswith(")"), "file and line"
    assert "test_world.py" in outcome.trace


def test_a_layer_that_falls_is_a_member_that_falls() -> None:
    outcome = play(toy_schedule(), build=toy_builder(3, Stumbling))
    assert outcome.witness is not None
    assert outcome.witness.detail.startswith("a member raised an exception: KeyError")
