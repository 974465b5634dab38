"""Five real processes on hosts of their own, all of which send: firewall rules cut the network, and then it heals.

While it is cut, each side that can form a view does, and delivers all that its members send.  After the heal one view
has all five, nobody was restarted, and each member has delivered or announced as a gap every message.  With a state and
`on_merge="primary"` all have the same data in the end.  At last the audit judges the journals.

`python -m tests.e2e.splits --seconds 30` plays each case, and appends each result to bench/results/splits.jsonl;
`make splits` calls it.  A case that has passed on the same commit is not played again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.e2e.group import Group, Worker, audit, until
from tests.e2e.hosts import Hosts

NAMES: Final = "ABCDE"
PORT: Final = 7_000
LOAD: Final = {"count": 1 << 40, "size": 100, "burst": 10, "pause": 0.05}  # of each
QUICK: Final = {"heartbeat": 0.2, "heartbeat_timeout": 1.0, "verify_timeout": 0.5}
VIEWS_MAX: Final = 3  # views that a member installs while a cut stays, after the sides have formed


class Case(NamedTuple):
    """A cut: frames from the first names to the second ones of a pair are dropped.  Other members than those of
    `sides` are in some view, perhaps alone."""

    drops: tuple[tuple[str, str], ...]
    sides: tuple[str, ...]  # the views that form


def both(one: str, other: str) -> tuple[tuple[str, str], ...]:
    return (one, other), (other, one)


CASES: Final = {
    "two and three": Case(both("AB", "CDE"), ("AB", "CDE")),
    "one and four": Case(both("E", "ABCD"), ("E", "ABCD")),
    "the coordinator alone": Case(both("A", "BCDE"), ("A", "BCDE")),
    "nobody hears the coordinator": Case((("A", "BCDE"),), ("BCDE",)),
    "one does not hear the others": Case((("ABCD", "E"),), ("ABCD",)),
    "one pair, one way": Case((("B", "D"),), ("ABCE",)),
}


class Result(NamedTuple):
    """What happened in one case."""

    cut_seconds: float
    formed_after: float  # seconds from the cut until the sides had their views
    one_view_after: float  # seconds from the heal
    accepted: int  # messages
    announced: int  # messages in gaps, at all members together
    views: int  # the most that a member installed while the cut stayed, after the sides had formed


class Split:
    """One group, on five hosts, through one cut."""

    def __init__(self, folder: Path, case: Case, *, profile: str, state: bool) -> None:
        wishes = {"profile": profile, "settings": QUICK}
        if state:
            wishes |= {"on_merge": "primary", "counts": True}
        self.case = case
        self.counts = state
        self.hosts = Hosts(len(NAMES))
        self.group = Group(folder, **wishes)
        self.on: dict[str, Worker] = {}

    def play(self, seconds: float) -> Result:
        """Cut the network for so many seconds after the sides have formed, heal it, and judge."""
        with self.hosts, self.group:
            self._start()
            addresses = [worker.address for worker in self.on.values()]
            self.group.everywhere("fault", "cut", addresses)
            began = time.monotonic()
            with self._cut():
                self._sides_form()
                formed = time.monotonic() - began
                views = {name: len(worker.views) for name, worker in self.on.items()}
                self._go_on(seconds)
                most = max(len(worker.views) - views[name] for name, worker in self.on.items())
                cut = time.monotonic() - began
            healed = time.monotonic()
            self.group.everywhere("heal")
            self.group.settle()
            assert all(len(worker.members) == len(NAMES) for worker in self.on.values())
            one_view = time.monotonic() - healed
            time.sleep(1)
            accepted = self._come_to_rest()
            announced = self._nothing_is_missing(accepted)
        times = [round(value, 2) for value in (cut, formed, one_view)]
        return Result(*times, sum(accepted.values()), announced, most)

    def _start(self) -> None:
        """One after the other, so that the first one leads."""
        for name, host in zip(NAMES, self.hosts.hosts, strict=True):
            worker = self.on[name] = self.group.prepare(host.prefix)
            self.group.go(worker, name, bind=f"{host.address}:{PORT}", insecure=True)
            self.group.until(f"{name} has joined", lambda worker=worker: bool(worker.address))
            self.group.settle()
        for worker in self.on.values():
            worker.order("send", **LOAD)
        time.sleep(1)

    @contextmanager
    def _cut(self) -> Iterator[None]:
        with ExitStack() as rules:
            dropped: dict[str, list[str]] = {}
            for sources, dests in self.case.drops:
                for dest in dests:
                    dropped.setdefault(dest, []).extend(sources)
            for dest, sources in dropped.items():
                addresses = [self.hosts.hosts[NAMES.index(name)].address for name in sources]
                host = self.hosts.hosts[NAMES.index(dest)]
                rules.enter_context(host.rules(*(f"ip saddr {address} drop" for address in addresses)))
            yield

    def _sides_form(self) -> None:
        for side in self.case.sides:
            wanted = {self.on[name].address for name in side}
            until(
                f"{side} have a view of their own",
                lambda wanted=wanted, side=side: all(set(self.on[name].members) == wanted for name in side),
            )

    def _go_on(self, seconds: float) -> None:
        """Each side delivers what its members send."""
        end = time.monotonic() + seconds
        time.sleep(seconds / 2)
        for side in self.case.sides:
            sent = {self.on[name].address: self.on[name].progress["accepted"] for name in side}
            until(
                f"{side} deliver what they send",
                lambda sent=sent, side=side: all(
                    self.on[name].progress["last"].get(sender, 0) >= number
                    for name in side
                    for sender, number in sent.items()
                ),
            )
        time.sleep(max(0.0, end - time.monotonic()))

    def _come_to_rest(self) -> dict[str, int]:
        group = self.group
        accepted = group.stop_sending()
        group.quiet(accepted)
        group.everywhere("quiet")
        if self.counts:
            for worker in self.on.values():
                worker.ask("data", "tell data")
            data = {name: worker.reports["data"]["counts"] for name, worker in self.on.items()}
            assert all(counts == data["A"] for counts in data.values()), data
        group.leave()
        return accepted

    def _nothing_is_missing(self, accepted: dict[str, int]) -> int:
        """Every member delivered or announced each message once and in order, and announced none of its own side."""
        announced = 0
        for worker in self.on.values():
            try:
                heard, missing = heard_by(worker.address, worker.log.read_text().splitlines())
            except AssertionError as fault:
                raise AssertionError(f"{worker.name}: {fault}") from None
            announced += missing
            assert heard == accepted, f"{worker.name} has {heard}, and {accepted} were accepted"
        return announced


def heard_by(address: str, log: list[str]) -> tuple[dict[str, int], int]:
    """The last number of each sender in this log of a member, and the number of messages in gaps.

    AssertionError if a message is missing or comes twice, or if a gap is announced outside of a merged view, or for a
    sender of the member's own side.  A side here goes on for a while before it merges, and delivers what its members
    send.  If the state of another side replaced the member's own, that side counts as its own.
    """
    heard: dict[str, int] = {}
    subgroups: list[list[str]] = []
    own: list[str] = []
    announced = 0
    for line in log:
        kind, _, rest = line.partition(" ")
        assert kind != "X", line
        if kind == "V":
            subgroups = json.loads(rest)["subgroups"]
            own = side_of(address, subgroups)
        if kind == "R":
            heard = {}  # it goes on where its new state ends
            own = side_of(rest, subgroups)
        if kind in ("M", "G"):
            sender, first, count = rest.split()[0], int(rest.split()[1]), 1
            if kind == "G":
                assert subgroups, f"a gap follows a view that is not merged: {line}"
                assert sender not in own, f"a gap is announced for a sender of the own side {own}: {line}"
                count = int(rest.split()[2])
                announced += count
            expected = heard.get(sender, first - 1) + 1
            assert first == expected, f"{line}, and not {expected}"
            heard[sender] = first + count - 1
    return heard, announced


def side_of(address: str, subgroups: list[list[str]]) -> list[str]:
    """The subgroup that has this member; none in a view that is not merged."""
    return next((side for side in subgroups if address in side), [])


class Played(NamedTuple):
    """A case that was played: its figures, one line for a reader, and the check, which raises AssertionError."""

    figures: dict[str, object]
    text: str
    check: Callable[[], None]


def check(result: Result) -> None:
    """AssertionError if a case did not go as it has to."""
    assert result.views <= VIEWS_MAX, result
    assert result.announced > 0, result


def check_journals(*journals: Path) -> None:
    """AssertionError if the audit finds a promise broken, or judges no merge."""
    code, found = audit(*journals)
    verdicts = {promise["name"]: promise["verdict"] for promise in found["promises"]}
    assert code == 0, {name: verdict for name, verdict in verdicts.items() if verdict == "broken"}
    assert verdicts["merge-agreement"] == verdicts["merge-announced"] == "held", verdicts


def told(profile: str, case: str, result: Result) -> str:
    """One line for a reader."""
    return (
        f"{profile}, {case}: cut for {result.cut_seconds:.0f} s, sides after {result.formed_after:.1f} s, one view "
        f"{result.one_view_after:.1f} s after the heal; {result.accepted:,} messages, {result.announced:,} announced "
        f"as missing; at most {result.views} views of a member while it was cut"
    )


def seconds_wanted(about: str | None) -> float:
    """The option `--seconds` of this command: the time for which the network is cut."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--seconds", type=float, default=30.0)
    seconds: float = parser.parse_args().seconds
    return seconds


def record(part: dict[str, object], play: Callable[[Path], Played]) -> None:
    """Play a case in a new folder, unless the case has passed on this commit, and append the result to the file.
    Raises AssertionError if a check of the case fails."""
    from bench.common import Result as Line
    from bench.common import passed

    if passed("splits", **part):
        print(f"{part['case']}: passed before on this commit", flush=True)
        return
    line = Line("splits")
    with tempfile.TemporaryDirectory() as folder:
        played = play(Path(folder))
        try:
            played.check()
            fault = ""
        except AssertionError as error:
            fault = str(error)
    line.write(**part | played.figures, faults=[fault] if fault else [], told=False)
    print(played.text, *(["FAILED"] if fault else []), flush=True)
    assert not fault, fault


def main() -> None:
    seconds = seconds_wanted(__doc__)
    for number, case in enumerate(CASES):
        profile, state = ("total", "fifo")[number % 2], number < 3

        def play(folder: Path, case: str = case, profile: str = profile, state: bool = state) -> Played:
            split = Split(folder, CASES[case], profile=profile, state=state)
            result = split.play(seconds)

            def judge() -> None:
                check(result)
                check_journals(split.group.journal)

            return Played(result._asdict(), told(profile, case, result), judge)

        record({"case": case, "profile": profile, "state": state, "seconds_cut": seconds}, play)


if __name__ == "__main__":
    main()
