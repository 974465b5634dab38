"""`make test` runs its tests in two processes: each test is in one of them, and either can fail the whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import halves

TESTS = Path(halves.__file__).parent


def _half(name: str, program: str) -> halves.Half:
    return halves.Half(name, [sys.executable, "-c", program])


def test_every_folder_is_in_one_half_and_no_other_option_leaves_a_test_out() -> None:
    waiting, computing = halves.halves(["-q"])
    first, slowest = ["-m", "pytest", "-o"], halves.SLOWEST
    folders = [f"tests/{name}" for name in halves.COMPUTE]
    assert computing.command[1:] == [*first, "cache_dir=.pytest_cache/compute", *slowest, "-q", *folders]
    ignored = [f"--ignore={folder}" for folder in folders]
    assert waiting.command[1:] == [*first, "cache_dir=.pytest_cache/wait", *slowest, "-q", *ignored]
    assert all(list((TESTS / name).glob("test_*.py")) for name in halves.COMPUTE)


@pytest.mark.parametrize(("now", "later", "code"), [(0, 0, 0), (3, 0, 1), (0, 5, 1), (1, 1, 1)])
def test_the_whole_passes_if_both_halves_do(
    now: int, later: int, code: int, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    both = _half("one", f"print('first'); exit({now})"), _half("two", f"print('second'); exit({later})")
    monkeypatch.setattr(halves, "halves", lambda options: both)
    assert halves.main([]) == code
    told = capfdbinary.readouterr().out.decode().splitlines()
    assert told[:2] == ["===== one (at the same time two, whose output follows)", "first"]
    assert told[2:4] == ["===== two", "second"]
    for line, name, half in zip(told[4:], ("one", "two"), (now, later), strict=True):
        assert line.startswith(f"===== {name}: " + (f"FAILED (exit code {half})" if half else "passed") + " after ")
