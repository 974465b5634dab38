"""UNICAST2 in a whole stack: messages to one member arrive once and in order, whatever happens to the connection.

The seed's nine scenarios stand as conversations of the layer alone in tests/layers/text/unicast2, by their numbers.
"""

from __future__ import annotations

import pytest

from pygroups.core.driver_events import Dead
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.core.run import Run
from pygroups.layers.unicast2.heads import DATA, Ack
from pygroups.sim.scenarios.group import ScenarioGroup, scenario
from pygroups.sim.schedules.schedule import Weather

from .common import BOTH, QUICK

ONE_TO = {n: list(range(1, n + 1)) for n in (4, 5, 10, 15, 20, 50, 100)}


def exchange(group: ScenarioGroup, count: int) -> None:
    """A and B send each other so many."""
    group["A"].tells("B", count)
    group["B"].tells("A", count)
    group.settles()


def test_UNI_01() -> None:
    """A sends 100 to B, then B 50 to A."""
    with scenario("A B") as group:
        group["A"].tells("B", 100)
        group.settles()
        group["B"].tells("A", 50)
        group.settles()
        assert group["B"].received_from("A") == ONE_TO[100]
        assert group["A"].received_from("B") == ONE_TO[50]


def test_UNI_02() -> None:
    """Both close their connection, and exchange again (#3)."""
    with scenario("A B") as group:
        exchange(group, 10)
        group["A"].forgets("B")
        group["B"].forgets("A")
        group.after(0.1)
        exchange(group, 10)
        assert group["B"].received_from("A") == group["A"].received_from("B") == ONE_TO[20]


def test_UNI_03() -> None:
    """A closes, and sends (#4): B takes the new connection for what it is."""
    with scenario("A B") as group:
        exchange(group, 10)
        group["A"].forgets("B")
        group["A"].tells("B", 10)
        group.settles()
        assert group["B"].received_from("A") == ONE_TO[20]


def test_UNI_04() -> None:
    """B closes, and A sends (#5): B goes on where it ended."""
    with scenario("A B") as group:
        exchange(group, 10)
        group["B"].forgets("A")
        group.after(0.1)
        group["A"].tells("B", 10)
        group.settles()
        assert group["B"].received_from("A") == ONE_TO[20]


def test_UNI_04_nothing_is_remembered() -> None:
    """B closes, and its memory of where the connection ended has gone too: it asks for the first."""
    with scenario("A B", tombstone=100 * MILLISECOND) as group:
        asked = group.watch("SendFirst", src="B", dest="A")
        exchange(group, 10)
        group["B"].forgets("A")
        group.after(0.5)
        group["A"].tells("B", 10)
        group.settles()
        assert group["B"].received_from("A") == ONE_TO[20]
        assert asked.hits


@pytest.mark.parametrize("every", [0.0, 0.002])
def test_UNI_05(every: float) -> None:
    """A closes; the first run of its new connection is lost (#6): B waits for it, and gets exactly ten more."""
    with scenario("A B") as group:
        group["A"].tells("B", 10)
        group.settles()
        group["A"].forgets("B")
        lost = group.drop("unicast2.Data", src="A", dest="B", count=1, where=lambda run: run.count > 0)
        group["A"].tells("B", 10, every=every)
        group.settles()
        assert lost.hits
        assert group["B"].received_from("A") == ONE_TO[20]


def test_UNI_07() -> None:
    """A message to somebody who does not exist any more: the sender is told, and holds nothing."""
    with scenario("A B C", connection_age=5 * SECOND) as group:
        group.isolate("C")
        group["A"].tells("C", 3)
        group.after(0.001)
        group.crash("C")
        group.until(lambda: bool(group["A"].undelivered) and not group["A"].holds, within=10)
        assert group["A"].undelivered == {"C": [1, 2, 3]}


@pytest.mark.parametrize("last", [1, 5])
def test_UNI_09_UNI_10(last: int) -> None:
    """The last of five is lost, or the only one on a new connection: it comes without further traffic."""
    with scenario("A B") as group:
        group["A"].forgets("B")
        lost = group.drop("unicast2.Data", src="A", dest="B", count=1, where=lambda run: run.first == last)
        group["A"].tells("B", last, every=0.001)
        group.until(lambda: len(group["B"].received) == last, within=10)
        assert lost.hits


def test_UNI_11() -> None:
    """B sends five; the next five acknowledgements are lost: B forgets them all the same."""
    with scenario("A B") as group:
        lost = group.drop("Ack", src="A", dest="B", count=5)
        group["B"].tells("A", 5, every=0.03)
        group.after(0.2)
        group.until(lambda: not group["B"].holds, within=10)
        assert len(lost.hits) == 5
        assert group["A"].received_from("B") == ONE_TO[5]


def test_UNI_13() -> None:
    """The third of five is lost twice: all come, in order."""
    with scenario("A B") as group:
        lost = group.drop("unicast2.Data", src="A", dest="B", count=2, where=lambda run: run.first == 3)
        group["A"].tells("B", 5, every=0.001)
        group.settles()
        assert len(lost.hits) == 2
        assert group["B"].received_from("A") == ONE_TO[5]


@pytest.mark.parametrize("loss", [0.0, 0.1])
@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_UNI_14(count: int, loss: float) -> None:
    """So many of 1 kB to oneself and to B: exact order, with and without loss."""
    with scenario("A B", weather=Weather(loss=loss), heartbeat_timeout=60 * SECOND) as group:
        for to in "AB":
            group["A"].tells(to, count, size=1_000)
        group.settles(within=300)
        for to in "AB":
            assert group[to].received_from("A") == list(range(1, count + 1))


def test_UNI_19() -> None:
    """B is dead and A's window is full of what it sent to B and C: the view without B comes, C has 1 to 10."""
    with scenario("A B C", run_bytes=1 << 10, window=5 << 10, connection_age=3 * SECOND) as group:
        group.cut("B", way="in")
        group["A"].tells("B", 10, size=500)
        group["A"].tells("C", 10, size=500)
        group["A"].sends(10, size=1_000)
        group.after(0.01)
        group.crash("B")
        group.until(lambda: group["C"].received_from("A") == ONE_TO[10], within=2)
        group.until(lambda: group["A"].unsent == 0 and group["A"].view == ("A", "C"), within=10)
        group.until(lambda: group["A"].undelivered == {"B": ONE_TO[10]}, within=5)
        assert group["C"].delivered_from("A") == ONE_TO[10]


@pytest.mark.parametrize("how", ["sender closes", "receiver excluded", "receiver closed and more come"])
def test_UNI_20(how: str) -> None:
    """However a connection ends while the sender has much to send: nothing waits for ever, the connection goes."""
    quick = {"heartbeat": 50 * MILLISECOND, "heartbeat_timeout": 200 * MILLISECOND, "connection_age": 3 * SECOND}
    with scenario("A B C", **quick) as group:
        group.cut("A", "B", way="out")
        group["A"].tells("B", 10, size=500)
        group.after(0.01)
        if how == "sender closes":
            group["A"].forgets("B")
            group.after(0.01)
            assert group["A"].undelivered == {"B": ONE_TO[10]}
        elif how == "receiver excluded":
            group.isolate("B")
            group.until(lambda: group["A"].view == ("A", "C"), within=6)
            group.crash("B")
        else:
            group["B"].forgets("A")
            group["A"].tells("B", 5)
            group.after(0.05)
            group.crash("B")
        group.until(lambda: not any(name.startswith("unicast2") for name in group["A"].holds), within=6)


def test_UNI_23() -> None:
    """Four members, each sends five to each, itself included."""
    with scenario("A B C D") as group:
        for one in "ABCD":
            for other in "ABCD":
                group[one].tells(other, 5, every=0.001)
        group.settles()
        for one in "ABCD":
            assert len(group[one].received) == 20
            for other in "ABCD":
                assert group[one].received_from(other) == ONE_TO[5]


def test_motivation_25_and_7() -> None:
    """B saw {B} for a while and forgot A, which did not forget B: A's next number is #25, B's #1, and A expects #7."""
    with scenario("A B", tombstone=1 * MILLISECOND) as group:
        group["A"].tells("B", 24, every=0.001)
        group["B"].tells("A", 6, every=0.001)
        group.settles()
        group["B"].forgets("A")
        group.after(0.1)
        group["A"].tells("B", 3, every=0.001)
        group["B"].tells("A", 8, every=0.001)
        group.settles()
        assert group["B"].received_from("A") == list(range(1, 28))
        assert group["A"].received_from("B") == list(range(1, 15))


@BOTH
@pytest.mark.parametrize("wrong", ["C-of-A", "A-of-C", "C-of-A-twice"])
def test_a_wrong_proof_silences_nobody(profile: str, wrong: str) -> None:
    """A connection is reset and the dial refused for a moment: one member takes another, which lives, for proven dead.
    Everything that is sent arrives, in this view or the next."""
    by, of = wrong[0], wrong[5]
    with scenario("A B C", profile=profile, **QUICK) as group:
        group["C"].sends(400, every=0.005)
        group["C"].tells("A", 100, every=0.02)
        group.after(0.5013)
        group[by].hears(Dead(group[of].address))
        if "twice" in wrong:
            group.after(0.3)
            group[by].hears(Dead(group[of].address))
        group.until(lambda: group["C"].landed == 400 or not group["C"].runs, within=10)
        group.after(0.2)
        if group["C"].runs:  # else the group went on without it, and told it so
            assert group["A"].delivered_from("C") == group["B"].delivered_from("C") == list(range(1, 401))
            assert group["A"].received_from("C") == ONE_TO[100]
            assert group["C"].undelivered == {}
            group.crash(of)  # now the proof is true


@BOTH
@pytest.mark.parametrize("who", ["A", "C"])
def test_an_application_that_forgets_a_peer_forgets_its_own_messages_alone(profile: str, who: str) -> None:
    """C and the coordinator close their connection again and again: what the layers send on it arrives."""
    with scenario("A B C", profile=profile) as group:
        group.drop("unicast2.Data", src="C", dest="A", where=lambda run: run.first % 10 == 3, count=20)
        group["C"].sends(200, every=0.001)
        for _ in range(20):
            group.after(0.01)
            group[who].forgets("C" if who == "A" else "A")
        group.settles()
        assert group["A"].delivered_from("C") == list(range(1, 201))


def test_an_acknowledgement_of_an_older_connection_says_nothing_of_the_next() -> None:
    """B's acknowledgement is late; meanwhile A closed the connection, and the first runs of the next are lost."""

    def of_data(run: Run) -> bool:
        return isinstance(run.head, Ack) and run.head.lane == DATA

    with scenario("A B") as group:
        late = group.delay("Ack", src="B", dest="A", by=0.1, count=1, where=of_data)
        group["A"].tells("B", 5, every=0.001)
        group.after(0.03)
        assert late.hits
        group["A"].forgets("B")
        lost = group.drop("unicast2.Data", src="A", dest="B", where=lambda run: run.count > 0)
        group["A"].tells("B", 10, every=0.001)
        group.after(0.2)
        assert lost.hits
        lost.stop()
        group.settles()
        assert group["B"].received_from("A") == ONE_TO[15]


@BOTH
def test_who_leaves_while_cut_off_is_told_what_was_not_acknowledged(profile: str) -> None:
    """B tells A and C something, is cut off, tells them more and leaves before the others know of the cut."""
    with scenario("A B C", profile=profile, leave_timeout=1 * SECOND) as group:
        group["B"].tells("A", 3)
        group.after(0.1)
        group.isolate("B")
        group["B"].tells("A", 2)
        group["B"].tells("C", 2)
        group.after(0.01)
        group.leave("B")
        group.until(lambda: not group["B"].runs, within=3)
        assert group["B"].undelivered == {"A": [4, 5], "C": [1, 2]}


@pytest.mark.parametrize("last", [True, False])
def test_a_lost_frame_is_repaired_within_four_periods(last: bool) -> None:
    """One frame of a message to one member is lost, in the middle or at the end; nothing else disturbs."""
    with scenario("A B C") as group:
        for sender, receiver in ("AB", "BC", "CA"):
            group.after(0.3)
            lost = group.drop("unicast2.Data", src=sender, dest=receiver, count=1, where=lambda run: run.count > 0)
            group[sender].tells(receiver, 1)
            group.after(0.002)
            if not last:
                group[sender].tells(receiver, 1)
            group.until(lambda: len(group[receiver].received) == 2 - last, within=0.08)  # noqa: B023
            assert lost.hits
