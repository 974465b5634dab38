"""The exception of a check: a broken promise, with a witness that helps to find the cause."""

from __future__ import annotations

import msgspec

from pygroups.core.address import Address
from pygroups.core.view import ViewId


class Witness(msgspec.Struct, frozen=True, kw_only=True):
    """The broken promise, with the member, the other member, the message and the view that show it."""

    promise: str
    detail: str
    member: str = ""
    other: str = ""
    message: str = ""
    view: str = ""

    def __str__(self) -> str:
        where = [
            f"{name} {value}"
            for name, value in (
                ("member", self.member),
                ("other", self.other),
                ("message", self.message),
                ("view", self.view),
            )
            if value
        ]
        return f"{self.promise}: {self.detail}" + (f" ({', '.join(where)})" if where else "")


class Broken(Exception):
    """A promise is broken."""

    def __init__(
        self,
        promise: str,
        detail: str,
        *,
        member: Address | None = None,
        other: Address | None = None,
        message: tuple[Address, int] | None = None,
        view: ViewId | None = None,
    ) -> None:
        self.witness = Witness(
            promise=promise,
            detail=detail,
            member=str(member or ""),
            other=str(other or ""),
            message=f"{message[0]}#{message[1]}" if message else "",
            view=str(view or ""),
        )
        super().__init__(str(self.witness))
