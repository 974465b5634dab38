"""STABLE and FLOW_CONTROL in a whole stack: what all have is forgotten, windows open again, and senders know."""

from __future__ import annotations

from functools import partial

import pytest

from pygroups.core.events import Consumed, StableWanted
from pygroups.core.limits import SECOND
from pygroups.layers.flow_control.layer import FlowControl
from pygroups.sim.scenarios.group import scenario
from pygroups.sim.scenarios.player import Player
from tests.scenarios.common import BOTH

NO_TIMER = {"stable_period": 3_600 * SECOND, "stable_runs": 1_000_000}


@BOTH
def test_STB_01(profile: str) -> None:
    """No timer, votes after 10,000 bytes; B sends ten of 5,000: everybody has ten, and of 50,000 bytes at most what is
    not worth a vote is kept."""
    with scenario("A B C", profile=profile, stable_bytes=10_000, run_bytes=5_000, **NO_TIMER) as group:
        group["B"].sends(10, size=5_000)
        group.until(lambda: all(len(member.delivered) == 10 for member in group.members), within=5)
        group.until(lambda: all(member.gauges["nakack.stored"] < 2 for member in group.members), within=5)
        assert group["B"].stable >= 9
        group["B"].sends(1, size=5_000)
        group.until(lambda: group["B"].stable >= 10, within=5)
        for member in group.members:
            group.crash(member.name)


def test_STB_03() -> None:
    """Every vote arrives three times, B's are held back: nothing is stable before B has voted."""
    with scenario("A B C") as group:
        held = group.drop("Vote", src="B")
        group.repeat("Vote", copies=2, src="C")
        group["C"].sends(3)
        group.after(0.5)
        assert group["C"].stable == 0
        held.stop()
        group.until(lambda: group["C"].stable == 3, within=2)


@BOTH
def test_STB_04(profile: str) -> None:
    """Votes and stability of an earlier view come again in the next one: ignored, and counted."""
    with scenario("A B C D", profile=profile) as group:
        old = group.watch("Vote", "StabilityMsg")
        group["B"].sends(20, every=0.01)
        group.settles()
        group.leave("D")
        group.until(lambda: group["A"].view == group["B"].view == group["C"].view == ("A", "B", "C"), within=5)
        lost = group.drop("Vote", "StabilityMsg")
        again = [hit for hit in old.hits if "D" not in (hit.src.name, hit.dest.name)]
        group["B"].sends(20)
        group.after(0.05)
        for hit in again[-30:]:
            group.again(hit)
        group.after(0.05)
        assert group["B"].stable <= 20
        lost.stop()
        group.settles()
        assert group["B"].stable == 40


@BOTH
def test_STB_05(profile: str) -> None:
    """Every StabilityMsg of three rounds is lost: memory stays within the window, and the next round forgets it all."""
    with scenario("A B C", profile=profile, run_bytes=1 << 10, window=8 << 10) as group:
        lost = group.drop("StabilityMsg")
        group["B"].sends(1_000, size=500)
        group.until(lambda: len(lost.hits) >= 6, within=5)
        group.after(0.5)
        assert group["B"].unsent > 0
        assert all(member.gauges["nakack.stored"] <= 8 for member in group.members)
        lost.stop()
        group.settles()
        assert group["C"].delivered_from("B") == list(range(1, 1_001))


@BOTH
def test_STB_08(profile: str) -> None:
    """The collector of votes dies in the middle of a round: the next one begins its own."""
    with scenario("A B C", profile=profile) as group:
        group.drop("StabilityMsg", src="A")
        group["C"].sends(10)
        group.until(lambda: len(group["A"].delivered) == 10, within=1)
        group.crash("A")
        told = group.watch("StabilityMsg", src="B")
        group.settles()
        assert told.hits
        assert group["C"].stable == 10


@pytest.mark.parametrize("members", [12, pytest.param(50, marks=pytest.mark.slow)])
def test_STB_09(members: int) -> None:
    """A round costs one vote of each to the collector and one message to all, not one of each to each."""
    names = [f"m{number:02}" for number in range(members)]
    with scenario(names, formed=False, stable_bytes=1 << 20, stable_runs=1_000) as group:
        group.forms(names[:1])
        group.start(names[1:])
        group.until(lambda: all(len(member.view) == members for member in group.members), within=10)
        group.settles()
        votes, told = group.watch("Vote"), group.watch("StabilityMsg")
        group[names[1]].sends(1)
        group.until(lambda: group[names[1]].stable == 1, within=2)
        group.settles()
        rounds = 2  # delivered, then consumed
        assert {hit.dest.name for hit in votes.hits} == {names[0]}
        assert len(votes.hits) <= (rounds + 1) * (members - 1)
        assert len(told.hits) <= 4 * (members - 1)


@BOTH
@pytest.mark.parametrize("how", ["leaves", "crashes", "the sender stops"])
def test_FLOW_02(how: str, profile: str) -> None:
    """C consumes nothing, so A's window is full; C goes, or A does: nobody waits any more."""
    with scenario("A B C", profile=profile, run_bytes=1 << 10, window=4 << 10) as group:
        group["C"].reads(False)
        group["A"].sends(100, size=500)
        group.after(2)
        assert group["A"].unsent > 80
        if how == "leaves":
            group.leave("C")
        elif how == "crashes":
            group.crash("C")
        else:
            group["A"].stops_sending()
            group.leave("A")
            group.until(lambda: group["A"].ended == "left", within=7)
            return
        group.until(lambda: len(group["B"].delivered) == 100, within=10)


@BOTH
def test_RSVP_01(profile: str) -> None:
    """Five; the first transmission of a multicast is lost everywhere: `until="stable"` is told when all have it, and
    until then it is not."""
    with scenario("A B C D E", profile=profile) as group:
        lost = group.drop(*(["nakack.Data", "Forward"] if profile == "total" else ["nakack.Data"]), first=True)
        group["B"].sends("value")

        def told_or_all_have_it() -> bool:
            have = [member.texts == ["value"] for member in group.members]
            assert group["B"].stable == 0 or all(have)
            return group["B"].stable == 1

        group.until(told_or_all_have_it, within=5)
        assert len(lost.hits) >= 4


def test_RSVP_01_to_one() -> None:
    """The same for a message to one: its first transmission is lost, it arrives, and nothing is reported."""
    with scenario("A B C D E") as group:
        lost = group.drop("unicast2.Data", first=True, where=lambda run: run.count > 0)
        group["B"].tells("D", "value")
        group.settles()
        assert len(lost.hits) == 1
        assert [message.text for message in group["D"].received] == ["value"]
        assert group["B"].undelivered == {}


@BOTH
def test_a_payload_as_large_as_the_window(profile: str) -> None:
    """Each payload fills the whole window: it goes alone, and all come, in turn."""
    with scenario("A B C", profile=profile, run_bytes=1_000, window=1_000) as group:
        for name in "ABC":
            group[name].sends(10, size=1_000)
        group["A"].tells("B", 10, size=1_000)
        group.until(lambda: all(len(member.delivered) == 30 for member in group.members), within=20)


@BOTH
def test_STB_02(profile: str) -> None:
    """C's votes are lost, those of A and B are there; D joins before C has voted: nothing is forgotten for D's sake or
    C's, and in the new view all vote anew."""
    with scenario("A B C", profile=profile) as group:
        lost = group.drop("Vote", src="C")
        group["B"].sends(5)
        group.after(0.5)
        assert group["B"].stable == 0
        assert all(member.gauges["nakack.stored"] > 0 for member in group.members)
        group.start("D")
        group.until(lambda: "D" in group["D"].view, within=5)
        group["B"].sends(5)
        group.after(0.5)
        assert group["B"].stable == 5  # the change of the view told it: all who came along had those
        assert all(member.gauges["nakack.stored"] > 0 for member in group.members)
        lost.stop()
        group.settles()
        assert group["B"].stable == 10


def _is_stable(player: Player, last: int) -> bool:
    return player.stable == last


def test_a_lone_message_is_stable_soon_and_a_trickle_within_a_few_periods() -> None:
    """Decision 0032: a vote waits for the vote before it and not for the news.  Five members; the second part is 50
    messages a second in all."""
    with scenario("A B C D E") as group:
        for round_ in range(20):
            group.after(3)
            group["ABCDE"[round_ % 5]].sends(1)
            group.until(partial(_is_stable, group["ABCDE"[round_ % 5]], round_ // 5 + 1), within=0.025)
        group.after(3)
        sent: dict[tuple[str, int], float] = {}
        took: list[float] = []
        for tick in range(10_000):
            if tick % 20 == 0:
                name = "ABCDE"[tick // 20 % 5]
                group[name].sends(1)
                sent[name, group[name].accepted + 1] = group.now
            group.after(0.001)
            took += [group.now - sent.pop((name, n)) for name, n in list(sent) if n <= group[name].stable]
        took.sort()
        assert len(took) > 450 and took[len(took) // 2] < 0.2 and took[-1] < 0.4


@BOTH
@pytest.mark.parametrize("who", ["A", "C"])
def test_a_sender_that_waits_for_everybody_makes_the_votes_urgent(profile: str, who: str) -> None:
    """A hundred, each sent when the one before it is stable: two more hops each, and no period between them."""
    with scenario("A B C", profile=profile) as group:
        group.after(1)
        began = group.now
        for number in range(1, 101):
            group[who].sends(1)
            group[who].asks(StableWanted(number + 1))
            group.until(partial(_is_stable, group[who], number), within=1, step=0.0001)
        assert group.now - began < 0.5


@BOTH
@pytest.mark.parametrize("sender", ["A", "B", "C"])
def test_a_full_window_opens_when_its_last_reader_has_read(sender: str, profile: str) -> None:
    """The other reader has voted long ago, and has no news: the urgent vote of the last one opens the window."""
    for slow in "ABC".replace(sender, ""):
        for ago in range(3):  # tenths of a second after a period of the votes
            with scenario("A B C", profile=profile, window=256 << 10, run_bytes=16 << 10) as group:
                group.after(2)
                group[slow].reads(False)
                group[sender].sends(40, size=16 << 10)
                group.after(2 + ago / 10)
                assert group[sender].unsent
                group[slow].reads()
                group.until(lambda group=group: not group[sender].unsent, within=0.05, step=0.001)  # type: ignore[misc]


@BOTH
@pytest.mark.parametrize("slow", ["A", "C"])
def test_a_full_window_opens_at_each_step_of_its_last_reader(slow: str, profile: str) -> None:
    """The last reader, perhaps the coordinator, reads a quarter of the window every 30 ms: each opens the window."""
    with scenario("A B C", profile=profile, window=256 << 10, run_bytes=16 << 10) as group:
        group.after(2)
        group[slow].reads(False)
        group["B"].sends(40, size=16 << 10)
        group.after(2)
        for read in (5, 9, 13):
            unsent = group["B"].unsent
            group[slow].asks(Consumed({group["B"].address: read}))
            group.until(lambda unsent=unsent: group["B"].unsent < unsent, within=0.02, step=0.001)  # type: ignore[misc]
            group.after(0.03)
        group[slow].reads()


@BOTH
def test_nobody_hears_that_a_sender_waits_and_it_is_told_all_the_same(profile: str) -> None:
    """The wish is lost, or the votes that it called for: the ordinary rounds bring it."""
    with scenario("A B C", profile=profile) as group:
        for lost in ("Wanted", "Vote", "StabilityMsg"):
            last = group["C"].accepted + 1
            rule = group.drop(lost, count=2)
            group["C"].sends(1)
            group["C"].asks(StableWanted(last + 1))
            group.until(partial(_is_stable, group["C"], last), within=1)
            assert rule.hits
            rule.stop()


@BOTH
def test_a_sender_that_waits_waits_on_in_the_next_view(profile: str) -> None:
    """B waits for messages that D lacks; D crashes; what B then sends is stable as soon as in a view before."""
    with scenario("A B C D", profile=profile) as group:
        group.cut("D", way="in")
        group["B"].sends(3, every=0.001)
        group["B"].asks(StableWanted(4))
        group.after(0.1)
        group.crash("D")
        group.until(lambda: group["B"].view == ("A", "B", "C"), within=10)
        group["B"].sends(1)
        group["B"].asks(StableWanted(5))
        group.until(partial(_is_stable, group["B"], 4), within=0.01, step=0.0001)


@BOTH
@pytest.mark.parametrize("slow", ["A", "C"])
def test_a_sender_knows_whom_its_window_waits_for(profile: str, slow: str) -> None:
    """One reads nothing: B's window fills, and B is told who holds it shut; others read on and send."""
    with scenario("A B C D", profile=profile, window=64 << 10, run_bytes=4 << 10) as group:
        waits_for = group["B"].member.top.waits_for
        group[slow].reads(False)
        group["D"].sends(2_000, every=0.002, size=100)
        group["B"].sends(500, size=1_000)
        group.after(2)
        assert group["B"].unsent > 0
        assert waits_for() == (group[slow].address,)
        group[slow].reads()
        group.until(lambda: group["B"].unsent == 0, within=1)
        assert waits_for() == ()


@BOTH
def test_a_run_leaves_the_window_when_its_last_message_was_read(profile: str) -> None:
    """C reads message by message: all but the last of B's first run open nothing, the last one does."""
    with scenario("A B C", profile=profile, window=4_000, run_bytes=2_000) as group:
        group["C"].reads(False)
        group["B"].sends(100, size=100)
        group.after(1)
        member = group["B"].member
        (window,) = (layer.multicasts.runs for layer in member.stack.layers if isinstance(layer, FlowControl))
        after_first_run, room = window[0][0], member.top.room()
        assert after_first_run > 2 and room < 200
        group["C"].asks(Consumed({group["B"].address: after_first_run - 1}))
        group.after(1)
        assert member.top.freed_bytes == 0
        group["C"].asks(Consumed({group["B"].address: after_first_run}))
        group.after(1)
        assert member.top.freed_bytes > 0
        group["C"].reads()
