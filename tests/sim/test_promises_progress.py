"""What hinders a group while faults last is found, and what does not is not.

`look 10: A B C in 1 ABC; D in 1 ABCD; cut A>D B-C` is how everybody stands at second 10: three have installed view 1
with the members A, B and C, the fourth an earlier one; nothing passes from A to D, nor between B and C.  `nobody in`
is who has no view.  Nothing may be in the way for 10 seconds, and nothing changes unless a line says `changed 5`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from pygroups.core.limits import MILLISECOND, SECOND, Config
from pygroups.core.view import ViewId
from pygroups.sim.promises.broken import Broken
from pygroups.sim.promises.facts import Link, Situation, Stand, Viewed, WorldFacts
from pygroups.sim.promises.few_views import FewViews
from pygroups.sim.promises.merge_time import MergesInTime
from pygroups.sim.promises.progress import bound_of
from tests.sim.test_promises import ALL, History

BOUND = 10


class Looks(History):
    """A history with looks at everybody."""

    changed = 0
    changes = 0

    def __init__(self, profile: str) -> None:
        super().__init__(profile)
        self.born: dict[str, int] = {}

    def line(self, line: str) -> None:
        if match := re.fullmatch(r"start (\w)", line):
            self.born[match[1]] = self.judge.around.clock()
            self.changes += 1
        elif line == "merging":
            self.judge.around.services |= {"MERGING"}
        elif line == "majority":
            self.judge.around.services |= {"PRIMARY"}
        elif match := re.fullmatch(r"overtaken (\d+) ms", line):
            self.judge.around.overtaken_by = int(match[1]) * MILLISECOND
        elif line == "break":
            self.changes += 1
        elif match := re.fullmatch(r"changed (\d+)", line):
            self.changed = int(match[1])
        elif match := re.fullmatch(r"look (\d+): (.*)", line):
            self.look(int(match[1]), match[2].split("; "))
        else:
            super().line(line)

    def look(self, now: int, parts: list[str]) -> None:
        stands: list[Stand] = []
        cut: list[Link] = []
        words = {word: part.split()[1:] for part in parts if (word := part.split()[0]) not in ALL and word != "cut"}
        for part in parts:
            if match := re.fullmatch(r"([A-E ]+) in (\d)(\w?) (\w+)", part):
                whom, number, by, members = match.groups()
                stands += [self.stand(one, int(number), by or members[0], members, words) for one in whom.split()]
            elif match := re.fullmatch(r"([A-E ]+) outside", part):
                stands += [self.stand(one, 0, "A", "", words) for one in match[1].split()]
            elif part.startswith("cut "):
                cut += [(pair[0], pair[2]) for pair in part.split()[1:]]
                cut += [(pair[2], pair[0]) for pair in part.split()[1:] if pair[1] == "-"]
        at = (now * SECOND, self.changed * SECOND, BOUND * SECOND)
        everybody = tuple(sorted(stands, key=lambda stand: stand.member))
        misled = max(float(part.split()[1]) if part.startswith("misled ") else 0.0 for part in parts)
        situation = (frozenset(cut), everybody, self.changes, "far" in parts, round(misled * SECOND))
        self.judge.looked(Situation(*at, *situation))

    def stand(self, one: str, number: int, by: str, members: str, words: dict[str, list[str]]) -> Stand:
        return Stand(
            ALL[one],
            one not in words.get("paused", ()),
            one not in words.get("unread", ()),
            ViewId(number, ALL[by]) if number else None,
            tuple(ALL[member] for member in members),
            one in words.get("blocked", ()),
            one in words.get("leaving", ()),
            self.sent.get(one, 0) + 1,
            1 if one in words.get("unsent", ()) else 0,
            one in words.get("stateless", ()),
            self.born.get(one, 0),
            one in words.get("told", ()),
            next((ALL[pair[2]] for pair in words.get("to", ()) if pair[0] == one), None),
        )


def twice(look: str, seconds: tuple[int, ...] = (0, 10)) -> str:
    return "\n".join(f"look {second}: {look}" for second in seconds)


SENT = "view 1 ABC: A B C\nsend A\nA1: A B C\nsend B\n"

LEFT_OUT = "majority\nview 1 ABC: A B C\nview 2 AB: A B\n"  # A ends, so B is not enough of the view 2
THREE_VIEWS = LEFT_OUT + "view 3 AB: A B\n"
HANDED_OVER = LEFT_OUT + "look 20: A B in 2 AB; C in 1 ABC; cut A-C B-C; told C\nchanged 25\n"

GOOD = {
    "all is well": SENT + "B1: A B C\n" + twice("A B C in 1 ABC"),
    "a member that reaches nobody both ways is out": twice("A B C in 2 ABC; D in 1 ABCD; cut A>D D>B C>D; blocked D"),
    "who does not hear the leader is out": twice("A B C in 2 ABC; D in 1 ABCD; cut A>D; blocked D; unsent D"),
    "what two cannot send each other goes through others": SENT + "B1: A B C\n" + twice("A B C in 1 ABC; cut B-C"),
    "two sides that parted": twice("A B in 2A AB; C D in 2C CD; cut A-C A-D B-C B-D"),
    "two sides without merging stay apart when they reach each other": twice("A B in 2A AB; C D in 2C CD"),
    "two sides of which one pair is cut stay apart": "merging\n" + twice("A B in 2A AB; C D in 2C CD; cut B-C"),
    "a joiner that cannot be reached": twice("A B C in 1 ABC; D outside; cut A>D B>D C>D"),
    "a joiner that one of them cannot reach": twice("A B C in 1 ABC; D outside; cut B>D"),
    "it comes before the bound": "look 0: A B in 1 ABC\nlook 9: A B in 1 ABC\nlook 10: A B in 2 AB",
    "it is another message each time": SENT
    + "look 0: A B C in 1 ABC\nB1: A B C\nsend B\nlook 10: A B C in 1 ABC\nB2: A B C\nlook 11: A B C in 1 ABC",
    "something changed meanwhile": "look 0: A B in 1 ABC\nchanged 5\nlook 10: A B in 1 ABC\nlook 14: A B in 1 ABC",
    "it was well in between": "look 0: A B in 1 AB; blocked A\nlook 5: A B in 1 AB\nlook 10: A B in 1 AB; blocked A",
    "a paused process is out": twice("A B in 2 AB; C in 1 ABC; paused C"),
    "who was cut off and left the view does not answer": twice(
        "A B in 2 AB; C in 2C C; cut A-C B-C; unsent A; to A>C", (0, 10, 39)
    ),
    "somebody does not read": twice("A B C in 1 ABC; unsent A; unread C"),
    "a leaver may wait for twice as long": twice("A B C in 1 ABC; leaving C"),
    "who reaches some of those that went on is not told": twice("A B C in 2 ABC; D in 1 ABCD; cut B-D"),
    "a left out member waits for answers": LEFT_OUT + twice("B in 2 AB; C in 1 ABC; blocked B C; told B C"),
}

PLANTED = {
    "a killed member stays": twice("A B D in 1 ABCD; cut A>D"),
    "a killed coordinator stays": twice("B C in 1 ABC"),
    "a killed member stays, to whom nobody was cut off": twice("A B in 1 ABC"),
    "an isolated one stays": twice("B C in 1 ABC; A in 1 ABC; cut A-B A-C"),
    "a paused one stays": twice("A B C in 1 ABC; paused C"),
    "all are blocked": twice("A B C D in 1 ABCD; cut B-C; blocked A B C D"),
    "one is blocked": twice("A B C in 1 ABC; blocked C"),
    "all are blocked on one of two sides": twice("A B in 2A AB; C D in 2C CD; blocked C; cut A-C A-D B-C B-D"),
    "a Forward is lost for ever": SENT + twice("A B C in 1 ABC"),
    "only one lacks it": SENT + "B1: A B\n" + twice("A B C in 1 ABC"),
    "the sender waits": "view 1 ABC: A B C\n" + twice("A B C in 1 ABC; unsent B"),
    "the sender waits for one that left the view": twice("A B in 2 AB; C in 2C C; unsent A; to A>C"),
    "the connection to one that left the view is not given up": twice(
        "A B in 2 AB; C in 2C C; cut A-C B-C; unsent A; to A>C", (0, 10, 40)
    ),
    "a joiner is never let in": twice("A B C in 1 ABC; D outside; cut A-B"),
    "a joiner never hears that it is in": twice("A B C in 1 ABCD; D outside"),
    "one has not installed what the others have": twice("A B in 2 ABC; C in 1 ABC; blocked C"),
    "one that is left out is not told": twice("A B in 2 AB; C in 1 ABC"),
    "two sides that reach each other do not merge": "merging\n" + twice("A B in 2A AB; C D in 2C CD"),
    "it hears those that went on, and cannot tell them": "merging\n"
    + twice("A B C in 2 ABC; D in 1 ABCD; cut D>A D>B D>C"),
    "a state does not come": twice("A B C in 1 ABC; stateless C"),
    "a left out member stays, though enough answer": LEFT_OUT + twice("A B in 2 AB; C in 1 ABC; told C"),
    "a left out member does not know that it is blocked": LEFT_OUT + twice("B in 2 AB; C in 1 ABC; told B"),
    "a member stays, though the next view names it": "majority\nview 1 ABC: A B C\nview 2 ABC: A B\n"
    + twice("B in 2 ABC; C in 1 ABC; told B C"),
    "a left out member stays, though two views came": THREE_VIEWS + twice("B in 3 AB; C in 1 ABC; told B C"),
    "a left out member stays, though all had the view": HANDED_OVER
    + twice("B in 2 AB; C in 1 ABC; told B C", (26, 36)),
    "a leaver is kept": twice("A B C in 1 ABC; leaving C", (0, 10, 20)),
    "it lasts, though other things change": "view 1 AB: A B\nsend A\nlook 0: A B in 1 AB\nsend A\nA1: B\nsend B\n"
    "look 5: A B in 1 AB\nsend B\nlook 10: A B in 1 AB",
}


WELL = "undisturbed\nview 1 AB: A B\nafter 9000 ms\nlook 9: A B in 1 AB\nafter 100 ms\n"
INSIDE = "view 2 ABC: A B\nview 2 ABC: C (alone) (as )\nlook 10: A B C in 2 ABC"
SLOWLY = "start C\nafter 400 ms\n" + INSIDE
JOINS = {
    "it joins at once": (WELL + "start C\nafter 70 ms\n" + INSIDE, 1, False),
    "it joins slowly": (WELL + SLOWLY, 1, True),
    "it joins slowly, though others cannot join": (WELL + SLOWLY + "; D outside; cut A>D B>D C>D", 1, True),
    "it joins slowly, as frames overtake others": ("overtaken 40 ms\n" + WELL + SLOWLY, 1, False),
    "it joins more slowly than frames that others overtake": ("overtaken 20 ms\n" + WELL + SLOWLY, 1, True),
    "it joins slowly, as it does not reach everybody": (WELL + SLOWLY + "; cut B>C", 0, False),
    "it joins slowly, as something else happens": (WELL + "break\n" + SLOWLY, 0, False),
    "it joins slowly, as another one joins": (WELL + "start D\n" + SLOWLY, 0, False),
    "it joins slowly, as somebody was stopped": (WELL.replace("in 1 AB", "in 1 AB; blocked A") + SLOWLY, 0, False),
    "it joins slowly, as somebody is far": (WELL.replace("in 1 AB", "in 1 AB; far") + SLOWLY, 0, False),
    "it joins slowly, as the directory misled at its start": (WELL + SLOWLY + "; misled 9.2", 0, False),
    "it joins slowly, as the directory still misleads": (WELL + SLOWLY + "; misled 11", 0, False),
    "it joins slowly, after the directory was misleading": (WELL + SLOWLY + "; misled 9.1", 1, True),
    "it joins slowly, as the directory misled before": (WELL.replace("AB\n", "AB; misled 9.05\n") + SLOWLY, 0, False),
    "it joins slowly, as two others do not reach each other": (
        WELL.replace("1 AB\n", "1 AB; cut A-B\n") + SLOWLY,
        0,
        False,
    ),
    "it joins slowly, as what was wrong before is not noticed yet": ("changed 4\n" + WELL + SLOWLY, 0, False),
    "it joins slowly, as there was a view just before": (
        WELL.replace("9000 ms\n", "9000 ms\nview 2 AB: A B\n").replace("1 AB\n", "2 AB\n") + SLOWLY.replace("2", "3"),
        0,
        False,
    ),
    "it joins slowly, as there was a view after the last look": (
        WELL + "view 2 AB: A B\nafter 10 ms\n" + SLOWLY.replace("2", "3"),
        0,
        False,
    ),
}


@pytest.mark.parametrize("name", JOINS)
def test_a_lone_join_is_timed(name: str) -> None:
    history, judged, late = JOINS[name]
    lines = history.strip().splitlines()
    played = Looks("fifo")
    played.play("\n".join(lines[:-1]))
    if late:
        with pytest.raises(Broken, match="join-in-time"):
            played.line(lines[-1])
    else:
        played.line(lines[-1])
    assert played.judge.facts["join-in-time"] == judged


APART = "A B in 1A AB; C in 1C C"
ONE = "A B C in 2 ABC"
QUICK = Config(merge_interval=SECOND, heartbeat_timeout=SECOND, verify_timeout=SECOND)  # silence is noticed in 2 s
MERGES = {  # the looks, the number of judged merges, and whether the last look finds a merge late
    "sides merge": ({3: APART, 20: APART, 22: ONE}, 1, False),
    "sides do not merge": ({3: APART, 20: APART, 24: APART}, 0, True),
    "sides do not merge, after others did": ({3: APART, 22: ONE, 23: APART, 44: APART}, 1, True),
    "a third side stays": ({3: "A in 1A A; B in 1B B; C in 1C C", 24: "A B in 2A AB; C in 1C C"}, 0, True),
    "it begins when silence would be noticed": ({0: APART, 1: APART, 22: APART, 23: ONE}, 1, False),
    "a pair is cut": ({3: APART + "; cut B-C", 24: APART + "; cut B-C"}, 0, False),
    "one direction is cut": ({3: APART + "; cut B>C", 24: APART + "; cut B>C"}, 0, False),
    "somebody is far": ({3: APART + "; far", 24: APART + "; far"}, 0, False),
    "somebody is stopped": ({3: APART + "; paused C", 24: APART + "; paused C"}, 0, False),
    "somebody leaves": ({3: APART + "; leaving C", 24: APART + "; leaving C"}, 0, False),
    "somebody waits for its state": ({3: APART + "; stateless B", 24: APART + "; stateless B"}, 0, False),
    "somebody joins": ({3: APART + "; D outside", 24: APART + "; D outside"}, 0, False),
    "somebody joined meanwhile": ({3: APART, 10: APART + "; D outside", 11: APART, 24: APART, 31: ONE}, 1, False),
    "somebody joined long ago": ({3: APART + "; D outside", 4: APART, 25: APART}, 0, True),
}


@pytest.mark.parametrize(("looks", "judged", "late"), MERGES.values(), ids=MERGES)
def test_a_merge_is_timed(looks: dict[int, str], judged: int, late: bool) -> None:
    """`looks`: how everybody stands, by second."""
    check = merge_times(WorldFacts(services=frozenset({"MERGING"}), config=QUICK))
    played = Looks("fifo")
    played.judge.looked = check.looked  # type: ignore[method-assign]
    for number, (second, look) in enumerate(looks.items(), 1):
        if late and number == len(looks):
            with pytest.raises(Broken, match="merge-in-time"):
                played.look(second, look.split("; "))
        else:
            played.look(second, look.split("; "))
    assert check.judged == judged


def merge_times(around: WorldFacts) -> MergesInTime:
    check = MergesInTime()
    check.around = around
    return check


def test_a_merge_is_timed_only_in_calm_where_views_merge() -> None:
    for around in (
        WorldFacts(config=QUICK),
        WorldFacts(services=frozenset({"MERGING"}), config=QUICK, restless=lambda: True),
    ):
        played = Looks("fifo")
        check = merge_times(around)
        played.judge.looked = check.looked  # type: ignore[method-assign]
        for second in (3, 10, 24):
            played.look(second, APART.split("; "))
        assert check.apart_since is None


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("profile", ["fifo", "total"])
def test_what_is_good_holds(name: str, profile: str) -> None:
    played = Looks(profile)
    played.play(GOOD[name])
    assert (played.judge.facts["progress"] > 0) == (played.changed == 0)


@pytest.mark.parametrize("name", PLANTED)
def test_what_hinders_is_found(name: str) -> None:
    lines = PLANTED[name].strip().splitlines()
    played = Looks("fifo")
    played.play("\n".join(lines[:-1]))  # until the last line nothing is wrong
    with pytest.raises(Broken) as caught:
        played.line(lines[-1])
    assert caught.value.witness.promise == "progress"


def few_views(
    at: Sequence[int],
    now: int,
    *,
    since: int = 0,
    stateless: bool = False,
    gives: str = "MERGING",
    withheld: bool = False,
) -> FewViews:
    """B installs a view at each of these seconds, A only the first; then a look at second `now`.  A bound is 10 s."""
    check = FewViews()
    check.around = WorldFacts(services=frozenset({gives}))
    ids = [ViewId(number, ALL["A"]) for number in range(1, len(at) + 1)]
    members = (ALL["A"], ALL["B"])
    for name in "AB":
        for second, id in zip(at if name == "B" else at[:1], ids, strict=False):
            check.viewed(Viewed(ALL[name], id, members, None, None, members, None, at=second * SECOND))
    stands = [Stand(ALL[name], True, True, ids[-1], members, False, False, 1, 0, stateless=stateless) for name in "AB"]
    times = (now * SECOND, since * SECOND, BOUND * SECOND)
    check.looked(Situation(*times, frozenset(), tuple(stands), withheld=withheld))
    return check


FEW = [
    ((1, 2, 3, 4, 5, 11, 14, 17), 20, 0, False, 2),  # the sides form, and then three views
    ((11, 12, 13, 14), 19, 0, False, 0),  # the second bound is not over
    ((11, 12, 13, 14), 22, 3, False, 0),  # something changed at second 3
    ((11, 12, 13, 14), 22, 0, True, 0),  # a state does not come
    ((8, 9, 12, 13, 14), 22, 0, False, 2),
]
MANY = [((11, 14, 17, 19), 20), ((1, 2, 15, 16, 17, 18), 23)]


@pytest.mark.parametrize(("at", "now", "since", "stateless", "judged"), FEW)
def test_few_views_are_right(at: Sequence[int], now: int, since: int, stateless: bool, judged: int) -> None:
    assert few_views(at, now, since=since, stateless=stateless).judged == judged


def test_few_views_are_judged_where_views_merge_or_a_majority_decides() -> None:
    assert few_views(MANY[0][0], MANY[0][1], gives="MEMBERSHIP").judged == 0
    assert few_views((11, 12, 13, 14, 15, 16), 20, gives="PRIMARY").judged == 2
    with pytest.raises(Broken):
        few_views((11, 12, 13, 14, 15, 16, 17), 20, gives="PRIMARY")


def test_few_views_may_ask_each_other_member_for_a_state_that_is_withheld() -> None:
    assert few_views((11, 12, 13, 14, 15, 16, 17), 20, gives="PRIMARY", withheld=True).judged == 2
    with pytest.raises(Broken):
        few_views((11, 12, 13, 14, 15, 16, 17, 18), 20, gives="PRIMARY", withheld=True)


@pytest.mark.parametrize(("at", "now"), MANY)
def test_many_views_while_nothing_changes_are_found(at: Sequence[int], now: int) -> None:
    with pytest.raises(Broken) as caught:
        few_views(at, now)
    assert caught.value.witness.promise == "few-views"
    assert caught.value.witness.member == str(ALL["B"])


def test_the_bound_is_known_from_the_configuration() -> None:
    usual, quick = bound_of(Config()), bound_of(Config(heartbeat_timeout=SECOND, flush_timeout=100 * MILLISECOND))
    assert quick < usual < 20 * SECOND
    assert bound_of(Config(), 2 * SECOND) > usual + 8 * SECOND
