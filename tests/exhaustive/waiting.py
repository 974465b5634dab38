"""Moves that may wait: without them the search visits fewer states, and loses no end.  Proofs: docs/exhaustive.md.

Both rules rest on one fact: steps of two processes commute if neither one sends to the other at a place that was empty,
ends, or asks the directory.
"""

from __future__ import annotations

from typing import NamedTuple

from .lives import Life, Step
from .world import COUNT, NETWORK, Choice, State, World

Key = tuple[int, int, tuple[tuple[int, ...], ...], int, int, int]


class Alone(NamedTuple):
    """What may come of a process while the other one stands still."""

    sends: bool  # something comes to the other one
    ends: bool


BOTH = Alone(True, True)


class Waiting:
    """Finds the moves that may wait, in the states of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.looks = any("send" in program for program in world.programs)  # every state is judged for its messages
        self._alone: dict[Key, Alone] = {}

    # -- after the crash: two processes are left

    def moves(self, state: State, choices: list[Choice]) -> list[Choice]:
        """Those of `choices` that the search takes: all, or all of one process, if the other one can do nothing before
        them that makes a difference."""
        if state.crashes or state.early or state.losses or len(choices) < 2:
            return choices
        living = [who for who in range(COUNT) if state.alive >> who & 1]
        if len(living) != 2:
            return choices
        best = choices
        for one, other in (living, living[::-1]):
            own = [choice for choice in choices if choice.who == one]
            if 0 < len(own) < len(best) and self._first(state, own, one, other):
                best = own
        return best

    def _first(self, state: State, own: list[Choice], one: int, other: int) -> bool:
        """Whether the process `other` may wait until `one` has made one of its moves."""
        if all(choice.kind == "act" for choice in own):
            return False  # time may pass before it
        life = self.world.lives.lives[state.lives[one]]
        steps = [self.world.step(state, choice) for choice in own]
        if any(self._asks(step) or (self.looks and self._seen(life, step)) for step in steps):
            return False
        sends = any(dest == other for step in steps for dest, _ in step.sent)
        empty = not state.links[COUNT * other + one]
        if not (sends or empty):
            return True
        alone = self.alone(state, other, one)
        return not (sends and alone.ends) and not (empty and alone.sends)

    @staticmethod
    def _asks(step: Step) -> bool:
        """Whether it ends the process, or the directory or the network takes part in it."""
        return step.ended or bool(step.finds or step.probes) or step.announces is not None

    def _seen(self, life: Life, step: Step) -> bool:
        """Whether the check of every single state may notice it."""
        after = self.world.lives.lives[step.life]
        return (after.view, after.delivered, after.stable) != (life.view, life.delivered, life.stable)

    def alone(self, state: State, who: int, still: int) -> Alone:
        """What may come of `who` while `still` does nothing."""
        links = tuple(state.links[COUNT * src + who] for src in (*range(COUNT), NETWORK))
        key = (state.now, state.lives[who], links, state.announced, state.alive, state.refused)
        known = self._alone.get(key)
        if known is not None:
            return known
        self._alone[key] = BOTH  # if it comes back to this state
        sends = ends = False
        for choice in self.world.choices_of(state, who):
            step = self.world.step(state, choice)
            ends = ends or step.ended
            sends = sends or step.ended or any(dest == still for dest, _ in step.sent)
            if not (sends and ends):
                later = self.alone(self.world.after(state, choice), who, still)
                sends, ends = sends or later.sends, ends or later.ends
        found = self._alone[key] = Alone(sends, ends)
        return found

    # -- before the crash

    def elsewhere(self, state: State, choice: Choice) -> int:
        """A bit for each process that may as well crash before `choice`: what follows is the same."""
        if choice.who < 0 or choice.kind == "loss":
            return 0
        step = self.world.step(state, choice)
        if self._asks(step):
            return 0
        reached = sum({1 << dest for dest, _ in step.sent})
        return state.alive & ~(1 << choice.who) & ~reached
