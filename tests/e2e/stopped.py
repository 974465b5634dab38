"""One of four members is stopped with SIGSTOP while all send as fast as they can, and runs again later.

The memory of the others stays below the bound that `stats()` states.  By default the others go on without the stopped
member when its heartbeats are missed, and a merge brings it back.  With a long heartbeat timeout the senders wait for
it, or exclude it by policy.

`python -m tests.e2e.stopped --seconds 60` stops a member for so long in each case, over TCP and UDP, with the timeouts
of a real group, and appends each result to bench/results/stopped.jsonl; `make stopped` calls it.  A case that has
passed on the same commit is not played again.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.e2e.group import Group, Worker
from tests.patience import patience

SIZE: Final = 1_000
ENDLESS: Final = 1_000_000_000
SAMPLE_SECONDS: Final = 0.1
SIZES: Final = {"payload_max": 64 << 10, "run_bytes": 64 << 10, "queue_max": 4 << 20, "link_bytes": 4 << 20}


class Times(NamedTuple):
    """Seconds: how long the member is stopped, and the timeouts of the group."""

    stopped: float
    heartbeat: float
    heartbeat_timeout: float
    slow_timeout: float

    def stretched(self) -> Times:
        """The times on a machine with this load: a process that gets no processor for 2 s reads nothing for 2 s."""
        return Times(*map(patience, self))


LONG: Final = Times(60, 1.0, 5.0, 30.0)
SHORT: Final = Times(6, 0.2, 1.0, 2.0)
LENIENT: Final = 120.0  # a heartbeat timeout that nobody misses here


class Result(NamedTuple):
    """What happened in one case: seconds after the stop, and bytes."""

    case: str
    excluded_after: float | None  # all others have a view without the stopped member
    sent_while_stopped: int  # messages that the others sent in the last third of the time
    memory_growth: int  # of the other process that grew most
    memory_bound: int  # the lowest that one of them stated
    learned: str  # the reason of the exclusion by policy, as the stopped member got it


def memory(worker: Worker) -> int:
    """The bytes that the process has in memory now."""
    status = Path(f"/proc/{worker.child.pid}/status").read_text()
    (now,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(now) * 1024


def accepted(workers: list[Worker]) -> int:
    return sum(worker.progress["accepted"] for worker in workers)


def play(folder: Path, case: str, times: Times, which: int = -1, transport: str = "tcp") -> Result:
    """`case`: "default", "wait" or "exclude".  `which`: the rank of the stopped member."""
    timeout = times.heartbeat_timeout if case == "default" else LENIENT
    config: dict[str, Any] = {"heartbeat": times.heartbeat, "heartbeat_timeout": timeout} | SIZES
    if case == "exclude":
        config |= {"slow_policy": "exclude", "slow_timeout": times.slow_timeout}
    with Group(folder, journal=None, settings=config, transport=transport) as group:
        workers = group.start(*"ABCD")
        for worker in workers:
            worker.order("send", count=ENDLESS, size=SIZE)
        group.until("all have sent a window", lambda: all(one.progress["accepted"] > 2_000 for one in workers))
        stopped, others = workers[which], [worker for worker in workers if worker is not workers[which]]
        result = _stop(stopped, others, case, times)
        stopped.signal(signal.SIGCONT)
        if result.excluded_after is None:
            before = accepted(others)
            group.until("the senders go on", lambda: accepted(others) > before + 2_000)
            assert all(len(worker.members) == len(workers) for worker in others)
            return result
        if case == "default":
            group.settle()
            assert all(len(worker.members) == len(workers) for worker in workers), "a merge brings it back"
            return result
        group.until("the stopped member learns of it", lambda: "excluded" in stopped.reports)
        assert all(len(worker.members) == len(others) for worker in others), "nobody else was excluded"
        return result._replace(learned=stopped.reports["excluded"]["why"])


def _stop(stopped: Worker, others: list[Worker], case: str, times: Times) -> Result:
    """Stop a member, and watch the others."""
    address = stopped.address
    base = {worker: memory(worker) for worker in others}
    began = time.monotonic()
    stopped.signal(signal.SIGSTOP)
    grown, excluded_after, sent = 0, None, 0
    late = times.stopped * 2 / 3
    while (now := time.monotonic() - began) < times.stopped:
        grown = max(grown, *[memory(worker) - base[worker] for worker in others])
        if excluded_after is None and all(address not in worker.members for worker in others):
            excluded_after = round(now, 2)
        if now < late:
            sent = accepted(others)
        time.sleep(SAMPLE_SECONDS)
    bound = min(worker.progress["memory_bound"] for worker in others)
    return Result(case, excluded_after, accepted(others) - sent, grown, bound, "")


def check(result: Result, times: Times) -> None:
    """AssertionError if a case did not go as it has to."""
    assert result.memory_growth < result.memory_bound, result
    if result.case == "wait":
        assert result.excluded_after is None, result
        assert result.sent_while_stopped == 0, result
        return
    least = times.heartbeat_timeout if result.case == "default" else times.slow_timeout
    assert result.excluded_after is not None, result
    assert least - 0.5 <= result.excluded_after < patience(1.0) * (least + 5), result
    assert result.sent_while_stopped > 0, result
    assert ("slow_policy='exclude'" in result.learned) is (result.case == "exclude"), result


def told(transport: str, result: Result, which: int, seconds: float) -> str:
    """One line for a reader."""
    of = "the coordinator" if which == 0 else "the last member"
    out = "stayed" if result.excluded_after is None else f"was excluded after {result.excluded_after:.1f} s"
    grown, bound = result.memory_growth / 1e6, result.memory_bound / 1e6
    sent = f"the others sent {result.sent_while_stopped:,} messages in the last third of the time"
    memory = f"memory +{grown:.1f} of {bound:.0f} MB"
    return f"{transport} {result.case}: {of}, stopped for {seconds:g} s, {out}; {sent}; {memory}"


def main() -> None:
    from bench.common import Result as Line
    from bench.common import passed

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=LONG.stopped)
    times = LONG._replace(stopped=parser.parse_args().seconds)
    for transport, case, which in product(("tcp", "udp"), ("default", "wait", "exclude"), (0, -1)):
        part = {"transport": transport, "case": case, "rank": which, "stopped_s": times.stopped}
        if passed("stopped", **part):
            print(f"{transport} {case} {which}: passed before on this commit", flush=True)
            continue
        line = Line("stopped")
        with tempfile.TemporaryDirectory() as folder:
            result = play(Path(folder), case, times, which, transport)
        try:
            check(result, times)
            fault = ""
        except AssertionError as error:
            fault = str(error)
        line.write(**part | result._asdict(), faults=[fault] if fault else [], told=False)
        print(told(transport, result, which, times.stopped), *(["FAILED"] if fault else []), flush=True)
        assert not fault, fault


if __name__ == "__main__":
    main()
