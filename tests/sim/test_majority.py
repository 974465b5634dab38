"""Where a majority decides each view: the checks of the chain see what they should, and drawn schedules keep it."""

from __future__ import annotations

from typing import Any

import pytest

from pygroups.core.address import Address
from pygroups.core.limits import SECOND
from pygroups.core.view import ViewId
from pygroups.sim.promises.broken import Broken
from pygroups.sim.promises.chain import Chain, is_majority
from pygroups.sim.promises.facts import Delivery, Situation, Stand, Viewed, WorldFacts
from pygroups.sim.promises.messages import Messages
from pygroups.sim.promises.progress import UNTOLD, Progress
from pygroups.sim.schedules.draw import Wish, draw
from tests.majority import drawn, played

A, B, C, D, E = (Address(name, "0" * 16) for name in "ABCDE")
FIRST, NEXT, OTHER = ViewId(1, A), ViewId(2, A), ViewId(2, B)


def installs(
    chain: Chain, member: Address, id: ViewId, members: str, came_from: ViewId | None = FIRST, history: str = "h"
) -> None:
    known = {one.name: one for one in (A, B, C, D, E)}
    own = tuple(known[name] for name in members)
    joined = own if came_from is None and len(own) == 1 else ()  # the others joined
    chain.viewed(Viewed(member, id, own, came_from, came_from, own, None, joined=joined, history=history))


def accepts(chain: Chain, members: tuple[Address, ...], id: ViewId, number: int = 2) -> None:
    fields: dict[str, Any] = {"stage": "accepted", "next_number": id.number, "next_creator": id.leader}
    for member in members:
        chain.accepts(member, {**fields, "ballot_number": number, "ballot_leader": A})


def begun(members: str = "ABC") -> Chain:
    chain = Chain()
    installs(chain, A, FIRST, members, None)
    return chain


def test_a_chain_holds() -> None:
    chain = begun()
    installs(chain, A, NEXT, "AB")
    installs(chain, B, NEXT, "AB")
    accepts(chain, (A, C), NEXT)
    chain.settled([])
    assert chain.facts() == {"primary-chain": 3}


def test_two_views_after_one_are_found() -> None:
    chain = begun()
    installs(chain, A, NEXT, "AB")
    with pytest.raises(Broken, match="two views follow"):
        installs(chain, B, OTHER, "BC")


def test_a_view_after_two_is_found() -> None:
    chain = begun()
    installs(chain, D, OTHER, "DE", None)
    installs(chain, A, NEXT, "AD")
    with pytest.raises(Broken, match="follows two views"):
        installs(chain, D, NEXT, "AD", OTHER)


def test_a_history_begins_once_and_stays() -> None:
    chain = begun("A")
    with pytest.raises(Broken, match="two beginnings"):
        installs(chain, B, OTHER, "B", None)
    chain = begun("A")
    installs(chain, B, OTHER, "B", None, "another")
    with pytest.raises(Broken, match="begins another history"):
        installs(chain, A, NEXT, "AB", FIRST, "another")
    with pytest.raises(Broken, match="two history ids"):
        installs(chain, C, OTHER, "BC", None, "h")


@pytest.mark.parametrize(
    ("members", "acceptors", "enough"),
    [
        ("ABC", (A,), False),
        ("ABC", (B, C), True),
        ("ABCD", (A, D), True),
        ("ABCD", (B, C), False),
        ("ABC", (A, D, E), False),  # joiners do not vote
    ],
)
def test_a_majority_of_the_view_before_accepts(members: str, acceptors: tuple[Address, ...], enough: bool) -> None:
    chain = begun(members)
    installs(chain, A, NEXT, "A")
    accepts(chain, acceptors, NEXT)
    if enough:
        chain.settled([])
    else:
        with pytest.raises(Broken, match="no majority"):
            chain.settled([])


def test_acceptors_under_two_ballots_are_no_majority() -> None:
    chain = begun()
    installs(chain, A, NEXT, "AB")
    accepts(chain, (A,), NEXT, 2)
    accepts(chain, (B,), NEXT, 3)
    with pytest.raises(Broken, match="under one ballot"):
        chain.settled([])


def test_more_than_half_of_the_expected_processes_accept_the_first_view() -> None:
    chain = Chain()
    chain.around = WorldFacts(expect=4)
    chain.viewed(Viewed(A, FIRST, (A, B, C), None, None, (A,), None, joined=(A, B, C), history="h"))
    accepts(chain, (A, B), FIRST)
    with pytest.raises(Broken, match="too few of 4"):
        chain.settled([])
    accepts(chain, (A, B, C), FIRST, 3)
    chain.settled([])


def test_a_delivery_of_a_blocked_member_is_found() -> None:
    chain = begun()
    delivery = Delivery(C, FIRST, 0, A, 1, 1, b"")
    chain.blocked(C, "few")
    chain.delivered(Delivery(A, FIRST, 0, A, 1, 1, b""))
    with pytest.raises(Broken, match="blocked"):
        chain.delivered(delivery)
    chain.blocked(C, None)
    chain.delivered(delivery)


def test_a_reason_that_is_told_twice_is_found() -> None:
    chain = begun()
    for reason in ("few", "fewer"):
        chain.blocked(C, reason)
    with pytest.raises(Broken, match="the same reason twice: few"):
        chain.blocked(C, "few")
    installs(chain, C, NEXT, "AC")
    chain.blocked(C, "few")


def test_a_member_that_is_unblocked_without_a_view_is_found() -> None:
    chain = begun()
    chain.blocked(C, "few")
    chain.blocked(C, None)
    installs(chain, C, NEXT, "AC")
    chain.blocked(C, "few")
    chain.blocked(C, None)
    with pytest.raises(Broken, match="no view came"):
        chain.blocked(C, "fewer")


@pytest.mark.parametrize("told", [True, False])
def test_a_minority_that_does_not_know_it_is_found(told: bool) -> None:
    check = Progress(Messages())
    check.around = WorldFacts(services=frozenset({"PRIMARY"}))
    view = (A, B, C)
    stands = [Stand(one, True, True, FIRST, view, False, False, 1, 0, told=told and one is C) for one in view]
    cut = frozenset((one, other) for one in "AB" for other in "C") | {("C", "A"), ("C", "B")}
    for now in (0, 10, 20):
        situation = Situation(now * SECOND, 0, 10 * SECOND, cut, tuple(stands))
        problems = [problem for problem in check._problems(situation) if problem[0] == UNTOLD]
        assert problems == ([] if told else [(UNTOLD, C, None, 0)])


def test_the_first_member_decides_a_tie() -> None:
    assert is_majority((A, B), (A,))
    assert not is_majority((A, B), (B,))
    assert is_majority((A, B, C), (B, C))


def test_a_vouched_member_is_left_out_of_the_count() -> None:
    assert is_majority((A, B, C, D), (C, D), (A,))
    assert not is_majority((A, B, C, D), (B,), (A,))
    assert is_majority((A, B, C), (B,), (A,))
    assert not is_majority((A, B, C), (C,), (A,))
    assert is_majority((A, B, C), (A, B), (A,))  # it accepted before it ended
    assert not is_majority((A,), (), (A,))


@pytest.mark.parametrize("acceptors", [(B,), (C, D)])
def test_a_vouched_member_does_not_count_as_accepting_a_new_history(acceptors: tuple[Address, ...]) -> None:
    chain = begun("ABCD")
    chain.vouched(A)
    installs(chain, acceptors[0], OTHER, "".join(one.name for one in acceptors), history="another")
    accepts(chain, acceptors, OTHER)
    if acceptors == (C, D):
        chain.settled([])
    else:
        with pytest.raises(Broken, match="no majority"):
            chain.settled([])


@pytest.mark.long  # test_many.py draws schedules of the profiles with this GMS
@pytest.mark.parametrize("profile", ["total", "fifo"])
@pytest.mark.parametrize("first", [0, 25])
def test_drawn_schedules_keep_every_promise(first: int, profile: str) -> None:
    for seed in range(first, first + 25):
        outcome = drawn(seed, profile)
        assert outcome.witness is None, f"seed {seed}: {outcome.witness}\n{outcome.trace}"


@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_drawn_births_keep_every_promise(profile: str) -> None:
    """All processes of the schedule take part in the birth of the group."""
    begun = 0
    for seed in range(6):
        outcome = drawn(seed, profile, expected=True)
        assert outcome.witness is None, f"seed {seed}: {outcome.witness}\n{outcome.trace}"
        begun += outcome.counts.get("births begun", 0)
    assert begun >= 6


@pytest.mark.parametrize("expected", [True, False])
def test_drawn_former_lives_keep_every_promise(expected: bool) -> None:
    """A process that starts again has its folder or has lost it."""
    counts = dict.fromkeys(("former incarnations that are answered for", "folders lost"), 0)
    for seed in range(8):
        outcome = drawn(seed, expected=expected, folders=0.7)
        assert outcome.witness is None, f"seed {seed}: {outcome.witness}\n{outcome.trace}"
        counts = {what: count + outcome.counts.get(what, 0) for what, count in counts.items()}
    assert all(counts.values()), counts


@pytest.mark.parametrize(("seed", "folders", "where"), [(3, 0.0, "in a view"), (38, 0.7, "before a birth")])
def test_drawn_operators_keep_every_promise(seed: int, folders: float, where: str) -> None:
    """A majority has ended, and an operator vouches for the ended processes at a process that waits."""
    outcome = drawn(seed, expected=folders > 0, folders=folders)
    assert outcome.witness is None, f"{outcome.witness}\n{outcome.trace}"
    assert outcome.counts[f"operator vouches {where}"]


@pytest.mark.parametrize(
    ("profile", "seed"),
    [
        ("total", 71),  # an answer for the view before was acknowledged, and no further one was sent
        ("total", 260),  # all members that a blocked one knows had ended: nobody told it that the others went on
        ("total", 491),  # a member that got its first view late was admitted again, and could not follow
        ("fifo", 27),  # the leader that decided without an answer of its own did not count the acknowledgements
        ("total", 422),  # a member that fetched to a decided view acknowledged it only to the first that gave it
    ],
)
def test_found_schedules_keep_every_promise(profile: str, seed: int) -> None:
    outcome = drawn(seed, profile)
    assert outcome.witness is None, f"{outcome.witness}\n{outcome.trace}"


@pytest.mark.parametrize("seed", [4, 50, 70])
def test_a_member_that_is_left_out_of_a_view_that_loses_its_majority_is_not_accused(seed: int) -> None:
    """It waits, and reaches too few members of the next view while the fault lasts."""
    faults = ("stay-pair", "stay-oneway", "stay-apart", "far", "unreached", "crash")
    outcome = played(draw(seed, Wish("total", majority=True, faults=faults)))
    assert outcome.witness is None, f"{outcome.witness}\n{outcome.trace}"
    assert outcome.counts["left out and waits"]


@pytest.mark.parametrize(
    "seed",
    [
        96,  # a first view that living processes had accepted was repeated, and all its members had ended
        55,  # a former life in a later view said that a member is left out, and that member did not listen
    ],
)
def test_found_births_and_former_lives_keep_every_promise(seed: int) -> None:
    outcome = drawn(seed, expected=True, folders=1.0)
    assert outcome.witness is None, f"{outcome.witness}\n{outcome.trace}"


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_many_drawn_schedules_keep_every_promise(profile: str) -> None:
    """Among them are members that are blocked, that are decided on without their answer, and that wait to leave."""
    counts = dict.fromkeys(("blocked", "decided without an answer", "left out and waits"), 0)
    for seed in range(16, 166):
        outcome = drawn(seed, profile)
        assert outcome.witness is None, f"seed {seed}: {outcome.witness}\n{outcome.trace}"
        counts = {what: count + outcome.counts.get(what, 0) for what, count in counts.items()}
    assert all(count >= 10 for count in counts.values()), counts
