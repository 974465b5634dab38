"""What seeds mean: which faults they have, and how often."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from msgspec import structs

from pygroups.core.errors import UsageError
from pygroups.core.limits import MILLION, Config
from pygroups.layers.profiles import profile_named
from pygroups.sim.batches.coverage import SEEDS_MIN
from pygroups.sim.promises import progress
from pygroups.sim.schedules import settings, stages, unshown
from pygroups.sim.schedules.catalog import (
    DISTURBING,
    FAULTS,
    GRAVE,
    SENTENCES,
    STEPS,
    checked_faults,
    possible,
)
from pygroups.sim.schedules.draw import SMALL, Wish, draw
from pygroups.sim.schedules.fault_plan import STAGES
from pygroups.sim.schedules.lasting import STAYING
from pygroups.sim.schedules.schedule import Schedule, from_json, to_json
from pygroups.sim.schedules.steps import Crash, Cut, Far, Mislead, Pause, Send, StartProcess, Vouch

MEANWHILE = {"Crash", "Leave", "Gather"}  # what a group has to agree on while something lasts
WEATHERS = {"loss", "bursts", "repeat", "reorder", "tail", "late", "corrupt"}


def some(faults: tuple[str, ...], seeds: int = 60, profile: str = "total") -> list[Schedule]:
    return [draw(seed, Wish(profile, faults=faults)) for seed in range(seeds)]


def kinds(schedule: Schedule) -> set[str]:
    weather = {name for name in WEATHERS if getattr(schedule.weather, name)}
    return {type(action).__name__ for action in schedule.actions} - {"StartProcess", "Send"} | weather


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_can_be_had_alone(fault: str) -> None:
    """What a list does not name does not happen; a fault of it does, in most seeds."""
    expected = {
        "crash": {"Crash"},
        "restart": {"Crash"},
        "isolate": {"Cut", "Gather"},
        "pause": {"Pause", "Gather"},
        "long-pause": {"Pause"},
        "halves": {"Cut", "Gather"},
        "ring": {"Ring", "Gather"},
        "oneway": {"Cut", "Gather"},
        "pair": {"Cut", "Gather"},
        "tear": {"Cut", "Clog", "Gather"},
        "ahead": {"Clog", "Leave", "Gather"},
        "merge": {"Cut", "Gather"},
        "merge-leader": {"Crash", "Pause", "Cut", "Gather"},
        "flap": {"Flap"},
        "clog": {"Clog", "Gather"},
        "break": {"Break"},
        "replay": {"Replay"},
        "leave": {"Leave"},
        "join-storm": {"Leave"},
        "leave-storm": {"Leave"},
        "handover": {"Leave"},
        "slow": {"SlowReader"},
        "full": {"Unread"},
        "expel": {"Unread", "Pause", "Gather"},
        "clock": {"Jump"},
        "forget": {"CloseConnection"},
        "alone": {"Cut", "Leave", "Gather"},
        "twin": {"Beside"},
        "stranger": {"Beside"},
        "directory": {"Mislead"},
        "unshown": {"Cut", "Mislead"},
        "attack": {"Attack"},
        "disk-full": {"DiskFull"},
        "burst": {"bursts"},
        **{name: {"Cut", *MEANWHILE} for name in ("stay-oneway", "stay-pair", "stay-apart", "unreached", "refused")},
        "far": {"Far", *MEANWHILE},
    }.get(fault, {fault} & WEATHERS)
    drawn = [kinds(schedule) for schedule in some((fault,))]
    assert all(one <= expected for one in drawn)
    if expected:
        assert sum(bool(one) for one in drawn) >= (3 if fault == "long-pause" else 25)


def test_starts_and_clocks() -> None:
    def starts(schedule: Schedule) -> list[int]:
        return [action.at for action in schedule.actions if isinstance(action, StartProcess)]

    at_once = some(("together",), 20)
    assert sum(max(starts(schedule)) <= 200 for schedule in at_once) >= 10
    assert all(max(starts(schedule)) < 300_000 for schedule in some(("drift",), 20))
    assert any(max(starts(schedule)) > 500_000 for schedule in some(("join",), 20))
    drifts = [habits.drift for schedule in some(("drift",), 20) for habits in schedule.habits.values()]
    assert len(set(drifts)) > 20 and max(map(abs, drifts)) <= 400


def test_a_seed_has_a_part_of_all_faults() -> None:
    """Many lack most of them; some have one kind many times; each is there in some."""
    schedules = some(FAULTS, 400)
    counted = Counter(kind for schedule in schedules for kind in kinds(schedule))
    assert all(100 < counted[weather] < 260 for weather in WEATHERS)
    assert sum(len(kinds(schedule)) <= 3 for schedule in schedules) > 40
    assert sum(len(kinds(schedule)) >= 8 for schedule in schedules) > 20
    for kind in ("Ring", "Flap", "Clog", "SlowReader", "Unread", "Jump", "Break", "DiskFull"):
        assert counted[kind] >= 4, kind
    assert any(schedule.weather.late_max > 15_000_000 for schedule in schedules)
    long = [
        (schedule.heal_at, action.at + action.lasts)
        for schedule in schedules
        for action in schedule.actions
        if isinstance(action, Pause) and action.lasts > 20_000_000
    ]
    assert 1 <= len(long) <= 40
    assert all(heal_at >= over for heal_at, over in long)


@pytest.mark.parametrize("fault", STAYING)
def test_what_lasts_is_there_when_all_else_has_healed_and_long_enough_to_be_judged(fault: str) -> None:
    schedules = [schedule for schedule in some((fault,)) if schedule.stays]
    assert len(schedules) >= 30
    assert 5 <= sum(schedule.for_good for schedule in schedules) < len(schedules)
    for schedule in schedules:
        assert from_json(to_json(schedule)) == schedule
        last = max(step.at for step in schedule.actions if not isinstance(step, Send))
        by = max((step.by for step in schedule.actions if isinstance(step, Far)), default=0)
        lasts = schedule.heal_at + schedule.stays - last
        assert lasts > 2 * progress.bound_with_merges(Config(**schedule.config), 2 * by) + 500_000


def test_two_groups_are_drawn_apart_from_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few schedules have processes with other settings, and all else in these schedules is as without them."""
    drawn = {profile: some(FAULTS, 300, profile) for profile in ("total", "fifo")}
    monkeypatch.setattr(settings, "SHARE", 0.0)
    for profile, schedules in drawn.items():
        assert 4 <= sum(bool(schedule.others) for schedule in schedules) <= 20
        for schedule in [schedule for schedule in schedules if schedule.others]:
            assert set(schedule.others) < set(schedule.names)
            assert 0 < schedule.others_meet_at < schedule.heal_at
            assert from_json(to_json(schedule)) == schedule
            plain = draw(schedule.seed, Wish(profile))
            assert structs.replace(schedule, others=(), others_meet_at=0) == plain


def test_two_groups_are_drawn_only_where_views_merge() -> None:
    wishes = (Wish("unicast", faults=("settings",)), Wish("total", faults=("settings",), majority=True))
    assert not any(draw(seed, wish).others for wish in wishes for seed in range(20))
    assert sum(bool(schedule.others) for schedule in some(("settings",), 20)) >= 15


def test_a_directory_that_shows_nobody_is_drawn_apart_from_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few schedules have it, at their end and without another fault beside it; all others are as without it."""
    drawn = some(FAULTS, 300)
    monkeypatch.setattr(unshown, "SHARE", 0.0)
    plain = some(FAULTS, 300)
    blind = [schedule for schedule, before in zip(drawn, plain, strict=True) if schedule != before]
    assert 4 <= len(blind) <= 20
    for schedule in blind:
        before = plain[schedule.seed]
        assert not before.stays
        assert from_json(to_json(schedule)) == schedule
        added = [step for step in schedule.actions if step not in before.actions]
        (wrong,) = [step for step in added if isinstance(step, Mislead)]
        (cut,) = [step for step in added if isinstance(step, Cut)]
        assert (wrong.how, wrong.at) == ("nobody", cut.at)
        assert schedule.heal_at < cut.at
        assert cut.at + cut.lasts + progress.bound_with_merges(Config(**schedule.config)) < wrong.at + wrong.lasts
        assert wrong.at + wrong.lasts == schedule.heal_at + schedule.stays


def test_a_directory_shows_nobody_only_where_views_merge() -> None:
    wishes = (Wish("unicast", faults=("unshown",)), Wish("total", faults=("unshown",), majority=True))
    assert not any(draw(seed, wish).stays for wish in wishes for seed in range(20))


def test_limits_that_are_small_go_together() -> None:
    small = some(("limits",), 200)
    fields = Counter(name for schedule in small for name in schedule.config)
    assert set(SMALL) <= set(fields)
    assert all(Config(**schedule.config) for schedule in small)


def test_one_application_fails_to_give_its_state_and_never_all() -> None:
    for schedule in some(("no-state",), 60):
        assert sum(habits.state != "gives" for habits in schedule.habits.values()) <= 1
    assert {habits.state for schedule in some(("no-state",)) for habits in schedule.habits.values()} == {
        *("gives", "raises", "hangs")
    }


def test_the_bound_knows_how_late_a_copy_can_come() -> None:
    for schedule in some(("late",)):
        age = Config(**schedule.config).connection_age
        assert schedule.bound >= 30_000_000 + bool(schedule.weather.late) * (schedule.weather.late_max + age)
    assert some(("crash",))[0].bound < 200_000_000


def test_each_labeled_point_is_aimed_at() -> None:
    ordered = {"Forward", "Sequencer.Data"}
    numbered = {"Nakack.Data", "XmitReq"}
    of_1999 = {"NewViewId", "NewViewIdAck", "Request", "Bcast", "CumSeqAck", "Total.Resend"}
    without = {"total": of_1999, "fifo": ordered | of_1999, "total1999": ordered | numbered}
    for profile, never in without.items():
        schedules = some(FAULTS, 600, profile)
        aimed = Counter(getattr(action, "moment", "now") for one in schedules for action in one.actions)
        for moment in ("sends", "delivers", "stops", "installs"):
            assert aimed[moment] >= 10
        for stage in STAGES:
            assert stage.label in stages.kinds()
            assert (aimed[stage.label] > 0) == (stage.label not in never), stage.label


def test_losses_are_the_normal_case_of_total1999() -> None:
    schedules = some(FAULTS, 200, "total1999")
    assert sum(schedule.weather.loss > 0 for schedule in schedules) > 140


def test_cuts_at_the_stages_of_a_view_change_and_words_of_an_operator_are_drawn() -> None:
    """In 600 schedules in which a majority decides.  A word counts before a stage if a cut or a crash at this stage
    comes later in the same schedule."""
    cuts: Counter[str] = Counter()
    words: Counter[str] = Counter()
    schedules = [draw(seed, Wish(profile, majority=True)) for seed in range(300) for profile in ("total", "fifo")]
    for schedule in schedules:
        cuts.update(step.moment for step in schedule.actions if isinstance(step, Cut))
        calls = [step.at for step in schedule.actions if isinstance(step, Vouch)]
        words.update(["schedules"] if calls else [])
        hit = [step for step in schedule.actions if isinstance(step, Cut | Crash) and calls and step.at > min(calls)]
        words.update({step.moment for step in hit})
    assert cuts["now"] >= 600
    assert cuts["Ready"] >= 90
    assert sum(count for moment, count in cuts.items() if moment != "now") >= 240
    for stage, least in (("Collect", 7), ("CollectAck", 5), ("Propose", 4), ("Accept", 10), ("Install", 5)):
        assert cuts[stage] >= least, (stage, cuts[stage])
    assert words["schedules"] >= 240
    for stage, least in (("Collect", 5), ("CollectAck", 5), ("Accept", 3)):
        assert words[stage] >= least, (stage, words[stage])


def test_some_seeds_have_nothing_that_makes_the_living_look_dead() -> None:
    calm = [
        schedule
        for schedule in some(FAULTS, 300)
        if not any(isinstance(action, Cut | Pause) for action in schedule.actions)
        and not kinds(schedule) & {"loss", "bursts", "tail", "corrupt", "Ring", "Flap", "Clog", "SlowReader"}
    ]
    assert len(calm) > 30


def test_the_table_of_faults() -> None:
    assert set(GRAVE) <= set(STEPS) < set(FAULTS) and set(DISTURBING) < set(FAULTS)
    assert all(len(sentence.split()) > 2 for sentence in SENTENCES.values())
    assert checked_faults("swarm") == FAULTS
    assert checked_faults("crash, late") == ("crash", "late")
    with pytest.raises(UsageError, match="there is no fault 'rain'; there are: crash, restart, isolate"):
        checked_faults("rain")


def test_every_branch_of_the_settings_of_gossip_is_drawn() -> None:
    """In as many schedules as a batch needs to count; each with the value that it stands for if it is left out."""
    names = ("gossip_buffer", "gossip_early_max", "gossip_cache", "gossip_rate", "gossip_burst", "epsilon_ppm")
    drawn: dict[str, Counter[int | None]] = defaultdict(Counter)
    for seed in range(SEEDS_MIN):
        config = draw(seed, Wish("gossip")).config
        for name in config.keys() | set(names):
            drawn[name][config.get(name)] += 1
    second, none = 1_000_000, None
    assert {
        name: set(drawn[name]) for name in drawn if "gossip" in name or name in ("subset", "lag", "epsilon_ppm")
    } == {
        "desired_avg_gossip": {50_000, 200_000, 500_000},
        "gossip_retry": {50_000, 200_000},
        "gossip_patience": {2 * second, 5 * second},
        "gossip_keep": {3 * second, 30 * second},
        "subset": {100, 300, 1_000},
        "lag": {1, 10},
        "use_mcast_for_gossip": {0, 1},
        "gossip_buffer": {none, 2 << 10, 8 << 10},
        "gossip_early_max": {none, 4},
        "gossip_cache": {none, 8},
        "gossip_rate": {none, 64 << 10},
        "gossip_burst": {none, 2 << 10},
        "epsilon_ppm": {none, MILLION},
    }
    assert min(min(values.values()) for name, values in drawn.items() if "gossip" in name) > SEEDS_MIN // 50


def test_a_fault_in_a_step_that_a_profile_does_not_have_is_not_drawn() -> None:
    for profile, missing in (("gossip", {"tear", "ahead", "no-state"}), ("total", set()), ("total1999", set())):
        services = profile_named(profile).services
        assert set(FAULTS) - set(possible(FAULTS, services)) == missing
