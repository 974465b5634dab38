"""`pygroups primary`: an operator vouches that a member of a blocked group has ended for good."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pygroups.cli.refusals import one_line
from pygroups.core.address import Address, checked_name, parse_address
from pygroups.core.errors import Error, UsageError
from pygroups.drivers.local_commands import CommandAnswer, LocalCommand, ask, entries_in, folder_of, sockets_in

SHOWN = 5  # members that a sentence names


def primary(
    group: str,
    /,
    *,
    gone: str | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Vouch that a member of a blocked group has ended for good.

    Parameters
    ----------
    group
        The name of the group. One of its members must run on this machine, under this user.
    gone
        The member that has ended, as NAME@INCARNATION, as the members' logs name it. It counts no more from now on:
        start no process with its journal folder again, because other members may count that one in its place.
    as_json
        Print one JSON object on standard output.
    """
    checked_name(group, "group")
    if gone is None:
        raise UsageError("name the member that has ended: pygroups primary GROUP --gone NAME@INCARNATION")
    member = parse_address(gone)
    answer = _answer(group, member)
    if as_json:
        print(json.dumps({"group": group, "gone": str(member), "told": str(answer.me)}))
    else:
        print(
            one_line(
                f"{answer.me} accepted that {member} has ended, and informs the other members; the group continues "
                "when enough members remain"
            )
        )
    return 0


def _answer(group: str, gone: Address) -> CommandAnswer:
    """The answer of the member that accepts the command.  Raises UsageError if no member can accept the command, and
    Error if the process of `gone` runs."""
    unknown: list[CommandAnswer] = []
    silent: list[str] = []
    for answer in _answers(group, gone, silent):
        if answer.outcome == "taken":
            return answer
        if answer.outcome == "alive":
            raise Error(f"{gone} has not ended: {answer.me} received data from it recently")
        unknown.append(answer)
    if unknown:
        first = unknown[0]
        others = [str(one) for one in first.members if one != first.me]
        names = ", ".join(others[:SHOWN]) + (" and more" if len(others) > SHOWN else "") or "none"
        raise UsageError(f"{first.me} of group {group} knows no member {gone}; the other members of its view: {names}")
    if silent:
        raise Error(f"no member of group {group} on this machine answered: {', '.join(silent)}")
    if entries_in(folder_of(group)):
        raise UsageError(
            f"no member of group {group} on this machine accepts this command: only members whose profile lets a "
            "majority decide each view accept it"
        )
    raise UsageError(f"no member of group {group} runs on this machine under this user")


def _answers(group: str, gone: Address, silent: list[str]) -> Iterator[CommandAnswer]:
    """The answers of the members on this machine, one after the other.  Members that do not answer are added to
    `silent`."""
    for path in _sockets(group):
        try:
            answer = ask(path, LocalCommand("vouch", gone))
        except OSError as error:  # TimeoutError, too
            silent.append(f"{path.name} ({error.strerror or str(error) or type(error).__name__})")
            continue
        if answer is not None:
            yield answer


def _sockets(group: str) -> list[Path]:
    try:
        return sockets_in(folder_of(group))
    except OSError as error:
        raise UsageError(f"{folder_of(group)} cannot be used: {error.strerror or error}") from error
