"""What each step of a schedule does to a group of the real layers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal, get_args

import msgspec
import pytest

from pygroups.core.errors import UsageError
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.journal.frames import Frame, walk
from pygroups.journal.schema import PREFIX
from pygroups.layers.profiles import Profile
from pygroups.sim.batches.runner import Outcome, play
from pygroups.sim.schedules.schedule import Habits, Schedule, Weather, from_json, to_json
from pygroups.sim.schedules.stages import kinds, labels
from pygroups.sim.schedules.steps import (
    Action,
    Attack,
    Beside,
    Break,
    Clog,
    CloseConnection,
    Crash,
    Cut,
    DiskFull,
    Far,
    Flap,
    Gather,
    Jump,
    Leave,
    Mislead,
    Pause,
    Replay,
    Ring,
    Send,
    SlowReader,
    StartProcess,
    Unread,
    Vouch,
)
from pygroups.sim.world.loop import local_time, true_time
from pygroups.sim.world.network import SimulatedNetwork
from pygroups.sim.world.stacks import builder_of
from pygroups.sim.world.virtual import HeldCall
from tests.merging import without_merging
from tests.sim.toy_group import toy_schedule

TIME, MONO = PREFIX.index("time_us"), PREFIX.index("mono_us")
QUICK = {
    "heartbeat": 50 * MILLISECOND,
    "heartbeat_timeout": 200 * MILLISECOND,
    "verify_timeout": 50 * MILLISECOND,
    "ready_timeout": 100 * MILLISECOND,
    "flush_timeout": 150 * MILLISECOND,
    "join_retry": 100 * MILLISECOND,
    "merge_interval": 100 * MILLISECOND,
}


def group(*actions: Action, size: int = 3, **changes: object) -> Schedule:
    """So many members that start together and send a little; what happens to them; five seconds."""
    plain = toy_schedule(size)
    everything = tuple(sorted([*plain.actions, *actions], key=lambda action: action.at))
    basis = msgspec.structs.replace(plain, actions=everything, config=QUICK, heal_at=5 * SECOND, bound=30 * SECOND)
    return msgspec.structs.replace(basis, **changes)


def held(schedule: Schedule, profile: str | Profile = "total") -> tuple[Outcome, list[str]]:
    """What came of it, and its story; every promise was kept."""
    lines: list[str] = []
    outcome = play(schedule, build=builder_of(profile), tell=lines.append)
    assert outcome.witness is None, "\n".join([*lines, str(outcome.witness), outcome.trace])
    return outcome, lines


def together(lines: list[str], after: float) -> bool:
    """Whether anybody installs a view of A, B and C after so many seconds."""
    return any("[A B C]" in line for line in lines if float(line.split()[0]) > after)


def test_sides_that_do_not_merge_are_gathered_again() -> None:
    split, apart = Cut(at=SECOND, side=("C",), lasts=SECOND), without_merging("total")
    _, lines = held(group(split), apart)
    assert not together(lines, after=1)
    outcome, lines = held(group(split, Gather(at=3 * SECOND)), apart)
    assert together(lines, after=3)
    assert outcome.counts["gathered"] == 1
    assert sum("restarted to join the largest side" in line for line in lines) == 1, "the table says why somebody ends"


def test_sides_that_split_merge_and_nobody_is_restarted() -> None:
    outcome, lines = held(group(Cut(at=SECOND, side=("C",), lasts=SECOND), Gather(at=2 * SECOND)))
    assert together(lines, after=2) and not together(lines, after=3)
    assert outcome.counts.get("gathered", 0) == 0 and outcome.faults["starts"] == 3
    assert outcome.counts["merges"] >= 1 and outcome.facts["merge-agreement"] >= 3


def test_what_a_clog_holds_arrives_in_a_burst_and_nothing_is_lost() -> None:
    outcome, _ = held(group(Clog(at=150 * MILLISECOND, who="B", lasts=100 * MILLISECOND)))
    assert outcome.counts["clog"] == 1 and outcome.drops["network: clogged"] > 10
    assert outcome.counts["messages"] == 60 and outcome.counts["deliveries"] == 180
    long, lines = held(group(Clog(at=SECOND, who="C", lasts=SECOND)))
    assert any("[A B]" in line for line in lines), "it looks dead while nothing comes from it"
    assert long.counts["clog"] == 1


def test_in_a_ring_those_who_are_no_neighbors_hear_nothing_of_each_other() -> None:
    outcome, _ = held(group(Ring(at=SECOND, order=("A", "B", "C", "D"), lasts=SECOND), size=4))
    assert outcome.counts["ring"] == 1 and outcome.drops["network: cut"] > 0
    line, _ = held(group(Ring(at=SECOND, order=("A", "B", "C"), lasts=100 * MILLISECOND)))
    assert line.drops["network: cut"] > 0


def test_a_flapping_link_goes_away_and_comes_back() -> None:
    flap = Flap(at=150 * MILLISECOND, who="A", times=4, down=20 * MILLISECOND, up=30 * MILLISECOND)
    outcome, lines = held(group(flap))
    assert sum("a cut ends" in line for line in lines) == 4
    assert outcome.counts["flapping"] == 1 and outcome.drops["network: cut"] > 0
    assert outcome.counts["deliveries"] == 180


def test_corrupted_frames_arrive_are_dropped_and_sent_again() -> None:
    outcome, _ = held(group(weather=Weather(corrupt=0.2)))
    assert min(outcome.drops[f"network: {kind}"] for kind in ("flipped", "truncated", "glued")) > 5
    assert outcome.drops["checksum"] > 20
    assert outcome.counts["deliveries"] == 180


def test_what_was_sent_arrives_again_also_at_another_life() -> None:
    again = Replay(at=350 * MILLISECOND, who="A", other="C", since=300 * MILLISECOND)
    outcome, _ = held(group(again))
    assert outcome.drops["network: replayed"] > 20 and outcome.drops["repeated unicast"] > 10
    assert outcome.counts["deliveries"] == 180
    back = (Crash(at=450 * MILLISECOND, who="C"), StartProcess(at=500 * MILLISECOND, who="C"))
    later = Replay(at=800 * MILLISECOND, who="A", other="C", since=700 * MILLISECOND)
    outcome, _ = held(group(*back, later))
    assert outcome.drops["for another incarnation"] > 10


def test_a_slow_member_is_late_but_goes_on() -> None:
    slow = SlowReader(at=100 * MILLISECOND, who="B", lasts=SECOND, loop_delay=60 * MILLISECOND)
    outcome, lines = held(group(slow))
    assert outcome.counts["slow member"] == 1 and outcome.counts["deliveries"] == 180
    hasty, _ = held(group())
    assert outcome.now >= hasty.now and any("slow member" in line for line in lines)


def test_an_application_that_reads_nothing_closes_the_window_of_the_others() -> None:
    small = QUICK | {"window": 4 << 10, "run_bytes": 2 << 10}
    flood = [Send(at=SECOND + n * MILLISECOND, who="A", count=10, size=200) for n in range(20)]
    lines: list[str] = []
    stopped = Unread(at=SECOND, who="C", lasts=SECOND)
    outcome = play(group(*flood, stopped, config=small), tell=lines.append)
    assert outcome.witness is None and outcome.counts["reads nothing"] == 1
    own = [float(line.split()[0]) for line in lines if " A " in line and "sends" in line]
    assert max(own, default=3.0) > 2.0, "the last could be sent when it read again"
    assert outcome.counts["messages"] == 260


def test_wall_clocks_jump_and_drift_in_journals_only(tmp_path: Path) -> None:
    jump = Jump(at=SECOND, who="A", by=-3_600 * SECOND)
    habits = {"A": Habits(), "B": Habits(wall_drift=500), "C": Habits()}
    plain, _ = held(group())
    outcome = play(group(jump, habits=habits), journals=tmp_path)
    assert outcome.witness is None and outcome.counts["clock jumps"] == 1
    assert {**outcome.counts, "clock jumps": 0} == {**plain.counts, "clock jumps": 0}
    times: dict[str, list[tuple[int, int]]] = {}
    for file in sorted(tmp_path.rglob("*.journal")):
        for part in walk(file.read_bytes()):
            if isinstance(part, Frame):
                times.setdefault(file.parent.name[0], []).extend((row[TIME], row[MONO]) for row in part.records)
    assert all(0 <= mono <= 10 * SECOND for name in "ABC" for _, mono in times[name])
    ahead = {name: times[name][-1][0] - times[name][-1][1] - (times[name][0][0] - times[name][0][1]) for name in "ABC"}
    assert ahead["A"] == -3_600 * SECOND and ahead["C"] == 0
    assert 2_000 <= ahead["B"] <= 5_000


def test_clocks_of_members_drift_apart_and_nobody_minds() -> None:
    habits = {"A": Habits(drift=400), "B": Habits(drift=-400), "C": Habits()}
    outcome, _ = held(group(habits=habits))
    assert outcome.counts["deliveries"] == 180


@pytest.mark.parametrize("drift", [-100_000, -400, -1, 0, 1, 300, 100_000])
def test_a_timer_rings_when_the_drifting_clock_shows_its_time(drift: int) -> None:
    for now in (0, 1, 7, 999_999, 1_000_000, 123_456_789):
        shown = local_time(now, drift)
        due = true_time(shown, drift)
        assert due <= now and local_time(due, drift) == shown
        assert local_time(true_time(shown + 1, drift), drift) >= shown + 1


# -- moments


@pytest.mark.parametrize(
    ("moment", "who"),
    [("Collect", "A"), ("CollectAck", "B"), ("Propose", "A"), ("Accept", "B"), ("Install", "A"), ("InstallAck", "B")],
)
@pytest.mark.parametrize("leaves", ["all", "nothing"])
def test_a_crash_at_each_step_of_a_view_change(moment: str, who: str, leaves: Literal["all", "nothing"]) -> None:
    change = Leave(at=SECOND, who="D")
    crash = Crash(at=SECOND - 1, who=who, moment=moment, leaves=leaves)
    outcome, lines = held(group(change, crash, size=4))
    assert outcome.counts[f"crash at {moment}"] == 1 == outcome.counts["crash"]
    assert outcome.counts[f"sent {moment}"] > 0
    assert any("[B C]" in line or "[A C]" in line for line in lines)


def test_a_crash_when_the_first_of_three_has_the_installation() -> None:
    crash = Crash(at=SECOND - 1, who="coordinator", moment="Install", leaves="first", reaches=1)
    outcome, _ = held(group(Leave(at=SECOND, who="D"), crash, size=4))
    assert outcome.counts["crash at Install"] == 1 and outcome.counts["sent Install"] >= 3


def test_a_crash_before_the_joiner_is_told_where_to_begin() -> None:
    back = (Crash(at=SECOND, who="C"), StartProcess(at=2 * SECOND, who="C"))
    crash = Crash(at=2 * SECOND - 1, who="coordinator", moment="Digest", leaves="nothing")
    outcome, lines = held(group(*back, crash))
    assert outcome.counts["crash at Digest"] == 1
    assert any("[B C]" in line for line in lines if line.split()[0] > "2.0")


def test_the_second_part_of_a_state() -> None:
    back = (Crash(at=SECOND, who="C"), StartProcess(at=2 * SECOND, who="C"))
    crash = Crash(at=2 * SECOND - 1, who="coordinator", moment="StateData", nth=2, leaves="nothing")
    outcome, _ = held(group(*back, crash))
    assert outcome.counts["crash at StateData"] == 1


def test_a_pause_and_an_isolation_at_a_moment() -> None:
    pause = Pause(at=SECOND - 1, who="B", lasts=SECOND, moment="CollectAck")
    outcome, _ = held(group(Leave(at=SECOND, who="D"), pause, size=4))
    assert outcome.counts["pause at CollectAck"] == 1 == outcome.counts["pause"]
    cut = Cut(at=SECOND - 1, side=("coordinator",), lasts=SECOND, moment="Propose")
    outcome, _ = held(group(Leave(at=SECOND, who="D"), cut, size=4))
    assert outcome.counts["cut at Propose"] == 1 == outcome.counts["isolation"]


def test_a_clog_at_a_moment_is_over_at_another() -> None:
    """What the coordinator says with its installation waits until somebody else begins an attempt of its own."""
    clog = Clog(at=SECOND - 1, who="coordinator", lasts=3 * SECOND, way="out", moment="Install", until="Collect")
    outcome, lines = held(group(Leave(at=SECOND, who="D"), clog, size=4))
    assert (
        outcome.counts["clog at Install"] == 1 == outcome.counts["clog released at Collect"] == outcome.counts["clog"]
    )
    begun, over = (next(float(line.split()[0]) for line in lines if what in line) for what in ("clog", "a clog ends"))
    assert 1 < begun < over < begun + 1.5
    assert outcome.drops["network: clogged"] > 5


def test_what_a_clog_held_comes_once() -> None:
    """Whether a moment lets it go, or the time, or first the one and then the other."""
    again = Clog(at=SECOND + 100 * MILLISECOND, who="B", lasts=100 * MILLISECOND, way="out", until="sends")
    outcome, lines = held(group(Clog(at=SECOND, who="B", lasts=80 * MILLISECOND), again))
    assert sum("a clog ends" in line for line in lines) == 1 == outcome.counts["clog released at sends"]
    came: list[int] = []
    one = HeldCall(came.append, (1,))
    one.let_go()
    one.let_go()
    assert came == [1]


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_whoever_is_the_first_to_come_to_a_moment(nth: int) -> None:
    """Three answer to Collect; one of them crashes, the one whose answer is the nth, and nobody after it."""
    crash = Crash(at=SECOND - 1, who="whoever", moment="CollectAck", nth=nth, leaves="nothing")
    outcome, _ = held(group(Leave(at=SECOND, who="D"), crash, size=5))
    assert outcome.counts["crash at CollectAck"] == 1 == outcome.counts["crash"]
    assert outcome.counts["sent CollectAck"] >= nth
    cut = Cut(at=SECOND - 1, side=("whoever",), others=("C",), lasts=SECOND, moment="Ready")
    outcome, _ = held(group(Leave(at=SECOND, who="D"), cut, size=4))
    assert outcome.counts["cut at Ready"] == 1 == outcome.counts["cut both"]


def test_whoever_without_a_moment_is_anybody() -> None:
    outcome, _ = held(group(Pause(at=SECOND, who="whoever", lasts=10 * MILLISECOND)))
    assert outcome.counts["pause"] == 1


def test_labels_name_one_head_each() -> None:
    assert len(kinds()) == len(labels())
    assert {
        "Sequencer.Data",
        "Nakack.Data",
        "Unicast2.Data",
        "Forward",
        "Vote",
        "Ack",
        "Digest",
        "Install",
    } <= kinds().keys()


def test_every_step_is_data() -> None:
    every: tuple[Action, ...] = (
        StartProcess(at=0, who="A"),
        Send(at=0, who="A", count=1, size=10, to="B"),
        Crash(at=1, who="A", moment="Install", nth=2, leaves="first", reaches=2),
        Pause(at=1, who="A", lasts=5, moment="Sequencer.Data"),
        Leave(at=1, who="A"),
        Cut(at=1, side=("A",), lasts=5, others=("B",), way="in", moment="stops", stays=True, refused=True),
        Far(at=1, who="A", other="B", by=7, lasts=5, stays=True),
        Ring(at=1, order=("A", "B", "C"), lasts=5),
        Flap(at=1, who="A", times=3, down=5, up=5),
        Clog(at=1, who="A", other="B", lasts=5, way="out"),
        Break(at=1, who="A", other="B"),
        Replay(at=1, who="A", other="B", since=5),
        SlowReader(at=1, who="A", lasts=5, loop_delay=3),
        Unread(at=1, who="A", lasts=5),
        DiskFull(at=1, who="A", lasts=5, leaves=True),
        Jump(at=1, who="A", by=-5),
        CloseConnection(at=1, who="A", other="B"),
        Beside(at=1, who="A", lasts=5, stranger=True),
        Mislead(at=1, how="former", lasts=5),
        Attack(at=1, who="A", frames=3),
        Gather(at=2),
        Vouch(at=2, who="A"),
    )
    assert {type(action) for action in every} == set(get_args(Action))
    schedule = group(*every, weather=Weather(corrupt=0.1))
    assert from_json(to_json(schedule)) == schedule
    with pytest.raises(UsageError, match="this is not a schedule"):
        from_json(to_json(schedule).replace(b'"Install"', b'"install it"'))


def test_what_stays_is_there_when_the_rest_has_healed() -> None:
    """A does not reach D, for five seconds after everything else has healed; then a merge brings the same D back."""
    stays = Cut(at=SECOND, side=("A",), others=("D",), lasts=0, way="out", stays=True)
    outcome, lines = held(group(stays, size=4, stays=5 * SECOND, heal_at=2 * SECOND, rejoin=True))
    assert outcome.counts["cut that stays"] == 1 and outcome.drops["network: cut"] > 20
    healed = [float(line.split()[0]) for line in lines if "all faults end" in line]
    assert healed == [2.0, 7.0]
    assert outcome.faults["starts"] == 4 and outcome.counts["merges"] >= 1
    goods, _ = held(group(stays, size=4, stays=5 * SECOND, heal_at=2 * SECOND, for_good=True))
    assert goods.now == 7 * SECOND and goods.facts["progress"] > 0


def test_what_is_far_takes_longer_each_way() -> None:
    far = Far(at=100 * MILLISECOND, who="B", other="A", by=150 * MILLISECOND, lasts=3 * SECOND)
    outcome, _ = held(group(far, size=2))
    assert outcome.counts["far"] == 1
    network = SimulatedNetwork(1, Weather())
    network.move([("A", "B")], 150 * MILLISECOND)
    there, back = (network.arrivals(*link, b"x")[0][0] for link in (("A", "B"), ("B", "A")))
    assert there >= 150 * MILLISECOND > back
    assert network.farthest() == 150 * MILLISECOND
    network.mend_all()
    assert network.arrivals("A", "B", b"x")[0][0] < MILLISECOND


def test_a_refused_connection_says_that_a_living_process_has_ended() -> None:
    """For a moment only, and one way: C connects to B, who lives, and hears that nobody is there."""
    refused = Cut(at=SECOND, side=("C",), others=("B",), lasts=20 * MILLISECOND, way="out", refused=True)
    lines: list[str] = []
    outcome = play(group(refused), tell=lines.append)
    assert outcome.counts["refused"] == 1
    assert any("suspects B@" in line and "proven" in line for line in lines if line.split()[1] == "C")
    silent = msgspec.structs.replace(refused, refused=False)
    quiet: list[str] = []
    play(group(silent), tell=quiet.append)
    assert not any("suspects" in line for line in quiet), "so short a silence says nothing"


@pytest.mark.parametrize("state", ["raises", "hangs"])
def test_an_application_that_gives_no_state(state: Literal["raises", "hangs"]) -> None:
    back = (Crash(at=SECOND, who="C"), StartProcess(at=2 * SECOND, who="C"))
    schedule = group(*back, habits={"A": Habits(state=state), "B": Habits(), "C": Habits()})
    outcome = play(schedule)
    assert outcome.counts["no state given"] >= 1


STRANGE: tuple[tuple[dict[str, object], str], ...] = (
    ({"names": []}, "at least one name"),
    ({"names": ["A", "A", "B", "C"]}, "each name once"),
    ({"names": ["A", "B", "C", "coordinator"]}, "a role"),
    ({"names": ["A", "B", "C", "../x"]}, "cannot name a member"),
    ({"names": ["A"]}, "none of"),
    ({"habits": {"Z": {}}}, "habits of 'Z'"),
    ({"config": {"nonsense": 1}}, "nonsense"),
    ({"config": {"heartbeat": 0}}, "heartbeat"),
    ({"weather": {"burst_frames": 0}}, "burst_frames"),
    ({"weather": {"lost": 0.1}}, "lost"),
    ({"heal_at": 10**16}, "heal_at"),
    ({"typo": 1}, "typo"),
    ({"for_good": True}, "has for_good and stays 0"),
)
STRANGE_STEPS: tuple[tuple[dict[str, object], str], ...] = (
    ({"type": "start", "who": "Z"}, "has the name 'Z'"),
    ({"type": "start", "who": "coordinator"}, "has the name 'coordinator'"),
    ({"type": "send", "who": "Z", "count": 1, "size": 1}, "has the name 'Z'"),
    ({"type": "send", "who": "A", "count": 1, "size": 1, "to": "Z"}, "has the name 'Z'"),
    ({"type": "send", "who": "A", "count": 0, "size": 1}, "count"),
    ({"type": "send", "who": "A", "count": 1, "size": -1}, "size"),
    ({"type": "send", "who": "A", "count": 1, "size": 1, "sise": 3}, "sise"),
    ({"type": "crash", "who": "Z"}, "has the name 'Z'"),
    ({"type": "crash", "who": "A", "moment": "Nonsense"}, "no member ever reaches"),
    ({"type": "clog", "who": "A", "lasts": 5, "until": "Nonsense"}, "no member ever reaches"),
    ({"type": "cut", "side": ["A"], "others": ["whoever"], "lasts": 5}, "has the name 'whoever'"),
    ({"type": "cut", "side": [], "lasts": 5}, "side"),
    ({"type": "cut", "side": ["A", "follower"], "lasts": 5}, "has the name 'follower'"),
    ({"type": "ring", "order": ["A", "Z"], "lasts": 5}, "has the name 'Z'"),
    ({"type": "jump", "who": "A", "by": 10**20}, "by"),
    ({"type": "send", "who": "A", "count": 1, "size": 70_000_000}, "the limit is 67,108,864"),
    ({"type": "flap", "who": "A", "times": 10**7, "down": 5, "up": 5}, "times"),
    ({"type": "pause", "who": "A", "lasts": 5, "at": 6 * SECOND}, "after heal_at"),
)


@pytest.mark.parametrize(("changes", "what"), STRANGE)
def test_a_file_that_somebody_changed_is_refused_where_it_means_nothing(changes: dict[str, object], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        from_json(json.dumps(json.loads(to_json(group())) | changes).encode())


@pytest.mark.parametrize(("step", "what"), STRANGE_STEPS)
def test_a_step_that_could_never_happen_is_refused(step: dict[str, object], what: str) -> None:
    fields = json.loads(to_json(group()))
    fields["actions"].append({"at": 5, **step})
    with pytest.raises(UsageError, match=what):
        from_json(json.dumps(fields).encode())


def test_what_is_as_usual_is_not_written() -> None:
    usual = Schedule(
        seed=0,
        profile="fifo",
        names=("A", "B"),
        habits={"A": Habits(), "B": Habits(drift=-7)},
        actions=(StartProcess(at=0, who="A"), Crash(at=5, who="A", nth=1, leaves="all"), Gather(at=7)),
        heal_at=9,
        bound=10,
    )
    text = """\
{
 "format": 1,
 "seed": 0,
 "profile": "fifo",
 "names": ["A", "B"],
 "habits": {"B": {"drift": -7}},
 "actions": [
  {"at": 0, "type": "start", "who": "A"},
  {"at": 5, "type": "crash", "who": "A"},
  {"at": 7, "type": "gather"}
 ],
 "heal_at": 9,
 "bound": 10
}
"""
    assert to_json(usual).decode() == text and from_json(text.encode()) == usual


def test_a_follower_is_somebody_who_does_not_coordinate() -> None:
    _, lines = held(group(Crash(at=SECOND, who="follower")))
    coordinator = next(line.split("view 2:")[1][0] for line in lines if "view 2:" in line)
    crashed = next(line.split()[1] for line in lines if "crashes" in line)
    assert crashed != coordinator


def test_a_start_after_everything_healed_is_played_too() -> None:
    """However soon all is quiet: it was written down to happen."""
    _, lines = held(group(Crash(at=SECOND, who="C"), StartProcess(at=9 * SECOND, who="C")))
    (again,) = [line for line in lines if "starts as C" in line and float(line.split()[0]) > 1]
    assert float(again.split()[0]) == 9
