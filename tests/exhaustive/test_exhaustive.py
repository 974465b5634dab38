"""Small cases with the real layers, searched exhaustively; `make exhaustive` searches larger ones."""

from __future__ import annotations

import copy
import os
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from pygroups.core.address import Address

from . import planted
from .cases import LARGE, NAMED, SMALL
from .explore import Search
from .judging import Hearing, unstable
from .kept import Kept
from .lives import packed, unpacked
from .part import Part
from .process import CODECS, CONFIG, STEADY, Process
from .state import digest_of
from .waiting import Waiting
from .world import BEGIN, COUNT, NAMES, Choice, State, World


@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_a_join_in_every_order(profile: str) -> None:
    found = Search(NAMED["C joins"]._replace(crashes=0), profile).run()
    assert found.violation is None and found.complete
    assert found.states > 300


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["total", pytest.param("fifo", marks=pytest.mark.long)])
def test_a_leave_beside_a_join_in_every_order(profile: str) -> None:
    found = Search(NAMED["C joins, A leaves, no crash"], profile).run()
    assert found.violation is None and found.complete
    assert found.states > 4_000 and found.ends > 10


@pytest.mark.slow
def test_a_crash_of_the_sender_at_every_step() -> None:
    found = Search(NAMED["A sends"]._replace(may_crash="A"), "total").run()
    assert found.violation is None and found.complete
    assert found.states > 2_000


@pytest.mark.slow
def test_a_crash_of_the_sender_in_each_stage_of_uniform() -> None:
    found = Search(NAMED["A sends"]._replace(may_crash="A"), "uniform").run()
    assert found.violation is None and found.complete
    assert found.states > 2_000


@pytest.mark.slow
def test_an_isolation_of_the_sender_in_each_stage_of_uniform() -> None:
    found = Search(NAMED["A sends, an isolation"]._replace(may_crash="A"), "uniform").run()
    assert found.violation is None and found.complete
    assert found.states > 2_000


@pytest.mark.slow
def test_a_request_is_lost_and_the_sequencer_crashes_at_every_step() -> None:
    found = Search(NAMED["B sends, a request is lost"]._replace(may_crash="A"), "total1999").run()
    assert found.violation is None and found.complete
    assert found.states > 2_000


@pytest.mark.long
@pytest.mark.parametrize("profile", ["uniform", "uniform-fifo"])
@pytest.mark.parametrize("case", ["A sends, B sends", "A sends, B sends, an isolation"])
def test_two_senders_and_a_fault_at_every_step(case: str, profile: str) -> None:
    found = Search(NAMED[case], profile, jobs=len(os.sched_getaffinity(0))).run()
    assert found.violation is None and found.complete
    assert found.states > 100_000


AT_ONCE: Final = (
    "M16 in uniform, isolated",
    "T3 in total1999",
)  # `make long` has the rest


def _said(hunted: planted.Hunted) -> str:
    return f"{hunted.bug} in {hunted.profile}" + (", isolated" if NAMED[hunted.case].isolations else "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "hunted",
    [
        pytest.param(one, id=_said(one), marks=() if _said(one) in AT_ONCE else pytest.mark.long)
        for one in planted.KNOWN
    ],
)
def test_a_planted_bug_is_found(hunted: planted.Hunted) -> None:
    """For instance M38: without fetching, one member has a message of the crashed sender in the old view, and the other
    one has not."""
    found = planted.hunt(hunted, seconds=300)
    assert found.violation is not None and found.violation.promise == hunted.promise
    if hunted.bug in ("M16", "M38"):  # they need a fault
        assert any("crash" in line or " cut" in line for line in found.violation.history)
    assert found.states < 20_000, "the planted bug is found early"


def test_the_same_search_finds_the_same_states() -> None:
    one, other = (Search(NAMED["C joins"], "total").run(most=500) for _ in range(2))
    assert (one.states, one.moves, one.ends, one.steps) == (other.states, other.moves, other.ends, other.steps)


# -- the moves that may wait


def all_moves(world: World) -> Part:
    """All states, each with all of its moves and its crashes."""
    state, setup = world.start()
    part = Part(world, Everything(world), setup)
    part.begin(state)
    while part.frontier:
        state, at = part.frontier.popleft()
        for choice, _ in part.expand(state, at):
            for crash in world.crashes(state, choice):
                part.add(world.after(state, crash), at, crash)
        for crash in world.idle_crashes(state):
            part.add(world.after(state, crash), at, crash)
    return part


class Everything(Waiting):
    """No move waits."""

    def moves(self, state: State, choices: list[Choice]) -> list[Choice]:
        return choices


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "profile", "crashing"),
    [
        ("A sends", "total", "A"),
        pytest.param("B leaves", "fifo", "A", marks=pytest.mark.long),
        pytest.param("C joins", "total", "B", marks=pytest.mark.long),
        pytest.param("A leaves", "total", "A", marks=pytest.mark.long),
        ("A sends, an isolation", "uniform", "A"),
    ],
)
def test_no_end_is_lost_by_moves_that_wait(
    case: str, profile: str, crashing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: set[State] = set()
    monkeypatch.setattr("tests.exhaustive.part.judge", lambda *given, **_: ends.add(end_of(*given)))
    small = NAMED[case]._replace(may_crash=crashing)
    search = Search(small, profile)
    states = len(all_moves(search.world).seen)
    expected = set(ends)
    ends.clear()
    found = search.run()
    assert found.complete and ends == expected
    assert found.states < states


def end_of(world: World, setup: list[Choice], path: list[Choice]) -> State:
    state = world.begin()
    for choice in setup:
        state = world.after(state, choice)
    state = world.open(state)
    for choice in path:
        state = world.after(state, choice)
    return state


@pytest.mark.slow
@pytest.mark.parametrize("isolations", [False, True])
def test_a_crash_before_a_step_elsewhere_and_that_step_lead_to_the_same(isolations: bool) -> None:
    world = World(NAMED["C joins"]._replace(isolations=isolations), "uniform" if isolations else "total")
    waiting, compared = Waiting(world), 0
    state, setup = world.start()
    part = Part(world, waiting, setup)
    part.begin(state)
    while part.frontier and len(part.seen) < 600:
        state, at = part.frontier.popleft()
        for choice, _ in part.expand(state, at):
            after, earlier = world.after(state, choice), waiting.elsewhere(state, choice)
            for other in [one for one in world.choices(state) if one.who >= 0 and earlier >> one.who & 1]:
                assert other in world.choices(after)
                assert list(world.crashes(state, other)) == list(world.crashes(after, other))
                for crash in world.crashes(state, other):
                    compared += 1
                    assert world.after(after, crash) == world.after(world.after(state, crash), choice)
            own = [one for one in world.choices(after) if one.who >= 0 and earlier >> one.who & 1]
            assert set(own) <= set(world.choices(state)), "a process that may crash before has no new choice"
    assert compared > 500


# -- classes


@pytest.mark.slow
def test_two_processes_visit_the_same_states_as_one() -> None:
    small = NAMED["A sends"]._replace(may_crash="A")
    one, two = Search(small, "total").run(), Search(small, "total", jobs=2).run()
    assert (one.states, one.moves, one.ends, one.complete) == (two.states, two.moves, two.ends, two.complete)


@pytest.mark.slow
def test_a_search_goes_on_behind_the_classes_that_are_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small, file = NAMED["A sends"]._replace(may_crash="A"), tmp_path / "kept.jsonl"
    kept = partial(Kept, file, small.name, "total")
    whole = Search(small, "total", kept=kept()).run()
    first, *others = file.read_text().splitlines(keepends=True)
    assert len(others) >= 2
    file.write_text("".join(others))
    searched: list[str] = []
    search_class = Search.search
    monkeypatch.setattr(Search, "search", lambda self, one: searched.append(one.name) or search_class(self, one))
    again = Search(small, "total", kept=kept()).run()
    assert again[:5] == whole[:5] and again.complete
    assert len(searched) == 1 and searched[0] in first
    assert len(file.read_text().splitlines()) == len(others) + 1
    file.write_text(file.read_text().replace(kept().key[0], "another-digest"))
    Search(small, "total", kept=kept()).run()
    assert len(searched) == len(others) + 2, "of other layers nothing is known"


# -- the parts


def a_process() -> Process:
    process = Process(Address("A", "0" * 16), "total", BEGIN)
    process.act("join", BEGIN)
    return process


def test_a_copy_has_the_state_of_its_original_and_goes_its_own_way() -> None:
    process = a_process()
    twin = unpacked(packed(process))
    before = digest_of(process)
    assert digest_of(twin) == before
    assert twin.env.config is CONFIG and twin.stack.codec is CODECS["total"] and twin.env.rng is STEADY
    assert digest_of(unpacked(packed(twin))) == before
    twin.stack.layers[1].wake += 1
    assert digest_of(twin) != before and digest_of(process) == before


@pytest.mark.parametrize("field", ["highest", "phase", "standing", "wake", "leaving"])
def test_the_canonical_form_contains_each_field_of_a_layer(field: str) -> None:
    process = a_process()
    (gms,) = [layer for layer in process.stack.layers if type(layer).__name__ == "Gms"]
    before = digest_of(process)
    setattr(gms, field, "another value")
    assert digest_of(process) != before


def test_the_canonical_form_contains_the_parts_of_a_layer_and_leaves_out_counters() -> None:
    process = a_process()
    (gms,) = [layer for layer in process.stack.layers if type(layer).__name__ == "Gms"]
    before = digest_of(process)
    process.env.count("something")
    assert digest_of(process) == before
    gms.leading.admission.joiners[Address("B", "1" * 16)] = "B"  # type: ignore[attr-defined]
    changed = digest_of(process)
    assert changed != before
    gms.merging.told = (True, 99)  # type: ignore[attr-defined]
    assert digest_of(process) not in (before, changed)


def test_a_layer_that_raises_breaks_a_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(process: Process, action: str, now: int) -> None:
        raise AssertionError("a bug")

    monkeypatch.setattr(Process, "act", fails)
    found = Search(NAMED["A sends"], "total").run()
    assert found.violation is not None and found.violation.promise == "no-exception"


def test_deliveries_to_two_processes_commute() -> None:
    """The search relies on it: both orders lead to one state, which is stored once."""
    world = World(NAMED["A sends"], "total")
    state, _ = world.start()
    state = world.after(state, Choice("act", 0))
    to_b, to_c = Choice("frame", 1, 0), Choice("frame", 2, 0)
    assert world.after(world.after(state, to_b), to_c) == world.after(world.after(state, to_c), to_b)


def test_a_crash_leaves_each_part_of_the_output() -> None:
    world = World(NAMED["A sends"], "total")
    state, _ = world.start()
    crashes = list(world.crashes(state, Choice("act", 0)))
    assert {crash.reach for crash in crashes} == {(0, x, y) for x in (0, 1) for y in (0, 1)}
    after = [world.after(state, crash) for crash in crashes]
    assert {tuple(len(one.links[dest]) for dest in (1, 2)) for one in after} == {
        (1 + x, 1 + y) for x in (0, 1) for y in (0, 1)
    }, "behind its frames, each peer gets the news"
    assert all(not one.crashes and not one.alive & 1 for one in after)


def test_a_process_that_is_cut_off_takes_what_was_on_its_way_in_every_order_that_is_heard() -> None:
    world = World(NAMED["A sends, B sends, an isolation"], "uniform")
    state, _ = world.start()
    for choice in (Choice("act", 0), Choice("act", 1), Choice("frame", 2, 0)):  # C acknowledges the message of A
        state = world.after(state, choice)
    (alone,) = world.crashes(state, Choice("frame", 0, 2))  # nothing leaves A
    assert alone.cut and alone.then == (1,), "the message of B is on its way to A"
    after = world.after(state, alone)
    assert not after.alive & 1 and after.cut_off == 1 and not after.crashes
    assert not any(after.links[one] for one in (3, 6, 9)), "nothing is on its way to A"
    assert [len(after.links[one]) for one in (1, 2)] == [2, 1], "the news comes behind the message, which C has"
    assert world.end_alone(state, alone) != after.lives[0], "its state counts no more, only what it told"


def test_an_isolation_ends_and_the_process_learns_that_it_is_excluded() -> None:
    world = World(NAMED["A sends, an isolation"], "uniform")
    state, setup = world.start()
    hearing = Hearing(world)
    begin = world.begin()
    for choice in setup:
        begin = hearing.hear(begin, choice)
    path = [next(one for one in world.crashes(state, Choice("act", 0)) if not any(one.reach))]
    state = hearing.hear(state, path[0])
    assert state.lives[0] != hearing.cut_life
    ended: list[str] = []
    stopped = hearing.judge.stopped
    hearing.judge.stopped = lambda member, reason, unknown: (ended.append(reason), stopped(member, reason, unknown))
    hearing.settle(state)
    assert ended == ["excluded"]


def test_no_time_passes_while_a_frame_is_on_its_way_unless_a_timer_may_be_early() -> None:
    world = World(NAMED["A sends"], "total")
    state, _ = world.start()
    state = world.after(state, Choice("act", 0))
    assert any(state.links)
    assert Choice("time") not in world.choices(state)
    early = world.choices(state._replace(early=1))
    assert Choice("time") in early and world.after(state._replace(early=1), Choice("time")).early == 0


def test_only_the_named_frame_is_lost_once() -> None:
    world = World(NAMED["B sends, a request is lost"], "total1999")
    state, _ = world.start()
    state = world.after(state, Choice("act", 1))
    assert [choice for choice in world.choices(state) if choice.kind == "loss"] == [Choice("loss", 0, 1)]
    after = world.after(state, Choice("loss", 0, 1))
    assert not after.links[3] and after.lives == state.lives, "the way from B to A is empty"
    while not any(after.links):
        after = world.after(after, world.choices(after)[0])
    assert "Request" in world.shown(after.links[3][0], 0), "B sends the request again"
    assert not [choice for choice in world.choices(after) if choice.kind == "loss"]


def test_a_message_that_is_no_longer_unstable_was_delivered_everywhere() -> None:
    world = World(NAMED["A sends"], "total")
    state, _ = world.start()
    lives = copy.copy(world.lives.lives)
    assert unstable(world, state) == ""
    world.lives.lives[state.lives[0]] = lives[state.lives[0]]._replace(stable=2)
    assert "A@0000000000000001#1" in unstable(world, state)


def test_each_case_has_a_name_and_three_processes() -> None:
    assert len(NAMED) == len(SMALL) + len(LARGE) and COUNT == 3
    assert all(set(case.program) == set(NAMES) for case in NAMED.values())
