"""Two groups that are born apart with other settings: each is judged for itself, and they never merge."""

from __future__ import annotations

import pytest

from pygroups.core.address import Address
from pygroups.core.errors import UsageError
from pygroups.core.limits import SECOND
from pygroups.core.view import ViewId
from pygroups.layers.profiles import PROFILES
from pygroups.sim.batches.runner import play
from pygroups.sim.promises.broken import Broken
from pygroups.sim.promises.checks import checks_of
from pygroups.sim.promises.facts import Situation, Stand, Viewed
from pygroups.sim.promises.two_groups import Apart, TwoGroups, judge_of
from pygroups.sim.schedules.draw import Wish, draw
from pygroups.sim.schedules.schedule import from_json, to_json

A, B, C, D = (Address(name, "0" * 16) for name in "ABCD")
FAULTS = ("settings", "crash", "restart", "isolate", "merge", "leave")


@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_drawn_groups_with_other_settings_keep_every_promise(profile: str) -> None:
    counts = dict.fromkeys(("processes with other settings", "sent Refuse"), 0)
    for seed in range(6):
        outcome = play(draw(seed, Wish(profile, faults=FAULTS)))
        assert outcome.witness is None, f"seed {seed}: {outcome.witness}\n{outcome.trace}"
        counts = {what: count + outcome.counts.get(what, 0) for what, count in counts.items()}
    assert all(counts.values()), counts


def view_of(check: Apart, members: tuple[Address, ...]) -> None:
    check.viewed(Viewed(members[0], ViewId(1, members[0]), members, None, None, members, None))


def test_a_view_with_other_settings_is_found() -> None:
    check = Apart(("C", "D"))
    view_of(check, (A, B))
    view_of(check, (C, D))
    assert check.facts() == {"view-accuracy": 2}
    for members in ((A, C), (D, C, B)):
        with pytest.raises(Broken, match="a process with other settings"):
            view_of(check, members)


def stands(view: tuple[Address, ...], *members: Address, blocked: bool = False) -> list[Stand]:
    return [Stand(one, True, True, ViewId(1, view[0]), view, blocked, False, 1, 0) for one in members]


def test_each_group_has_its_own_progress() -> None:
    """Two views that reach each other are no violation if their settings differ; an obstacle in each group is one."""
    for here, there in ((False, False), (True, False), (False, True)):
        judge = judge_of(("C", "D"), lambda: checks_of(PROFILES["total"].services))
        judge.around.services = PROFILES["total"].services
        look = (*stands((A, B), A, B, blocked=here), *stands((C, D), C, D, blocked=there))
        judge.looked(Situation(0, 0, SECOND, frozenset(), look))
        later = Situation(SECOND, 0, SECOND, frozenset(), look)
        if here or there:
            with pytest.raises(Broken, match="is blocked for a view change"):
                judge.looked(later)
        else:
            judge.looked(later)
            assert judge.facts["progress"] == 4


def test_the_members_of_a_group_have_the_same_judge() -> None:
    judge = judge_of(("C",), lambda: checks_of(PROFILES["fifo"].services))
    assert isinstance(judge, TwoGroups)
    assert judge.of("A") is judge.of("B") is judge and judge.of("C") is judge.other
    plain = judge_of((), lambda: checks_of(PROFILES["fifo"].services))
    assert plain.of("C") is plain


def test_other_settings_of_an_unknown_name_are_refused() -> None:
    (schedule,) = [one for seed in range(5) if (one := draw(seed, Wish("total", faults=FAULTS))).others][:1]
    text = to_json(schedule).replace(b'"others": ["' + schedule.others[0].encode(), b'"others": ["Z')
    with pytest.raises(UsageError, match="other settings for 'Z'"):
        from_json(text)
