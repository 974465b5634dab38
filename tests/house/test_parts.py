"""`make test` runs its tests in several processes: each test is in one of them, and each can fail the whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import parts

TESTS = Path(parts.__file__).parent


def _part(name: str, program: str) -> parts.Part:
    return parts.Part(name, [sys.executable, "-c", program])


def test_every_folder_is_in_one_part_and_no_other_option_leaves_a_test_out() -> None:
    waiting, *computing, types = parts.parts(["-q"])
    assert types.command[1:] == ["-m", "mypy", "--strict", "src"]
    assert set(parts.NICE) < set(parts.BESIDE)
    first = ["-m", "pytest", "-o"]
    for part, (name, folders) in zip(computing, parts.BESIDE.items(), strict=True):
        named = [f"tests/{path.relative_to(TESTS)}" for folder in folders for path in sorted(TESTS.glob(folder))]
        assert part.command[1:] == [*first, f"cache_dir=.pytest_cache/{name}", *parts.SLOWEST, "-q", *named]
    listed = [folder for folders in parts.BESIDE.values() for folder in folders]
    assert len(set(listed)) == len(listed), "a folder in two parts runs twice"
    whole = list(dict.fromkeys(folder.partition("/")[0] for folder in listed))
    ignored = [f"--ignore=tests/{folder}" for folder in whole]
    assert waiting.command[1:] == [*first, "cache_dir=.pytest_cache/wait", *parts.SLOWEST, "-q", *ignored]
    assert all(list((TESTS / folder).glob("test_*.py")) for folder in whole)
    for folder in whole:
        files = [path for one in listed for path in TESTS.glob(one) if path.is_file() and path.parent.name == folder]
        assert folder in listed or sorted(files) == sorted((TESTS / folder).glob("test_*.py"))


@pytest.mark.parametrize("codes", [(0, 0, 0), (3, 0, 0), (0, 5, 0), (0, 0, 1), (1, 1, 1)])
def test_the_whole_passes_if_all_parts_do(
    codes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    names = ("one", "two", "three")
    made = [_part(name, f"print('of {name}'); exit({code})") for name, code in zip(names, codes, strict=True)]
    monkeypatch.setattr(parts, "parts", lambda options: made)
    assert parts.main([]) == int(any(codes))
    told = capfdbinary.readouterr().out.decode().splitlines()
    assert told[:2] == ["===== one (at the same time two and three, whose output follows)", "of one"]
    assert told[2:6] == ["===== two", "of two", "===== three", "of three"]
    for line, name, code in zip(told[6:], names, codes, strict=True):
        assert line.startswith(f"===== {name}: " + (f"FAILED (exit code {code})" if code else "passed") + " after ")
