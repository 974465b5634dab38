"""The small cases: three processes, up to two view changes with a crash at every step, and a multicast."""

from __future__ import annotations

from typing import Any, Final

from .world import Case


def _case(name: str, setup: str, *, crashes: int = 1, loses: str = "", **more: Any) -> Case:
    """`more` has fields of Case, and the actions of processes by their letters."""
    program = {process: ("join", *more.pop(process, "").split()) for process in "ABC"}
    return Case(name, setup, program, crashes, loses=loses, **more)


SMALL: Final = (
    _case("A sends", "ABC", A="send"),
    _case("B sends", "ABC", B="send"),
    _case("A leaves", "ABC", A="leave"),
    _case("B leaves", "ABC", B="leave"),
    _case("C joins", "AB"),
    _case("C joins, A leaves, no crash", "AB", crashes=0, A="leave"),
    _case("C joins, B leaves, no crash", "AB", crashes=0, B="leave"),
    _case("C joins, B sends, no crash", "AB", crashes=0, B="send"),
    _case("A sends, B leaves, no crash", "ABC", crashes=0, A="send", B="leave"),
    _case("A leaves, a timer is early", "ABC", early=1, A="leave"),
    _case("A sends, an isolation", "ABC", isolations=True, A="send"),
    _case("B sends, a request is lost", "ABC", loses="Request", B="send"),
    _case("A sends, a broadcast is lost", "ABC", loses="Bcast", A="send"),
    _case("B leaves, the first id is lost", "ABC", loses="NewViewId", B="leave"),
)
"""These are complete within minutes."""

LARGE: Final = (
    _case("C joins, A sends and leaves, no crash", "AB", crashes=0, A="send leave"),
    _case("A sends, B sends", "ABC", A="send", B="send"),
    _case("A sends, B sends, an isolation", "ABC", isolations=True, A="send", B="send"),
    _case("A sends, B leaves", "ABC", A="send", B="leave"),
    _case("B sends, A leaves", "ABC", A="leave", B="send"),
    _case("C joins, A leaves", "AB", A="leave"),
    _case("C joins, B leaves", "AB", B="leave"),
    _case("C joins, A sends", "AB", A="send"),
    _case("C joins, B sends", "AB", B="send"),
    _case("C joins, B sends, A leaves", "AB", A="leave", B="send"),
    _case("A sends, C sends, a broadcast is lost", "ABC", loses="Bcast", may_crash="A", A="send", C="send"),
)
"""A long count searches a part of these.  "C joins, A leaves" takes some minutes."""

NAMED: Final = {case.name: case for case in (*SMALL, *LARGE)}
