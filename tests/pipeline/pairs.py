"""Histories of two that send to each other alone."""

from __future__ import annotations

from tests.pipeline.histories import History


def unicasts(group: str, wrong: str) -> History:
    """P sends five messages to Q on two connections; `wrong` says what happens to the third."""
    history = History(group, "unicast", "PQ")
    history.alive = history.lives
    history.start("R")
    for number in range(1, 6):
        connection = 1 if number < 3 else 2
        _one_unicast(history, number, connection, _where(wrong).get(number, ""))
    if wrong == "falls":
        history.arrives(history.unicast("P", "Q", 1), "Q", 1)
    history.settle()
    if wrong == "missing":
        history["P"].missing = True
    return history


def _where(wrong: str) -> dict[int, str]:
    """What goes wrong with which message: with the third one, if `wrong` says nothing else."""
    if wrong == "half":
        return {3: "reported", 4: "lost"}
    what, _, number = wrong.partition("-")
    return {int(number or (5 if what == "last" else 3)): what}


def _one_unicast(history: History, number: int, connection: int, wrong: str) -> None:
    run = history.unicast("P", "Q", connection)
    if wrong in ("lost", "last", "reported"):
        if wrong == "reported":
            history["P"].log(
                "undelivered",
                origin="P",
                origin_incarnation=run.origin.incarnation,
                first=number,
                count=1,
                peer=history["Q"].address,
            )
        return
    if wrong == "swapped":
        history.arrives(history.unicast("P", "Q", connection), "Q", connection)
    history.arrives(
        run, "Q", connection, "R" if wrong == "elsewhere" else None, **({"checksum": 1} if wrong == "altered" else {})
    )
    if wrong == "repeated":
        history.arrives(run, "Q", connection)
