"""Groups whose members begin with any map of views, for the tests of merging."""

from __future__ import annotations

from collections.abc import Mapping

from pygroups.core.address import Address
from pygroups.core.events import Event, NewView
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.core.view import AgreedView, ViewId
from pygroups.layers.gms.decisions import electors
from pygroups.layers.gms.layer import Gms
from pygroups.layers.merge2.layer import Merge2
from pygroups.layers.profiles import PROFILES, Profile
from pygroups.sim.scenarios.group import ScenarioGroup, scenario
from pygroups.sim.schedules.schedule import Habits

Map = Mapping[str, tuple[int, str]]  # per member, the number of its view and its members, the first one coordinates

QUICK = {
    "heartbeat": 100 * MILLISECOND,
    "heartbeat_timeout": 400 * MILLISECOND,
    "verify_timeout": 200 * MILLISECOND,
    "ready_timeout": 200 * MILLISECOND,
    "flush_timeout": 300 * MILLISECOND,
    "merge_interval": 200 * MILLISECOND,
}
INTERVAL = QUICK["merge_interval"] / 1_000_000  # seconds


class Begin(Event):
    """Down, test to gms: this member has this view, and knows of ballots and views up to this number."""

    view: AgreedView
    highest: int


class MappedGms(Gms):
    """Begins with the view that the test gives it, in place of joining."""

    def down_event(self, event: Event) -> None:
        if isinstance(event, Begin):
            me = (self.env.me,)
            self.highest = event.highest
            self.electors = electors.installed((), event.view, ())
            self.enter(NewView(event.view, None, me, event.view.members, (), True, None))
            self._work()
        else:
            super().down_event(event)


def without_merging(name: str) -> Profile:
    """The built-in profile of this name, without MERGE2: a member that the others left behind ends."""
    profile = PROFILES[name]
    return profile._replace(layers=tuple(layer for layer in profile.layers if layer is not Merge2))


def mapped(views: Map, profile: str = "total", seed: int = 0, **config: int) -> ScenarioGroup:
    """A group in which each member begins with its view of `views`, and all members can be found."""
    layers = PROFILES[profile].layers
    found = PROFILES[profile]._replace(layers=tuple(MappedGms if layer is Gms else layer for layer in layers))
    names = list(dict.fromkeys([*views, *(name for _, members in views.values() for name in members.split())]))
    group = scenario(
        names, profile=found, formed=False, seed=seed, habits=Habits(state="keeps none"), **{**QUICK, **config}
    )
    group.judge.disturbed()
    group.judge.unsettled(60 * SECOND)  # the views are what a fault left behind: a member may end a stale one
    world = group.world
    addresses: dict[str, Address] = {}
    for name in names:
        world.start(name)
        addresses[name] = world.running[name].address
    for name in names:
        member = world.running[name]
        member._waiting.clear()
        if name not in views:
            world.crash(member)
            continue
        number, listed = views[name]
        members = tuple(addresses[one] for one in listed.split())
        view = AgreedView(ViewId(number, members[0]), members, tuple(one.name for one in members))
        for one in members:
            member.routes.setdefault(one)
        made = (made for made, those in views.values() if those.split()[0] == name)
        member.ask(Begin(view, max(number, *made, 0)))  # a process knows the views that it made
    return group


def whole(group: ScenarioGroup) -> bool:
    """Whether all running members are in one view of exactly these members."""
    views = [member.view for member in group.members]
    ids = [member.view_id for member in group.members]
    return all(sorted(view) == sorted(group.world.running) for view in views) and ids.count(ids[0]) == len(ids)
