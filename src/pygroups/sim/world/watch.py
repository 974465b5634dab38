"""Observes the whole world periodically, for promises that are judged while faults last."""

from __future__ import annotations

from typing import Final

from pygroups.core.limits import MILLISECOND
from pygroups.core.services import MERGING

from ..promises.facts import Situation, Stand
from ..promises.progress import bound_of, bound_with_merges
from .world import World

PERIOD: Final = 500 * MILLISECOND  # time between two observations


class Watch:
    """Reports the state of every process to the judge, if nothing in the world has changed since the last
    observation."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.since = 0
        self._stamp = (-1, -1)

    def look(self) -> None:
        """Observe now, and again every PERIOD."""
        world, now = self.world, self.world.agenda.now
        world.agenda.after(PERIOD, self.look)
        stamp = (world.network.changes, world.changes)
        if stamp != self._stamp or self._is_unsteady():
            self._stamp, self.since = stamp, now
        else:
            world.judge.looked(self._situation())

    def _is_unsteady(self) -> bool:
        """Whether some links or processes work only partly."""
        world, network = self.world, self.world.network
        clogged = any(until > world.agenda.now for until in network.clogs.values())
        return network.silences or clogged or any(len(member.delays) > 1 for member in world.running.values())

    def _situation(self) -> Situation:
        world, network = self.world, self.world.network
        stands = [
            Stand(
                member.address,
                not member.paused,
                not member.reading.stopped,
                member.view.id if member.view is not None else None,
                member.view.members if member.view is not None else (),
                member.blocked,
                member.leaving,
                member.top.unknown().stop,
                sum(order.count for order in member.app.orders),
                member.state.waits,
                member.born,
                bool(member.told),
                member.app.orders[0].to if member.app.orders else None,
            )
            for member in world.running.values()
        ]
        cut = frozenset(link for link, cuts in network.cuts.items() if cuts)
        farthest = network.farthest()
        merges = MERGING in world.judge.around.services
        bound = (bound_with_merges if merges else bound_of)(world.config, 2 * farthest)
        withheld = any(habits.state != "gives" for habits in world.schedule.habits.values())
        if withheld:
            bound += world.config.state_timeout
        times = (world.agenda.now, self.since, bound)
        misled = world.directory.misled_until()
        return Situation(*times, cut, tuple(stands), sum(self._stamp), farthest > 0, misled, withheld)
