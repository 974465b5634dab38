"""Every command after a plain `pip install pygroups`, without the packages of the extra `spark`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pygroups.cli import main as cli
from pygroups.cli.extras import SPARK
from tests.patience import patience

PLAIN = (
    "import sys\n"
    "for name in {'pyspark', 'pyarrow', 'pandas', 'jinja2', 'numpy', 'py4j'}:\n"
    "    sys.modules[name] = None\n"  # as if it were not installed
    "from pygroups.cli.main import main\n"
    "sys.exit(main(sys.argv[1:]))"
)


def plain(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """One command of a plain installation."""
    command = [sys.executable, "-c", PLAIN, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=patience(60), check=False, cwd=cwd, stdin=subprocess.DEVNULL
    )


@pytest.mark.parametrize("missing", SPARK)
@pytest.mark.parametrize(
    ("command", "what", "advice"),
    [
        (["audit", "."], "audit", ""),
        (["demo"], "audit", "; --no-audit leaves the audit out"),
        (["sweep", "--seeds", "0:1", "--out", "x"], "sweep", ""),
    ],
    ids=["audit", "demo", "sweep"],
)
def test_a_command_that_needs_spark_says_so_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    missing: str,
    command: list[str],
    what: str,
    advice: str,
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert cli.main(command) == 2
    sentence = f"the {what} needs Spark, and {missing} is not installed: pip install 'pygroups[spark]'{advice}"
    assert capsys.readouterr() == ("", f"pygroups: {sentence}\n")


def test_several_missing_packages_are_named_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pyarrow", "pandas", "jinja2"):
        monkeypatch.setitem(sys.modules, name, None)
    assert cli.main(["audit", "."]) == 2
    assert "pyarrow, pandas and jinja2 are not installed: pip" in capsys.readouterr().err


EVERY_COMMAND: dict[str, tuple[list[str], int]] = {
    "audit": (["."], 2),
    "demo": ([], 2),
    "ingest": ([".", "--out", "table"], 2),
    "join": (["g", "--leave-at-eof", "--discovery", "dir:groups"], 0),
    "perf": (["--members", "2", "--rate", "20", "--duration", "0.2"], 0),
    "primary": (["g", "--gone", "A@00"], 2),
    "secret": (["new"], 0),
    "simulate": (["--seeds", "0:2", "--jobs", "1"], 0),
    "stream": ([".", "--out", "found", "--once"], 2),
    "sweep": (["--seeds", "0:2", "--out", "sweep"], 2),
}
"""Arguments with which each command does its work, and its exit code without the extra."""


@pytest.mark.slow
def test_every_command_does_its_work_or_says_what_is_missing(tmp_path: Path) -> None:
    assert set(EVERY_COMMAND) == {name for name in cli.COMMANDS if cli.is_built(name)}
    for name, (arguments, code) in EVERY_COMMAND.items():
        ended = plain(name, *arguments, cwd=tmp_path)
        assert ended.returncode == code, ended.stderr
        assert "Traceback" not in ended.stderr
        assert (ended.stderr.count("\n"), ended.stdout == "") == ((1, True) if code else (0, False)), ended.stderr


@pytest.mark.slow
def test_the_demo_without_an_audit_needs_no_spark(tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"line {number}\n" for number in range(50)))
    ended = plain("demo", "--no-audit", "--no-kill", "--members", "2", "--input", str(lines), cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
