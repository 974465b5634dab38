"""Merging: any map from members to views ends in one view, and what the sides delivered apart is announced.

The ids are those of the scenarios in docs/layers/merge2.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from pygroups.core.address import Address
from pygroups.core.driver_events import Found
from pygroups.core.events import NewView
from pygroups.core.limits import SECOND, Config
from pygroups.core.view import AgreedView, MergeId, ViewId
from pygroups.layers.gms.heads import Collect
from pygroups.layers.merge2 import rules
from pygroups.layers.merge2.heads import FindRsp
from pygroups.layers.merge2.layer import Merge2
from pygroups.sim import scenario
from pygroups.sim.promises.progress import bound_with_merges
from pygroups.sim.scenarios.frames import Hit
from pygroups.sim.scenarios.group import ScenarioGroup
from pygroups.sim.scenarios.player import Player
from pygroups.sim.world.watch import Watch
from tests.merging import INTERVAL, QUICK, Map, mapped, whole
from tests.scenarios.common import MEMBERSHIP

BOUND = 40 * INTERVAL


def merged(group: ScenarioGroup, within: float = BOUND) -> None:
    group.until(lambda: whole(group), within, step=0.01)


def subgroups(group: ScenarioGroup, name: str) -> list[str]:
    """The subgroups of the first merged view of `name`, each by the names of its members, in the order of the names."""
    return sorted(" ".join(sorted(one.name for one in side.members)) for side in merged_views(group, name)[0].subgroups)


def merged_views(group: ScenarioGroup, name: str) -> list[NewView]:
    seen = [heard.what for heard in group._listener.heard if heard.who == name]
    return [event for event in seen if isinstance(event, NewView) and event.subgroups]


def singles(names: str) -> Map:
    return {name: (1, name) for name in names.split()}


MAPS: dict[str, Map] = {
    "mrg_01_two": singles("A B"),
    "mrg_01_four": singles("A B C D"),
    "mrg_02": {"A": (5, "A B"), "B": (5, "A B"), "C": (7, "C D"), "D": (7, "C D")},
    "mrg_02_four_pairs": {name: (5, pair) for pair in ("A B", "C D", "E F", "G H") for name in pair.split()},
    "mrg_05": {"A": (5, "A B"), "B": (6, "B")},
    "mrg_09": {"A": (6, "A"), **dict.fromkeys("BCD", (5, "A B C D"))},
    "mrg_11": {"A": (9, "A"), "B": (9, "B")},
    "mrg_15": {"S": (10, "S"), "T": (10, "T"), "U": (11, "U V"), "V": (11, "U V")},
    "mrg_17": {**dict.fromkeys("CDEF", (8, "C D E F G")), "G": (7, "B C D E F G")},
    "mrg_21": {"A": (5, "A C"), "B": (4, "A B C"), "C": (4, "A B C")},
    "mrg_22": {"A": (5, "A B"), "B": (5, "A B"), "C": (4, "A B C")},
    "mrg_23": {**dict.fromkeys("ABC", (9, "A C B")), "D": (8, "B A C D")},
    "mrg_25_b": {"A": (7, "A B C"), "B": (8, "B C"), "C": (8, "B C")},
    "mrg_25_chain": {"A": (4, "A B"), "B": (5, "B C"), "C": (6, "C D"), "D": (7, "D E"), "E": (7, "D E")},
    "seq_07": {"A": (10, "D A"), **dict.fromkeys("BCD", (20, "B C D"))},
    "a_first_member_elsewhere": {"A": (1, "C A"), "B": (2, "A B"), "C": (1, "C A")},
    "two_first_members_elsewhere": {"A": (1, "D A"), "B": (2, "A B C"), "C": (3, "A B C D"), "D": (1, "D A")},
    "without_a_coordinator": {"B": (3, "A B C"), "C": (3, "A B C"), "D": (4, "D")},
}


# Each member is in exactly one of the views that are merged, and each view keeps only the members that are in it.
SUBGROUPS = {
    "mrg_02": ["A B", "C D"],
    "mrg_09": ["A", "B C D"],
    "mrg_11": ["A", "B"],
    "mrg_15": ["S", "T", "U V"],
    "mrg_21": ["A", "B C"],
    "mrg_22": ["A B", "C"],
    "mrg_23": ["A B C", "D"],
    "mrg_25_b": ["A", "B C"],
    "mrg_25_chain": ["A", "B", "C", "D E"],
}


@MEMBERSHIP
@pytest.mark.parametrize("name", MAPS)
def test_mrg_01_mrg_02_mrg_05_mrg_09_mrg_11_mrg_15_mrg_17_mrg_21_mrg_22_mrg_23_mrg_25_seq_07(
    name: str, profile: str
) -> None:
    """Maps of views, each of which ends in one view.  MRG-21: each member then sends 15 messages."""
    with mapped(MAPS[name], profile) as group:
        for member in group.members:
            member.sends(3, every=0.05)
        merged(group)
        if name in SUBGROUPS:
            for member in group.members:
                assert len(merged_views(group, member.name)[0].view.members) == len(MAPS[name])
                assert subgroups(group, member.name) == SUBGROUPS[name]
        before = {member.name: len(member.delivered) for member in group.members}
        for member in group.members:
            member.sends(15)
        group.settles()
        for member in group.members:
            origins = Counter(message.origin for message in member.delivered[before[member.name] :])
            assert all(origins[other] >= 15 for other in MAPS[name])


def test_mrg_25_each_view_keeps_the_members_that_are_in_it() -> None:
    """The maps of MRG-25 as the merge leader cleans them."""
    for name in ("mrg_23", "mrg_25_b", "mrg_25_chain"):
        addresses = {letter: Address(letter, "0") for letter in "ABCDE"}
        views: dict[Address, AgreedView] = {}
        for letter, (number, listed) in MAPS[name].items():
            members = tuple(addresses[one] for one in listed.split())
            views[addresses[letter]] = AgreedView(ViewId(number, members[0]), members, tuple(listed.split()))
        found = sorted(" ".join(sorted(one.name for one in here)) for _, here in rules.parties(views))
        assert found == SUBGROUPS[name]


@MEMBERSHIP
def test_mrg_15_a_member_that_does_not_coordinate_reports(profile: str) -> None:
    """V alone finds the processes of the other views: S hears of T from V only, and the merge is the same."""
    with mapped(MAPS["mrg_15"], profile) as group:
        finds(group, {"S": "", "T": "", "U": "V", "V": "S T U"})
        reports = group.watch("Sighted", src="V", dest="S")
        asked = group.watch("FindReq", src="S T", dest="S T")
        merged(group)
        assert reports.hits
        assert reports.hits[0].at < asked.hits[0].at
        for name in "STUV":
            assert subgroups(group, name) == ["S", "T", "U V"]


def finds(group: ScenarioGroup, wanted: Mapping[str, str]) -> None:
    """From now on a process finds only these processes in the directory."""
    directory = group.world.directory
    find = directory.find

    def found(who: Address, founding: bool = True) -> Found:
        given = find(who, founding)
        members = {one: contact for one, contact in given.members.items() if one.name in wanted[who.name]}
        return Found(members, given.may_found, given.seekers)

    directory.find = found  # type: ignore[method-assign]


@pytest.mark.slow
def test_mrg_18_fifty_singletons() -> None:
    names = [f"M{number:02}" for number in range(50)]
    with mapped({name: (1, name) for name in names}) as group:
        merged(group, 20)


@MEMBERSHIP
def test_mrg_08_a_split_heals(profile: str) -> None:
    with scenario("A B C D", profile=profile, **QUICK) as group:
        group.cut("A B", "C D")
        group.until(lambda: group["A"].view == ("A", "B") and group["D"].view == ("C", "D"), within=5)
        for member in group.members:
            member.sends(5, every=0.02)
        group.after(0.3)
        group.mend("A B", "C D")
        merged(group)
        for name in "ABCD":
            assert merged_views(group, name)[0].view.members == tuple(group.address(one) for one in "ABCD")
            assert subgroups(group, name) == ["A B", "C D"]
            group[name].sends(2)
        group.settles()


def test_mrg_06_mrg_32_a_deaf_one_stays_out() -> None:
    """One of four singletons receives nothing: the others merge, and it joins them when it hears again.  MRG-32: also
    if it has the lowest address."""
    for deaf in "DA":
        with mapped(singles("A B C D")) as group:
            group.cut(deaf, way="in")
            rest = tuple(name for name in "ABCD" if name != deaf)
            group.until(lambda rest=rest: group[rest[0]].view == rest, BOUND)  # type: ignore[misc]
            group.after(10 * INTERVAL)
            assert group[deaf].view == (deaf,)
            assert group[rest[0]].view == rest
            group.mend(deaf, way="in")
            merged(group)


def test_mrg_13_found_by_a_member_that_does_not_coordinate() -> None:
    """C and B find each other, and C and A do not, to the end of the merge: B reports C to its coordinator."""
    views = {"A": (5, "A B"), "B": (5, "A B"), "C": (3, "C")}
    with mapped(views) as group:
        finds(group, {"A": "B", "B": "A C", "C": "B"})
        reports = group.watch("Sighted", src="B", dest="A")
        between = group.watch("FindReq", src="A C", dest="A C")
        merged(group)
        assert reports.hits
        assert reports.hits[0].at < between.hits[0].at
        assert all(subgroups(group, name) == ["A B", "C"] for name in "ABC")


@pytest.mark.parametrize("moment", ["FindReq", "MergeReq", "MergeCollect", "MergePropose", "MergeInstall"])
@MEMBERSHIP
def test_mrg_03_the_leader_dies_at_each_step(moment: str, profile: str) -> None:
    """The leader of the merge crashes when it sends a message; another one leads the next merge."""
    for leaves in ("nothing", "some", "all"):
        views = {"A": (5, "A B"), "B": (5, "A B"), "C": (7, "C D"), "D": (7, "C D"), "E": (6, "E")}
        with mapped(views, profile, seed=len(leaves)) as group:
            for member in group.members:
                member.sends(10, every=0.05)
            group.crash("A", moment, leaves=leaves)
            group.until(lambda: "A" not in group.world.running, BOUND)
            merged(group)
            group.settles()


@pytest.mark.parametrize("victim", ["B", "C", "D"])
@pytest.mark.parametrize("moment", ["MergeRsp", "CollectAck", "Accept", "InstallAck"])
def test_a_participant_dies_at_each_step(moment: str, victim: str) -> None:
    views = {"A": (5, "A B"), "B": (5, "A B"), "C": (7, "C D"), "D": (7, "C D"), "E": (6, "E")}
    with mapped(views) as group:
        for member in group.members:
            member.sends(10, every=0.05)
        group.crash(victim, moment, leaves="nothing")
        group.until(lambda: victim not in group.world.running, BOUND)
        merged(group)
        group.settles()


def test_mrg_30_the_collect_to_a_coordinator_is_lost() -> None:
    """The merge leader A dies before the first member of the other view is bound: the others of this view, which are
    bound, are released."""
    views = {"A": (5, "A"), **dict.fromkeys("BCD", (7, "B C D"))}
    with mapped(views) as group:
        group.drop("Collect", src="A", dest="B")
        collect = group.watch("Collect", src="A", dest="C")
        group.until(lambda: bool(collect.hits), BOUND)
        group.after(0.01)
        group.crash("A")
        merged(group)
        group["C"].sends(3)
        group.settles()


def test_mrg_07_busy_participants_are_left_out_and_come_later() -> None:
    """B and F refuse: the others merge.  When they are free again, all are in one view."""
    views = {**dict.fromkeys("ABC", (5, "A B C")), **dict.fromkeys("DEF", (7, "D E F"))}
    with mapped(views) as group:
        for name in "BF":
            layer = next(layer for layer in group[name].member.stack.layers if isinstance(layer, Merge2))
            layer.reserved, layer.reserved_until = MergeId(1, group.address("Z")), 1 << 60
        rest = tuple("ACDE")
        group.until(lambda: all(group[name].view == rest for name in rest), BOUND)
        for name in "BF":
            layer = next(layer for layer in group[name].member.stack.layers if isinstance(layer, Merge2))
            layer.reserved = None
        merged(group)


@MEMBERSHIP
def test_mrg_28_sent_while_the_merge_runs(profile: str) -> None:
    """D sends two messages while the merge is under way: all deliver them in the merged view, once."""
    views = {"A": (5, "A B"), "B": (5, "A B"), "C": (7, "C D"), "D": (7, "C D")}
    with mapped(views, profile) as group:
        group["D"].sends(14)
        stops = group.watch("CollectAck", src="D")
        group.until(lambda: bool(stops.hits), BOUND, step=0.0001)
        group["D"].sends(2)
        merged(group)
        group.settles()
        assert group["A"].delivered_from("D") == group["B"].delivered_from("D") == [15, 16]
        assert group["C"].delivered_from("D") == list(range(1, 17))


@MEMBERSHIP
@pytest.mark.parametrize("count", [3, 4, 5])
def test_mrg_29_a_pair_that_is_cut_for_ever(count: int, profile: str) -> None:
    """No view changes any more after the first 70 intervals."""
    names = "ABCDE"[:count]
    for pair in ("AB", "BC", "AC"):
        with scenario(" ".join(names), profile=profile, **QUICK) as group:
            group.cut(pair[0], pair[1])
            group.after(70 * INTERVAL)
            views = [len(member.views) for member in group.members]
            group.after(100 * INTERVAL)
            assert [len(member.views) for member in group.members] == views
            group.mend(pair[0], pair[1])
            merged(group)


def test_mrg_29_a_pair_that_hears_each_other_again_waits_for_no_pause() -> None:
    """The leader has cancelled many merges, and would pause for up to 12 intervals."""
    took: list[float] = []
    for seed in range(8):
        for pair in ("AB", "AC"):
            with scenario("A B C", profile="fifo", seed=seed, **QUICK) as group:
                group.cut(pair[0], pair[1])
                group.after(100 * INTERVAL)
                group.mend(pair[0], pair[1])
                before = group.now
                merged(group)
                took.append((group.now - before) / INTERVAL)
    assert sum(took) / len(took) < 2.4


@MEMBERSHIP
def test_a_merge_that_was_cancelled_keeps_nobody_reserved(profile: str) -> None:
    """B leads over a link whose round trip is ten intervals, and A does not hear C.  When B has cancelled this merge, A
    reaches both at once: it waits neither for its own reservation, nor for that of C or of B."""
    views = {"A": (5, "A"), **dict.fromkeys("BC", (7, "B C"))}
    links = [("A", "B"), ("B", "A")]
    took: list[float] = []
    for seed in range(6):
        with mapped(views, profile, seed=seed, heartbeat_timeout=3 * SECOND) as group:
            group.cut("A", "C")
            group.world.network.move(links, SECOND)
            leader = next(layer for layer in group["B"].member.stack.layers if isinstance(layer, Merge2))
            group.until(lambda leader=leader: leader.counter > 0 and leader.round is None, 60, step=0.01)  # type: ignore[misc]
            group.world.network.move(links, -SECOND)
            group.mend("A", "C")
            before = group.now
            merged(group)
            took.append((group.now - before) / INTERVAL)
            assert all(len(member.views) == 2 for member in group.members), [member.views for member in group.members]
    assert sum(took) / len(took) < 6, took


@MEMBERSHIP
@pytest.mark.parametrize("cut", ["A-B", "B-C", "A-D C-D", "A-B B-C C-D A-D"])
def test_mrg_29_the_check_of_few_views_judges_cuts_that_stay(cut: str, profile: str) -> None:
    """Without the answers about heard members the views merge and part for ever: planted bug M35."""
    with scenario("A B C D", profile=profile, **QUICK) as group:
        for pair in cut.split():
            group.cut(pair[0], pair[2])
        Watch(group.world).look()
        group.after(2.5 * bound_with_merges(Config(**QUICK)) / SECOND)
        assert group.judge.facts["few-views"] > 0
        group.heal()
        merged(group)


@MEMBERSHIP
@pytest.mark.parametrize("also", ["B-C", ""])
def test_views_do_not_wait_for_a_leader_that_cannot_merge(also: str, profile: str) -> None:
    """A and B are one view.  C and D reach each other, and C reaches B, whose view has a lower address, and not
    A.  The leader A never hears of C, or cannot merge with it: C leads in its place."""
    for seed in range(3):
        with scenario("A B C D", profile=profile, seed=seed, **QUICK) as group:
            group.cut("A B", "C D")
            group.cut("C", "D")
            group.until(lambda group=group: [group[n].view for n in "ACD"] == [("A", "B"), ("C",), ("D",)], within=8)  # type: ignore[misc]
            if also:
                group.mend("B", "C")
            group.mend("C", "D")
            group.until(lambda group=group: group["C"].view == group["D"].view == ("C", "D"), 20 * INTERVAL)  # type: ignore[misc]
            group.heal()
            merged(group)


@MEMBERSHIP
@pytest.mark.parametrize("by", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("far", "ACD")
def test_views_merge_over_a_link_that_is_slower_than_flush_timeout(far: str, by: float, profile: str) -> None:
    """One process is far from all others: a round trip takes longer than `flush_timeout` and `merge_interval`.  The
    first merge succeeds, and the merged view changes over this link too."""
    views = {**dict.fromkeys("AB", (5, "A B")), **dict.fromkeys("CD", (7, "C D"))}
    with mapped(views, profile, heartbeat_timeout=3 * SECOND) as group:
        others = [name for name in "ABCD" if name != far]
        links = [link for other in others for link in ((far, other), (other, far))]
        group.world.network.move(links, int(by * SECOND))
        bound = bound_with_merges(Config(**QUICK), int(2 * by * SECOND)) / SECOND
        merged(group, bound)
        assert all(len(member.views) == 2 for member in group.members), [member.views for member in group.members]
        if far != "A":  # otherwise B leads in its place
            group.crash("B")
            group.after(bound)
            assert all(member.views[1:] == [tuple("ABCD"), tuple("ACD")] for member in group.members)


@MEMBERSHIP
def test_a_merged_view_waits_for_the_first_heartbeat_of_a_far_member(profile: str) -> None:
    """A round trip to C takes longer than a silent member has.  C's first heartbeat of the merged view comes after that
    time, and C stays in the view."""
    views = {"A": (5, "A B"), "B": (5, "A B"), "C": (7, "C")}
    with mapped(views, profile, merge_interval=SECOND) as group:
        links = [("C", "A"), ("A", "C"), ("C", "B"), ("B", "C")]
        group.world.network.move(links, SECOND)
        group.after(120)
        assert all(len(member.views) == 2 for member in group.members), [member.views for member in group.members]


def test_two_leaders_at_once_take_no_member_out_of_a_view() -> None:
    """B and C both lead when the network heals: the second merge does not take A and D out of the view of the first."""
    views = {"A": (5, "A D"), "B": (6, "B"), "C": (7, "C"), "D": (5, "A D")}
    for seed in range(8):
        with mapped(views, seed=seed) as group:
            group.cut("A", "B C")
            group.cut("B", "C D")
            group.cut("C", "D")
            group.after(20)
            group.heal()
            merged(group)
            assert all(len(member.views) <= 4 for member in group.members)


def test_mrg_31_a_message_that_both_sides_delivered() -> None:
    """The coordinator orders D's messages, and D is cut off before it hears of that: alone, D orders them itself.
    No member delivers them twice, and the merge has no gap over them."""
    with scenario("A B C D", profile="total", **QUICK) as group:
        group.drop("nakack.Data", "HighestSeq", dest="D")
        group["D"].sends(2)
        group.until(lambda: group["A"].delivered_from("D") == [1, 2], 5, step=0.0001)
        group.cut("D")
        group.until(lambda: group["D"].delivered_from("D") == [1, 2], 5)
        group.world.rules.clear()
        group.mend("D")
        merged(group)
        group["D"].sends(1)
        group.settles()
        assert group["A"].delivered_from("D") == group["D"].delivered_from("D") == [1, 2, 3]


def test_mrg_31_an_excluded_origin_and_its_late_forwards() -> None:
    """D is excluded, with E, after A has ordered three of its messages, and further Forwards of D arrive at A after
    that.  In the view of E and D nothing of D is ordered.  D misses its own first messages with a Gap, its other ones
    are delivered once by all, and its forward table ends empty."""
    with scenario("A B C E D", profile="total", **QUICK) as group:
        a, d = group["A"], group["D"]
        lost = group.drop("nakack.Data", "HighestSeq", dest="E D")
        d.sends(3)
        group.until(lambda: a.delivered_from("D") == [1, 2, 3], 5, step=0.0001)
        late = group.drop("Forward", src="D", dest="A")
        d.sends(2)
        group.until(lambda: bool(late.hits), 5, step=0.0001)
        group.cut("A B C", "E D")
        group.drop("Forward", src="D", dest="E")
        group.until(lambda: a.view == ("A", "B", "C") and d.view == ("E", "D"), 5)
        lost.stop()
        late.stop()
        group.again(late.hits[-1])
        group.after(0.01)
        assert a.drops["forward of an old view"] == 1
        assert not d.delivered
        assert d.gauges["sequencer.forward_table"] == 2  # runs
        group.world.rules.clear()
        group.drop("Forward", src="D", dest="E")
        group.mend("A B C", "E D")
        merged(group)
        group.world.rules.clear()
        d.sends(1)
        group.settles()
        gaps = {name: gaps_of(group, name) for name in "ABCED"}
        assert gaps == {"A": [], "B": [], "C": [], "E": [("D", 1, 3)], "D": [("D", 1, 3)]}
        assert all(group[name].delivered_from("D") == [1, 2, 3, 4, 5, 6] for name in "ABC")
        assert all(group[name].delivered_from("D") == [4, 5, 6] for name in "ED")
        assert d.gauges["sequencer.forward_table"] == 0


def gaps_of(group: ScenarioGroup, name: str) -> list[tuple[str, int, int]]:
    gaps = [gap for event in merged_views(group, name) for gap in event.gaps]
    return [(gap.origin.name, gap.first, gap.count) for gap in gaps]


def test_mrg_10_no_merge_of_views_that_follow_each_other() -> None:
    """Joins and leaves in quick succession are no reason to merge."""
    with scenario("A B C D", profile="total", **QUICK) as group:
        for _ in range(3):
            group.leave("D")
            group.after(0.3)
            group.start("D")
            group.after(0.3)
        group.after(20 * INTERVAL)
        assert all(not member.counters["merges begun"] for member in group.members)


def test_mrg_10_late_answers_name_four_views_of_one_group() -> None:
    """A group installs four views quickly.  Late heartbeats let its members ask each other, and then late answers
    arrive that name all four views: no merge, and nobody is excluded."""
    with scenario("A B C", profile="total", **QUICK) as group:
        heartbeats, held = group.delay("Heartbeat", by=0.15), group.drop("FindRsp")
        for name in "DEF":
            group.start(name)
            group.until(lambda name=name: all(name in member.view for member in group.members), 5)  # type: ignore[misc]
        group.after(0.8 * INTERVAL)
        seen = [heard for heard in group._listener.heard if heard.who == "A" and isinstance(heard.what, NewView)]
        views = [(heard.now, heard.what.view) for heard in seen[-4:] if isinstance(heard.what, NewView)]
        assert len({view.id for _, view in views}) == 4
        waits = [(one.name, other.name) for one in group.members for other in asked_by(one)]
        assert len(waits) >= 3
        for to, by in waits:
            for asked_at, view in views:
                if group.address(by) in view.members:
                    group.inject(by, to, FindRsp(asked_at, None, view))
        group.after(0.01)
        assert sum(member.drops["answer to no question"] for member in group.members) >= len(waits)
        heartbeats.stop()
        held.stop()
        group.after(20 * INTERVAL)
        assert all(not member.counters["merges begun"] for member in group.members)
        assert {member.view_id for member in group.members} == {views[-1][1].id}
        assert group["F"].view == tuple("ABCDEF")


def asked_by(member: Player) -> list[Address]:
    """The members of its view that `member` has asked for their view."""
    merge2 = next(layer for layer in member.member.stack.layers if isinstance(layer, Merge2))
    return [peer for peer in merge2.finding.asked if peer in merge2.finding.current.members]


@MEMBERSHIP
def test_mrg_11_two_groups_that_run_through_views_come_to_rest(profile: str) -> None:
    """A goes from view 6 to view 9, and B from 7 to 9, while all answers are held back.  When both rest, the late
    answers arrive, which name these views: the merged view has only the two last views as subgroups."""
    views = {**dict.fromkeys("AEFG", (6, "A E F G")), **dict.fromkeys("BHI", (7, "B H I"))}
    with mapped(views, profile) as group:
        held, requests = group.drop("FindRsp"), group.drop("MergeReq")
        group.after(0.5)
        for leaver in "EHFIG":
            group.leave(leaver)
            group.after(0.5)
        assert [id.number for id in group["A"]._seen.ids] == [6, 7, 8, 9]
        assert [id.number for id in group["B"]._seen.ids] == [7, 8, 9]
        rest = [group["A"].view_id, group["B"].view_id]
        between = [hit for hit in held.hits if hit.src.name + hit.dest.name in ("AB", "BA")]
        named = {(hit.src.name, view_named(hit)) for hit in between}
        assert named >= {("A", 6), ("A", 7), ("A", 8), ("B", 7), ("B", 8)}
        held.stop()
        for hit in between:
            group.again(hit)
        group.after(0.01)
        assert group["A"].drops["answer to no question"] > 0
        requests.stop()
        merged(group)
        for name in "AB":
            (view,) = merged_views(group, name)
            assert [side.view for side in view.subgroups] == rest
            assert subgroups(group, name) == ["A", "B"]
        group.settles()


def view_named(hit: Hit) -> int:
    """The number of the view in a late answer."""
    answer = next(head for head in hit.run.heads if isinstance(head, FindRsp))
    id = answer.id if answer.view is None else answer.view.id
    assert id is not None
    return id.number


def test_mrg_26_a_view_that_changes_while_the_merge_is_prepared() -> None:
    """D has computed the id 7 for the merged view, and its Collect is late.  Five joins raise the first view from 4 to
    9 or more before an Install.  Then the Collects for the view 4 arrive: no id stands for two views."""
    views = {**dict.fromkeys("PQR", (4, "P Q R")), **dict.fromkeys("DE", (6, "D E"))}
    with mapped(views) as group:
        finds(group, {**dict.fromkeys("PQRDE", "P Q R D E"), **dict.fromkeys("STUVW", "P Q R")})
        late = group.drop("Collect", src="D", dest="P Q R")
        group.until(lambda: bool(late.hits), BOUND, step=0.0001)
        collects = [collect_of(hit) for hit in late.hits]
        assert all((collect.ballot.number, collect.view.number) == (7, 4) for collect in collects)
        for name in "STUVW":
            group.start(name)
            group.until(lambda name=name: name in group["P"].view, 5)  # type: ignore[misc]
        assert group["P"].view == tuple("PQRSTUVW")
        assert group["P"].view_id.number >= 9  # type: ignore[union-attr]
        assert not any(merged_views(group, member.name) for member in group.members)
        late.stop()
        for hit in late.hits:
            group.again(hit)
        merged(group)
        group.settles()
        members_of: dict[ViewId, tuple[str, ...]] = {}
        for member in group.members:
            for id, view in zip(member._seen.ids, member.views, strict=True):
                assert members_of.setdefault(id, view) == view
        assert len({member.view_id for member in group.members}) == 1
        assert all(merged_views(group, name) for name in "PQRDE")


def collect_of(hit: Hit) -> Collect:
    return next(head for head in hit.run.heads if isinstance(head, Collect))


def test_seq_06_the_merged_view_reaches_its_coordinator_late() -> None:
    """SEQ-06: the merged view is installed everywhere but at its coordinator A; D sends, and every member delivers the
    message after the view."""
    views = {"A": (5, "A"), **dict.fromkeys("BCD", (7, "B C D"))}
    with mapped(views) as group:
        group.delay("Install", by=1.0, dest="A")
        group.delay("Stuck", by=1.0)
        merged_at = {name: (lambda name=name: len(group[name].view) == 4) for name in "BCD"}  # type: ignore[misc]
        group.until(lambda: merged_at["D"](), BOUND, step=0.0001)
        group["D"].sends(["M"])
        merged(group)
        group.settles()
        assert all(member.history[-2:] == ["[A B C D]", "M"] for member in group.members)


def test_quiet_costs() -> None:
    """A whole group whose members were never apart asks nobody."""
    with scenario("A B C D E", profile="total", **QUICK) as group:
        asked = group.watch("FindReq", "MergeReq", "Sighted")
        group.after(20)
        assert not asked.hits
