"""Draw the schedule of a seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

from msgspec import structs

from pygroups.core.detection import detection
from pygroups.core.layer import NEVER
from pygroups.core.limits import MILLION, MILLISECOND, SECOND, Config
from pygroups.core.services import ANY_SIZE, GOSSIP, MEMBERSHIP, MERGING, PRIMARY
from pygroups.layers.profiles import profile_named
from pygroups.sim.promises.facts import MEMBERS

from . import attacks, expelling, kinds, lasting, operators, settings, unshown
from .catalog import DISTURBING, FAULTS, GRAVE, STEPS, is_swarm, possible
from .fault_plan import FORMATION, FaultPlan
from .schedule import Habits, OnMerge, Schedule, Weather, stream
from .stages import labels_of
from .steps import Action, Send, StartProcess
from .surroundings import full_disks
from .tearing import last_change

NAMES: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MEMBERS_MIN: Final = 2
MEMBERS_MAX: Final = len(NAMES)
MESSAGES: Final = 320  # multicasts planned while faults last; some of their senders will have ended
LONG: Final = 0.08  # share of the schedules with late copies that last long, so that copies can be very late


STAYS: Final = 0.3  # share of the schedules that get a lasting fault, among those that may have one
_DRAWN_ALONE: Final = (expelling.FAULT, settings.FAULT, unshown.FAULT, attacks.FAULT)  # with streams of their own
NOTHING_STAYS: Final = lasting.Stay(0, False)
STREAMS: Final = 0.25  # share of the schedules in which frames travel as over TCP
LOSING: Final = 0.8  # share of the schedules with losses, in a profile that is made for them
DUTIES: Final = 0.5  # share of the schedules that test the duties of time at their end
LAST_CHANGE: Final = 0.2  # share of the schedules that end with a leave of the coordinator, among those with leaves


class Wish(NamedTuple):
    """The caller's requirements for all schedules."""

    profile: str
    members: int | None = None  # number of members; None: drawn
    minutes: float | None = None  # duration of the faults; None: some seconds, drawn
    faults: tuple[str, ...] = FAULTS
    majority: bool = False  # a majority of each view decides the next one


def draw(seed: int, wish: Wish) -> Schedule:
    """Draw the schedule of `seed`."""
    if PRIMARY in profile_named(wish.profile).services:
        wish = wish._replace(majority=True)
    schedule = _of_one_group(seed, wish)
    if PRIMARY in profile_named(wish.profile).services:
        schedule = _with_births(stream(seed, "births"), schedule)
    if unshown.FAULT in wish.faults and not wish.majority and MERGING in profile_named(wish.profile).services:
        share = unshown.SHARE if is_swarm(wish.faults) else 0.9
        schedule = unshown.add(stream(seed, unshown.FAULT), schedule, share=share)
    services = profile_named(wish.profile).services
    if attacks.FAULT in wish.faults and MEMBERSHIP in services and GOSSIP not in services:
        schedule = attacks.add(
            stream(seed, attacks.FAULT), schedule, share=attacks.SHARE if is_swarm(wish.faults) else 0.9
        )
    others = _others(stream(seed, settings.FAULT), schedule, wish)
    return structs.replace(schedule, others=others.names, others_meet_at=others.meet_at)


def _with_births(rng: Random, schedule: Schedule) -> Schedule:
    """Draw how the group is born, and which processes keep the folders of their journals."""
    expect, folders = rng.choice((0, 0, len(schedule.names))), rng.choice((0.0, 0.7, 1.0))
    return structs.replace(schedule, expect=expect, folders=folders)


def _of_one_group(seed: int, wish: Wish) -> Schedule:
    """Draw the schedule of `seed`, in which all processes have the same settings."""
    rng = stream(seed, "schedule")
    faults = _losing(stream(seed, "losing"), wish, _part(stream(seed, "swarm"), wish))
    count = wish.members or (rng.randint(6, 12) if rng.random() < 0.05 else rng.randint(3, 5))
    names = tuple(NAMES[:count])
    config = _config(stream(seed, "config"), faults)
    config |= _merging(stream(seed, "merging"), wish, config)
    config |= _gossiping(stream(seed, "gossiping"), wish, config)
    slow = stream(seed, expelling.FAULT)
    expels = _expels(slow, wish)
    if expels:
        faults = _with_a_slow_member(slow, faults)
        config |= expelling.config_of(slow) | expelling.timeouts_of(slow)
    weather = _weather(stream(seed, "weather"), faults)
    lasts = _duration(rng, wish, _patience(config), weather)
    plan = FaultPlan(
        stream(seed, "faults"), names, lasts, Config(**config), faults, labels_of(profile_named(wish.profile).heads())
    )
    over = _fill(plan, wish)
    if expels:
        over = max(over, expelling.add(slow, plan, config))
    heal_at = max(FORMATION + lasts, over, plan.ends)
    last = "leave" in faults and stream(seed, "last change").random() < LAST_CHANGE
    if last:
        last_change(plan, heal_at)
    plan.actions = [step for step in plan.actions if step.at < heal_at or isinstance(step, StartProcess)]
    plan.actions += _disks_and_calls(seed, wish, plan, heal_at)
    stay = NOTHING_STAYS if last else _stay(stream(seed, "stays"), plan, wish, heal_at, config)
    steps = _starts(stream(seed, "starts"), names, FORMATION + lasts, faults) + plan.actions
    sends = _sends(stream(seed, "sends"), names, FORMATION + lasts, heal_at, config, wish)
    if last:
        sends = [send for send in sends if send.at < heal_at]
    return Schedule(
        seed=seed,
        profile=wish.profile,
        names=names,
        habits=_habits(stream(seed, "habits"), names, faults),
        config=config | _without_a_bound(plan.actions, config),
        weather=weather,
        streams=stream(seed, "transport").random() < STREAMS,
        on_merge=_on_merge(stream(seed, "on merge"), wish),
        rejoin=rng.random() < 0.5,
        duties=stream(seed, "duties").random() < DUTIES and MEMBERSHIP in profile_named(wish.profile).services,
        actions=tuple(sorted([*steps, *sends], key=lambda action: action.at)),
        heal_at=heal_at,
        bound=bound_of(config, weather),
        stays=stay.lasts,
        for_good=stay.for_good,
    )


def _disks_and_calls(seed: int, wish: Wish, plan: FaultPlan, heal_at: int) -> list[Action]:
    """Draw full disks, and the calls of an operator where a majority decides."""
    steps: list[Action] = []
    if "disk-full" in plan.may:
        steps += full_disks(stream(seed, "disks"), plan.names, FORMATION, heal_at, rare=is_swarm(wish.faults))
    if wish.majority:
        steps += operators.calls(stream(seed, "operator"), plan.names, FORMATION, heal_at)
    return steps


def _others(rng: Random, schedule: Schedule, wish: Wish) -> settings.SecondGroup:
    """Draw the processes with other settings.  Their random numbers change no other part of the schedule."""
    if settings.FAULT not in wish.faults or wish.majority or MERGING not in profile_named(wish.profile).services:
        return settings.SecondGroup()
    share = settings.SHARE if is_swarm(wish.faults) else 0.9
    return settings.draw_others(rng, schedule.names, FORMATION, schedule.heal_at, share=share)


def _merging(rng: Random, wish: Wish, config: dict[str, int]) -> dict[str, int]:
    """Draw the interval of MERGE2, if the other timeouts are shorter than the defaults."""
    if MERGING not in profile_named(wish.profile).services or "heartbeat" not in config:
        return {}
    return {"merge_interval": rng.choice((100, 200, 500)) * MILLISECOND}


def _gossiping(rng: Random, wish: Wish, other: dict[str, int]) -> dict[str, int]:
    """Draw the limits of PBCAST: mostly shorter times than the defaults, and sometimes small tables.  A group that
    forgets messages soon, or has small tables, states no bound for the messages that it misses."""
    if GOSSIP not in profile_named(wish.profile).services:
        return {}
    config = {
        "desired_avg_gossip": rng.choice((50, 200, 500)) * MILLISECOND,
        "gossip_retry": rng.choice((50, 200)) * MILLISECOND,
        "gossip_patience": rng.choice((2, 5)) * SECOND,
        "gossip_keep": rng.choice((3, 30)) * SECOND,
        "subset": rng.choice((100, 300, 1_000)),
        "lag": rng.choice((1, 10)),
        "use_mcast_for_gossip": rng.choice((0, 0, 1)),
    }
    if rng.random() < 0.3:
        config |= {"gossip_buffer": rng.choice((2, 8)) << 10, "gossip_early_max": 4, "gossip_cache": 8}
    if rng.random() < 0.3:
        config |= {"gossip_rate": 64 << 10, "gossip_burst": 2 << 10}
    if config["gossip_keep"] < Config().gossip_keep or "gossip_buffer" in config or "future_runs_max" in other:
        config["epsilon_ppm"] = MILLION
    return config


def _without_a_bound(steps: Sequence[Action], config: dict[str, int]) -> dict[str, int]:
    """A gossip group states no bound for the messages that it misses, if a fault lasts longer than a member asks for
    one."""
    patience = config.get("gossip_patience", NEVER)
    lasting = [step for step in steps if getattr(step, "stays", False) or getattr(step, "lasts", 0) >= patience]
    return {"epsilon_ppm": MILLION} if patience < NEVER and lasting else {}


def _on_merge(rng: Random, wish: Wish) -> OnMerge:
    """Draw how the members choose the side that wins a merge, in a profile that merges."""
    if MERGING not in profile_named(wish.profile).services:
        return "keep"
    return rng.choices(("keep", "primary", "last", "fails"), (8, 7, 4, 1))[0]


def _stay(rng: Random, plan: FaultPlan, wish: Wish, heal_at: int, config: dict[str, int]) -> lasting.Stay:
    """Draw the lasting faults.  Their random numbers come from the stream of the plan."""
    staying = tuple(fault for fault in plan.may if fault in lasting.STAYING)
    if not staying or rng.random() >= (STAYS if is_swarm(wish.faults) else 0.9):
        return NOTHING_STAYS
    merges = MERGING in profile_named(wish.profile).services
    return lasting.add(plan, staying, heal_at, Config(**config), merges=merges)


def bound_of(config: dict[str, int], weather: Weather) -> int:
    """The time after the last fault within which every promise must be kept, in microseconds.  Late copies are
    answered, and a member closes a connection to an ended process only after `connection_age`."""
    late = weather.late_max + Config(**config).connection_age if weather.late else 0
    return 30 * SECOND + 20 * _patience(config) + 20 * Config(**config).merge_interval + late


def _expels(rng: Random, wish: Wish) -> bool:
    """Whether the schedule has a slow member and a policy.  The schedule draws the policy separately, because a policy
    changes the configuration and lasts long."""
    wished = possible(wish.faults, profile_named(wish.profile).services)
    return expelling.FAULT in wished and rng.random() < (expelling.SHARE if is_swarm(wish.faults) else 0.9)


def _with_a_slow_member(rng: Random, faults: Sequence[str]) -> tuple[str, ...]:
    if rng.random() < expelling.CALM:
        faults = [fault for fault in faults if fault not in DISTURBING]
    return (*faults, expelling.FAULT)


def _part(rng: Random, wish: Wish) -> tuple[str, ...]:
    """Draw the faults of this schedule, as a part of the requested faults.

    A schedule with all faults tests each of them little, so most schedules omit most faults.  Some schedules have no
    fault that makes a living process look dead; in these no member may be suspected wrongly.
    """
    wished = possible(wish.faults, profile_named(wish.profile).services)
    wished = tuple(fault for fault in wished if fault not in _DRAWN_ALONE)
    if rng.random() < 0.15:
        wished = tuple(fault for fault in wished if fault not in DISTURBING)
    share = rng.choice((0.25, 0.5, 0.75)) if is_swarm(wish.faults) else 0.8
    part = [fault for fault in wished if rng.random() < share]
    grave = [fault for fault in wished if fault in GRAVE]
    if grave and not any(fault in GRAVE for fault in part) and rng.random() < 0.97:
        part.append(rng.choices(grave, [GRAVE[fault] for fault in grave])[0])
    return tuple(part)


def _losing(rng: Random, wish: Wish, faults: tuple[str, ...]) -> tuple[str, ...]:
    """Where the multicast of the profile may lose messages, losses are the normal case."""
    loses = profile_named(wish.profile).transport == "udp" and "loss" in wish.faults and rng.random() < LOSING
    return (*faults, "loss") if loses and "loss" not in faults else faults


def _config(rng: Random, faults: Sequence[str]) -> dict[str, int]:
    """Draw the configuration: mostly shorter timeouts than the defaults, so that more happens in a second; sometimes
    small limits."""
    config: dict[str, int] = {}
    if rng.random() < 0.85:
        beat = rng.choice([50, 100, 200]) * MILLISECOND
        config |= {
            "heartbeat": beat,
            "heartbeat_timeout": rng.randint(3, 6) * beat,
            "verify_timeout": rng.randint(1, 2) * beat,
            "ready_timeout": rng.choice([100, 200, 500]) * MILLISECOND,
            "flush_timeout": rng.choice([150, 300, 1000]) * MILLISECOND,
            "leave_timeout": 3 * SECOND,
            "join_retry": rng.choice([100, 300]) * MILLISECOND,
        }
    if rng.random() < (0.7 if "full" in faults else 0.2):
        config |= {"run_bytes": 2 << 10, "window": rng.choice([4, 8, 32]) << 10, "stable_bytes": 2 << 10}
    if rng.random() < 0.1:
        config |= {"nakack_early_max": 8, "unicast_early_max": 8, "nakack_request_runs": 3, "unicast_request_runs": 3}
    if "no-state" in faults:
        config |= {"state_timeout": rng.choice((500, 2_000)) * MILLISECOND}
    if "limits" in faults:
        config |= _small(stream(rng.randrange(1 << 32), "limits"))
    if "limits" in faults and rng.random() < 0.3:
        config |= {"heartbeat_all": 2, "heartbeat_neighbors": 1}  # a view of four is large
    if rng.random() < 0.9:  # otherwise the end of a schedule can be half a minute of heartbeats only
        config |= {"connection_age": rng.choice([1, 3]) * SECOND}
    return config


SMALL: Final[dict[str, Sequence[int]]] = {
    "runs_in_flight": (1, 2, 8),
    "unicast_ack_runs": (1, 4),
    "unicast_early_max": (2, 8),
    "unicast_request_runs": (8, 16),
    "unicast_backoff_max": (50 * MILLISECOND, 200 * MILLISECOND),
    "nakack_early_max": (2, 8),
    "nakack_request_runs": (3, 8),
    "nakack_backoff_max": (50 * MILLISECOND, 200 * MILLISECOND),
    "announce_max": (100 * MILLISECOND, 1 * SECOND),
    "stable_bytes": (1 << 10, 4 << 10),
    "stable_backoff_max": (200 * MILLISECOND,),
    "future_runs_max": (2, 4, 16),
    "batch": (1 * MILLISECOND, 100 * MILLISECOND),
    "views_per_second": (1, 10),
    "state_chunk": (16, 64),
    "state_chunks_ahead": (2, 4),
    "unicast_peers_max": (2, 8),
}


def _small(rng: Random) -> dict[str, int]:
    """Draw some limits and timeouts that a schedule reaches soon.  Runs are small, and the window holds many of them.

    Four settings are left out.  `tombstone` must be longer than the largest delay of a copied frame.  `tombstones_max`
    must be larger than the number of processes that end within that time.  `link_bytes` limits the queues of
    connections, which belong to the drivers and do not exist in this world.  `marks_max` would keep the audit from
    judging a state, because a journal does not show which origins a member has forgotten.
    """
    small = {name: rng.choice(values) for name, values in SMALL.items() if rng.random() < 0.3}
    if rng.random() < 0.4:
        small |= {"future_runs_max": 2}
    if rng.random() < 0.4:
        small |= {"run_bytes": rng.choice((64, 256)), "window": rng.choice((8, 64)) << 10, "runs_in_flight": 8}
    return small


def _patience(config: dict[str, int]) -> int:
    """The time from the last frame of a member until it is suspected, in microseconds."""
    defaults = Config(**config)
    return detection(defaults, MEMBERS)


def _duration(rng: Random, wish: Wish, patience: int, weather: Weather) -> int:
    if wish.minutes is not None:
        return int(wish.minutes * 60 * SECOND)
    if weather.late_max > 10 * SECOND:
        return weather.late_max
    return int(max(rng.uniform(5, 8) * SECOND, rng.uniform(2, 3) * patience))


def _habits(rng: Random, names: Sequence[str], faults: Sequence[str]) -> dict[str, Habits]:
    def drift(most: int) -> int:
        return rng.randint(-most, most) if "drift" in faults else 0

    without = [name for name in names if "no-keeper" in faults and rng.random() < 0.3]
    fails = rng.choice(names) if "no-state" in faults else None
    return {
        name: Habits(
            state=rng.choice(("raises", "hangs")) if name == fails else "keeps none" if name in without else "gives",
            loop_delay=rng.choice([50, 100, 300, 2 * MILLISECOND]),
            reads_after=rng.choice([100, MILLISECOND, 5 * MILLISECOND, 5 * MILLISECOND, 100 * MILLISECOND]),
            drift=drift(400),
            wall_drift=drift(500),
            state_apart=rng.choice((0, 0, 5, 30)) * MILLISECOND,
        )
        for name in names
    }


def _weather(rng: Random, faults: Sequence[str]) -> Weather:
    def share(fault: str, shares: Sequence[float]) -> float:
        amount = rng.choice(shares)
        return amount if fault in faults else 0.0

    delay = rng.choice([100, 200, 500, 2 * MILLISECOND, 10 * MILLISECOND])
    late = share("late", [0.002, 0.01, 0.03])
    return Weather(
        delay=delay,
        jitter=rng.choice([delay // 10, delay]),
        loss=share("loss", [0.005, 0.02, 0.05, 0.15]),
        bursts=share("burst", [0.001, 0.005]),
        burst_frames=rng.randint(5, 50),
        repeat=share("repeat", [0.01, 0.05, 0.2]),
        reorder=share("reorder", [0.01, 0.05, 0.2]),
        reorder_by=rng.choice([1, 5, 20]) * MILLISECOND,
        tail=share("tail", [0.002, 0.01]),
        tail_max=rng.choice([200, 1000, 2000]) * MILLISECOND,
        late=late,
        late_max=(rng.randint(20, 40) if late and rng.random() < LONG else rng.choice([1, 3, 5])) * SECOND,
        corrupt=share("corrupt", [0.002, 0.01, 0.05]),
    )


def _starts(rng: Random, names: Sequence[str], heal_at: int, faults: Sequence[str]) -> list[Action]:
    """Draw the starts.  At least two processes start together, so that there are two senders from the beginning.  In
    a join storm all other processes start at one time."""
    apart = 200 if "together" in faults else FORMATION // 2
    storm = rng.randrange(FORMATION, heal_at) if "join-storm" in faults and rng.random() < 0.5 else None
    starts: list[Action] = []
    for rank, name in enumerate(names):
        at = rng.randrange(0, apart)
        latecomer = rank >= 2 and rng.random() < 0.15 and "join" in faults
        if rank >= 2 and storm is not None:
            at = storm + rng.randrange(0, 5 * MILLISECOND)
        elif latecomer:
            at = rng.randrange(FORMATION, heal_at)
        starts.append(StartProcess(at=at, who=name))
    return starts


def _fill(plan: FaultPlan, wish: Wish) -> int:
    """Draw the steps of a plan, first a step with a grave fault.  Returns the end of a long pause among them, or 0."""
    rng = plan.rng
    weights = {fault: STEPS[fault] * rng.choice((1, 2, 6)) for fault in plan.may if fault in STEPS}
    grave = {fault: weight for fault, weight in weights.items() if fault in GRAVE}
    if grave:
        kinds.add(plan, _one_of(rng, grave))
    phases = max(1, plan.lasts // (6 * SECOND)) if wish.minutes else 1
    for _ in range(phases * rng.choice([0, 1, 2, 2, 3, 4, 6, 10]) if weights else 0):
        kinds.add(plan, _one_of(rng, weights))
    plan.add_gathers()
    plan.add_unicasts()
    if "long-pause" in plan.may and rng.random() < 0.2:
        return plan.add_long_pause() + rng.randrange(0, 2 * SECOND)
    return 0


def _one_of(rng: Random, weights: dict[str, int]) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]


PIECES: Final = 0.03  # share of the send steps with one payload that is larger than a run
PIECES_MOST: Final = 40  # runs that such a payload fills at most


def _sends(
    rng: Random, names: Sequence[str], until: int, heal_at: int, config: dict[str, int], wish: Wish
) -> list[Action]:
    """Draw steady senders and bursts.  Half of the schedules send a few messages after all faults have healed, to
    show that the group works again.  The others send nothing, so the members must detect the last losses without new
    messages."""
    senders = rng.sample(names, rng.randint(2, len(names)))
    alone = MEMBERSHIP not in profile_named(wish.profile).services
    large, in_pieces = Config(**config).run_bytes, ANY_SIZE in profile_named(wish.profile).services
    whole = max(1, until // (8 * SECOND)) if wish.minutes else 1
    sends: list[Action] = []
    left = MESSAGES * whole
    while left > 0:
        count = rng.choice([1, 1, 1, 2, 5, 20])
        size = rng.randint(10, min(200, large)) if rng.random() < 0.97 else rng.randint(min(200, large), large)
        if rng.random() < PIECES:
            count, size = 1, rng.randint(large, PIECES_MOST * large)
        if not in_pieces:
            size = min(size, large)
        at = rng.randrange(FORMATION // 2, until)
        to = rng.choice(names) if rng.random() < 0.1 or alone else None
        who = to if to is not None and rng.random() < 0.2 else rng.choice(senders)  # some members send to themselves
        sends.append(Send(at=at, who=who, count=count, size=size, to=to))
        left -= count if to is None or alone else 0
    for _ in range(20 if heal_at > until else 0):
        sends.append(Send(at=rng.randrange(until, heal_at), who=rng.choice(senders), count=1, size=20))
    for _ in range(rng.choice([0, 10])):
        sends.append(Send(at=heal_at + rng.randrange(0, 2 * SECOND), who=rng.choice(names), count=1, size=20))
    return sends
