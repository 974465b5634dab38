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


COMMANDS = {
    "demo": Command(
        "pygroups.cli.demo:demo", "See it work: four processes, one order, one of them killed.", "pygroups demo"
    ),
    "join": Command(
        "pygroups.cli.join:join",
        "Be a member in the shell: lines go to everyone, events come as JSON.",
        "pygroups join chat --name A",
    ),
    "audit": Command(
        "pygroups.cli.audit:audit",
        "Check every promise over journals, with Spark; write a report.",
        "pygroups audit journal/",
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
        _log_to_standard_error()
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
            epilogue = _epilogue(command.example, *command.more.splitlines()) if command.more else None
            app.command(command.target, name=name, help=command.summary, help_epilogue=epilogue)
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


def _log_to_standard_error() -> None:
    import logging

    logging.basicConfig(stream=sys.stderr, format="%(relativeCreated)8d ms  %(name)s: %(message)s")
    logging.getLogger("pygroups").setLevel(logging.DEBUG)
