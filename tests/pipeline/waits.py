"""Histories of a newcomer that waits for one state after the other."""

from __future__ import annotations

from tests.pipeline.histories import History, Life
from tests.pipeline.planted import closed, opened, others


def begun_again(history: History, *crashed: str) -> dict[str, int]:
    """The members `crashed` had the state for E, and die; all others go on to a view that E begins with a state. Gives
    what this state contains."""
    history.crash("".join(crashed))
    history.number += 1
    members, newcomer = history.alive, history["E"]
    before = {life.address: life.view for life in members}
    digest = dict(members[0].marks)
    for life in members:
        more: dict[str, object] = {"digest": digest} if life is newcomer else {}
        history.install(life, (history.number, members[0].address), members, before, **more)
    return digest


def waiting(group: str, crashed: str, lacks: bool = False) -> tuple[History, dict[str, int], dict[str, int]]:
    """E joins, waits, and delivers what the others do; the provider `crashed` dies. With `lacks` one run of D comes to
    all but E. Gives the contents of both states."""
    history = opened(group)
    history.start("E")
    history.view("ABCDE")
    first = dict(history["E"].marks)
    history.multicast("BD", count=2)
    if lacks:
        history.deliver(history.send("D"), others(history, "E"))
    return history, first, begun_again(history, crashed)


def gives(giver: Life, taker: Life, digest: dict[str, int]) -> None:
    what = {"bytes": 10, "checksum": 77, "position": 0, "digest": digest}
    giver.log("state_get", peer=taker.address, **what)


def takes(giver: Life, taker: Life, digest: dict[str, int]) -> None:
    gives(giver, taker, digest)
    taker.log("state_set", peer=giver.address, bytes=10, checksum=77, position=0, digest=digest)


def set_at_last(group: str, crashed: str) -> History:
    """The second provider gives its state."""
    history, _, second = waiting(group, crashed)
    takes(history.alive[0], history["E"], second)
    return closed(history)


def set_without_what_was_delivered(group: str, crashed: str) -> History:
    """E alone delivers the last run of the provider that dies; the state of the next one does not have it."""
    history = opened(group)
    history.start("E")
    history.view("ABCDE")
    history.multicast("BD", count=2)
    history.deliver(history.send(crashed), "E")
    second = begun_again(history, crashed)
    takes(history.alive[0], history["E"], second)
    return closed(history)


def lost(group: str, crashed: str, *, at_the_second: bool = False, lacks: bool = False) -> History:
    """No state comes, and E goes on without one: behind the first state, or wrongly the second. Then F joins, and
    E gives it a state. With `lacks` this state claims what E has from no one."""
    history, first, second = waiting(group, crashed, lacks)
    newcomer = history["E"]
    newcomer.log("state_lost", reason="lost", digest=second if at_the_second else first)
    if lacks:
        newcomer.marks = dict(second)
    history.multicast("C" if crashed == "A" else "A")  # with D's next message E would have heard all of D
    other = history.start("F")
    history.view("".join(life.name for life in history.alive) + "F")
    digest = dict(newcomer.marks)
    takes(newcomer, other, digest)
    return closed(history)
