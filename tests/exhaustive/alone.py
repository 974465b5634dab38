"""A process that is cut off from all others: what it still does with the inputs that were on their way to it.

Nobody sees an effect of it, so its steps do not interleave with those of others: they belong to the choice that cuts it
off.  It takes all that was on its way.  Where less arrives it delivers less, and breaks no promise that it kept with
more.
"""

from __future__ import annotations

from typing import Final

from .lives import Lives, Told

Queues = tuple[tuple[int, ...], ...]  # by sender, the items on their way to the process; those of the network last
DUE: Final = -1  # in place of a sender: its timers that are due


class Alone:
    """The ends of processes that are cut off."""

    def __init__(self, lives: Lives) -> None:
        self.lives = lives
        self._endings: dict[tuple[int, Queues, int], list[tuple[int, ...]]] = {}

    def endings(self, life: int, queues: Queues, now: int) -> list[tuple[int, ...]]:
        """The orders in which it can take its inputs: one for each history that the judge can hear of it."""
        key = (life, queues, now)
        found = self._endings.get(key)
        if found is None:
            found = self._endings[key] = self._search(life, queues, now)
        return found

    def _search(self, life: int, queues: Queues, now: int) -> list[tuple[int, ...]]:
        waiting, seen, found = [(life, queues, ())], set(), {}
        while waiting:
            life, queues, then = waiting.pop()
            if (life, queues) in seen:
                continue
            seen.add((life, queues))
            sources = self._sources(life, queues, now)
            if not sources:
                found.setdefault(self.lives.lives[life].history, then)
            for src in sources:
                after, left, _ = self._taken(life, queues, now, src)
                waiting.append((after, left, (*then, src)))
        return list(found.values())

    def _sources(self, life: int, queues: Queues, now: int) -> list[int]:
        one = self.lives.lives[life]
        if not one.data:
            return []  # it has ended
        return [src for src, items in enumerate(queues) if items] + ([DUE] if one.wake <= now else [])

    def _taken(self, life: int, queues: Queues, now: int, src: int) -> tuple[int, Queues, Told]:
        if src == DUE:
            step = self.lives.step(life, -2, now)
            return step.life, queues, step.told
        step = self.lives.step(life, queues[src][0], now)
        return step.life, (*queues[:src], queues[src][1:], *queues[src + 1 :]), step.told

    def played(self, life: int, queues: Queues, now: int, then: tuple[int, ...]) -> tuple[int, Told]:
        """Take these inputs: the state of the process after them, and what the judge hears."""
        told: Told = ()
        for src in then:
            life, queues, more = self._taken(life, queues, now, src)
            told += more
        return life, told
