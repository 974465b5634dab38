"""A large run goes back to its origin without its body: the origin keeps the body until the run is delivered there.

A coordinator that orders the runs of others multicasts them to all members, their origins included.  The frame for the
origin has the run with an empty body, which no other run of payloads has, and the bottom of the stack there puts the
body in again.  If the origin no longer has the body, the run counts as lost on its way: it leaves a hole in the stream,
and the origin asks for it like for any other lost run.  An answer to such a request has the body.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .address import Address
from .layer import Env
from .run import Run


def without_own_bodies(
    dests: tuple[Address, ...], runs: Sequence[Run], body_min: int
) -> list[tuple[tuple[Address, ...], list[Run]]]:
    """The multicasts `runs` for the receivers `dests`, divided by receivers: bodies of `body_min` bytes and more do not
    go to the origin of their run.  Each receiver has its runs in the order of `runs`."""
    parts: list[tuple[tuple[Address, ...], list[Run]]] = []
    for run in runs:
        origin = run.origin
        if len(run.body) >= body_min and origin is not None and origin in dests:
            _add(parts, (origin,), msgspec.structs.replace(run, body=b""))
            _add(parts, tuple([dest for dest in dests if dest != origin]), run)
        else:
            _add(parts, dests, run)
    return parts


def _add(parts: list[tuple[tuple[Address, ...], list[Run]]], dests: tuple[Address, ...], run: Run) -> None:
    if parts and parts[-1][0] == dests:
        parts[-1][1].append(run)
    elif dests:
        parts.append((dests, [run]))


def with_own_bodies(runs: Sequence[Run], env: Env) -> list[Run]:
    """Received runs, with the bodies of own runs that came without.  A run whose body nobody keeps is dropped."""
    found = []
    for run in runs:
        if run.body or run.origin is None:
            found.append(run)
        elif (body := env.own_body(run)) is not None:
            found.append(msgspec.structs.replace(run, body=body))
            env.count("own runs without their bodies")
        else:
            env.drop("own run without its body")
    return found
