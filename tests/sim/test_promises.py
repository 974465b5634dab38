"""The checks, on small histories written down: the good ones hold, and each planted fault is found by the right check.

A history is lines.  `view 2 BC: B C` says that B and C install view 2 with the members B and C, coming from the view
they had; `(alone)` that each names only itself as coming with it, `(as A:3)` that it begins with that digest.  `send A`
is A's next message.  `A1: B C` is the delivery of A's message 1 at B, then at C.  `quiet B C` is the end, with B and C
alive.  Unless a history begins with `undisturbed`, the living may have looked dead.  Time stands still but for `after
300 ms`.  `(told of 2A AB and 2C C; A:3/0 C:2/1; lacks C1-1)` is a merge of these two views, with the mark and the side
of each origin, and a gap.  What is wrong in another way has a word of its own below.  The histories that the audit is
tested with too are in test_promises_planted.py.
"""

from __future__ import annotations

import re

import pytest

from pygroups.core.address import Address
from pygroups.core.events import Gap, NewView
from pygroups.core.limits import MILLISECOND, Config
from pygroups.core.run import Run, pack
from pygroups.core.top import Delivered
from pygroups.core.view import AgreedView, Subgroup, ViewId
from pygroups.layers.merge2.layer import Merge2
from pygroups.layers.profiles import PROFILES as BUILT
from pygroups.layers.streams.gaps import MISSING_MAX
from pygroups.sim.promises.broken import Broken
from pygroups.sim.promises.checks import checks_of
from pygroups.sim.promises.facts import Delivery, Rest, Viewed
from pygroups.sim.promises.judge import Judge
from pygroups.sim.promises.merging import MergedViews
from pygroups.sim.promises.messages import Messages
from pygroups.sim.promises.uniform import UniformAgreement

ALL = {name: Address(name, f"{number:016x}") for number, name in enumerate("ABCDE", 1)}


class History:
    """Plays lines to a judge."""

    def __init__(self, profile: str) -> None:
        self.judge = Judge(checks_of(BUILT[profile].services))
        self.now = 0
        self.judge.around.clock = lambda: self.now
        self.sent: dict[str, int] = {}
        self.views: dict[str, ViewId] = {}
        self.places: dict[str, int] = {}
        self.members: dict[str, str] = {}  # of the view that each is in
        self.primary: dict[str, bool] = {}  # and whether it was told that it is primary
        self.hints: dict[ViewId, bool] = {}
        self.leavers: list[str] = []

    def play(self, text: str) -> None:
        if "undisturbed" not in text:
            self.judge.disturbed()
        for line in text.strip().splitlines():
            words = line.split("#")[0].strip()
            if words:
                self.line(words)

    def line(self, line: str) -> None:
        if match := re.fullmatch(
            r"view (\d+)(\w?) (\w+): ([\w ]+?)( \(alone\))?( \(as ([^)]*)\))?( \(from (\d+)\))?( \((told .*)\))?", line
        ):
            number, by, members, whom, alone, _, digest, _, previous, _, told = match.groups()
            id = ViewId(int(number), ALL[by or members[0]])
            for one in whom.split():
                self.view(one, id, members, whom.split(), bool(alone), digest, previous, told or "")
        elif match := re.fullmatch(r"send (\w)( to (\w))?( on (\d))?", line):
            one, _, to, _, connection = match.groups()
            key = one + (to or "")
            self.sent[key] = self.sent.get(key, 0) + 1
            payload = f"{key}{self.sent[key]}".encode()
            self.judge.accepted(ALL[one], ALL[to] if to else None, self.sent[key], payload)
            if to:
                self.on_connection(ALL[one], True, ALL[one], ALL[to], self.sent[key], connection)
        elif match := re.fullmatch(
            r"(\w)(\d+)( to (\w))?( on (\d))?( with (\w+))?( in (\d+))?( at (\d+))?: ([\w ]+)", line
        ):
            origin, first, _, to, _, connection, _, body, _, view, _, at, whom = match.groups()
            payload = (body or f"{origin}{to or ''}{first}").encode()
            for one in whom.split():
                self.deliver(one, ALL[origin], int(first), payload, ALL[to] if to else None, view, at)
                if to:
                    self.on_connection(ALL[one], False, ALL[origin], ALL[to], int(first), connection)
        elif match := re.fullmatch(r"(\w) accepts (\d+) (\w+)", line):
            step = {"stage": "accepted", "next_number": int(match[2]), "next_creator": ALL[match[3][0]]}
            self.judge.recorded(ALL[match[1]], [("flush", self.views[match[1]], step)])
        elif match := re.fullmatch(r"crash (\w)", line):
            self.judge.crashed(ALL[match[1]])
        elif match := re.fullmatch(r"stop (\w) knowing (\d+) to (\d+)", line):
            self.judge.stopped(ALL[match[1]], "left", range(int(match[2]), int(match[3]) + 1))
        elif match := re.fullmatch(r"leave (\w)", line):
            self.leavers.append(match[1])
            self.judge.leaving(ALL[match[1]])
        elif match := re.fullmatch(r"after (\d+) ms", line):
            self.now += int(match[1]) * MILLISECOND
        elif match := re.fullmatch(r"lost", line):
            self.judge.around.lost_at = self.now
        elif match := re.fullmatch(r"trouble", line):
            self.judge.unsettled()
        elif match := re.fullmatch(r"window (\d+)", line):
            self.judge.around.config = Config(window=int(match[1]), run_bytes=int(match[1]))
        elif match := re.fullmatch(r"policy (\d+) ms", line):
            self.judge.around.config = Config(slow_exclude=int(match[1]) * MILLISECOND)
        elif match := re.fullmatch(r"(\w) asks out (\w)", line):
            self.judge.recorded(ALL[match[1]], [("suspect", None, {"peer": ALL[match[2]], "reason": "slow"})])
        elif match := re.fullmatch(r"full (\w)", line):
            self.judge.held_up(ALL[match[1]])
        elif match := re.fullmatch(r"read (\w): (.*)", line):
            self.judge.consumed(ALL[match[1]], marks(match[2]))
        elif line == "undisturbed":
            pass
        elif match := re.fullmatch(r"stable (\w) below (\d+)", line):
            self.judge.reached(ALL[match[1]], 0, int(match[2]))
        elif match := re.fullmatch(r"delivered (\w) below (\d+)", line):
            self.judge.reached(ALL[match[1]], int(match[2]), 0)
        elif match := re.fullmatch(r"state none (\w) (\d+)(\w)", line):
            self.judge.state_none(ALL[match[1]], ViewId(int(match[2]), ALL[match[3]]))
        elif match := re.fullmatch(r"program (\w) gets (\w)(\d+)", line):
            self.judge.program_given(ALL[match[1]], ALL[match[2]], int(match[3]), 1)
        elif match := re.fullmatch(r"program (\w) skips (\w)(\d+)-(\d+)", line):
            low, high = int(match[3]), int(match[4])
            self.judge.program_skips(ALL[match[1]], Gap(ALL[match[2]], low, high - low + 1, ()))
        elif match := re.fullmatch(r"purge (\w) (\d)(\w): (.*)", line):
            id = ViewId(int(match[2]), ALL[match[3]])
            self.judge.recorded(ALL[match[1]], [("purge", id, {"digest": marks(match[4])})])
        elif match := re.fullmatch(r"undelivered (\w) to (\w) (\d+)", line):
            number = int(match[3])
            self.judge.undelivered(ALL[match[1]], ALL[match[2]], range(number, number + 1))
        elif match := re.fullmatch(r"state (given|set) (\w) (\d+)(\w)( by (\w))?: (.*)", line):
            what, one, number, by, _, provider, digest = match.groups()
            id = ViewId(int(number), ALL[by])
            if what == "given":
                self.judge.state_given(ALL[one], id, marks(digest), b"the state")
            else:
                self.judge.state_set(ALL[one], id, ALL[provider], marks(digest), b"the state")
        elif match := re.fullmatch(r"quiet ([\w ]+?)( holding (\w+))?( (\w) leaving)?( (\w) blocked)?", line):
            whom, _, gauge, _, leaving, _, blocked = match.groups()
            self.judge.settled(
                [
                    Rest(
                        ALL[one],
                        self.sent.get(one, 0) + 1,
                        0,
                        {gauge: 1} if gauge else {},
                        one == blocked,
                        one == leaving,
                    )
                    for one in whom.split()
                ]
            )
        else:
            raise ValueError(line)

    def view(
        self,
        one: str,
        id: ViewId,
        members: str,
        whom: list[str],
        alone: bool,
        digest: str | None,
        previous: str | None,
        told: str,
    ) -> None:
        before = self.views.get(one)
        came = ViewId(int(previous), id.leader) if previous else before
        # Those that install it in the same line came together, if they came from the same view.
        together = [other for other in whom if other == one or (before and self.views.get(other, before) == before)]
        transitional = (ALL[one],) if alone or before is None else tuple(ALL[other] for other in together)
        self.places[one] = 0
        addresses = tuple(ALL[member] for member in members)
        view = AgreedView(id, addresses, tuple(members))
        of_before = self.members.get(one)
        self.members[one] = members
        joined = tuple(ALL[member] for member in members if not of_before or member not in of_before)
        left = tuple(ALL[member] for member in of_before or () if member not in members)
        if match := re.search(r"that (\w+) left", told):
            left = tuple(ALL[member] for member in match[1])
        if match := re.search(r"that (\w+) joined", told):
            joined = tuple(ALL[member] for member in match[1])
        if "that it is primary" in told:
            self.hints[id] = True
        primary = self.is_primary(one, id, members, of_before) is not ("the wrong hint" in told)
        event = NewView(view, came, transitional, joined, left, primary, None if digest is None else marks(digest))
        if match := re.search(r"that (\w) was excluded", told):
            event.expelled = {ALL[match[1]]: "read nothing for 2 s"}
        if match := re.search(r"of ([^;]+); ([^;]*)", told):
            event.subgroups = tuple(map(subgroup, match[1].split(" and ")))
            event.digest = {ALL[word[0]]: tuple(map(int, word[2:].split("/"))) for word in match[2].split()}
        event.gaps = tuple(self.gap(event, ALL[of], int(low), int(high), at) for of, low, high, at in GAPS(told))
        self.judge.viewed(ALL[one], event)
        if whom[-1] == one:
            self.views.update(dict.fromkeys(whom, id))

    def gap(self, event: NewView, origin: Address, first: int, last: int, at: str) -> Gap:
        if at:
            return Gap(origin, first, last - first + 1, tuple(ALL[member] for member in at.strip("-")))
        _, side = event.digest.get(origin, (0, len(event.subgroups)))
        subgroup = event.subgroups[side].members if side < len(event.subgroups) else ()
        return Gap(origin, first, last - first + 1, subgroup)

    def is_primary(self, one: str, id: ViewId, members: str, before: str | None) -> bool:
        """As others who install this view have it, or as it follows from the view before."""
        staying = [member for member in before or "" if member in members or member not in self.leavers]
        here = [member for member in staying if member in members]
        half = 2 * len(here) == len(staying) and here[:1] == staying[:1]
        more = before is None or half or 2 * len(here) > len(staying)
        self.primary[one] = self.hints.setdefault(id, more and self.primary.get(one, True))
        return self.primary[one]

    def deliver(
        self,
        one: str,
        origin: Address,
        first: int,
        payload: bytes,
        to: Address | None,
        view: str | None,
        at: str | None,
    ) -> None:
        me, place = ALL[one], self.places.get(one, 0) if at is None else int(at)
        run = Run(origin, to, (), origin, first, 0, 1, pack([payload]), None if to else ALL["A"], place)
        id = ViewId(int(view), ALL["A"]) if view else self.views.get(one)
        self.judge.delivered(me, Delivered(run, id, -1 if to else place))
        if to is None:
            self.places[one] = place + 1

    def on_connection(
        self, member: Address, sent: bool, origin: Address, to: Address, first: int, connection: str | None
    ) -> None:
        what = {"origin": origin.name, "origin_incarnation": origin.incarnation, "first": first, "count": 1}
        self.judge.on_connection(member, sent, what | {"peer": to, "connection": int(connection or 1)})


GAPS = re.compile(r"lacks (\w)(\d+)-(\d+)(?: at (-|\w+))?").findall


def subgroup(text: str) -> Subgroup:
    id, members = text.split()
    return Subgroup(ViewId(int(id[:-1]), ALL[id[-1]]), tuple(ALL[member] for member in members))


def marks(text: str) -> dict[Address, int]:
    return {ALL[word[0]]: int(word[2:]) for word in text.split()}


START = """
view 1 ABC: A B C
send A
send A
send B
"""

POLICY = """
undisturbed
policy 2000 ms
view 1 ABC: A B C
send A
A1: A B C
"""

SUCCEEDED = """
view 1 ABC: A B C
view 2 AB: A B
view 3 ABDE: A B
view 3 ABDE: D E (alone) (as )
crash A
crash B
"""  # C was cut off, and D and E followed A and B

CALM = """
undisturbed
view 1 ABC: A B C
send A
A1: A B C
stable A below 2
"""

FULL = """
undisturbed
view 1 ABC: A B C
send A
A1: A B C
full A
"""

SMALL = """
window 12
view 1 ABC: A B C
send A
send A
send A
A1: A B C
A2: A B C
A3: A B C
read B: A:3
"""

APART = """
view 1 ABC: A B C
send A
A1: A B C
view 2 AB: A B
view 2C C: C
send A
send C
A2: A B
C1: C
"""

SIDES = "told of 2A AB and 2C C; A:3/0 C:2/1"
LATER = "told of 2A AB and 3C CD; A:3/0 C:2/1"  # D joined behind the message of C

SMALL_APART = """
window 8
view 1 ABC: A B C
send A
A1: A B C
read B: A:2
view 2 AB: A B
view 2C C: C
send A
send A
A2: A B
A3: A B
read B: A:4
"""

READ = (
    START
    + """
A1: A B C
A2: A B C
B1: A B C
program A gets A1
program A gets B1
program B gets A1
program B gets B1
program C gets A1
program C gets B1
"""
)

LACKING = (
    START
    + """
A1: A B C
A2: A B C
B1: A B C
program A gets A1
program A gets A2
program A gets B1
program C skips A1-2
program C gets B1
state given C 2A: A:3 B:2
view 2 ABC: A B C (as A:3 B:2)
state set A 2A by C: A:3 B:2
"""
)

GOOD = {
    "what was confirmed is read, skipped or in a state": READ + "program A gets A2\nprogram B gets A2\n"
    "program C skips A2-2\nstable A below 3\nstate given A 2A: A:3 B:2\nquiet A B C",
    "a state lacks messages and gaps name them": LACKING + "program A skips A1-2\nprogram A gets A3\n"
    "state set B 2A by C: A:3 B:2\nstate set C 2A by C: A:3 B:2\nquiet A B C",
    "what only its sender had may be missing elsewhere": READ + "program A gets A2\ndelivered A below 3\nquiet A B C",
    "two sides merge": APART
    + f"view 3 ABC: A B ({SIDES}; lacks C1-1)\nview 3 ABC: C ({SIDES}; lacks A2-2)\nsend B\nB1: A B C\nquiet A B C",
    "one that joined later is not named": APART + f"view 3C CD: C\nview 3C CD: D (alone) (as A:2 C:2)\n"
    f"view 4 ABCD: A B ({LATER}; lacks C1-1 at C)\nview 4 ABCD: C D ({LATER}; lacks A2-2)",
    "one that comes to a merge reads nothing of what it skips": SMALL_APART
    + "read C: A:2\nview 3 ABC: A B (told of 2A AB and 2C C; A:4/0)\nsend A\nsend A",
    "a window that the others free": SMALL + "read C: A:4\nsend A\nsend A",
    "what is as large as the window goes alone": "window 3\nview 1 AB: A B\nsend A\nA1: A B\nread B: A:2\nsend A",
    "a joiner needs nothing of before": "window 8\nview 1 AB: A B\nsend A\nsend A\nA1: A B\nA2: A B\nread B: A:3\n"
    "view 2 ABC: A B\nsend A\nview 2 ABC: C (alone) (as A:3)",
    "a joiner that another side has admitted needs nothing of before": "window 8\nview 1 B: B\nsend B\nsend B\nB1: B\n"
    "B2: B\nview 2 AC: C (alone)\nview 2 BC: B\nsend B\nsend B",
    "who is gone reads nothing": SMALL + "view 2 AB: A B\nsend A",
    "soon after trouble anybody may be out": "view 1 ABC: A B C\nafter 60000 ms\ntrouble\nview 2 AB: A B",
    "a member that has read nothing for long enough": POLICY + "after 2001 ms\nA asks out C\n"
    "view 2 AB: A B (told that C was excluded)",
    "a member that begins without a state has read nothing of before": POLICY + "view 2 ABC: A B C (as A:2)\n"
    "after 2001 ms\nA asks out C",
    "half with its first is primary": "view 1 ABCD: A B C D\nview 2 AD: A D\nview 3 A: A",
    "what the others accepted may be theirs": "view 1 ABC: A B C\nB accepts 2 AB\nview 3 BC: B C (told the wrong hint)",
    "who is alone may be primary again": "view 1 AB: A B\ncrash A\nview 2 B: B\nview 3 B: B (told that it is primary)",
    "a majority comes back": "view 1 ABC: A B C\nview 2 A: A\nview 3 B: B\nview 4 AB: A B "
    "(told of 2A A and 3B B; ; that it is primary)",
    "a member that was not told yet is in a view that is not whole": "view 1 ABC: A B C\nview 2 AB: A B",
    "a member that accepted a later view has left its view": "view 1 ABC: A B C\nview 2 AB: A B\nview 3 A: A\n"
    "view 4 B: B\nview 5 C: C\nA accepts 6 C\nview 6C ABC: B C (told of 3A A and 4B B and 5C C; ; that it is primary)\n"
    "view 7 BC: B C",
    "a leaver takes part": "view 1 ABC: A B C\nleave A\nleave B\nview 2 C: C",
    "a leave within a second": "undisturbed\nview 1 AB: A B\nafter 2000 ms\nleave B\nview 2 A: A\nafter 999 ms\n"
    "stop B knowing 1 to 0",
    "a leave just after a view": "undisturbed\nview 1 AB: A B\nafter 200 ms\nleave B\nview 2 A: A\nafter 1500 ms\n"
    "stop B knowing 1 to 0",
    "a leave when something else is the matter": "undisturbed\nview 1 AB: A B\nafter 9000 ms\ntrouble\nleave B\n"
    "view 2 A: A\nafter 4000 ms\nstop B knowing 1 to 0",
    "one lost frame is repaired in time": CALM + "send A\nlost\nA2: A B\nafter 80 ms\nA2: C\nafter 550 ms\n"
    "stable A below 3",
    "what is not alone waits its turn": CALM + "send A\nsend A\nA2: A B C\nA3: A B\nafter 390 ms\n"
    "stable A below 3\nafter 500 ms\nA3: C",
    "who lacks it ends": CALM + "send A\nA2: A B\nafter 500 ms\ncrash C\nview 2 AB: A B\nsend A\nA3: A B",
    "told in time": CALM + "send A\nA2: A B C\nafter 390 ms\nstable A below 3",
    "a window opens": FULL + "after 9000 ms\nread B: A:2\nafter 2000 ms\nread A: A:2\nread C: A:2\nafter 999 ms\n"
    "send A",
    "not all have read": FULL + "after 9000 ms\nread A: A:2\nread B: A:2\nafter 1001 ms\nsend A",
    "all deliver all": START + "A1: A B C\nA2: A B C\nB1: A B C\nquiet A B C",
    "nobody sends": "view 1 AB: A B\nquiet A B",
    "the dead was ahead": START + "A1: A B C\nB1: A B C\nA2: A\ncrash A\nview 2 BC: B C\nsend B\nB2: B C\nquiet B C",
    "a resend is delivered one view later, after the dead delivered it": START
    + "A1: A B C\nA2: A B C\nB1: A\ncrash A\nview 2 BC: B C\nB1: B C\nquiet B C",
    "two sides go on alone": START + "A1: A B C\nview 2 A: A\nA2: A\nview 2B BC: B C\nB1: B C\nquiet A B C",
    "the one cut off has the last of the view alone": START
    + "A1: A B C\nA2: A\nB1: A\nview 2 A: A\nview 2B BC: B C\nB1: B C\nquiet A B C",
    "a joiner goes on behind its state": "view 1 AB: A B\nsend A\nA1: A B\nstate given A 2A: A:2\nview 2 ABC: A B\n"
    "view 2 ABC: C (alone) (as A:2)\nstate set C 2A by A: A:2\nsend A\nA2: A B C\nquiet A B C",
    "nobody is left who has a state": "view 1 AB: A\nview 1 AB: B (alone) (as )\ncrash A\nview 2 B: B\n"
    "state none B 2A\nquiet B",
    "a provider that says nothing for long is taken for one that fails": "view 1 AB: A\nview 1 AB: B (alone) (as )\n"
    "after 30000 ms\nstate none B 1A",
    "one begins with none before another joiner has the view": "view 1 AB: A\nview 1 AB: B (alone) (as )\ncrash A\n"
    "view 2 BC: B\nstate none B 2B",
    "a founder wakes in the first view, without which the others began with none": "view 1 ABC: B C (alone) (as )\n"
    "view 2B BC: B C (as )\nstate none B 2B\nview 1 ABC: A (alone) (as )\nstate none A 1A",
    "another joiner went to another group, and begins with none there": "view 1 AB: A\nview 1 AB: B (alone) (as )\n"
    "view 2D CD: C (alone)\ncrash A\nview 2 BCE: B\nview 2 BCE: E (alone) (as )\nstate none B 2B\n"
    "state none E 2B",
    "a leaver is told what it cannot know": START
    + "A1: A B C\nA2: A B C\nB1: A C\nview 2 AC: A C\nstop B knowing 1 to 1\n"
    "quiet A C",
    "a crash and a leave": "undisturbed\n"
    + START
    + "A1: A B C\nA2: A B C\nB1: A B C\ncrash A\nview 2 BC: B C\nleave B\nview 3 C: C\nstop B knowing 1 to 0\nquiet C",
    "unicasts": "view 1 AB: A B\nsend A to B\nsend A to B\nA1 to B: B\nundelivered A to B 2\nquiet A B",
    "a later connection skips what was reported": "view 1 AB: A B\nsend A to B\nsend A to B on 2\n"
    "A2 to B on 2: B\nundelivered A to B 1\nquiet A B",
    "what all have may be forgotten": START + "A1: A B C\nB1: A B C\ncrash C\npurge A 1A: A:2\nview 2 AB: A B\n"
    "A2: A B\npurge B 2A: A:1\nquiet A B",
    "stable means had by all": START
    + "A1: A B C\nA2: A B\nstable A below 2\nA2: C\nstable A below 3\nB1: A B C\nquiet A B C",
}

JOINED = """
view 1 AB: A B
send A
A1: A B
state given A 2A: A:2
view 2 ABC: A B
view 2 ABC: C (alone) (as A:2)
"""

PLANTED = [
    (
        "merge-agreement",
        APART + f"view 3 ABC: A B ({SIDES}; lacks C1-1)\n"
        "view 3 ABC: C (told of 1A AB and 2C C; A:3/0 C:2/1; lacks A2-2)",
    ),
    ("merge-agreement", APART + "view 3 ABC: A B (told of 2A AB; A:3/0)"),
    ("merge-agreement", APART + "view 3 ABC: A B (told of 2A A and 2C BC; A:3/0 C:2/1; lacks C1-1)"),
    ("merge-agreement", APART + "view 3 ABD: A B (told of 2A AB and 2C D; A:3/0 C:2/1; lacks C1-1)"),
    ("merge-agreement", APART + f"view 3B BAC: A B ({SIDES}; lacks C1-1)"),
    ("merge-announced", APART + f"view 3 ABC: A B ({SIDES})"),
    ("merge-announced", APART + "view 3 ABC: A B (told of 2A AB and 2C C; A:3/0 C:5/1; lacks C1-4)"),
    ("merge-announced", APART + "view 3 ABC: A B (told of 2A AB and 2C C; A:3/0 C:2/7; lacks C1-1)"),
    ("merge-announced", APART + "view 3 ABC: A B (told of 2A AB and 2C C; A:3/0; lacks C1-1)"),
    ("merge-announced", APART + "view 3 ABC: A B (told of 2A AB and 2C C; A:3/0 C:2/1; lacks A1-2 lacks C1-1)"),
    (
        "merge-announced",
        APART + f"view 3 ABC: A B ({SIDES}; lacks C1-1)\nview 3 ABC: C (told of 2A AB and 2C C; A:3/0)",
    ),
    ("merge-announced", APART + f"view 3 ABC: A B ({SIDES}; lacks C1-1 at BC)"),
    ("merge-announced", APART + f"view 3 ABC: A B ({SIDES}; lacks C1-1 at AB)"),
    (
        "merge-announced",
        APART + f"view 3 ABC: A B ({SIDES}; lacks C1-1 at -)\nview 3 ABC: C ({SIDES}; lacks A2-2)",
    ),
    (
        "merge-announced",
        APART + f"view 3C CD: C\nview 3C CD: D (alone) (as A:2 C:2)\nview 4 ABCD: A B ({LATER}; lacks C1-1 at CD)\n"
        f"view 4 ABCD: C D ({LATER}; lacks A2-2)",
    ),
    ("fifo", APART + "view 3 AB: A B (told that it lacks C1-1)"),
    ("fifo", APART + f"view 3 ABC: A B ({SIDES}; lacks C2-2)"),
    ("window-bound", SMALL_APART + "view 3 ABC: A B (told of 2A AB and 2C C; A:4/0)\nsend A"),
    ("self-inclusion", "view 1 AB: A B C"),
    ("self-inclusion", "view 1 ABC: A B C\nview 2 AB: C"),
    ("view-monotonic", "view 2 AB: A B\nview 1 AB: A"),
    ("view-monotonic", "view 2 AB: A B\nview 2 AB: B"),
    ("view-agreement", "view 1A ABC: A\nview 1A ACB: B"),
    ("view-agreement", "view 1A ABC: A\nview 1A AB: B"),
    ("initial-view", "view 1 AB: A\nsend B"),
    ("initial-view", "view 1 AB: A\nsend A\nA1: B"),
    ("initial-view", START + "A1 in 7: B"),
    ("transitional-set", "view 1 AB: A B\nview 2 AB: A B (alone)"),
    ("transitional-set", "view 1 AB: A B\nview 2 AB: A B (from 7)"),
    ("transitional-set", "view 1 AB: A B\nview 2 ABC: A B C"),
    ("run-identity", START + "A1: A B\nA1 with x: C"),
    ("integrity", START + "A1 with x: A"),
    ("integrity", START + "A3: B"),
    ("integrity", START + "A1: A C\nA1 at 7: B"),
    ("integrity", START + "A1: A B C\nA2: A B C\nview 2 ABC: A B C\nB1 at 2: B"),
    ("integrity", START + "C1: B"),
    ("no-duplication", START + "A1: A B C\nA1: B"),
    ("no-duplication", START + "A1: A B C\nA2: A B C\nB1: A B C\nview 2 ABC: A B C\nA2: C"),
    ("no-duplication", "view 1 AB: A B\nsend A\nA1: A B\nview 2 ABC: A B\nview 2 ABC: C (alone) (as A:2)\nA1: C"),
    ("fifo", START + "A2: B"),
    ("fifo", START + "A1: A B C\nview 2 AC: A C\nA2: A\nsend A\nA3: C"),
    ("fifo", "view 1 AB: A B\nsend A\nA1: A B\nview 2 ABC: A B\nview 2 ABC: C (alone) (as A:2)\nsend A\nsend A\nA3: C"),
    ("fifo", START + "A1: A B C\nA2: A B C\nview 2 ABC: A B C (told that it lacks B1-1)"),
    ("total-order", START + "A1: A B\nB1: A C\nA1: C"),
    ("total-order", START + "A1: A\nB1: A\nB1: B\nA1: B"),
    ("gap-free-prefix", START + "A1: A B\nB1: A B C\nview 2 AC: A C"),
    ("gap-free-prefix", START + "A1: A B\nB1: A B C\ncrash C"),
    ("gap-free-prefix", START + "A1: A B C\nB1: B C\nview 2 BC: B C\nA2: A\nB1: A"),
    ("gap-free-prefix", START + "A1: A B C\nA2: A\nB1: A B C\nquiet A B C"),
    ("virtual-synchrony", START + "A1: A B C\nB1: B\nview 2 BC: B C"),
    ("virtual-synchrony", START + "A1: B C\nA2: C\ncrash A\nview 2 BC: B C"),
    ("virtual-synchrony", START + "A1: A B\nview 2 ABC: A B C"),
    ("agreement", START + "A1: A B C\nA2: A B C\ncrash B\nview 2 AC: A C\nB1: A\nquiet A C"),
    ("multicast-reported", START + "A1: A B C\nA2: B\nstop A knowing 3 to 9"),
    ("self-delivery", START + "A1: A B C\nA2: A B C\nquiet A B C"),
    ("self-delivery", START + "A1: A B C\nview 2 ABC: A B C (told that it lacks A2-2)"),
    ("liveness", START + "A1: A B C\nA2: A B C\nB1: A B\nquiet A B C"),
    ("liveness", "view 1 AB: A B\nquiet A B C"),
    ("liveness", "view 1 AB: A B\nquiet A B B leaving"),
    ("liveness", "view 1 AB: A B\nquiet A B B blocked"),
    ("view-accuracy", "view 1 ABC: A B C\ncrash C\nquiet A B"),
    ("view-accuracy", "view 1 ABC: A B C\nview 2 A: A\nquiet A B C"),
    ("view-accuracy", "undisturbed\nview 1 ABC: A B C\nview 2 AB: A B"),
    ("view-accuracy", "undisturbed\nview 1 ABC: A B C\nview 2 ABC: A B\nview 2C C: C"),
    ("view-accuracy", "undisturbed\nview 1 ABC: A B C\nleave B\ncrash A\nview 2 C: C\nstop C knowing 1 to 0"),
    ("view-accuracy", "undisturbed\nview 1 AB: A B\nview 1C C: C\nquiet A B C"),
    ("view-accuracy", "view 1 ABC: A B C\nafter 60000 ms\nview 2 AB: A B"),
    ("buffers-drain", "view 1 AB: A B\nquiet A B holding window"),
    ("stability-safety", START + "A1: A B\nstable A below 2"),
    ("stability-safety", START + "A1: B C\ndelivered A below 2"),
    ("stability-safety", START + "A1: A B C\nB1: A B\npurge A 1A: A:2"),
    ("stability-safety", START + "A1: A B C\nB1: A C\nview 2B B: B\npurge A 1A: A:2"),
    ("stability-safety", START + "A1: A B C\nB1: A B\ncrash C\nview 2 AB: A B\npurge A 1A: A:2"),
    ("state-cut", "view 1 AB: A B\nsend A\nA1: A B\nstate given A 2A: A:1"),
    (
        "state-cut",
        "view 1 AB: A B\nsend A\nsend B\nA1: A B\nB1: A B\nview 2 A: A\nstate given A 3A: A:2",
    ),  # B's is missing
    ("state-cut", "view 1 AB: A B\nsend A\nA1: A B\nstate given A 2A: A:2\nstate set C 2A by A: A:1"),
    (
        "state-cut",
        "view 1 AB: A B\nsend A\nA1: A B\nstate given A 2A: A:2\nview 2 ABC: A B\nview 2 ABC: C (alone) (as A:1)\n"
        "state set C 2A by A: A:2",
    ),
    ("state-cut", "view 1 AB: A B\nsend A\nsend A\nA1: A B\nview 2 AB: A (as A:3)"),
    ("state-cut", JOINED + "quiet A B C"),
    ("state-cut", JOINED + "state set C 2A by A: A:2\nsend A\nA2: A B C\nstate set C 2A by A: A:2"),
    ("state-cut", JOINED + "state none C 2A"),
    ("state-cut", JOINED + "after 29999 ms\nstate none C 2A"),
    (
        "state-cut",  # B had its state before the view in which C begins with none
        "view 1 AB: A\nsend A\nA1: A\nstate given A 2A: A:2\nview 2A AB: A\nview 2A AB: B (alone) (as A:2)\n"
        "state set B 2A by A: A:2\n"
        "crash A\nview 3 BC: B\nview 3 BC: C (alone) (as A:2)\nstate none C 3B",
    ),
    ("confirmed", START + "A1: A B C\nA2: A B C\nprogram A gets A2"),
    ("confirmed", START + "A1: A B C\nprogram C gets A1\nprogram C gets A1"),
    ("confirmed", START + "A1: A B C\nprogram B gets A1\nprogram B skips A1-2"),
    ("confirmed", START + "A1: A B C\nprogram B gets A1\nprogram B skips A3-4"),
    ("confirmed", JOINED + "state set C 2A by A: A:2\nprogram C gets A1"),
    ("confirmed", READ + "program A gets A2\nstable A below 3\nquiet A B C"),
    ("confirmed", READ + "program B gets A2\nprogram C gets A2\ndelivered A below 3\nquiet A B C"),
    (
        "confirmed",
        READ + "view 2 AB: A B\nstate given B 2A: A:3 B:2\nprogram A gets A2\nquiet A B",
    ),
    ("confirmed", LACKING + "program A gets A3"),
    ("confirmed", LACKING + "quiet A"),
    ("confirmed", LACKING + "program A skips A1-1\nquiet A"),
    ("confirmed", LACKING + "program A skips A1-2\nprogram A skips B1-1"),
    ("window-bound", SMALL + "read C: A:2\nsend A\nsend A"),
    ("window-bound", SMALL + "send A"),
    ("window-bound", "window 8\nview 1 AB: A\nsend A\nsend A\nA1: A\nA2: A\nread A: A:3\nsend A"),
    (
        "window-bound",
        SMALL + "read C: A:4\nview 2 ABCD: A B C\nsend A\nread B: A:5\nread C: A:5\nsend A\nsend A\nsend A",
    ),
    ("slow-exclusion", POLICY + "after 1000 ms\nA asks out C"),
    ("slow-exclusion", POLICY + "send A\nA2: A B C\nafter 500 ms\nread C: A:2\nafter 1700 ms\nA asks out C"),
    ("slow-exclusion", POLICY + "read C: A:2\nafter 3000 ms\nA asks out C"),
    (
        "slow-exclusion",
        POLICY + "view 2 ABCD: A B C\nview 2 ABCD: D (alone) (as A:2)\nafter 3000 ms\nA asks out D",
    ),
    ("slow-exclusion", "view 1 ABC: A B C\nview 2 AB: A B (told that C was excluded)"),
    ("left-and-joined", "view 1 ABC: A B C\nview 2 AB: A (told that B left)"),
    ("left-and-joined", "view 1 ABC: A B C\nview 2 A: A (told that CB left)"),
    ("left-and-joined", "view 1 AB: A B\nview 2 ABC: A B\nview 2 ABC: C (alone) (as ) (told that D left)"),
    ("left-and-joined", "view 1 AB: A B\nview 2 ABC: A B (told that BC joined)"),
    ("primary-hint", "view 1 ABC: A B C\nview 2 AB: A B (told the wrong hint)"),
    ("primary-hint", "view 1 ABC: A B C\nview 2 C: C (told the wrong hint)"),
    ("primary-hint", "view 1 ABCD: A B C D\nview 2 CD: C (told the wrong hint)"),
    ("primary-hint", "view 1 ABC: A B C\nview 2 C: C\nview 3 CD: C (told the wrong hint)"),
    ("primary-hint", "view 1 AB: A B\nview 2 ABC: A B\nview 2 ABC: C (alone) (as ) (told the wrong hint)"),
    ("primary-hint", "view 1 A: A (told the wrong hint)"),
    ("primary-hint", "view 1 ABC: A B C\nview 2 C: C\nview 3 CD: C (told that it is primary)"),
    ("one-primary", SUCCEEDED + "view 4 C: C (told that it is primary)\nview 5 DE: D E (told that it is primary)"),
    ("one-primary", SUCCEEDED + "view 5 DE: D E (told that it is primary)\nview 4 C: C (told that it is primary)"),
    (
        "leave-in-time",
        "undisturbed\nview 1 AB: A B\nafter 2000 ms\nleave B\nview 2 A: A\nafter 1001 ms\nstop B knowing 1 to 0",
    ),
    (
        "leave-in-time",
        "undisturbed\nview 1 AB: A B\nafter 200 ms\nleave B\nview 2 A: A\nafter 2001 ms\nstop B knowing 1 to 0",
    ),
    (
        "leave-in-time",
        "undisturbed\nview 1 AB: A B\nafter 9000 ms\ntrouble\nafter 60000 ms\nleave B\nafter 5000 ms\n"
        "stop B knowing 1 to 0",
    ),
    ("repair-in-time", CALM + "send A\nA2: A B\nafter 93 ms\nA2: C"),
    ("repair-in-time", CALM + "send A\nafter 93 ms\nA2: A B\nlost\nA2: C"),
    ("repair-in-time", CALM + "send B\nB1: A B C\nsend A\nA2: A B\nafter 93 ms\nA2: C"),  # nothing is before it
    ("stable-in-time", CALM + "send A\nA2: A B C\nafter 409 ms\nstable A below 3"),
    ("stable-in-time", CALM + "send A\nA2: A B C\nafter 409 ms\nquiet A B C"),
    ("stable-in-time", CALM + "send A\nlost\nA2: A B C\nafter 609 ms\nstable A below 3"),
    ("window-in-time", FULL + "after 9000 ms\nread A: A:2\nread B: A:2\nread C: A:2\nafter 1001 ms\nsend A"),
    ("window-in-time", FULL + "read A: A:2\nread B: A:2\nread C: A:2\nafter 1001 ms\nsend A"),
    ("window-in-time", FULL + "read A: A:2\nafter 500 ms\nread C: A:2\nread B: A:2\nafter 1001 ms\nsend A"),
    ("unicast-fifo", "view 1 AB: A B\nsend A to B\nsend A to B on 2\nA2 to B on 2: B\nA1 to B: B"),
    ("unicast-fifo", "view 1 AB: A B\nsend A to B\nsend A to B\nA2 to B: B"),
    ("unicast-fifo", "view 1 AB: A B\nsend A to B\nsend A to B on 2\nA1 to B on 2: B"),
    ("unicast-once", "view 1 AB: A B\nsend A to B\nA1 to B: B\nA1 to B: B"),
    ("unicast-reported", "view 1 AB: A B\nsend A to B\nquiet A B"),
    ("unicast-reported", "view 1 AB: A B\nsend A to B\nsend A to B on 2\nA2 to B on 2: B\nquiet A B"),
]


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("profile", ["fifo", "total"])
def test_what_is_good_holds(name: str, profile: str) -> None:
    History(profile).play(GOOD[name])


@pytest.mark.parametrize(("promise", "history"), PLANTED)
def test_a_planted_fault_is_found(promise: str, history: str) -> None:
    lines = history.strip().splitlines()
    played = History("total")
    played.play("\n".join(lines[:-1]))  # until the last line nothing is wrong
    with pytest.raises(Broken) as caught:
        played.line(lines[-1])
    assert caught.value.witness.promise == promise


@pytest.mark.parametrize("then", ["ends", "goes on", "begins another history"])
def test_what_is_delivered_after_others_went_on_is_found(then: str) -> None:
    """In `uniform`, unless the member begins another history."""
    check, first, second, other = UniformAgreement(), *(ViewId(number, ALL["A"]) for number in (1, 2, 3))
    for name in "AB":
        check.viewed(Viewed(ALL[name], first, (ALL["A"], ALL["B"]), None, None, (), None, history="h"))
    check.viewed(Viewed(ALL["B"], second, (ALL["B"],), first, first, (), None, history="h"))
    check.delivered(Delivery(ALL["A"], first, 0, ALL["A"], 1, 1, b""))
    if then == "begins another history":
        check.viewed(Viewed(ALL["A"], other, (ALL["A"],), first, first, (), None, history="another"))
        check.settled([])
        return
    with pytest.raises(Broken, match="another one of the same view goes on without it"):
        if then == "ends":
            check.ended(ALL["A"], "crashed", None)
        else:
            check.viewed(Viewed(ALL["A"], second, (ALL["A"],), first, first, (), None, history="h"))


@pytest.mark.parametrize(("ranges", "breaks"), [(MISSING_MAX - 1, True), (MISSING_MAX, False)])
def test_a_gap_may_leave_out_a_member_with_many_holes(ranges: int, breaks: bool) -> None:
    """B keeps its holes as a few ranges, which then cover messages that it delivered."""
    a, b = ALL["A"], ALL["B"]
    old, older, merged = ViewId(2, a), ViewId(1, b), ViewId(3, a)
    messages, high = Messages(), 2 * ranges + 1
    messages.next = {a: {a: high}, b: {a: high}}
    check = MergedViews(messages)
    for member, view in ((a, old), (b, older)):
        check.viewed(Viewed(member, view, (member,), None, None, (member,), None))
    for first in range(2, high, 2):
        check.delivered(Delivery(b, older, 0, a, first, 1, b""))
    gaps = (Gap(a, high - 1, 1, ()),)
    sides = (Subgroup(old, (a,), {}), Subgroup(older, (b,), {}))
    told = {"subgroups": sides, "merged": {a: (high, 1)}}
    check.viewed(Viewed(a, merged, (a, b), old, old, (a,), None, gaps=gaps, **told))
    last = Viewed(b, merged, (a, b), older, older, (b,), None, **told)
    if not breaks:
        check.viewed(last)
        return
    with pytest.raises(Broken, match="does not name a member that delivered the messages"):
        check.viewed(last)


def test_every_promise_of_a_profile_has_a_planted_fault() -> None:
    planted = {promise for promise, _ in PLANTED}
    assert set(Judge(checks_of(BUILT["total"].services)).promises) - planted == {
        "same-view-delivery",  # others fire before it, and test_promises_planted.py has it
        *("progress", "join-in-time", "merge-in-time", "few-views"),  # test_promises_progress.py has them
        "checks-membership",  # test_promises_membership.py has it
        "request-pace",  # test_promises_pace.py has it
        "views-in-order",  # test_promises_layers.py has it
        "causal",  # follows from others, and test_promises_causal.py has it
        "journal-first",  # test_promises_journals.py has it
    }


@pytest.mark.parametrize(("profile", "breaks"), [("fifo", False), ("total", True)])
def test_only_what_is_promised_is_judged(profile: str, breaks: bool) -> None:
    history = START + "A1: A B\nB1: C A B\nA1: C\nA2: A B C\nquiet A B C"
    if breaks:
        with pytest.raises(Broken, match="total-order"):
            History(profile).play(history)
    else:
        History(profile).play(history)


@pytest.mark.parametrize(("profile", "breaks"), [("fifo", True), ("total", False)])
def test_in_one_order_a_message_waits_for_what_others_sent_before_it(profile: str, breaks: bool) -> None:
    behind = CALM + "send B\nB1: A B C\nsend B\nB2: A B\nsend A\nA2: A B\nafter 93 ms\nB2: C"
    played = History(profile)
    played.play(behind)
    if breaks:
        with pytest.raises(Broken, match="repair-in-time"):
            played.line("A2: C")
    else:
        played.line("A2: C")


def test_a_body_that_cannot_be_read_is_none_that_was_sent() -> None:
    played = History("total")
    played.play("view 1 AB: A B\nsend A")
    run = Run(ALL["A"], None, (), ALL["A"], 1, 0, 1, b"\xff\xff", ALL["A"], 0)
    with pytest.raises(Broken, match="integrity"):
        played.judge.delivered(ALL["A"], Delivered(run, played.views["A"], 0))


def test_what_the_stack_has_forgotten_was_sent_all_the_same() -> None:
    """A's application handed in a message of which A's stack knows nothing any more."""
    played = History("total")
    played.play("view 1 AB: A B\nsend A\nA1: A B\nsend A")
    rests = [Rest(ALL[name], accepted, 0, {}, False, False) for name, accepted in (("A", 2), ("B", 1))]
    with pytest.raises(Broken, match="self-delivery"):
        played.judge.settled(rests)


def test_merges_are_judged_where_a_stack_merges() -> None:
    for profile in BUILT.values():
        merges = Merge2 in profile.layers and "VIRTUAL_SYNCHRONY" in profile.services
        assert ("merge-agreement" in Judge(checks_of(profile.services)).promises) == merges


@pytest.mark.parametrize(
    ("service", "promise"),
    [
        ("TOTAL", "total-order"),
        ("UNIFORM", "uniform-agreement"),
        ("PRIMARY", "primary-chain"),
        ("GOSSIP", "gap-announced"),
        ("VIRTUAL_SYNCHRONY", "virtual-synchrony"),
        ("MARKS", "stability-safety"),
    ],
)
def test_what_a_stack_gives_is_judged_and_nothing_else(service: str, promise: str) -> None:
    judged = {name: Judge(checks_of(profile.services)).promises for name, profile in BUILT.items()}
    assert (
        {name for name in judged if promise in judged[name]}
        == {name for name, profile in BUILT.items() if service in profile.services}
        != set()
    )
