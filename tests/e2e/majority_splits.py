"""Five real processes on hosts of their own, where a majority decides each view: firewall rules cut the network.

The majority goes on.  Each member of a minority is told `Blocked` and delivers nothing after that event, until it is
told `Unblocked` or `Excluded`.  An excluded process starts again and gets the state.  The members that were never
excluded lose no message, and deliver all messages in one order.  At last the audit judges the journals: the views are
one chain.

`python -m tests.e2e.majority_splits --seconds 30` plays each case, and appends each result to
bench/results/splits.jsonl; `make splits` calls it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final, NamedTuple

from tests.e2e.group import Worker, audit, until
from tests.e2e.hosts import Host
from tests.e2e.splits import LOAD, NAMES, PORT, Case, Played, Split, both, record, seconds_wanted

Pairs = tuple[tuple[str, str], ...]
SOON: Final = 30.0  # seconds until a member is told that it is blocked
LASTS: Final = 3.0  # seconds that the last view must last


class MajorityCase(NamedTuple):
    """A cut, as in `Case`: the members of `side` go on, and those of `blocked` do not."""

    drops: Pairs
    side: str
    blocked: str


CASES: Final = {
    "two and three": MajorityCase(both("AB", "CDE"), "CDE", "AB"),
    "the coordinator alone": MajorityCase(both("A", "BCDE"), "BCDE", "A"),
    "no side has a majority": MajorityCase((*both("AB", "CDE"), *both("CD", "E")), "", NAMES),
    "one and four": MajorityCase(both("E", "ABCD"), "ABCD", "E"),
    "nobody hears the coordinator": MajorityCase((("A", "BCDE"),), "BCDE", "A"),
}


class Result(NamedTuple):
    """What happened in one case."""

    cut_seconds: float
    blocked_after: float  # seconds from the cut until all members of a minority were told
    one_view_after: float  # seconds from the heal until all five were in one view, those that started again included
    accepted: int  # messages of the members in that view
    excluded: int  # members
    unblocked: int  # members, of which some may have been excluded after that


class MajoritySplit(Split):
    """One group, on five hosts, through one cut."""

    def __init__(self, folder: Path, case: MajorityCase) -> None:
        super().__init__(folder, Case(case.drops, (case.side,) if case.side else ()), profile="uniform", state=False)
        self.counts = True
        self.group.wishes |= {"counts": True}
        self.minority = case.blocked
        self.excluded: dict[str, Worker] = {}

    def play_majority(self, seconds: float) -> Result:
        """Cut the network for so many seconds after the minority was told, heal it, and judge."""
        with self.hosts, self.group:
            self._start()
            spares = {name: self.group.prepare(self._host(name).prefix) for name in self.minority}
            self.group.everywhere("fault", "cut", [worker.address for worker in self.on.values()])
            began = time.monotonic()
            with self._cut():
                self._sides_form()
                self._minority_is_blocked()
                blocked = time.monotonic() - began
                had = {name: self._deliveries(name) for name in self.minority}
                self._go_on(seconds)
                assert had == {name: self._deliveries(name) for name in self.minority}
                cut = time.monotonic() - began
            healed = time.monotonic()
            self.group.everywhere("heal")
            one_view = self._one_view(spares) - healed
            time.sleep(1)
            accepted = self._come_to_rest()
        self._blocked_delivered_nothing()
        self._survivors_lose_nothing(accepted)
        times = [round(value, 2) for value in (cut, blocked, one_view)]
        unblocked = sum("U" in self.lines(self.excluded.get(name, self.on[name])) for name in self.minority)
        return Result(*times, sum(accepted.values()), len(self.excluded), unblocked)

    def _minority_is_blocked(self) -> None:
        members = [self.on[name] for name in self.minority]
        until(f"{self.minority} are blocked", lambda: all(one.heard_of["blocked"] for one in members), SOON)

    def _deliveries(self, name: str) -> int:
        return sum(line.startswith("M ") for line in self.lines(self.on[name]))

    @staticmethod
    def lines(worker: Worker) -> list[str]:
        """What its application was given."""
        return worker.log.read_text().splitlines()

    def _host(self, name: str) -> Host:
        return self.hosts.hosts[NAMES.index(name)]

    def _one_view(self, spares: dict[str, Worker]) -> float:
        """Start excluded members again until one view has all five.  Returns when that view was there.

        A member that was unblocked can be excluded after that: after a long cut TCP waits long before it sends again.
        Therefore the view must last for longer than a silence that excludes a member.
        """
        while True:
            self.group.until("one view has all five", lambda: self._are_together(spares))
            since = time.monotonic()
            while time.monotonic() < since + LASTS and self._are_together(spares):
                time.sleep(0.1)
            if time.monotonic() >= since + LASTS:
                return since

    def _are_together(self, spares: dict[str, Worker]) -> bool:
        """Whether one view has all five, and each member of the minority was told.  Starts excluded members again,
        under the old names and with the state of the others."""
        for name in self.minority:
            worker = self.on[name]
            if worker.heard_of["left"] and name not in self.excluded:
                assert worker.reports["left"]["reason"] == "excluded", worker.reports["left"]
                assert worker.ended() == 0, worker.errors
                self.excluded[name] = worker
                self.on[name] = self.group.go(
                    spares[name], name, bind=f"{self._host(name).address}:{PORT}", insecure=True
                )
                self.on[name].order("send", **LOAD)
        if not all(self.on[name].heard_of["unblocked"] or name in self.excluded for name in self.minority):
            return False
        now = {worker.address for worker in self.on.values()}
        ids = {tuple(worker.views[-1]["id"]) for worker in self.on.values() if worker.views}
        return len(ids) == 1 and all(set(worker.members) == now for worker in self.on.values())

    def _blocked_delivered_nothing(self) -> None:
        for name in self.minority:
            lines = self.lines(self.excluded.get(name, self.on[name]))
            kinds = [line.partition(" ")[0] for line in lines]
            assert "X" not in kinds, lines[kinds.index("X")]
            behind = {kinds[at + 1] for at, kind in enumerate(kinds) if kind == "B"}
            assert behind, f"{name} was not blocked"
            assert behind <= {"L", "U"}, f"{name}: {behind} follows Blocked"
            assert kinds[-1] == "L"

    def _survivors_lose_nothing(self, accepted: dict[str, int]) -> None:
        """All of them deliver the same messages in one order, and of each sender in the last view all that it sent."""
        orders: dict[str, list[tuple[str, int]]] = {}
        for name in set(NAMES) - set(self.excluded):
            words = [line.split() for line in self.lines(self.on[name]) if line.startswith(("M ", "G "))]
            assert all(kind == "M" for kind, *_ in words), f"{name} has gaps"
            orders[name] = [(sender, int(number)) for _, sender, number, _ in words]
        assert len({tuple(order) for order in orders.values()}) == 1, {name: len(o) for name, o in orders.items()}
        heard: dict[str, int] = {}
        for sender, number in next(iter(orders.values())):
            assert number == heard.get(sender, 0) + 1, f"{number} of {sender} follows {heard.get(sender, 0)}"
            heard[sender] = number
        assert {sender: heard.get(sender, 0) for sender in accepted} == accepted
        self._excluded_are_behind(next(iter(orders.values())))

    def _excluded_are_behind(self, order: list[tuple[str, int]]) -> None:
        """Each excluded member delivered the beginning of this order, from its first view on, and nothing else."""
        places = {message: place for place, message in enumerate(order)}
        for name, worker in self.excluded.items():
            words = [line.split() for line in self.lines(worker) if line.startswith("M ")]
            had = [places.get((sender, int(number)), -1) for _, sender, number, _ in words]
            assert had == list(range(had[0], had[0] + len(had))) if had else True, f"{name} delivered something else"


def check_journals(*splits: MajoritySplit) -> None:
    """AssertionError if the audit judges no chain, or finds a promise broken that this stack makes."""
    _, found = audit(*(split.group.journal for split in splits))
    broken = {promise["name"]: promise["violations"] for promise in found["promises"] if promise["verdict"] == "broken"}
    assert not broken, broken
    verdicts = {promise["name"]: promise["verdict"] for promise in found["promises"]}
    assert verdicts["primary-chain"] == verdicts["uniform-agreement"] == "held"


def told(case: str, result: Result) -> str:
    """One line for a reader."""
    return (
        f"majority, {case}: cut for {result.cut_seconds:.0f} s, the minority blocked after {result.blocked_after:.1f} "
        f"s, one view {result.one_view_after:.1f} s after the heal; {result.accepted:,} messages, "
        f"{result.excluded} excluded, {result.unblocked} unblocked"
    )


def main() -> None:
    seconds = seconds_wanted(__doc__)
    for case, cut in CASES.items():

        def play(folder: Path, case: str = case, cut: MajorityCase = cut) -> Played:
            split = MajoritySplit(folder, cut)
            result = split.play_majority(seconds)
            return Played(result._asdict(), told(case, result), lambda: check_journals(split))

        record({"case": case, "profile": "uniform", "state": True, "seconds_cut": seconds}, play)


if __name__ == "__main__":
    main()
