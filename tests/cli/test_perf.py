"""`pygroups perf`: a short measurement of real processes, and the verdict on reports that are wrong."""

from __future__ import annotations

import json
import subprocess
import sys

import msgspec
import pytest

from pygroups.cli.perf.messages import Load, Seen, Task
from pygroups.cli.perf.result import Result, printed, result_of
from tests.patience import patience

FIELDS = [
    *("profile", "transport", "members", "senders", "size", "duration_s", "messages_per_s", "bytes_per_s"),
    *("deliveries", "cpu_s_per_million_deliveries", "latency_ms", "run_messages", "retransmitted_bytes"),
    *("order_verified", "lost", "double", "gap_ms"),
]
TASK = Task("perf", 0, "total", "tcp", "dir:x", None, None, Load(100, None, False))
SEEN = Seen(
    delivered=20,
    order="a",
    lost=0,
    double=0,
    counted=10,
    seconds=2.0,
    cpu_seconds=0.001,
    latencies=[0.001, 0.003],
    run_messages=[1, 2, 9],
    run_messages_max=12,
    bytes_sent_again=7,
    gap=None,
)


def judged(*changes: dict[str, object], one_order: bool = True) -> Result:
    seen = [msgspec.structs.replace(SEEN, **change) for change in changes]
    return result_of(TASK, len(seen), 1, 2.0, seen, one_order=one_order)


def perf(*options: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "pygroups", "perf", *options]
    return subprocess.run(words, capture_output=True, text=True, timeout=patience(300), check=False)


@pytest.mark.slow
def test_a_group_of_three_whose_coordinator_is_killed() -> None:
    done = perf("--members", "3", "--rate", "50", "--duration", str(patience(1)), "--failover", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert list(result) == FIELDS
    assert (result["profile"], result["transport"], result["members"], result["senders"]) == ("total", "tcp", 3, 3)
    assert result["order_verified"] is True and result["lost"] == result["double"] == 0
    assert result["deliveries"] > 0 and result["latency_ms"]["p99"] >= result["latency_ms"]["p50"] > 0
    assert result["run_messages"]["max"] >= result["run_messages"]["p50"] >= 1
    assert result["gap_ms"] > 0
    assert done.stderr == ""


def test_a_load_of_fewer_messages_than_seconds_is_measured_to_its_end() -> None:
    done = perf("--members", "2", "--rate", "0.5", "--duration", "0.5", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["order_verified"] is True


def test_a_rate_above_what_the_group_takes_ends_with_the_load() -> None:
    done = perf("--members", "1", "--rate", "999999999", "--duration", "0.1", "--json")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--journal", "/proc/nothing"], "the journal in /proc/nothing"),
        (["--profile", "gossip", "--size", "1000000"], "payload"),
    ],
)
def test_the_error_of_a_member_is_told_in_one_line(options: list[str], says: str) -> None:
    done = perf("--members", "2", "--duration", "60", *options)  # the error ends it
    assert done.returncode == 2 and done.stdout == ""
    assert says in done.stderr and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


def test_the_numbers_of_the_group() -> None:
    result = judged({}, {"latencies": [0.002], "gap": 0.02, "run_messages_max": 4}, {"gap": 0.05})
    assert result.is_right
    assert (result.messages_per_s, result.bytes_per_s, result.deliveries) == (5, 500, 30)
    assert result.cpu_s_per_million_deliveries == 100.0
    assert result.latency_ms == {"p50": 2.0, "p99": 3.0}
    assert result.run_messages == {"p50": 2, "max": 12}
    assert (result.retransmitted_bytes, result.gap_ms) == (21, 50.0)
    assert "order verified" in printed(result, json=False)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"order": "b"}, "the order differs"),
        ({"delivered": 19}, "the order differs"),
        ({"lost": 1}, "1 lost"),
        ({"double": 2}, "2 repeated"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, object], says: str) -> None:
    result = judged({}, change)
    assert not result.is_right and says in printed(result, json=False)


def test_without_one_order_each_senders_own_order_counts() -> None:
    assert judged({}, {"order": "b"}, one_order=False).is_right
    assert not judged({}, {"double": 1}, one_order=False).is_right


def test_nothing_delivered_is_no_division_by_zero() -> None:
    result = judged({"counted": 0, "latencies": [], "run_messages": [], "run_messages_max": 0})
    assert result.cpu_s_per_million_deliveries is None and result.latency_ms == {"p50": None, "p99": None}
    assert printed(result, json=False)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--members", "0"], "must be from 1 to 64"),
        (["--senders", "5"], "more than the 4 members"),
        (["--senders", "none"], "neither all nor a number"),
        (["--rate", "0"], "neither max nor a number"),
        (["--size", "15"], "at least 16"),
        (["--size", "67108865"], "at most 67108864"),
        (["--duration", "0"], "more than 0"),
        (["--profile", "unicast"], "no group to measure"),
        (["--profile", "uniform", "--members", "2", "--failover"], "give more"),
        (["--transport", "smoke"], "no transport 'smoke'"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line(options: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    from pygroups.cli.main import main

    assert main(["perf", *options]) == 2
    said = capsys.readouterr()
    assert says in said.err and said.err.count("\n") == 1 and said.out == ""
