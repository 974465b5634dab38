"""Promises at the end of a schedule without a group: liveness, buffers-drain."""

from __future__ import annotations

from .facts import Check, Rest


class SettledAlone(Check):
    """When everything has settled, each process has sent its payloads and holds nothing, and each process that wanted
    to leave has left."""

    promises = ("liveness", "buffers-drain")

    def __init__(self) -> None:
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return dict.fromkeys(self.promises, self.judged)

    def settled(self, rests: list[Rest]) -> None:
        self.judged = len(rests)
        for rest in rests:
            if rest.leaving:
                self.broken("liveness", "the member wanted to leave, and still runs", member=rest.member)
            if rest.unsent:
                self.broken("liveness", f"{rest.unsent} payloads wait for a window to open", member=rest.member)
            held = {name: value for name, value in rest.gauges.items() if value}
            if held:
                detail = "the member still holds " + ", ".join(f"{name}={value}" for name, value in held.items())
                self.broken("buffers-drain", detail, member=rest.member)
