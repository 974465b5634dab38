"""Config: its defaults hold together, and each bad value is refused with a sentence that names it."""

from __future__ import annotations

import pytest

from pygroups.core.errors import UsageError
from pygroups.core.limits import (
    BODY_MAX,
    ENTRY_BYTES,
    FLAGS,
    FRAME_FILL,
    FRAME_MAX,
    LIMIT_MAX,
    MARKS_MAX,
    MEMBERS_MAX,
    Config,
)
from pygroups.drivers.tcp.door import READ_BYTES
from pygroups.drivers.transports import TCP

FIELDS = Config.__struct_fields__


def test_the_defaults_are_accepted() -> None:
    assert Config() == Config(**{name: getattr(Config(), name) for name in FIELDS})


@pytest.mark.parametrize("name", [name for name in FIELDS if name not in FLAGS])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, None, "5", float("nan")])
def test_what_is_no_positive_whole_number_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(UsageError, match=rf"config {name}=.*must be a positive whole number"):
        Config(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", [2, -1, 0.5, True, None, "1"])
def test_a_flag_is_0_or_1(name: str, value: object) -> None:
    assert getattr(Config(**{name: 1}), name) == 1
    with pytest.raises(UsageError, match=rf"config {name}=.*must be 0 or 1"):
        Config(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("run_bytes", BODY_MAX // 2),
        ("state_chunk", BODY_MAX // 2),
        ("marks_max", MARKS_MAX - MEMBERS_MAX),
        ("window", LIMIT_MAX),
        ("heartbeat_all", LIMIT_MAX),
    ],
)
def test_what_the_wire_would_not_take_is_refused(name: str, most: int) -> None:
    assert getattr(Config(**{name: most}), name) == most
    with pytest.raises(UsageError, match=rf"config {name}={most + 1} is above "):
        Config(**{name: most + 1})


def test_a_window_holds_a_full_run() -> None:
    assert Config(run_bytes=1_000, window=1_000).window == 1_000
    with pytest.raises(UsageError, match="config window=999 holds no full run"):
        Config(run_bytes=1_000, window=999)


def test_a_config_does_not_change() -> None:
    with pytest.raises(AttributeError):
        Config().window = 5  # type: ignore[misc]


def test_only_what_must_agree_is_in_the_fingerprint() -> None:
    base = Config().fingerprint()
    numbers = [name for name in FIELDS if name not in (*FLAGS, "run_growth")]
    differing = {name for name in numbers if Config(**{name: getattr(Config(), name) - 1}).fingerprint() != base}
    assert differing == {"run_bytes", "payload_max", "window", "heartbeat_all", "heartbeat_neighbors"}
    assert Config(run_bytes=1_000, run_growth=2).fingerprint() == Config(run_bytes=1_000).fingerprint()


def test_limits_of_the_wire_hold_what_they_have_to() -> None:
    config = Config()
    assert config.run_bytes + 2 * ENTRY_BYTES <= BODY_MAX, "a full run and its lengths"
    assert FRAME_FILL + BODY_MAX < FRAME_MAX, "a frame takes one more run until it is full"
    grown = config.run_bytes * TCP.limits(config).run_growth
    assert grown + 2 * ENTRY_BYTES <= BODY_MAX, "a run that has grown"
    assert FRAME_FILL + grown + 8_192 < READ_BYTES, "no frame of data needs a larger buffer than there is"
    longest = 64 + 16 + 13  # a name, an incarnation, a number and what msgpack adds
    assert MARKS_MAX * longest + FRAME_FILL < FRAME_MAX, "a digest fits a frame"
