"""causal follows from other promises, so it is tested alone: with vector clocks, on histories that break those."""

from __future__ import annotations

import pytest

from pygroups.core.limits import Config
from pygroups.sim.promises.causal import Causal
from pygroups.sim.promises.facts import Check
from pygroups.sim.promises.judge import Judge
from pygroups.sim.promises.messages import Messages
from tests.sim.test_promises import History

START = """
view 1 ABC: A B C
send A
A1: A B
send B
"""

GOOD = {
    "the cause comes first": START + "A1: C\nB1: A B C",
    "what was not delivered before is no cause": "view 1 ABC: A B C\nsend A\nsend B\nB1: A B C\nA1: A B C",
    "its sender did not come along": START + "crash B\nview 2 AC: A C\nB1: A C\nA1: C",
    "a given state holds the cause": "view 1 AB: A B\nsend A\nA1: A B\nsend B\nview 2 ABC: A B\n"
    "view 2 ABC: C (alone) (as A:2)\nB1: A B C",
    "a given state is silent about one who is long gone": "view 1 ABD: A B D\nsend D\nD1: A B D\ncrash D\n"
    "view 2 AB: A B\nview 3 ABC: A B\nview 3 ABC: C (alone) (as A:1)\nsend B\nB1: A B C",
}
PLANTED = {
    "at the last": START + "B1: C",
    "at the first": "view 1 ABC: A B C\nsend C\nC1: B C\nsend B\nB1: A",
    "at one that dies": START + "crash A\nB1: C",
    "the sender is dead": START + "crash B\nB1: C",
    "over two hops": START + "A1: C\nB1: B C\nsend C\nC1: C B\nview 2 ABC: A B C\nC1: A",
    "over a view": "view 1 ABC: A B C\nsend A\nA1: A B\nview 2 ABC: A B C\nsend B\nB1: C",
    "at a newcomer": "view 1 AB: A B\nsend A\nA1: A B\nview 2 ABC: A B\nview 2 ABC: C (alone) (as A:2)\nsend A\n"
    "A2: A B\nsend B\nB1: C",
}


def played(text: str, marks_max: int = 10_000) -> Judge:
    history = History("total")
    messages = Messages()
    checks: list[Check] = [messages, Causal(messages)]
    history.judge = Judge(checks, goes_on=True)
    history.judge.around.config = Config(marks_max=marks_max)
    history.play(text)
    return history.judge


@pytest.mark.parametrize("name", GOOD)
def test_what_is_good_holds(name: str) -> None:
    judge = played(GOOD[name])
    assert judge.found == [] and judge.facts["causal"] > 0


@pytest.mark.parametrize("name", PLANTED)
def test_an_effect_before_its_cause_is_found(name: str) -> None:
    text = PLANTED[name]
    (witness,) = [witness for witness in played(text).found if witness.promise == "causal"]
    *_, last = text.splitlines()
    assert (witness.message.split("@")[0], witness.member[0]) == (last[0], last[-1])


@pytest.mark.parametrize(("marks_max", "found"), [(1, []), (2, ["causal"])])
def test_a_member_forgets_origins_outside_the_view_beyond_marks_max(marks_max: int, found: list[str]) -> None:
    text = "view 1 ABE: A B E\nsend A\nA1: A B E\nsend E\nE1: A B E\nsend B\nview 2 B: B (as E:2)\nB1: B"
    assert [witness.promise for witness in played(text, marks_max).found] == found


def test_an_effect_is_not_judged_where_the_order_is_broken() -> None:
    history = History("total")
    history.judge = Judge(history.judge.checks, goes_on=True)
    history.play(START + "B1: A B C\nA1: C\nview 2 ABC: A B C")
    assert "causal" in [witness.promise for witness in history.judge.found]
    assert {witness.promise for witness in history.judge.broken} == {"total-order"}
