"""FLOW_CONTROL in a whole stack: the window of messages to one member.  That of multicasts: test_stable.py."""

from __future__ import annotations

import pytest

from pygroups.core.limits import SECOND, WINDOW_RUNS
from pygroups.layers.flow_control.layer import FlowControl
from pygroups.sim.scenarios.group import ScenarioGroup, scenario
from tests.scenarios.common import BOTH, QUICK

SMALL = {"window": 64 << 10, "run_bytes": 4 << 10}


def room(group: ScenarioGroup, sender: str, receiver: str) -> int:
    return group[sender].member.top.room(group[receiver].address)


@BOTH
@pytest.mark.parametrize("reader", ["C", "A"])
def test_who_does_not_read_is_sent_a_window_and_no_more(profile: str, reader: str) -> None:
    """A tells one member, or itself, much more than a window, and that one reads nothing: others are not concerned."""
    with scenario("A B C", profile=profile, **SMALL) as group:
        group[reader].reads(False)
        group["A"].tells(reader, 500, size=1_000)
        group.after(2)
        assert group["A"].unsent > 0
        assert 50 <= len(group[reader].received) <= 65
        assert room(group, "A", reader) < 1_005 and room(group, "A", "B") == 64 << 10
        group["B"].tells("A", 10, size=1_000)
        group["C"].sends(10)
        group.after(0.1)
        assert len(group["B"].delivered_from("C")) == 10
        group[reader].reads()
        group.until(lambda: len(group[reader].received_from("A")) == 500, within=1)


@BOTH
def test_the_window_of_a_member_that_crashes_opens_with_the_next_view(profile: str) -> None:
    """C reads nothing and crashes: what waits for it waits for nobody any more, and is reported."""
    with scenario("A B C", profile=profile, connection_age=3 * SECOND, **SMALL) as group:
        group["C"].reads(False)
        group["A"].tells("C", 100, size=1_000)
        group.after(0.5)
        assert room(group, "A", "C") < 1_005
        group.crash("C")
        group.until(lambda: group["A"].view == ("A", "B") and group["A"].unsent == 0, within=10)
        group.until(lambda: not group["A"].holds, within=5)
        assert group["A"].undelivered["C"][-1] == 100


def test_a_connection_that_is_given_up_gives_its_window_back() -> None:
    """A's messages to C are lost, and A closes the connection: they are reported, and out of the window."""
    with scenario("A B C", **SMALL) as group:
        lost = group.drop("unicast2.Data", src="A", dest="C", where=lambda run: run.count > 0)
        group["A"].tells("C", 30, size=1_000)
        group.after(0.1)
        assert room(group, "A", "C") < 40 << 10
        group["A"].forgets("C")
        group.after(0.01)
        assert group["A"].undelivered == {"C": list(range(1, 31))}
        assert room(group, "A", "C") == 64 << 10
        lost.stop()
        group["A"].tells("C", 100, size=1_000)
        group.until(lambda: group["C"].received_from("A") == list(range(31, 131)), within=2)


@BOTH
def test_a_steady_reader_holds_nobody_up(profile: str) -> None:
    """Ten windows to one reader that reads soon, 0.2 ms away: no period of 0.2 s stands between two of them."""
    with scenario("A B", profile=profile, **SMALL) as group:
        group["A"].tells("B", 640, size=1_000)
        group.until(lambda: len(group["B"].received) == 640, within=0.8)


@BOTH
def test_a_joiner_has_windows_like_everybody(profile: str) -> None:
    """Unicasts to a joiner and from it, as soon as it has a view; it leaves, and nothing is left of it."""
    with scenario("A B", profile=profile, **SMALL, **QUICK) as group:
        group.start("C")
        group.until(lambda: "C" in group["A"].view and "C" in group["C"].view, within=5)
        group["A"].tells("C", 300, size=1_000)
        group["C"].tells("A", 300, size=1_000)
        group.until(lambda: len(group["C"].received) == len(group["A"].received) == 300, within=1)
        group.leave("C")
        group.until(lambda: not group["C"].runs, within=5)


@BOTH
def test_what_is_read_of_a_member_before_the_view_with_it_is_installed_frees_its_window(profile: str) -> None:
    """X is in the next view and fills its window to B, which installs that view later, and reads all at once."""
    with scenario("A B C", profile=profile, window=64 << 10, run_bytes=8 << 10) as group:
        lost = group.drop("Install", dest="B")
        group.start("X")
        group.until(lambda: "X" in group["X"].view, within=15)
        group["X"].tells("B", 300, every=0.001, size=1000)
        group.after(2)
        assert group["B"].view == ("A", "B", "C")
        lost.stop()
        group.until(lambda: "X" in group["B"].view, within=30)
        group.after(5)
        assert group["B"].received_from("X") == list(range(1, 301))


@BOTH
@pytest.mark.parametrize("to", ["all", "one"])
def test_a_window_is_bounded_in_runs_too(to: str, profile: str) -> None:
    """B reads nothing, and A sends messages of one byte, each in a run of its own: a run costs far more memory than its
    three bytes, so the window fills with runs and not with bytes."""
    with scenario("A B", profile=profile, window=64 << 10, run_bytes=1 << 10, runs_in_flight=1 << 20) as group:
        group["B"].reads(False)
        if to == "all":
            group["A"].sends(WINDOW_RUNS + 500, size=1, every=0.0002)
        else:
            group["A"].tells("B", WINDOW_RUNS + 500, size=1, every=0.0002)
        group.after(2)
        (control,) = (layer for layer in group["A"].member.stack.layers if isinstance(layer, FlowControl))
        window = control.multicasts if to == "all" else control.to_one[group["B"].address]
        assert WINDOW_RUNS - 100 <= len(window.runs) <= WINDOW_RUNS
        assert group["A"].unsent >= 400
        group["B"].reads()
        group.until(lambda: group["A"].unsent == 0, within=5)
        group.settles()
