"""The tooz driver: tooz's own tests against it, and what they leave out, which is the end of a process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import tooz
from tooz import coordination

from pygroups.contrib.tooz import OPTIONS

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "blocks.md").read_text()
NOT_CLAIMED = {
    "test_get_lock_locking_exclusive_and_shared": "pygroups has no shared locks",
    "test_get_lock_locking_shared_and_exclusive": "pygroups has no shared locks",
    "test_get_lock_release_broken": "not implemented",
    "test_get_shared_lock": "pygroups has no shared locks",
    "test_get_shared_lock_locking_same_lock_twice": "pygroups has no shared locks",
    "test_get_shared_lock_locking_two_lock": "pygroups has no shared locks",
    "test_heartbeat": "Test not applicable (heartbeating not required)",
    "test_heartbeat_loop": "Test not applicable (heartbeating not required)",
    "test_timeout": "This driver is not based on timeout",
    "test_watch_join_group_disappear": (
        "This test only works with coordinators that have the ability to destroy groups."
    ),
}
"""The tests of tooz that are not for this driver, with what tooz says of each."""

HOLDER = """
import sys, time
from tooz import coordination
coordinator = coordination.get_coordinator(sys.argv[1], b"child")
coordinator.start()
coordinator.join_group_create(b"workers", {"weight": 3})
coordinator.watch_elected_as_leader(b"workers", lambda event: None)
coordinator.run_watchers()
assert coordinator.get_lock(b"till").acquire()
print("ready", flush=True)
time.sleep(3600)
"""

WATCHER = """
import sys, time
from tooz import coordination
coordinator = coordination.get_coordinator(sys.argv[1], b"child")
coordinator.start()
coordinator.join_group(b"workers").get()
coordinator.watch_leave_group(b"workers", lambda event: print("left", event.member_id.decode(), flush=True))
lock = coordinator.get_lock(b"till")
assert lock.acquire()
print("ready", flush=True)
while coordinator._joined_groups:
    try:
        coordinator.run_watchers()
    except coordination.ToozError as error:
        print(error, file=sys.stderr)
    time.sleep(0.1)
assert not lock.acquired and not lock.release()
coordinator.join_group(b"workers").get()
print("joined", flush=True)
sys.stdin.read()
"""

Start = Callable[..., coordination.CoordinationDriver]
Child = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    # Long times: the machine may be busy, and a kill is proven at once.
    return f"pygroups://tooz?discovery=dir:{tmp_path}&heartbeat_timeout=60&timeout=300"


@pytest.fixture
def start(url: str) -> Iterator[Start]:
    started = []

    def begin(member_id: bytes, **options: Any) -> coordination.CoordinationDriver:
        coordinator = coordination.get_coordinator(url, member_id, **options)
        coordinator.start()
        started.append(coordinator)
        return coordinator

    yield begin
    for coordinator in started:
        if coordinator.is_started:
            coordinator.stop()


@pytest.fixture
def child(url: str) -> Iterator[Child]:
    """Starts a process that runs a program, and waits until it says that it is ready."""
    processes = []

    def begin(program: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, url]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.long
def test_the_tests_of_tooz_pass(url: str, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    pytest_of_tooz = ("-m", "pytest", "-c", os.devnull, "--rootdir", str(tmp_path), "-p", "no:cacheprovider", "-q")
    done = subprocess.run(
        [sys.executable, *pytest_of_tooz, f"--junitxml={report}", "--pyargs", "tooz.tests.test_coordination"],
        env={**os.environ, "TOOZ_TEST_URL": url},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    cases = list(ElementTree.parse(report).iter("testcase"))
    skipped = {case.get("name"): skip.get("message") for case in cases if (skip := case.find("skipped")) is not None}
    assert skipped == NOT_CLAIMED
    assert len(cases) == 83


def test_a_killed_process_is_no_member_no_leader_and_holds_no_lock(start: Start, child: Child) -> None:
    a, _ = start(b"a"), start(b"b")  # with the child a group of three, which goes on as two
    holder = child(HOLDER)
    assert a.get_members(b"workers").get() == {b"child"}
    assert a.get_member_capabilities(b"workers", b"child").get() == {"weight": 3}
    assert a.get_leader(b"workers").get() == b"child"
    left: list[bytes] = []
    elected: list[bytes] = []
    a.watch_leave_group(b"workers", lambda event: left.append(event.member_id))
    a.watch_elected_as_leader(b"workers", lambda event: elected.append(event.member_id))
    a.run_watchers()
    assert (left, elected) == ([], [])
    lock = a.get_lock(b"till")
    assert not lock.acquire(blocking=False)

    holder.send_signal(signal.SIGKILL)
    assert lock.acquire()
    a.run_watchers()
    assert (left, elected) == ([b"child"], [b"a"])
    a.delete_group(b"workers").get()


@pytest.mark.slow
def test_an_excluded_coordinator_hears_that_it_has_left_and_joins_again(start: Start, child: Child) -> None:
    a, _ = start(b"a", heartbeat_timeout=10), start(b"b", heartbeat_timeout=10)
    a.create_group(b"workers").get()
    watcher = child(WATCHER)
    lock = a.get_lock(b"till")
    watcher.send_signal(signal.SIGSTOP)
    assert lock.acquire()
    assert a.get_members(b"workers").get() == set()
    watcher.send_signal(signal.SIGCONT)
    assert watcher.stdout is not None
    assert [watcher.stdout.readline() for _ in range(2)] == ["left child\n", "joined\n"]
    assert a.get_members(b"workers").get() == {b"child"}


def test_without_a_majority_an_operation_ends_with_its_timeout(start: Start, child: Child) -> None:
    holder = child(HOLDER)
    a = start(b"a", timeout=2)
    lock = a.get_lock(b"mine")
    assert lock.acquire() and lock.is_still_owner()
    holder.send_signal(signal.SIGKILL)
    with pytest.raises(coordination.OperationTimedOut):
        while True:
            a.get_members(b"workers").get()
    while lock.is_still_owner():
        time.sleep(0.05)


def test_concurrent_changes_of_a_group_are_all_made(start: Start) -> None:
    coordinators = [start(b"%d" % number) for number in range(3)]
    coordinators[0].create_group(b"g").get()
    begun = threading.Barrier(3)

    def work(coordinator: coordination.CoordinationDriver) -> None:
        begun.wait()
        coordinator.join_group(b"g", {"round": 0}).get()
        for number in range(1, 6):
            coordinator.update_capabilities(b"g", {"round": number}).get()

    threads = [threading.Thread(target=work, args=(coordinator,)) for coordinator in coordinators]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = coordinators[0].get_members_with_capabilities(b"g").get()
    assert found == {b"%d" % number: {"round": 5} for number in range(3)}


def test_a_later_holder_has_a_higher_token(start: Start) -> None:
    first, second = start(b"a").get_lock(b"l"), start(b"b").get_lock(b"l")
    tokens = []
    for lock in (first, second, first):
        with lock:
            tokens.append(lock.token)  # type: ignore[attr-defined]
        assert lock.token == 0  # type: ignore[attr-defined]
    assert tokens == sorted(set(tokens))


def test_a_coordinator_that_stops_leaves_all_and_can_start_again(start: Start) -> None:
    a, b = start(b"a"), start(b"b")
    a.join_group_create(b"g")
    lock = a.get_lock(b"l")
    assert lock.acquire()
    a.stop()
    assert b.get_members(b"g").get() == set()
    assert b.get_lock(b"l").acquire()
    with pytest.raises(tooz.ToozError, match="not started"):
        a.get_members(b"g")
    assert not lock.release()
    a.start()
    a.join_group(b"g").get()
    assert b.get_members(b"g").get() == {b"a"}


def test_the_program_of_the_guide_runs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = [
        block for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "get_coordinator(" in block
    ]
    exec(compile(program.replace("pygroups://GROUP", url), "guide", "exec"), {})
    assert re.fullmatch(r"I lead b'workers'\nfencing token \d+\n", capsys.readouterr().out)


def test_the_guide_names_all_options() -> None:
    section = GUIDE.partition("## With tooz")[2].partition("\n## ")[0]
    assert [name for name in OPTIONS if f"`{name}`" not in section] == []


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("pygroups://localhost:2379/g", "write pygroups://GROUP"),
        ("pygroups://g?disco=dir:/x", "no option 'disco': use one of"),
        ("pygroups://g?expect=many", "expect=many is not valid"),
        ("pygroups://g?rejoin=perhaps", "rejoin=perhaps is not valid"),
        ("pygroups://g h", "cannot name a group"),
    ],
)
def test_a_wrong_url_is_refused_at_the_start(url: str, reason: str) -> None:
    coordinator = coordination.get_coordinator(url, b"a")
    with pytest.raises(coordination.ToozConnectionError, match=reason):
        coordinator.start()
    assert not coordinator.is_started
