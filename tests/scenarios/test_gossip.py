"""Gossip groups in the simulator, with real stacks: nothing is missed while messages are held."""

from __future__ import annotations

from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.sim import Weather, scenario

QUICK = {
    "heartbeat": 100 * MILLISECOND,
    "heartbeat_timeout": 2 * SECOND,
    "desired_avg_gossip": 50 * MILLISECOND,
    "gossip_retry": 50 * MILLISECOND,
}


def test_M41_nothing_is_purged_that_a_member_lacks() -> None:
    loses = Weather(delay=200, jitter=200, loss=0.3)
    slow = {"gossip_retry": 3 * SECOND, "desired_avg_gossip": 20 * MILLISECOND, "subset": 1_000, "lag": 1}
    with scenario("A B C", profile="gossip", weather=loses, formed=False, seed=41, **QUICK | slow) as group:
        group.start("A B C")
        group.until(lambda: all(len(group[name].view) == 3 for name in "ABC"), 60)
        for name in "ABC":
            group[name].sends(200, every=0.01)
        for name in "ABC":
            for other in "ABC":
                group.until(lambda n=name, o=other: group[n].delivered_from(o)[-1:] == [200], 60)  # type: ignore[misc]
        group.after(10)
        assert sum([group[name].counters["messages given up"] for name in "ABC"]) == 0
        assert sum([group[name].counters["runs sent again"] for name in "ABC"]) > 100
        assert sum([group[name].counters["runs purged"] for name in "ABC"]) > 100


def _after_a_cut(**config: int) -> list[int]:
    """The messages of A that D delivers, and those that it gives up: D is cut off for longer than others keep them."""
    with scenario("A B C D", profile="gossip", gossip_keep=1 * SECOND, **config, **QUICK) as group:
        group.cut("D", "A B C")
        group["A"].sends(100, every=0.05)
        group.after(10)
        group.heal()
        group.until(lambda: group["D"].view == group["A"].view, 20)
        group["A"].sends(1)
        group.until(lambda: group["D"].delivered_from("A")[-1:] == [101], 30)
        assert group["B"].delivered_from("A") == [*range(1, 102)]
        return [len(group["D"].delivered_from("A")), group["D"].counters["messages given up"]]


def test_a_member_gives_up_messages_that_nobody_keeps() -> None:
    delivered, given_up = _after_a_cut()
    assert delivered + given_up == 101 and given_up > 50


def test_a_late_join_handler_has_them_still() -> None:
    assert _after_a_cut(late_join_handler=1) == [101, 0]
