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
    """The function of a command and its help texts."""

    target: str
    """`module:name` of a function, plain or async, that returns its exit code (None is 0); or of a cyclopts `App`."""
    summary: str
    example: str = ""
    more: str = ""
    """Further examples, one on each line, for the command's own help."""
    details: str = ""
    """The text below the summary in the command's own help."""


COMMANDS = {
    "demo": Command(
        "pygroups.cli.demo:demo",
        "Run a group of four processes, kill one of them, and check that no record is lost.",
        "pygroups demo",
        """\
with your own lines, and without the audit, which needs Spark:
  pygroups demo --input access.log --no-audit
the kill at the same moment again:
  pygroups demo --seed 7
a majority decides each view, and what one process wrote is never taken back:
  pygroups demo --profile uniform""",
        """\
Each process sends a feed of real records and keeps a SQLite table of the records of all processes. The process that \
orders the messages is killed while all processes have records left. Later the killed process starts again, gets the \
state from another process, and continues its feed. At the end the demo compares all tables and audits the journals.

Exit code 0: the tables are identical and complete, and no promise was broken.""",
    ),
    "join": Command(
        "pygroups.cli.join:join",
        "Join a group from the shell: send lines of input to all members, and print events.",
        "pygroups join chat --name A",
        """\
the lines of a program, confirmed by all members before the command ends:
  generate | pygroups join orders --leave-at-eof --timeout 30
the messages of a group, as JSON, for another program:
  pygroups join orders </dev/null | jq -r 'select(.event == "message").text'
with a journal, for the audit:
  pygroups join orders --journal journal/; pygroups audit journal/
one of three processes of which a majority decides; after a crash the same command brings it back:
  pygroups join bank --profile uniform --expect 3 --name A --journal journal/""",
        """\
Each line of standard input is one message, without its line end. On a terminal the command prints events as text \
and does not repeat the lines that you type, and Ctrl-D leaves the group. In a pipe, or with --json, each event is \
one line of JSON. Warnings, for instance about a join that waits, are lines on standard error. At the end of a file \
or pipe the member stays in the group and prints further events; with --leave-at-eof the member leaves.

Ctrl-C (SIGINT), SIGTERM and SIGHUP make the member leave in an orderly way, with exit code 0. Exit code 1: the group \
removed this member, or a line was not sent. Exit code 2: the call was wrong, or the group refused this member.""",
    ),
    "audit": Command(
        "pygroups.cli.audit:audit",
        "Check every promise from the journals of a group, or from a table of them, with Spark.",
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
code 2: the folder has no journal and no table, a file cannot be read or written, or Spark cannot run.

With PYGROUPS_JVM_ARCHIVE=FILE in the environment, Spark's JVM saves its classes in FILE (about 190 MB), and starts \
faster from the second small audit on. pygroups never removes FILE.""",
    ),
    "ingest": Command(
        "pygroups.cli.ingest:ingest",
        "Append journals to a table of Parquet files, which the audit can read instead of the journals.",
        "pygroups ingest journal/ --out table/",
        """\
later, to read only the records since the last ingest:
  pygroups ingest journal/ --out table/
the audit of the whole table:
  pygroups audit table/
a member's journal that arrived from another machine:
  pygroups ingest from-b/orders/B@3f2c91d0 --out table/""",
        """\
The members can go on writing during an ingest. An ingest refuses a journal that was shortened or replaced since the \
last ingest, and then adds nothing. For each damaged place the command prints a warning and adds a row to the table. \
An ingest that is killed leaves the table unchanged, and the next ingest repeats the work. Only one ingest at a time \
can write to a table.

Exit code 0: the table has all records that could be read. Exit code 2: the table is unchanged, and one line gives the \
reason.""",
    ),
    "stream": Command(
        "pygroups.cli.stream:stream",
        "Check promises while the members still write, with Spark.",
        "pygroups stream journal/ --out found/",
        """\
what the journals have now, and no more; a later call goes on there:
  pygroups stream journal/ --out found/ --once""",
        """\
The folder of --out gets three Parquet tables: violations, verdicts, measures by the minute. Nine promises are judged: \
some when a record is read, the others when a view has closed. All others are left to pygroups audit, and the table of \
verdicts says so. A journal that is still open accuses nobody. Ctrl-C ends the command; after that, or after a kill, \
the same command goes on.

Exit code 0: no promise was broken. Exit code 1: a promise was broken. Exit code 2: the call was wrong, the folder has \
another stream, or Spark cannot run.""",
    ),
    "simulate": Command(
        "pygroups.cli.simulate:simulate",
        "Play random schedules of faults in a simulated world, and check every promise.",
        "pygroups simulate --seeds 0:100 --profile total",
        """\
5,000 schedules of another profile, on two cores:
  pygroups simulate --seeds 0:5000 --profile fifo --jobs 2
a minute of crashes and lost frames in each schedule:
  pygroups simulate --faults crash,loss --minutes 1
the events of seed 7, as a table:
  pygroups simulate --replay 7
a minimal schedule for the failure of seed 7, saved and played again:
  pygroups simulate --shrink 7 --schedule small.json
  pygroups simulate --schedule small.json
the members' journals, checked by the audit too:
  pygroups simulate --seeds 0:20 --journal out; pygroups audit out""",
        """\
Each seed generates one schedule: members, messages, crashes, network faults. The protocols are those of real groups; \
the network, the clocks and the processes are simulated. The same seed gives the same events.

Exit code 0: no promise was broken. Exit code 1: a promise was broken, or the schedules tested too little. Exit code \
2: the call was wrong.""",
    ),
    "sweep": Command(
        "pygroups.cli.sweep:sweep",
        "Run the simulator over many machines, with Spark.",
        "pygroups sweep --seeds 0:1000 --profile uniform --out sweep/",
        """\
over a cluster whose machines share a folder; after an interruption the same command continues:
  pygroups sweep --seeds 0:1000000 --profile total --out /shared/sweep --master spark://host:7077""",
        """\
Each seed becomes one row of a Parquet table in the folder: the verdict, the broken promise, the command that repeats \
the seed, and its counts. A sweep does not stop at a broken promise. When it is interrupted, the same command plays \
only the seeds that have no row yet.

Exit code 0: no promise was broken. Exit code 1: a promise was broken, or the schedules tested too little. Exit code \
2: the call was wrong, the folder has another sweep, or Spark cannot run.""",
    ),
    "perf": Command(
        "pygroups.cli.perf:perf",
        "Measure a real group on this machine.",
        "pygroups perf",
        """\
the latency of a message among three members, at a moderate load:
  pygroups perf --members 3 --senders 1 --rate 200
the pause when the coordinator is killed:
  pygroups perf --failover --rate 2000
another profile, for a program:
  pygroups perf --profile uniform --size 1000 --json""",
        """\
All members are processes on this machine, and connected over loopback. With a rate, the latency of a message counts \
from the time at which it was due. Without one, the members send as fast as the group delivers, and the latency \
includes the wait for the window. Compare CPU seconds rather than messages a second when other programs run.

Exit code 0: every message was delivered to every member, once and in order. Exit code 1: a message was lost, repeated \
or out of order, or a process ended. Exit code 2: the call was wrong.""",
    ),
    "probe": Command("pygroups.cli.probe:probe", "Show the state of the members on this machine."),
    "why": Command("pygroups.cli.why:why", "Explain why a group makes no progress."),
    "primary": Command(
        "pygroups.cli.primary:primary",
        "Vouch that a member of a blocked group has ended for good.",
        "pygroups primary orders --gone A@3f2c91d0aa5517e4",
        details="""\
Where a majority of the members decides each view, a group that has lost its majority is blocked. No timer can \
distinguish an ended process from a process that is cut off, but an operator can. The command informs one member on \
this machine, and that member informs the others. Vouch only for a process that has ended and never runs again: if the \
process runs elsewhere, there are two groups with different messages.

The vouched members do not count. The group continues when more than half of the other members remain, or half of the \
other members with the first of them. If the remaining members are no majority of the full view, a new history begins, \
because messages that only the vouched members had are lost. A vouched member may have helped to decide a further \
view, and perhaps only members that are cut off know that view. So vouch only after the members that are cut off are \
connected again or have ended.

Exit code 0: a member accepted the command. Exit code 1: a member received data from the process recently, or no \
member answered. Exit code 2: no member of the group runs on this machine, or none of them knows \
the member.""",
    ),
    "secret": Command(
        "pygroups.cli.secret:secret",
        "Make the key of a group, with which its members encrypt and authenticate everything that they send.",
        "pygroups secret new orders.secret",
        """\
all members of the group read the same file:
  pygroups join orders --secret-file orders.secret
a further key for a group that runs, behind the key that it uses:
  pygroups secret new --epoch 2 >> orders.secret""",
    ),
    "config": Command("pygroups.cli.config:app", "Show, check or print the defaults of every option."),
    "watch": Command("pygroups.cli.watch:watch", "Watch groups or journals on a page on loopback."),
}
"""Every command of the design.  A command without a module raises NotBuilt, and is not in the help."""

ABOUT = """\
Reliable group communication: the processes of a group have the same list of members, and receive the same messages in
the same order. There is no server.

A member can write a journal of its events. The audit reads the journals of all members and reports the promises that
were broken.
"""
ENDINGS = """\
Exit codes: 0 success; 1 a promise was broken, or a member failed; 2 the call or its input was wrong.
With --verbose every command prints more to standard error. `pygroups COMMAND --help` explains one command.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (default: that of this process) and return its exit code."""
    tokens, verbose = take_verbose(sys.argv[1:] if arguments is None else arguments)
    if verbose:
        from pygroups.cli.logs import log_everything

        log_everything()
    return guarded(lambda: dispatch(tokens), verbose=verbose)


def take_verbose(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """`arguments` without `--verbose`, and whether it was there.  All commands have the option, so none declares it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [argument for argument in arguments[:end] if argument != "--verbose"]
    return [*options, *arguments[end:]], len(options) < end


def dispatch(tokens: list[str]) -> int:
    """Call the command that `tokens` name.  Raises UsageError for a wrong call."""
    if tokens[:1] == ["--version"]:
        print(__version__)  # without cyclopts, because its import takes ten times as long
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
    """The command line for cyclopts: all built commands.  Each module is imported when its command is called."""
    from cyclopts import App, Parameter

    app = App(
        name="pygroups",
        version=__version__,
        help=ABOUT,
        help_epilogue=_epilogue(*(one.example for name, one in COMMANDS.items() if is_built(name))),
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
    """Whether the module of command `name` exists.  Does not import the module."""
    module, _, _ = COMMANDS[name].target.partition(":")
    return importlib.util.find_spec(module) is not None


def _check_name(word: str) -> None:
    # Checked before cyclopts, which would import the modules of all commands to make its error message.
    if word in ("--help", "-h"):
        return
    if word.startswith("-"):
        raise UsageError(f"there is no option {word} before the command; see `pygroups --help`.")
    if word not in COMMANDS:
        import difflib

        near = difflib.get_close_matches(word, COMMANDS, n=1)
        guess = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"there is no command {word!r}; {guess}`pygroups --help` lists the commands.")
    if not is_built(word):
        raise NotBuilt(f"`pygroups {word}` is not built yet; `pygroups --help` lists the built commands.")


def _epilogue(*lines: str) -> str:
    examples = [f"  {line}" for line in lines if line]
    return "\n".join([*(["Examples:", *examples, ""] if examples else []), ENDINGS])
