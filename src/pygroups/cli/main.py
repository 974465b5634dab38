"""`pygroups COMMAND`: the table of commands; only the command that is called is imported."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pygroups._version import __version__
from pygroups.cli.refusals import guarded
from pygroups.core.errors import NotBuilt, UsageError

if TYPE_CHECKING:
    from cyclopts import App


class Command(NamedTuple):
    """Where a command is found and what it does."""

    target: str
    """`module:name` of a function, plain or async, that returns its exit code (None is 0); or of a cyclopts `App`."""
    summary: str
    example: str = ""
    more: str = ""
    """Further examples, one a line, for the command's own help."""
    details: str = ""
    """What the command's own help says below the summary."""


COMMANDS = {
    "demo": Command(
        "pygroups.cli.demo:demo",
        "See it work: four processes, one order, one of them killed.",
        "pygroups demo",
        """\
your own lines, and no audit, which needs Spark:
  pygroups demo --input access.log --no-audit
the same moment of the kill again:
  pygroups demo --seed 7""",
    ),
    "join": Command(
        "pygroups.cli.join:join",
        "Be a member in the shell: lines of input go to everyone, events are printed.",
        "pygroups join chat --name A",
        """\
a program's lines, each confirmed by all members before it leaves:
  generate | pygroups join orders --leave-at-eof --timeout 30
the messages of a group, as JSON, for another program:
  pygroups join orders </dev/null | jq -r 'select(.event == "message").text'
what this member saw, for the audit:
  pygroups join orders --journal journal/; pygroups audit journal/""",
        """\
Each line of standard input is one message, without its line end. On a terminal events are printed as text, lines \
that you type are not repeated, and Ctrl-D leaves. In a pipe, or with --json, each event is one line of JSON. At the \
end of a file or pipe the member stays in the group and goes on printing; with --leave-at-eof it leaves.

Ctrl-C (SIGINT), SIGTERM and SIGHUP make it leave in good order, with exit code 0. Exit code 1: the group went on \
without this member, or a line was not sent. Exit code 2: the call was wrong, or the group refused this member.""",
    ),
    "audit": Command(
        "pygroups.cli.audit:audit",
        "Check every promise over journals, or over a table of them, with Spark; write a report.",
        "pygroups audit journal/",
        """\
a report for a browser, and the tables as Parquet:
  pygroups audit journal/ --report report.html --out tables/
for a program:
  pygroups audit journal/ --json
a table that pygroups ingest made:
  pygroups audit table/""",
        """\
Exit code 0: no promise was broken. Exit code 1: a promise was broken, or, with --strict, could not be judged. Exit \
code 2: there is no journal and no table in that folder, it cannot be read or written, or Spark cannot run.

With PYGROUPS_JVM_ARCHIVE=FILE in the environment, Spark's JVM keeps its classes in FILE (some 190 MB) and starts \
faster from the second small audit on. Nothing removes FILE but you.""",
    ),
    "ingest": Command(
        "pygroups.cli.ingest:ingest",
        "Append journals to a table of Parquet files, which the audit reads in place of them.",
        "pygroups ingest journal/ --out table/",
        """\
later: only what the members have written since then is read
  pygroups ingest journal/ --out table/
the audit of the whole table:
  pygroups audit table/
a member's journal that arrived from another machine:
  pygroups ingest from-b/orders/B@3f2c91d0 --out table/""",
        """\
The members may go on writing. A journal that is not what the table knows of it (shorter, or replaced) is refused, and \
nothing is added then. Damaged places are told as warnings and stand in the table. An ingest that is killed leaves the \
table as it was, and the next one does the work again. Only one ingest at a time can write a table.

Exit code 0: the table has all that could be read. Exit code 2: it has what it had before, and one line says why.""",
    ),
    "stream": Command("pygroups.cli.stream:stream", "Check the promises while the members still write."),
    "simulate": Command(
        "pygroups.cli.simulate:simulate",
        "Run seeds of faults through a simulated world.",
        "pygroups simulate --seeds 0:100 --profile total",
        """\
5,000 schedules of another profile, on two cores:
  pygroups simulate --seeds 0:5000 --profile fifo --jobs 2
a minute of crashes and lost frames in each:
  pygroups simulate --faults crash,loss --minutes 1
what happens in seed 7, as a table:
  pygroups simulate --replay 7
seed 7 fails; as few steps as fail too, in a file that can be played again:
  pygroups simulate --shrink 7 --schedule small.json
  pygroups simulate --schedule small.json
the members' journals, for a second judge:
  pygroups simulate --seeds 0:20 --journal out; pygroups audit out""",
    ),
    "sweep": Command("pygroups.cli.sweep:sweep", "Run the simulator over many machines, with Spark."),
    "perf": Command("pygroups.cli.perf:perf", "Measure a real group on this machine."),
    "probe": Command("pygroups.cli.probe:probe", "See what the members on this machine are doing."),
    "why": Command("pygroups.cli.why:why", "Say in sentences why something is stuck."),
    "primary": Command("pygroups.cli.primary:primary", "Vouch that a member of a blocked group is gone for good."),
    "config": Command("pygroups.cli.config:app", "Show, check or print the defaults of every option."),
    "watch": Command("pygroups.cli.watch:watch", "Watch groups or journals on a page on loopback."),
}
"""Every command of the design.  One whose module does not exist is refused by name and does not stand in the help."""

ABOUT = """\
Reliable group communication: processes that share a group see the same members and the same messages in the same order,
with no server between them.

A member writes a journal of what it saw; the audit reads the journals of all members and says which promises held.
"""
ENDINGS = """\
Exit codes: 0 all well; 1 a promise was broken or a member could not do what was asked; 2 the call or its input was \
wrong.
--verbose with any command tells more on standard error. `pygroups COMMAND --help` explains one command.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (default: that of this process) and return its exit code."""
    tokens, verbose = take_verbose(sys.argv[1:] if arguments is None else arguments)
    if verbose:
        from pygroups.cli.logs import log_everything

        log_everything()
    return guarded(lambda: dispatch(tokens), verbose=verbose)


def take_verbose(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """`arguments` without `--verbose`, and whether it was there; it belongs to every command, so none declares it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [argument for argument in arguments[:end] if argument != "--verbose"]
    return [*options, *arguments[end:]], len(options) < end


def dispatch(tokens: list[str]) -> int:
    """Call the command that `tokens` name.  Raises UsageError for a call that is wrong."""
    if tokens[:1] == ["--version"]:
        print(__version__)  # here, because the import of cyclopts takes ten times as long
        return 0
    if tokens:
        _check_name(tokens[0])
    from cyclopts import CycloptsError

    try:
        answer = build_app()(
            tokens, exit_on_error=False, print_error=False, help_on_error=False, result_action="return_value"
        )
    except CycloptsError as error:
        called = " ".join(["pygroups", *(error.command_chain or ())])
        raise UsageError(f"{error} See `{called} --help`.") from error
    return 0 if answer is None else int(answer)


def build_app() -> App:
    """The command line as cyclopts knows it: what is built, each command to be imported when it is called."""
    from cyclopts import App, Parameter

    app = App(
        name="pygroups",
        version=__version__,
        help=ABOUT,
        help_epilogue=_epilogue(*(command.example for name, command in COMMANDS.items() if is_built(name))),
        help_format="plaintext",
        verbose=False,
        suppress_keyboard_interrupt=False,
        default_parameter=Parameter(negative_iterable=(), negative_none=()),
    )
    for name, command in COMMANDS.items():
        if is_built(name):
            epilogue = _epilogue(command.example, *command.more.splitlines())
            about = f"{command.summary}\n\n{command.details}" if command.details else command.summary
            app.command(command.target, name=name, help=about, help_epilogue=epilogue)
    return app


def is_built(name: str) -> bool:
    """Whether the module of command `name` exists; it is not imported."""
    module, _, _ = COMMANDS[name].target.partition(":")
    return importlib.util.find_spec(module) is not None


def _check_name(word: str) -> None:
    # Asked before cyclopts is, which would import the modules of all commands to word its refusal.
    if word in ("--help", "-h"):
        return
    if word.startswith("-"):
        raise UsageError(f"there is no option {word} before the command; see `pygroups --help`.")
    if word not in COMMANDS:
        import difflib

        near = difflib.get_close_matches(word, COMMANDS, n=1)
        guess = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"there is no command {word!r}; {guess}`pygroups --help` lists them.")
    if not is_built(word):
        raise NotBuilt(f"`pygroups {word}` is not built yet; `pygroups --help` lists the commands that are.")


def _epilogue(*lines: str) -> str:
    examples = [f"  {line}" for line in lines if line]
    return "\n".join([*(["Examples:", *examples, ""] if examples else []), ENDINGS])
