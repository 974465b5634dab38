"""What every command shares: names, help, refusals, exit codes, and that nothing is imported for nothing."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

import pygroups
from pygroups.cli import main as cli
from pygroups.cli import refusals
from pygroups.core.errors import Error, Refused, UsageError
from tests.patience import patience

RECORDS = {"airports": 3376, "seattle-temps": 8759, "seattle-weather": 1461, "sf-temps": 8759}
THIS = "tests.cli.test_main"


def greet(name: str, *, times: int = 1) -> int:
    """Greet somebody.

    Parameters
    ----------
    name
        Whom to greet.
    times
        How often.
    """
    if times > 3:
        raise UsageError(f"{times} greetings are\ntoo many; give --times 3 or less")
    print(" ".join([f"hello {name}"] * times))
    return times - 1


async def wait() -> None:
    """Wait for nothing."""


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line with two commands of the test's own, and one that is not built."""
    monkeypatch.setattr(
        cli,
        "COMMANDS",
        {
            "greet": cli.Command(f"{THIS}:greet", "Greet somebody.", "pygroups greet Ada"),
            "wait": cli.Command(f"{THIS}:wait", "Wait for nothing."),
            "stream": cli.Command("pygroups.cli.no_such_module:stream", "Not there.", "pygroups stream x"),
        },
    )


def pygroups_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pygroups", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=patience(60), check=False, stdin=subprocess.DEVNULL
    )


def test_the_version_is_told_by_the_package_the_module_and_the_command() -> None:
    told = pygroups_command("--version")
    installed = subprocess.run(
        [Path(sys.executable).with_name("pygroups"), "--version"],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=True,
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, f"{pygroups.__version__}\n", "")
    assert installed.stdout == told.stdout


def test_help_lists_what_is_built_and_only_that(commands: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    told = capsys.readouterr().out
    assert "greet" in told and "Wait for nothing." in told and "pygroups greet Ada" in told and "Exit codes" in told
    assert "stream" not in told


def test_no_command_at_all_is_a_question_for_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    assert "Usage: pygroups" in capsys.readouterr().out


def test_help_of_one_command_explains_its_options(commands: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["greet", "--help"]) == 0
    told = capsys.readouterr().out
    assert "Whom to greet." in told and "--times" in told


@pytest.mark.parametrize(
    ("arguments", "code", "output"),
    [
        (["greet", "A"], 0, "hello A\n"),
        (["greet", "A", "--times", "2"], 1, "hello A hello A\n"),
        (["--verbose", "greet", "A"], 0, "hello A\n"),
        (["greet", "--", "--verbose"], 0, "hello --verbose\n"),
        (["wait"], 0, ""),
    ],
)
def test_a_command_decides_its_exit_code(
    commands: None, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, output: str
) -> None:
    assert cli.main(arguments) == code
    assert capsys.readouterr() == (output, "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["gret"], "pygroups: there is no command 'gret'; did you mean greet?"),
        (["nothing-like-it"], "pygroups: there is no command 'nothing-like-it'; `pygroups --help` lists the commands."),
        (["--times", "3", "greet"], "pygroups: there is no option --times before the command"),
        (["stream", "journal"], "pygroups: `pygroups stream` is not built yet;"),
        (["stream", "--help"], "pygroups: `pygroups stream` is not built yet;"),
        (["greet"], 'pygroups: Command "greet" parameter --name requires an argument.'),
        (["greet", "A", "--times", "x"], 'pygroups: Invalid value for --times: unable to convert "x" into int.'),
        (["greet", "A", "--nope"], "pygroups: Unknown option: --nope."),
        (["greet", "A", "B"], "pygroups: Unused Tokens: ['B']. See `pygroups greet --help`."),
        (["greet", "A", "--times", "4"], "pygroups: 4 greetings are too many; give --times 3 or less"),
    ],
)
def test_a_wrong_call_is_one_line_and_two(
    commands: None, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert cli.main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(sentence)
    assert told.err.count("\n") == 1


def test_what_the_design_names_is_called_or_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    for name in cli.COMMANDS:
        assert cli.main([name, "--help"]) == (0 if cli.is_built(name) else 2)
        told = capsys.readouterr()
        assert f"pygroups {name}" in (told.out if cli.is_built(name) else told.err)


def failing(error: BaseException) -> int:
    raise error


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UsageError("give a name"), 2, "pygroups: give a name\n"),
        (Refused("the group runs `fifo`"), 2, "pygroups: the group runs `fifo`\n"),
        (Error("excluded by \x1b[31mB"), 1, "pygroups: excluded by ?[31mB\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_is_raised_on_purpose_ends_in_a_line_and_a_code(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusals.guarded(lambda: failing(error), verbose=False) == code
    assert capsys.readouterr() == ("", line)


def test_verbose_shows_where_it_was_raised(capsys: pytest.CaptureFixture[str]) -> None:
    assert refusals.guarded(lambda: failing(UsageError("give a name")), verbose=True) == 2
    told = capsys.readouterr().err
    assert "Traceback" in told and told.endswith("\npygroups: give a name\n")


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        refusals.guarded(lambda: 1 // 0, verbose=False)


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_a_reader_that_goes_away_is_no_error(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [sys.executable, "-m", "pygroups", *arguments],
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=patience(60),
        check=False,
    )
    os.close(write)
    assert ended.stderr == b""
    assert ended.returncode != 0


def test_another_pipe_that_breaks_is_not_mistaken_for_the_reader() -> None:
    code = (
        "from pygroups.cli.refusals import guarded\n"
        "def work():\n    raise BrokenPipeError('a socket')\n"
        "guarded(work, verbose=False)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=patience(60), check=False
    )
    assert "BrokenPipeError: a socket" in ended.stderr


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["nope"]])
def test_nothing_heavy_is_imported_for_nothing(arguments: list[str]) -> None:
    code = (
        "import sys; from pygroups.cli.main import main; main(sys.argv[1:]);"
        "heavy = {'pyspark', 'pandas', 'pyarrow', 'numpy', 'jinja2'};"
        "print('imported', sorted(heavy & set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=patience(60), check=True
    )
    assert ended.stdout.splitlines()[-1] == "imported []"


@pytest.mark.parametrize(("name", "records"), RECORDS.items())
def test_the_records_of_the_demo_are_in_the_package(name: str, records: int) -> None:
    packed = resources.files("pygroups.cli").joinpath("data", f"{name}.csv.gz").read_bytes()
    header, *lines = gzip.decompress(packed).decode().splitlines()
    assert len(lines) == records
    assert all(header.count(",") <= line.count(",") for line in lines)
