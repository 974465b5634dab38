"""The scenarios' own tools: what they promise of themselves, and that what is broken does not stay unseen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pygroups.core.errors import UsageError
from pygroups.core.events import Event
from pygroups.core.layer import Layer
from pygroups.core.limits import MILLISECOND
from pygroups.core.run import Run
from pygroups.core.suspicion_events import Silent
from pygroups.layers import sequencer
from pygroups.layers.profiles import PROFILES, Profile
from pygroups.layers.unicast2.layer import Unicast2
from pygroups.sim import (
    Acting,
    Broken,
    Check,
    Delivery,
    Habits,
    Schedule,
    Viewed,
    Weather,
    messages_of,
    play,
    read_schedule,
    scenario,
    schedule_of,
    shrunk,
    simulate,
    write_schedule,
)
from pygroups.sim.schedules.steps import Crash, Send, StartProcess
from tests.sim.toy_group import ToyGroup

TOTAL = PROFILES["total"]


class Unordered(sequencer.Sequencer):
    """Delivers own multicasts at once, and the others as they come."""

    def down(self, run: Run) -> None:
        self.below.append(run)

    def up(self, run: Run) -> None:
        self.above.append(run)


def with_layer(old: type[Layer], new: type[Layer]) -> tuple[type[Layer], ...]:
    return tuple(new if layer is old else layer for layer in TOTAL.layers)


def noted(error: BaseException) -> str:
    return "\n".join(error.__notes__)


# -- broken things are seen


def test_a_stack_without_an_order_is_caught_with_its_story() -> None:
    with (
        pytest.raises(Broken, match=r"total-order|gap-free-prefix|causal") as raised,
        scenario("A B C", layers=with_layer(sequencer.Sequencer, Unordered)) as group,
    ):
        group["B"].sends(3, every=0.0002)
        group["C"].sends(3, every=0.0002)
        group.after(1)
    story = noted(raised.value)
    assert "view 3:A [A B C]" in story
    assert "broken: " in story
    assert any(line.startswith(">") for line in story.splitlines())


def test_a_member_that_falls_fails_the_scenario() -> None:
    class Falls(Unicast2):
        def down(self, run: Run) -> None:
            assert not run.count, "it falls"
            super().down(run)

    with (
        pytest.raises(AssertionError, match="it falls"),
        scenario("A B", layers=with_layer(Unicast2, Falls)) as group,
    ):
        group["A"].tells("B", 1)
        group.after(1)


def test_what_one_member_loses_inside_is_missed() -> None:
    """A layer that forgets the last message: nothing else shows it."""

    class Forgets(Layer):
        def up(self, run: Run) -> None:
            if run.stream is None or run.origin == self.env.me or run.first < 5:
                self.above.append(run)

    with (
        pytest.raises(Broken, match=r"stability-safety|liveness|agreement"),
        scenario("A B", layers=(Forgets, *TOTAL.layers), bound=2, runs_in_flight=100) as group,
    ):
        group["A"].sends(5, every=0.001)


def test_a_promise_of_ones_own_is_judged_beside_the_others() -> None:
    class NoSwearing(Check):
        promises = ("no-swearing",)

        def delivered(self, delivery: Delivery) -> None:
            if b"damn" in delivery.body:
                raise Broken("no-swearing", "a bad word", member=delivery.member)

    with pytest.raises(Broken, match="no-swearing"), scenario("A B", checks=[NoSwearing()]) as group:
        group["A"].sends("well, damn")
        group.after(1)


def test_a_condition_that_never_holds() -> None:
    with pytest.raises(AssertionError, match="2 seconds of virtual time"), scenario("A B") as group:
        group.until(lambda: group["A"].view == ("B",), within=2)


def test_settles_says_what_is_missing() -> None:
    with pytest.raises(AssertionError, match="the process still waits to join"), scenario("A B") as group:
        group.drop("Install", dest="C")
        group.start("C")
        group.settles(within=2)


# -- rules


def test_the_same_every_time_in_every_process() -> None:
    code = (
        "import hashlib\nfrom pygroups.sim import Weather, scenario\n"
        "with scenario('A B C', journal=True, weather=Weather(loss=0.05)) as group:\n"
        "    group['B'].sends(30, every=0.01)\n    group.after(0.1)\n    group.crash('A')\n"
        "    group.start('D')\n    group.after(5)\n"
        "print(*[hashlib.md5(group[name].journal).hexdigest() for name in 'ABCD'])\n"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
    assert len(set(printed[0].split())) == 4


def test_a_rule_takes_what_it_says_and_no_more() -> None:
    with scenario("A B C") as group:
        lost = group.drop("nakack.Data", src="A", dest="B", count=2)
        seen = group.watch("nakack.Data", src="A")
        group["A"].sends(5, every=0.001)
        group.settles()
        assert len(lost.hits) == 2
        assert all(hit.src.name == "A" and hit.dest.name == "B" for hit in lost.hits)
        assert str(lost.hits[0]).startswith("A>B Data(")
        assert {hit.dest.name for hit in seen.hits} == {"B", "C"}


def test_first_is_the_first_time_on_each_way() -> None:
    with scenario("A B C") as group:
        lost = group.drop("nakack.Data", first=True)
        group["A"].sends(5, every=0.001)
        group.settles()
        assert len(lost.hits) == 10


def test_what_is_delayed_comes_later() -> None:
    with scenario("A B") as group:
        group.delay("nakack.Data", dest="B", by=0.01, count=1)
        began = group.now
        group["A"].sends("late")
        group.until(lambda: group["B"].texts == ["late"], within=1)
        assert 0.01 <= group.now - began < 0.02


def test_a_stranger_is_not_listened_to() -> None:
    with scenario("A B") as group:
        view = group["A"].view_id
        assert view is not None
        group.inject("X", "B", sequencer.Forward(view), payloads=[b"intruder"])
        group.inject("X", "A", sequencer.Forward(view), payloads=[b"intruder"])
        group.settles()
        assert group["A"].texts == group["B"].texts == []
        assert group["A"].drops
        assert group["B"].drops


def test_a_moment_that_never_comes_is_refused() -> None:
    with scenario("A B") as group, pytest.raises(UsageError, match=r"cannot wait for 'Instal'; .*Install"):
        group.crash("A", moment="Instal")


def test_an_unknown_head_is_refused() -> None:
    with scenario("A B") as group, pytest.raises(UsageError, match="has a head named 'Dada'"):
        group.drop("Dada")


def test_a_cut_one_way_and_back() -> None:
    with scenario("A B C") as group:
        group.cut("A", "B", way="out")
        group["A"].sends("a")
        group["B"].tells("A", "b")
        group.after(0.01)
        assert group["C"].texts == ["a"]
        assert group["B"].texts == []
        assert [message.text for message in group["A"].received] == ["b"]
        group.mend("A", "B", way="out")
        group.until(lambda: group["B"].texts == ["a"], within=2)


def test_a_pause_shorter_than_anybodys_patience() -> None:
    with scenario("A B C") as group:
        group.pause("A")
        group["B"].sends("b")
        group.after(1)
        assert group["C"].texts == []
        group.resume("A")
        group.settles()
        assert group["C"].texts == ["b"]
        assert group["A"].views == group["A"].views


def test_a_suspicion_that_somebody_makes_up() -> None:
    with scenario("A B C", verify_timeout=200 * MILLISECOND) as group:
        group["C"].hears(Silent(group["A"].address))
        group.after(2)
        assert group["A"].view == group["C"].view == ("A", "B", "C")


def test_who_is_not_there_cannot_be_meant() -> None:
    with scenario("A B") as group:
        with pytest.raises(UsageError, match="no process runs under the name C"):
            group.crash("C")
        with pytest.raises(UsageError, match="no process was started under the name C"):
            group["C"].sends(1)
        with pytest.raises(UsageError, match="A already runs"):
            group.start("A")
        with pytest.raises(UsageError, match="keeps no journals"):
            _ = group["A"].journal


def test_journals_are_kept(tmp_path: Path) -> None:
    with scenario("A B", journal=True) as group:
        group["A"].sends("x")
        group.settles()
        group.save_journals(tmp_path)
        folders = [path.parent.name for path in sorted(tmp_path.rglob("*.journal"))]
        assert folders == [str(group["A"].address), str(group["B"].address)]
        assert b"deliver" in group["B"].journal


class Echo:
    """Answers each message to all with one to its sender alone, and leaves when it has had three."""

    def __init__(self, acting: Acting) -> None:
        self.acting = acting
        self.had = 0

    def on_event(self, event: Event) -> None:
        for message in messages_of(event):
            if message.origin != self.acting.me.name and message.text.startswith("ask"):
                self.acting.tell(message.origin, b"answer " + message.payload)
                self.had += 1
        if self.had == 3:
            self.acting.later(0.01, self.acting.leave)


def test_an_application_of_ones_own() -> None:
    with scenario("A B", application=Echo) as group:
        group["A"].sends(["ask 1", "ask 2", "ask 3"])
        group.until(lambda: group["B"].ended == "left", within=5)
        assert [message.text for message in group["A"].received] == ["answer ask 1", "answer ask 2", "answer ask 3"]
        echo = group.actors["B"]
        assert isinstance(echo, Echo)
        assert echo.had == 3


# -- many schedules


def small(*steps: StartProcess | Send | Crash) -> Schedule:
    starts = (StartProcess(at=0, who="A"), StartProcess(at=1000, who="B"), StartProcess(at=2000, who="C"))
    sends = tuple(Send(at=600_000 + 5_000 * i, who="BC"[i % 2], count=1, size=20) for i in range(40))
    return Schedule(
        seed=1,
        profile="total",
        names=("A", "B", "C"),
        habits={name: Habits() for name in "ABC"},
        config={},
        weather=Weather(),
        rejoin=False,
        actions=tuple(sorted((*starts, *sends, *steps), key=lambda step: step.at)),
        heal_at=1_000_000,
        bound=30_000_000,
    )


def test_schedules_are_played_kept_and_read(tmp_path: Path) -> None:
    schedule = small(Crash(at=700_000, who="A"))
    outcome = play(schedule)
    assert outcome.witness is None
    assert outcome.counts["messages"] == 40
    write_schedule(schedule, tmp_path / "one.json")
    assert read_schedule(tmp_path / "one.json") == schedule
    with pytest.raises(UsageError, match="cannot be read"):
        read_schedule(tmp_path / "none.json")


def test_a_broken_layer_is_found_among_seeds_and_its_schedule_made_small() -> None:
    broken = TOTAL._replace(layers=with_layer(sequencer.Sequencer, Unordered))
    found = simulate(range(20), profile=broken, members=3)
    assert found.failure is not None and found.schedule is not None and found.failure.witness is not None
    assert found.failure.witness.promise in ("total-order", "gap-free-prefix", "causal")
    with pytest.raises(AssertionError, match=f"seed {found.failure.seed}"):
        found.held()
    less = shrunk(found.schedule, profile=broken, tries=60)
    assert len(less.actions) < len(found.schedule.actions)
    again = play(less, profile=broken).witness
    assert again is not None and again.promise == found.failure.witness.promise
    assert play(less).witness is None


def test_seeds_hold_and_are_counted() -> None:
    done = simulate(range(2), members=3, faults=("crash",), checks=lambda: [Check()])
    done.held()
    assert done.totals.schedules == 2
    assert done.totals.counts["messages"] > 200


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(UsageError, match="no fault 'thunder'"):
        schedule_of(1, faults=("thunder",))
    with pytest.raises(UsageError, match="breaks no promise"):
        shrunk(small())


def test_a_stack_of_ones_own_with_nothing_of_ours_below_the_top() -> None:
    """It is judged by what the test says, here by no order at all."""
    toy = Profile("toy", (ToyGroup,), "views from the directory, and no repair")
    with scenario("A B C", profile=toy, formed=False, promised=False) as group:
        group.start("A B C")
        group.until(lambda: all(len(member.view) == 3 for member in group.members), within=1)
        group["A"].sends(3)
        group.settles()
        assert group["B"].texts == group["C"].texts == ["A1", "A2", "A3"]
        group.drop("ToyData", dest="C", count=1)
        group["A"].sends("lost")
        group.settles()
        assert group["B"].texts[-1] == "lost"
        assert "lost" not in group["C"].texts


def test_a_promise_of_ones_own_is_judged_in_drawn_schedules() -> None:
    class NeverMoreThanTwo(Check):
        promises = ("small-group",)

        def viewed(self, view: Viewed) -> None:
            if len(view.members) > 2:
                self.broken("small-group", f"{len(view.members)} members", member=view.member, view=view.id)

    found = simulate(range(20), members=3, checks=lambda: [NeverMoreThanTwo()])
    assert found.failure is not None and found.failure.witness is not None
    assert found.failure.witness.promise == "small-group"
    assert found.totals.schedules == found.failure.seed + 1  # the first that breaks it is the last that is played


def test_a_crash_whose_moment_never_comes_fails_the_scenario() -> None:
    with (
        pytest.raises(AssertionError, match="B has a crash at 'Install', and did not reach that point"),
        scenario() as group,
    ):
        group.crash("B", moment="Install")
        group["A"].sends(1)


def test_a_member_is_cut_off_at_a_moment() -> None:
    """The cut begins before the frames of that turn leave, also to a process that the scenario started later.  The
    member stays cut off until the network heals."""
    with scenario("A B C") as group:
        group.start("D")
        group.until(lambda: len(group["A"].view) == len(group["D"].view) == 4, within=5)
        ready = group.watch("Ready", src="A")
        group.isolate("A", moment="Ready")
        group.leave("C")
        group.after(10)
        assert {hit.dest.name for hit in ready.hits} >= {"B", "D"}
        assert group["B"].view == group["D"].view == ("B", "D")
        group.mend("A")
        group.until(lambda: len(group["A"].view) == len(group["D"].view) == 3, within=30)


def test_a_moment_that_no_member_reaches_is_refused() -> None:
    with (
        scenario("A B") as group,
        pytest.raises(UsageError, match="a fault cannot wait for 'Tea'; possible moments: now, "),
    ):
        group.isolate("A", moment="Tea")
