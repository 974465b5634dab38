"""The configuration that a program writes: seconds, checked against each other."""

from __future__ import annotations

from typing import Any

import pytest

from pygroups import Channel, Config, UsageError
from pygroups.channel.config import TIMES
from pygroups.core.limits import SECOND
from pygroups.core.limits import Config as Limits


def test_the_defaults_are_those_of_the_layers() -> None:
    assert Config().limits() == Limits()


def test_only_the_given_values_are_shown() -> None:
    assert repr(Config()) == "Config()"
    config = Config(heartbeat=0.25, on_journal_lost="leave", internal=Limits(stable_bytes=4_096))
    assert repr(config) == "Config(heartbeat=0.25, on_journal_lost='leave', internal=limits.Config(stable_bytes=4096))"


def test_times_are_seconds() -> None:
    config = Config(heartbeat=0.25, heartbeat_timeout=2, state_timeout=1.5, window=2 << 20)
    limits = config.limits()
    assert (limits.heartbeat, limits.heartbeat_timeout, limits.state_timeout) == (250_000, 2_000_000, 1_500_000)
    assert limits.window == 2 << 20
    assert limits.verify_timeout == Limits().verify_timeout


def test_every_time_that_a_program_may_set_is_a_time_of_the_layers() -> None:
    for name in TIMES:
        value = getattr(Limits(), name)
        assert getattr(Config(), name) == value / SECOND
        assert value >= SECOND // 100, f"{name} is no time in microseconds"


def test_what_the_layers_have_beside_is_internal() -> None:
    limits = Config(heartbeat=0.5, internal=Limits(stable_bytes=4_096, heartbeat=7)).limits()
    assert (limits.stable_bytes, limits.heartbeat) == (4_096, 500_000)
    with pytest.raises(TypeError):
        Config(stable_bytes=4_096)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"heartbeat": 2.0, "heartbeat_timeout": 1.0}, "heartbeat=2 must be less than heartbeat_timeout=1"),
        ({"heartbeat_timeout": 1}, "heartbeat=1 must be less than heartbeat_timeout=1"),
        ({"heartbeat_timeout": 5_000_000}, "heartbeat_timeout=5000000 must be in seconds"),
        ({"leave_timeout": 0}, "leave_timeout=0 must be in seconds"),
        ({"leave_timeout": -1.0}, "leave_timeout=-1.0 must be in seconds"),
        ({"verify_timeout": "1"}, "verify_timeout='1' must be a number of seconds"),
        ({"state_timeout": float("nan")}, "state_timeout=nan must be in seconds"),
        ({"window": 1_000}, "window=1000 holds no full run"),
        ({"run_bytes": 1 << 20}, "run_bytes=1048576 is above"),
        ({"window": 1.5}, "window=1.5 must be a positive whole number"),
        ({"link_bytes": 1_000}, "link_bytes=1,000 must be at least window=1,048,576"),
        ({"internal": 5}, "internal= needs"),
        ({"on_journal_lost": "stop"}, "on_journal_lost='stop' is not known: use 'continue' or 'leave'"),
        ({"slow_policy": "kick"}, "slow_policy='kick' is not known: use 'wait' or 'exclude'"),
        ({"slow_timeout": 0}, "slow_timeout=0 must be in seconds"),
        ({"journal_keep": 0}, "journal_keep=0 must be a positive whole number"),
        ({"journal_segment": 1.5}, "journal_segment=1.5 must be a positive whole number"),
    ],
)
def test_what_cannot_be_is_refused_by_name(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        Config(**wrong)
    assert says in str(refused.value)


def test_a_channel_takes_a_config_and_nothing_else() -> None:
    Channel("g", config=Config())
    Channel("g", config=Limits())
    with pytest.raises(UsageError, match=r"config= needs a pygroups\.Config, not dict"):
        Channel("g", config={"window": 5})  # type: ignore[arg-type]
